/**
 * One context as the scheduler sees it: its segments, its playback clock and its backpressure gate.
 *
 * The playback clock says when the listener would run out of audio: the start of playback plus the audio made so far.
 */
import { InvariantError } from '../fault.js';
import type { Segment } from '../text/segments.js';
import { UnsentAudio, type AudioBudget } from './audio-budget.js';
import type { Group } from './group.js';

/** Speech of about 14 characters a second; only used until a segment's true duration is known. */
const ESTIMATED_MS_PER_CHARACTER = 70;

/** @param speed factor of pace */
export const estimateSpeechMs = (textUnits: number, speed = 1): number =>
  (textUnits * ESTIMATED_MS_PER_CHARACTER) / speed;
/** More than an encoder holds back of the audio that it was given. */
const HELD_BACK_MS = 250;

export interface ScheduledSegment extends Segment {
  /** 0, 1, 2 ... within its context. */
  readonly index: number;
  /** White space before it that is in no segment, where the times of characters are reported. */
  readonly blank?: string;
}

/** The context that a schedule belongs to. */
export interface SegmentOwner {
  /**
   * Runs a segment. The owner reports its end with `ContextSchedule.finished` or `requeue`. Must not throw.
   *
   * @param playFromMs when the listener wants its first sample
   * @param readySinceMs since when it has waited only for a thread
   */
  start(segment: ScheduledSegment, playFromMs: number, readySinceMs: number): void;
  /** The playback clock of a running segment moved. */
  moved(segment: ScheduledSegment, playFromMs: number): void;
  /** There is something to make again, from this segment on: text after all was made, or the gate opened. */
  resumed(nowMs: number, segment: number): void;
}

/** The scheduler, as its contexts see it. */
export interface ScheduleHost {
  readonly audio: AudioBudget;
  readonly unsentAudioMsMax: number;
  nowMs(): number;
  /** The context may start now, or no longer, or in another order. */
  changed(context: ContextSchedule): void;
  /** The same for all contexts of its group. */
  groupChanged(group: ContextGroup): void;
  /** The group may run further segments now, or no longer. */
  roomChanged(group: ContextGroup): void;
  /** Something may be startable. */
  wake(): void;
  /** A running segment of the context ended. `wake` follows. */
  ended(context: ContextSchedule): void;
}

export type ContextGroup = Group<ContextSchedule>;

interface RunningSegment {
  readonly segment: ScheduledSegment;
  readonly estimatedMs: number;
}

interface FinishedSegment {
  readonly index: number;
  readonly durationMs: number;
}

export class ContextSchedule {
  readonly group: ContextGroup;
  /** Contexts of equal deadline in one group take turns: the lowest number is first. Set by the scheduler. */
  order = 0;
  /** The deadline with which the scheduler keeps the context in a heap. Set by the scheduler. */
  rankMs = 0;
  /** The bytes with which the scheduler keeps a context that the audio budget refused. Set by the scheduler. */
  refusedBytes = 0;
  readonly #host: ScheduleHost;
  readonly #owner: SegmentOwner;
  readonly #bytesPerMs: number;
  readonly #speed: number;
  /** What the context has of the audio budget. */
  #heldBytes = 0;
  /** What it has of its group's expected audio. */
  #expectedMs = 0;
  readonly #unsent = new UnsentAudio();
  readonly #queued: ScheduledSegment[] = [];
  readonly #running: RunningSegment[] = [];
  /** Finished before an earlier segment: an idle thread ran them. */
  #finishedEarly: readonly FinishedSegment[] = [];
  #playbackStartMs: number;
  #madeMs = 0;
  #handedMs = 0;
  /** Handed over before the utterance that is being spoken. */
  #handedBeforeMs = 0;
  /** One more than the index of the last segment that was started. */
  #startedEnd = 0;
  #isGated = false;
  #isDropped = false;
  /** Since when a segment has been queued with the gate open. */
  #readySinceMs = 0;

  /**
   * @param bytesPerMs what a millisecond of its audio takes of the audio budget
   * @param speed factor of pace: estimates of durations depend on it
   * @param leadMs the listener wants the first sample so much later than now
   */
  constructor(
    host: ScheduleHost,
    group: ContextGroup,
    owner: SegmentOwner,
    bytesPerMs: number,
    speed: number,
    leadMs: number,
  ) {
    this.group = group;
    this.#host = host;
    this.#owner = owner;
    this.#bytesPerMs = bytesPerMs;
    this.#speed = speed;
    this.#playbackStartMs = host.nowMs() + leadMs;
  }

  get queuedSegments(): number {
    return this.#queued.length;
  }

  get runningSegments(): number {
    return this.#running.length;
  }

  /** Some audio of the utterance that is being spoken was handed over. */
  get isHeard(): boolean {
    return this.#handedMs > this.#handedBeforeMs;
  }

  /** Made and not handed over; below zero while the segment that is being handed over runs. */
  get unsentMs(): number {
    return this.#madeMs - this.#handedMs;
  }

  /** Bytes of its audio that is unsent, or that its running segments are expected to make. */
  get unsentBytes(): number {
    return this.#unsent.ms * this.#bytesPerMs;
  }

  /** Text waits, and the gate is not known to be shut. */
  get isWilling(): boolean {
    return this.#queued.length > 0 && !this.#isGated;
  }

  /** Milliseconds of speech that this many UTF-16 units of text may take. */
  estimateMs(textUnits: number): number {
    return estimateSpeechMs(textUnits, this.#speed);
  }

  /** Milliseconds of speech of segments that are finished, running or queued; the latter two are estimated. */
  get expectedMs(): number {
    let expectedMs = this.#madeMs;
    for (const { estimatedMs } of this.#running) expectedMs += estimatedMs;
    for (const { text } of this.#queued) expectedMs += this.estimateMs(text.length);
    return expectedMs;
  }

  /** When the next segment to start is due. */
  get dueMs(): number {
    return this.#startOf(this.#queued[0]?.index ?? Number.POSITIVE_INFINITY);
  }

  enqueue(segment: ScheduledSegment): void {
    if (this.#isDropped) return;
    // After a pause the listener has heard everything: the new utterance is due now, not in its past.
    if (this.#queued.length === 0 && this.#running.length === 0) {
      const isHeardOut = this.unsentMs < HELD_BACK_MS;
      if (isHeardOut) this.#handedBeforeMs = this.#handedMs;
      this.#restartPlayback();
      this.#owner.resumed(this.#host.nowMs(), segment.index);
    }
    if (this.#queued.length === 0) this.#readySinceMs = this.#host.nowMs();
    this.#queued.push(segment);
    this.#host.changed(this);
    this.#host.wake();
  }

  /** The client asked for the audio that an encoder may hold back. If all else is made, the context waited for that. */
  tailAsked(lastSegment: number): void {
    if (this.#queued.length === 0 && this.#running.length === 0)
      this.#owner.resumed(this.#host.nowMs(), lastSegment);
  }

  /** Forgets the queued segments from this index on. */
  withdraw(fromIndex: number): void {
    const kept = this.#queued.filter(({ index }) => index < fromIndex);
    this.#queued.splice(0, this.#queued.length, ...kept);
    this.#host.changed(this);
  }

  /** A running segment is complete. */
  finished(segment: ScheduledSegment, durationMs: number): void {
    if (!this.#takeRunning(segment)) return;
    this.#unsent.finished(segment.index, durationMs);
    if (!this.#isDropped) {
      const wasFull = this.group.isFull();
      this.#madeMs += durationMs;
      const unfinishedFrom = this.#unfinishedFrom;
      this.#finishedEarly = [...this.#finishedEarly, { index: segment.index, durationMs }].filter(
        ({ index }) => index > unfinishedFrom,
      );
      this.group.unsentMs += durationMs;
      if (!wasFull && this.group.isFull()) this.#host.groupChanged(this.group);
    }
    this.#ended();
  }

  /** A running segment did not complete. It runs again, before all queued segments. */
  requeue(segment: ScheduledSegment): void {
    if (!this.#takeRunning(segment)) return;
    this.#unsent.interrupted(segment.index);
    if (!this.#isDropped) {
      if (this.#queued.length === 0) this.#readySinceMs = this.#host.nowMs();
      this.#queued.push(segment);
      this.#queued.sort((a, b) => a.index - b.index);
    }
    this.#ended(false);
  }

  /** A running segment ended without a result, and its context is over. Its estimate counts until the context is closed. */
  abandoned(segment: ScheduledSegment): void {
    if (this.#takeRunning(segment)) this.#ended();
  }

  /**
   * The transport handed over this much audio.
   *
   * @throws {InvariantError} more audio was handed over than was made
   */
  handed(durationMs: number): void {
    if (this.#isDropped) return;
    const { group } = this;
    const isFirst = !this.isHeard;
    const wasFull = group.isFull();
    const hadRoom = group.hasRoom();
    this.#handedMs += durationMs;
    group.unsentMs -= durationMs;
    this.#unsent.handed(durationMs);
    const opensGroup = wasFull && !group.isFull();
    if (opensGroup) this.#host.groupChanged(group);
    else if (this.#isGated) this.#host.changed(this);
    try {
      this.#hold();
    } finally {
      if (isFirst || opensGroup || (!hadRoom && group.hasRoom())) this.#host.wake();
    }
    if (!this.#isGated || this.isGateShut()) return;
    this.#open();
    this.#host.changed(this);
    this.#host.wake();
  }

  /** Forgets the queued segments and the audio. Running segments end by themselves. Idempotent. */
  drop(): void {
    if (this.#isDropped) return;
    this.#isDropped = true;
    const wasFull = this.group.isFull();
    this.group.unsentMs -= this.unsentMs;
    this.#queued.length = 0;
    if (wasFull && !this.group.isFull()) this.#host.groupChanged(this.group);
    this.#hold();
  }

  /** Opens the gate if it was shut and nothing shuts it now. */
  refreshGate(): void {
    if (this.#isGated && this.#queued.length > 0 && !this.isGateShut()) this.#open();
  }

  /** The context has its turn. @returns false if the gate is shut: then it has none until the gate opens */
  passesGate(): boolean {
    this.#isGated = this.isGateShut();
    return !this.#isGated;
  }

  isGateShut(): boolean {
    if (this.#runsAgain) return false;
    return this.isShutByListener || !this.#host.audio.hasRoomFor(this.unsentBytes);
  }

  /** The gate is known to be shut, by nothing but the audio budget. */
  get isRefused(): boolean {
    return this.#isGated && this.#queued.length > 0 && !this.#runsAgain && !this.isShutByListener;
  }

  /** Starts the next queued segment. @param groupIsBusy another segment of the group runs, and a thread is idle */
  start(groupIsBusy: boolean): void {
    const segment = this.#queued.shift();
    if (segment === undefined) throw new Error('start() needs a queued segment');
    const playFromMs = this.#startOf(segment.index);
    const readySinceMs = groupIsBusy
      ? this.#host.nowMs()
      : Math.max(this.#readySinceMs, this.group.idleSinceMs);
    this.#startedEnd = Math.max(this.#startedEnd, segment.index + 1);
    const estimatedMs = this.estimateMs(segment.text.length);
    this.#running.push({ segment, estimatedMs });
    this.#unsent.started(segment.index, estimatedMs);
    this.#hold();
    this.#owner.start(segment, playFromMs, readySinceMs);
  }

  /** The next segment ran before. The audio after it waits for it, and would keep the gate shut for ever. */
  get #runsAgain(): boolean {
    return (this.#queued[0]?.index ?? this.#startedEnd) < this.#startedEnd;
  }

  get isShutByListener(): boolean {
    return this.group.isFull() || this.#unsent.ms > this.#host.unsentAudioMsMax;
  }

  /** The listener waited for the gate, not for the threads: the next segment is due now. */
  #open(): void {
    this.#isGated = false;
    this.#restartPlayback();
    this.#readySinceMs = this.#host.nowMs();
    const [next] = this.#queued;
    if (next !== undefined) this.#owner.resumed(this.#readySinceMs, next.index);
  }

  /** A running segment was taken from the list: brings all accounts up to date. */
  #ended(movesOthers = true): void {
    this.#host.ended(this);
    try {
      this.#hold();
    } finally {
      if (movesOthers) this.#reportMoves();
      this.#host.wake();
    }
  }

  /** Takes bytes from the audio budget, or gives them back, until it has what its unsent audio needs. */
  #hold(): void {
    const hadRoom = this.group.hasRoom();
    const expectedMs = this.#isDropped ? 0 : this.#unsent.ms;
    this.group.expectedMs += expectedMs - this.#expectedMs;
    this.#expectedMs = expectedMs;
    if (this.group.hasRoom() !== hadRoom) this.#host.roomChanged(this.group);
    const bytes = Math.round(expectedMs * this.#bytesPerMs);
    if (bytes < 0) throw new InvariantError(`more audio was handed over than was made: ${-bytes} bytes`);
    const changeBytes = bytes - this.#heldBytes;
    this.#heldBytes = bytes;
    this.#host.audio.change(changeBytes);
  }

  /** The index of the first segment that is not finished; infinite without one. */
  get #unfinishedFrom(): number {
    return Math.min(
      this.#queued[0]?.index ?? Number.POSITIVE_INFINITY,
      ...this.#running.map(({ segment }) => segment.index),
    );
  }

  /** When the listener wants the first sample of the segment with this index. */
  #startOf(index: number): number {
    let startMs = this.#playbackStartMs + this.#madeMs;
    for (const { segment, estimatedMs } of this.#running) if (segment.index < index) startMs += estimatedMs;
    for (const early of this.#finishedEarly) if (early.index > index) startMs -= early.durationMs;
    return startMs;
  }

  /** What is not finished is due now at the earliest. */
  #restartPlayback(): void {
    this.#playbackStartMs += Math.max(0, this.#host.nowMs() - this.#startOf(this.#unfinishedFrom));
    this.#reportMoves();
  }

  #reportMoves(): void {
    for (const { segment } of this.#running) this.#owner.moved(segment, this.#startOf(segment.index));
  }

  #takeRunning(segment: ScheduledSegment): boolean {
    const position = this.#running.findIndex((running) => running.segment === segment);
    if (position < 0) return false;
    this.#running.splice(position, 1);
    return true;
  }
}
