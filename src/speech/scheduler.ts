/**
 * Decides which segment runs next: the earliest playback deadline first, each group like one listener, bounded by what
 * the listeners have taken.
 *
 * A group (the contexts of one lease, of one WebSocket, or the whole files of one account) may always run one segment.
 * Further contexts of the group run theirs beside it while threads idle, or while fewer than half of the jobs are taken:
 * then each group may take as many jobs as that half has left. The threads decide between steps how much they work for each
 * group (`workers/step-queue.ts`). A second segment of the same context runs only while threads would otherwise idle, and
 * only after its listener heard something: it would delay the first chunk of the first. A whole file has no first chunk to
 * delay, so it runs one segment on each thread.
 *
 * A context gets no segment while its unsent audio, or that of its group, is over the bound. This is the backpressure
 * gate, and the only place where backpressure acts.
 *
 * Each start looks at every context that has text to be made: 0.1 to 0.2 ms for each 1,000 of them, and no order to keep.
 *
 * Pure policy: it runs nothing and knows no thread. Time comes from the given clock.
 */
import { InvariantError } from '../fault.js';
import type { Bounds } from '../limits.js';
import type { Clock } from '../monotonic.js';
import type { Segment } from '../text/segments.js';
import type { SegmentRequest } from '../threads/messages.js';
import type { ClockTable } from '../threads/playback-clock.js';
import { AudioBudget, ContextAudio } from './audio-budget.js';
import type { Listener } from './listener.js';

export interface SchedulerOptions {
  readonly clock: Clock;
  /** Of listeners and groups. */
  readonly clocks: ClockTable;
  /** The machine has more to do than it makes in time. Never by default. */
  readonly isFull?: () => boolean;
  /** Synthesis threads. */
  readonly threads: number;
  /** Segments that may be with the threads at once. */
  readonly jobsMax: number;
  readonly bounds: Pick<
    Bounds,
    'unsentAudioMsMax' | 'unsentAudioBytesMax' | 'unsentAudioMsPerLeaseMax' | 'expectedAudioMsPerLeaseMax'
  >;
}

/** What an engine is asked to speak, but for the seeds. */
export type UnseededRequest = Omit<SegmentRequest, 'seed' | 'utteranceSeed'>;

export interface ScheduledSegment extends Pick<Segment, 'tokenContinues'> {
  /** 0, 1, 2 ... within its context. */
  readonly index: number;
  /** Speech that it makes: an estimate, which grows when more has come. */
  expectedMs: number;
  /** Of that, beyond what has come, once that was more than expected. */
  moreMs?: number;
  /** White space before it that is in no segment, where the times of characters are reported. */
  readonly blank?: string;
  readonly request: UnseededRequest;
}

/** A segment that is about to run. */
export interface SegmentStart {
  readonly segment: ScheduledSegment;
  /** Position of its first sample in the audio of its context: an estimate while a segment before it runs. */
  readonly startMs: number;
  /** Its listener waits for first audio. */
  readonly isAwaited: boolean;
  /** Its first chunk. */
  readonly begins: 'short' | 'long' | 'longest';
  /** Since when it has waited only for a thread. */
  readonly readySinceMs: number;
}

export interface ScheduledOptions {
  /** Contexts with the same key are one group. */
  readonly group: object | string;
  /** Accounts take turns with first audio, and each has its part of the audio budget. */
  readonly account?: string;
  readonly listener: Listener;
  /** What a millisecond of its audio takes of the audio budget. */
  readonly bytesPerMs: number;
  /** Whether the machine has room for its next segment. Absent: it has. */
  readonly mayStart?: () => boolean;
  /** Runs a segment. `finished`, `requeue` or `abandoned` report its end. Must not throw. */
  readonly start: (start: SegmentStart) => void;
  /** The position of the first sample of a running segment is better known. */
  readonly move: (segment: ScheduledSegment, startMs: number) => void;
}

/** The rest of a segment that is longer than was expected counts as so much, until it is complete. */
const MORE_MS = 2_000;
/** More than an encoder holds back of the audio that it was given. */
const HELD_BACK_MS = 250;
/** With more running segments for each thread, there is a crowd. In it, a listener with `LONGEST_LEAD_MS` in hand gets the longest chunks. */
const CROWD_PER_THREAD = 4;
const LONGEST_LEAD_MS = 6_000; // 2 s delayed first audio after a full load.

/** One context: its segments, and its gate. Only the scheduler changes it. */
export class ScheduledContext {
  readonly options: ScheduledOptions;
  readonly group: ContextGroup;
  readonly queued: ScheduledSegment[] = [];
  readonly running: ScheduledSegment[] = [];
  readonly audio = new ContextAudio();
  /** Handed over before the utterance that is being spoken. */
  handedBeforeMs = 0;
  /** One more than the index of the last segment that was started. */
  startedEnd = 0;
  /** The gate is known to be shut. */
  isGated = false;
  isClosed = false;
  /** Since when a segment has been queued with the gate open. */
  readySinceMs = 0;
  /** Contexts of equal deadline in one group take turns: the lowest number is first. */
  order = 0;
  /** Where it stands among those that may start a segment, as of the last look. */
  turn = IDLE_GROUP;
  rankMs = 0;
  /** When other first audio of its account last started. */
  accountMs = 0;
  /** What it has of its group's expected audio. */
  heldMs = 0;

  constructor(options: ScheduledOptions, group: ContextGroup) {
    this.options = options;
    this.group = group;
  }

  /** Some audio of the utterance that is being spoken was handed over. */
  get hasHandedAudio(): boolean {
    return this.options.listener.handedMs > this.handedBeforeMs;
  }

  /** Made and not handed over; below zero while the segment that is being handed over runs. */
  get unsentMs(): number {
    return this.audio.madeMs - this.options.listener.handedMs;
  }

  /** What it has of the audio budget. */
  get heldBytes(): number {
    return Math.round(this.heldMs * this.options.bytesPerMs);
  }

  /** Milliseconds of speech of segments that are finished, running or queued; the latter two are estimated. */
  get expectedMs(): number {
    // Without lists of its own: each count of admission reads it for all contexts.
    let sumMs = this.audio.madeMs;
    for (const { expectedMs } of this.running) sumMs += expectedMs;
    for (const { expectedMs } of this.queued) sumMs += expectedMs;
    return sumMs;
  }

  /** When the next segment to start is due. */
  get dueMs(): number {
    return this.options.listener.clock.at(
      this.audio.startOf(this.queued[0]?.index ?? Number.POSITIVE_INFINITY),
    );
  }

  /** The next segment ran before. The audio after it waits for it, and would keep the gate shut for ever. */
  get runsAgain(): boolean {
    return (this.queued[0]?.index ?? this.startedEnd) < this.startedEnd;
  }

  /** The index of the first segment that is not finished; infinite without one. */
  get unfinishedFrom(): number {
    return Math.min(
      this.queued[0]?.index ?? Number.POSITIVE_INFINITY,
      ...this.running.map(({ index }) => index),
    );
  }

  /** What comes before its running segments has another length. */
  moveRunning(): void {
    for (const segment of this.running) this.options.move(segment, this.audio.startOf(segment.index));
  }
}

/** The contexts of one key. They count as one listener, and have one bound of unsent audio. */
export interface ContextGroup {
  readonly key: object | string;
  /** Counts up with every group. */
  readonly order: number;
  readonly contexts: Set<ScheduledContext>;
  /** Number of the clock that says what it has had; threads keep it, between steps. Taken when it is needed. */
  share?: number;
  /** Segments that run now. */
  running: number;
  /** When the last segment that ran ended. */
  idleSinceMs: number;
  /** Audio of all its contexts that was made and not handed over; below zero while the segment being handed over runs. */
  unsentMs: number;
  /** The same with what the running segments are expected to make. Never negative, but for rounding. */
  expectedMs: number;
}

/** Whose turn it is: first a group that runs nothing, then one that runs something, then a context that does. */
const IDLE_GROUP = 0;
const BESIDE_ITS_GROUP = 1;
const BEHIND_ITSELF = 2;

const accountOf = ({ options }: ScheduledContext): string => options.account ?? '';

/** A total order of contexts that may start a segment. */
const isBefore = (a: ScheduledContext, b: ScheduledContext): boolean => {
  if (a.turn !== b.turn) return a.turn < b.turn;
  if (a.turn === BESIDE_ITS_GROUP && a.group.running !== b.group.running)
    return a.group.running < b.group.running;
  if (a.rankMs !== b.rankMs) return a.rankMs < b.rankMs;
  if (a.dueMs !== b.dueMs) return a.dueMs < b.dueMs;
  if (a.turn !== BEHIND_ITSELF && a.group.order !== b.group.order) return a.group.order < b.group.order;
  return a.order < b.order;
};

export class Scheduler {
  /** Bytes of audio that no socket has yet, over all contexts. */
  readonly audio: AudioBudget;
  readonly #options: SchedulerOptions;
  readonly #groups = new Map<object | string, ContextGroup>();
  /** Contexts with a queued segment. */
  readonly #waiting = new Set<ScheduledContext>();
  /** Contexts that run something: no more than there are running segments. */
  readonly #speaking = new Set<ScheduledContext>();
  #groupsOpened = 0;
  #order = 0;
  #running = 0;
  /** Those of whole files. */
  #runningFiles = 0;
  /** When the last segment ended. */
  #endedMs = -Infinity;
  #isPaused = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.audio = new AudioBudget(options.bounds.unsentAudioBytesMax, () => this.wake());
  }

  get runningSegments(): number {
    return this.#running;
  }

  /** How long no segment has run. */
  get quietMs(): number {
    return this.#running > 0 ? 0 : this.nowMs() - this.#endedMs;
  }

  /** Groups that have a context open or a segment running. */
  get groups(): number {
    return this.#groups.size;
  }

  /** Milliseconds of audio made and not handed over, over all contexts. */
  get unsentAudioMs(): number {
    let unsentMs = 0;
    for (const group of this.#groups.values()) unsentMs += Math.max(0, group.unsentMs);
    return unsentMs;
  }

  nowMs(): number {
    return this.#options.clock();
  }

  open(options: ScheduledOptions): ScheduledContext {
    let group = this.#groups.get(options.group);
    if (group === undefined) {
      const begun = { running: 0, idleSinceMs: Number.NEGATIVE_INFINITY, unsentMs: 0, expectedMs: 0 };
      group = { key: options.group, order: ++this.#groupsOpened, contexts: new Set(), ...begun };
      this.#groups.set(options.group, group);
    }
    const context = new ScheduledContext(options, group);
    context.order = ++this.#order;
    group.contexts.add(context);
    return context;
  }

  /** The context is over. Its running segments end by themselves and are then forgotten. Idempotent. */
  close(context: ScheduledContext): void {
    const { group } = context;
    if (!group.contexts.delete(context)) return;
    this.#waiting.delete(context);
    const fullness = this.#fullnessOf(group);
    context.isClosed = true;
    group.unsentMs -= context.unsentMs;
    context.queued.length = 0;
    this.#hold(context);
    this.#forgetIfEmpty(group);
    // The other contexts of the group may have waited for the audio that is now forgotten.
    if (this.#fullnessOf(group) < fullness) this.wake();
  }

  /** @returns the number of the clock that says what the context's group has had; none if all clocks are in use */
  shareOf({ group }: ScheduledContext): number | undefined {
    if (group.share === undefined) {
      if (this.#options.clocks.free === 0) return undefined;
      group.share = this.#options.clocks.take();
      this.#options.clocks.clock(group.share).start(0);
    }
    return group.share;
  }

  /** Stops and resumes starting segments, while no thread can take one. */
  setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused;
    if (!isPaused) this.wake();
  }

  enqueue(context: ScheduledContext, segment: ScheduledSegment): void {
    if (context.isClosed) return;
    const { queued, options } = context;
    // After a pause the listener has heard everything: the new utterance is due now, not in its past.
    if (queued.length === 0 && context.running.length === 0) {
      const isPlayedOut = context.unsentMs < HELD_BACK_MS;
      if (isPlayedOut) context.handedBeforeMs = options.listener.handedMs;
      this.#resume(context, segment.index);
    }
    if (queued.length === 0) context.readySinceMs = this.nowMs();
    queued.push(segment);
    this.#waiting.add(context);
    this.wake();
  }

  /** The client asked for the audio that an encoder may hold back. If all else is made, the context waited for that. */
  tailAsked({ options, queued, running }: ScheduledContext, lastSegment: number): void {
    if (queued.length === 0 && running.length === 0) options.listener.resumed(this.nowMs(), lastSegment);
  }

  /** Forgets the queued segments from this index on. */
  withdraw(context: ScheduledContext, fromIndex: number): void {
    const kept = context.queued.filter(({ index }) => index < fromIndex);
    context.queued.splice(0, context.queued.length, ...kept);
    if (kept.length === 0) this.#waiting.delete(context);
  }

  /** So much audio of a running segment has come. */
  came(context: ScheduledContext, index: number, durationMs: number): void {
    const segment = context.running.find((running) => running.index === index);
    if (segment === undefined || durationMs + (segment.moreMs ?? 0) <= segment.expectedMs) return;
    segment.moreMs = MORE_MS;
    segment.expectedMs = durationMs + MORE_MS;
    context.audio.started(index, segment.expectedMs);
    context.moveRunning();
    this.#hold(context);
  }

  /** A running segment is complete. */
  finished(context: ScheduledContext, segment: ScheduledSegment, durationMs: number): void {
    if (!this.#takeRunning(context, segment)) return;
    // Of a closed context nothing more is heard.
    const heardMs = context.isClosed ? 0 : durationMs;
    context.audio.finished(segment.index, heardMs);
    context.group.unsentMs += heardMs;
    this.#ended(context);
  }

  /** A running segment did not complete. It runs again, before all queued segments. */
  requeue(context: ScheduledContext, segment: ScheduledSegment): void {
    if (!this.#takeRunning(context, segment)) return;
    // Until it starts again it counts with what was handed over of it.
    context.audio.started(segment.index, 0);
    if (!context.isClosed) {
      if (context.queued.length === 0) context.readySinceMs = this.nowMs();
      context.queued.push(segment);
      context.queued.sort((a, b) => a.index - b.index);
      this.#waiting.add(context);
    }
    this.#ended(context);
  }

  /** A running segment ended without a result, and its context is over. Its estimate counts until the context is closed. */
  abandoned(context: ScheduledContext, segment: ScheduledSegment): void {
    if (this.#takeRunning(context, segment)) this.#ended(context);
  }

  /**
   * The transport handed over this much audio.
   *
   * @throws {InvariantError} more audio was handed over than was made
   */
  handed(context: ScheduledContext, durationMs: number): void {
    if (context.isClosed) return;
    const { group, options } = context;
    const isFirst = !context.hasHandedAudio;
    const fullness = this.#fullnessOf(group);
    options.listener.handed(this.nowMs(), durationMs);
    group.unsentMs -= durationMs;
    context.audio.handed(durationMs);
    try {
      this.#hold(context);
    } finally {
      if (isFirst || this.#fullnessOf(group) < fullness) this.wake();
    }
    if (!context.isGated || this.isGateShut(context)) return;
    this.#open(context);
    this.wake();
  }

  #isFull({ unsentMs }: ContextGroup): boolean {
    return unsentMs > this.#options.bounds.unsentAudioMsPerLeaseMax;
  }

  /** It may start a segment while others run. */
  #hasRoom({ expectedMs }: ContextGroup): boolean {
    return expectedMs <= this.#options.bounds.expectedAudioMsPerLeaseMax;
  }

  /** How many of the two bounds it exceeds. */
  #fullnessOf(group: ContextGroup): number {
    return Number(this.#isFull(group)) + Number(!this.#hasRoom(group));
  }

  /** The listener, the socket that it shares or the account has much audio to take. */
  isGateShut(context: ScheduledContext): boolean {
    const { group, runsAgain, audio, options } = context;
    if (runsAgain) return false;
    const unsentMs = audio.ms;
    if (this.#isFull(group) || unsentMs > this.#options.bounds.unsentAudioMsMax) return true;
    return !this.audio.hasRoomFor(accountOf(context), unsentMs * options.bytesPerMs);
  }

  /** Nothing more is made for the account, even when all that runs is heard, until listeners take the audio that they have. */
  isStuck(account: string): boolean {
    let runningBytes = 0;
    for (const context of this.#speaking)
      if (accountOf(context) === account) runningBytes += context.heldBytes;
    return this.audio.isFull(account, runningBytes);
  }

  /** The one loop that starts segments; called whenever something could have become startable, as when the machine may have room. */
  wake(): void {
    while (!this.#isPaused && this.#running < this.#options.jobsMax) {
      const next = this.#next();
      if (next === undefined) return;
      this.#start(next);
    }
  }

  #next(): ScheduledContext | undefined {
    for (;;) {
      let next: ScheduledContext | undefined;
      for (const context of this.#waiting) {
        if (context.isGated && this.isGateShut(context)) continue;
        if (context.isGated) this.#open(context);
        const turn = this.#turnOf(context);
        if (turn === null || (next !== undefined && turn > next.turn)) continue;
        context.turn = turn;
        context.rankMs = context.hasHandedAudio ? context.dueMs : Math.max(context.dueMs, context.accountMs);
        if (next === undefined || isBefore(context, next)) next = context;
      }
      if (next === undefined) return undefined;
      next.isGated = this.isGateShut(next);
      if (!next.isGated) return next;
    }
  }

  /** @returns `null` if the context may not start a segment now */
  #turnOf(context: ScheduledContext): number | null {
    const { group, running, options } = context;
    const { jobsMax, threads } = this.#options;
    if (this.#isHeldBack(context) || options.mayStart?.() === false) return null;
    const isStartable = running.length < (options.listener.isFile ? threads : 1);
    if (isStartable && group.running === 0) return IDLE_GROUP;
    if (!this.#hasRoom(group)) return null;
    const idles = this.#running < threads;
    if (isStartable) return idles || group.running < jobsMax / 2 - this.#running ? BESIDE_ITS_GROUP : null;
    return idles && context.hasHandedAudio ? BEHIND_ITSELF : null;
  }

  /** Files take half of the jobs at most: they may wait long for their steps, and listeners must not wait for them. */
  #isHeldBack({ options }: ScheduledContext): boolean {
    const { jobsMax, threads } = this.#options;
    return options.listener.isFile && this.#runningFiles >= Math.max(threads, jobsMax / 2);
  }

  /** Starts the next queued segment of the context. */
  #start(context: ScheduledContext): void {
    const { group, queued, running, options } = context;
    const segment = queued.shift()!;
    const readySinceMs = group.running > 0 ? this.nowMs() : Math.max(context.readySinceMs, group.idleSinceMs);
    const isAwaited = !context.hasHandedAudio && running.length === 0;
    const startMs = context.audio.startOf(segment.index);
    const begins = this.#beginsOf(options.listener, startMs, isAwaited);
    if (queued.length === 0) this.#waiting.delete(context);
    if (isAwaited && options.account !== undefined)
      for (const other of this.#waiting)
        if (other.options.account === options.account) other.accountMs = this.nowMs();
    group.running++;
    this.#running++;
    if (options.listener.isFile) this.#runningFiles++;
    this.#speaking.add(context);
    context.order = ++this.#order;
    context.startedEnd = Math.max(context.startedEnd, segment.index + 1);
    running.push(segment);
    context.audio.started(segment.index, segment.expectedMs);
    this.#hold(context);
    options.start({ segment, startMs, isAwaited, begins, readySinceMs });
  }

  #beginsOf({ clock, isFile }: Listener, startMs: number, isAwaited: boolean): SegmentStart['begins'] {
    const crowd = CROWD_PER_THREAD * this.#options.threads;
    if (isFile) return 'longest';
    if (isAwaited) return this.#options.isFull?.() === true || this.#awaited() > crowd ? 'long' : 'short';
    return this.#running > crowd && clock.at(startMs) > this.nowMs() + LONGEST_LEAD_MS ? 'longest' : 'long';
  }

  /** Contexts that run a segment and whose listeners wait for first audio. */
  #awaited(): number {
    let awaited = 0;
    for (const { hasHandedAudio, isClosed, options } of this.#speaking)
      awaited += hasHandedAudio || isClosed || options.listener.isFile ? 0 : 1;
    return awaited;
  }

  /** The listener waited for the gate, not for the threads: the next segment is due now. */
  #open(context: ScheduledContext): void {
    context.isGated = false;
    context.readySinceMs = this.nowMs();
    const [next] = context.queued;
    if (next !== undefined) this.#resume(context, next.index);
  }

  /** There is something to make again, from this segment on: text after all was made, or the gate opened. */
  #resume(context: ScheduledContext, segment: number): void {
    const nowMs = this.nowMs();
    const { listener } = context.options;
    listener.resumed(nowMs, segment);
    // A file is due by its length, whatever it waited for.
    if (!listener.isFile) listener.clock.reach(context.audio.startOf(context.unfinishedFrom), nowMs);
  }

  #takeRunning({ running }: ScheduledContext, segment: ScheduledSegment): boolean {
    const position = running.indexOf(segment);
    if (position < 0) return false;
    running.splice(position, 1);
    return true;
  }

  /** A running segment was taken from the list: brings all accounts up to date. */
  #ended(context: ScheduledContext): void {
    const { group } = context;
    this.#running--;
    if (context.options.listener.isFile) this.#runningFiles--;
    this.#endedMs = this.nowMs();
    group.running--;
    if (group.running === 0) group.idleSinceMs = this.nowMs();
    if (context.running.length === 0) this.#speaking.delete(context);
    this.#forgetIfEmpty(group);
    try {
      this.#hold(context);
    } finally {
      context.moveRunning();
      this.wake();
    }
  }

  /** Takes bytes from the audio budget, or gives them back, until the context has what its unsent audio needs. */
  #hold(context: ScheduledContext): void {
    const { group, heldBytes, heldMs, isClosed, options } = context;
    const expectedMs = isClosed ? 0 : context.audio.ms;
    const bytes = Math.round(expectedMs * options.bytesPerMs);
    if (bytes < 0) throw new InvariantError(`more audio was handed over than was made: ${-bytes} bytes`);
    group.expectedMs += expectedMs - heldMs;
    context.heldMs = expectedMs;
    this.audio.change(accountOf(context), bytes - heldBytes);
  }

  #forgetIfEmpty(group: ContextGroup): void {
    if (group.contexts.size > 0 || group.running > 0) return;
    this.#groups.delete(group.key);
    if (group.share !== undefined) this.#options.clocks.give(group.share);
    delete group.share;
  }
}
