/**
 * Which segment runs next: earliest playback deadline first, one running segment a lease, bounded by the listener.
 *
 * A context's deadline is the moment its listener would run dry: the start of its playback plus the audio made so far.
 * A lease (one slot of a key) runs one segment at a time while there is contention, and more only while threads would
 * otherwise idle, and not before its listener hears something: a second segment would slow the first chunk of the
 * first. Its contexts take turns. A context whose unsent audio is over the bound, or whose lease's is, gets nothing
 * until its transport handed enough of it on: this is the one place where backpressure acts.
 *
 * Pure policy: it runs nothing and knows no thread. Time comes from the clock that it is given.
 */
import type { Segment } from '../text/segments.js';
import type { Clock } from '../monotonic.js';
import { AudioRoom } from './audio-room.js';
import { LeaseSchedule } from './lease-schedule.js';

/** Speech of about 14 characters a second; only used until a segment's true duration is known. */
const ESTIMATED_MS_PER_CHARACTER = 70;
/** More than an encoder keeps of the sound that it was given. */
const HELD_BACK_MS = 250;

export interface ScheduledSegment extends Segment {
  /** 0, 1, 2 ... within its context. */
  readonly index: number;
}

export interface SchedulerOptions {
  readonly clock: Clock;
  /** Synthesis threads. */
  readonly threads: number;
  /** Segments that may be with the threads at once. */
  readonly jobsMax: number;
  readonly unsentAudioMsMax: number;
  /** Over all contexts of a lease; by default twice that of one. */
  readonly unsentAudioMsPerLeaseMax?: number;
  /** Bytes of it over all contexts; without, as many as they come to. */
  readonly unsentAudioBytesMax?: number;
  /**
   * Starts a segment; the caller reports its end through `ContextSchedule.finished` or `requeue`.
   * @param readySinceMs since when it has waited for nothing but a thread
   */
  readonly start: (
    schedule: ContextSchedule,
    segment: ScheduledSegment,
    playFromMs: number,
    readySinceMs: number,
  ) => void;
  /** The playback clock of a running segment moved. */
  readonly moved: (schedule: ContextSchedule, segment: ScheduledSegment, playFromMs: number) => void;
}

interface RunningSegment {
  readonly segment: ScheduledSegment;
  readonly estimatedMs: number;
}

/** Told when there is something to make again, from this segment on: text after all was made, or the gate opened. */
export type OnResumed = (nowMs: number, segment: number) => void;

export interface ScheduleOptions {
  /** What a millisecond of its audio takes of the room. */
  readonly bytesAMs?: number;
  readonly onResumed?: OnResumed;
}

/** One context as the scheduler sees it. */
export class ContextSchedule {
  readonly lease: object;
  readonly #scheduler: Scheduler;
  readonly #group: LeaseSchedule;
  /** What it holds of the pool, a millisecond. */
  readonly #bytesAMs: number;
  #heldBytes = 0;
  readonly #queued: ScheduledSegment[] = [];
  readonly #running: RunningSegment[] = [];
  #playbackStartMs: number;
  #madeMs = 0;
  #handedMs = 0;
  /** Of it, before the utterance that is being spoken. */
  #handedBeforeMs = 0;
  /** One more than the index of the last segment that was started. */
  #startedEnd = 0;
  #gated = false;
  #dropped = false;
  /** Since when it has had something queued, with the gate open. */
  #readySinceMs = 0;
  readonly #onResumed: OnResumed;

  constructor(
    scheduler: Scheduler,
    lease: object,
    group: LeaseSchedule,
    nowMs: number,
    { bytesAMs = 0, onResumed = () => undefined }: ScheduleOptions,
  ) {
    this.#onResumed = onResumed;
    this.#scheduler = scheduler;
    this.#bytesAMs = bytesAMs;
    this.#group = group;
    this.lease = lease;
    this.#playbackStartMs = nowMs;
  }

  get queuedSegments(): number {
    return this.#queued.length;
  }

  get runningSegments(): number {
    return this.#running.length;
  }

  /** The transport handed on some audio of what it speaks now. */
  get heard(): boolean {
    return this.#handedMs > this.#handedBeforeMs;
  }

  get unsentMs(): number {
    return this.#madeMs - this.#handedMs;
  }

  get readySinceMs(): number {
    return this.#readySinceMs;
  }

  enqueue(segment: ScheduledSegment): void {
    if (this.#dropped) return;
    // After idling the listener has heard everything: the new utterance is due now, not in its past.
    if (this.#queued.length === 0 && this.#running.length === 0) {
      if (this.#isHeardOut()) this.#handedBeforeMs = this.#handedMs;
      this.#restartPlayback();
      this.#onResumed(this.#scheduler.nowMs(), segment.index);
    }
    if (this.#queued.length === 0) this.#readySinceMs = this.#scheduler.nowMs();
    this.#queued.push(segment);
    this.#scheduler.wake();
  }

  /** What an encoder may hold back of all that was said is asked for. Once all is made, it waited for its client. */
  tailAsked(lastSegment: number): void {
    if (this.#queued.length === 0 && this.#running.length === 0)
      this.#onResumed(this.#scheduler.nowMs(), lastSegment);
  }

  /** Forgets the queued segments from this index on. */
  withdraw(fromIndex: number): void {
    const kept = this.#queued.filter(({ index }) => index < fromIndex);
    this.#queued.splice(0, this.#queued.length, ...kept);
  }

  /** A running segment is complete. */
  finished(segment: ScheduledSegment, durationMs: number): void {
    if (!this.#takeRunning(segment)) return;
    if (!this.#dropped) {
      this.#madeMs += durationMs;
      this.#group.unsentMs += durationMs;
    }
    this.#hold();
    this.#tellMoved();
    this.#scheduler.ended(this);
  }

  /** A running segment did not complete and shall run again, before all that is queued. */
  requeue(segment: ScheduledSegment): void {
    if (!this.#takeRunning(segment)) return;
    if (!this.#dropped) {
      if (this.#queued.length === 0) this.#readySinceMs = this.#scheduler.nowMs();
      this.#queued.push(segment);
      this.#queued.sort((a, b) => a.index - b.index);
    }
    this.#hold();
    this.#scheduler.ended(this);
  }

  /** The transport handed on this much audio. */
  handed(durationMs: number): void {
    if (this.#dropped) return;
    const isFirst = !this.heard;
    const wasFull = this.#group.isFull();
    this.#handedMs += durationMs;
    this.#group.unsentMs -= durationMs;
    this.#hold();
    if (isFirst || (wasFull && !this.#group.isFull())) this.#scheduler.wake();
    if (!this.#gated || this.isGated()) return;
    this.#opened();
    this.#scheduler.wake();
  }

  /** Forgets what is queued; running segments end by themselves. Idempotent. */
  drop(): void {
    if (this.#dropped) return;
    this.#dropped = true;
    this.#group.unsentMs -= this.unsentMs;
    this.#queued.length = 0;
    this.#hold();
  }

  /** When the next segment to start is due. */
  dueMs(): number {
    return this.#startOf(this.#running.length);
  }

  isReady(): boolean {
    if (this.#queued.length === 0) return false;
    if (this.isGated()) this.#gated = true;
    else if (this.#gated) this.#opened();
    return !this.#gated;
  }

  isGated(): boolean {
    // Run again: what was made after it waits for it, and would keep the gate shut for ever.
    if ((this.#queued[0]?.index ?? this.#startedEnd) < this.#startedEnd) return false;
    if (this.#group.isFull()) return true;
    const aheadMs = this.#aheadMs();
    return (
      aheadMs > this.#scheduler.unsentAudioMsMax || !this.#scheduler.room.isFor(aheadMs * this.#bytesAMs)
    );
  }

  /** For the scheduler: moves the next segment from queued to running. */
  begin(): { segment: ScheduledSegment; playFromMs: number } {
    const segment = this.#queued.shift();
    if (segment === undefined) throw new Error('begin() needs a queued segment');
    const playFromMs = this.dueMs();
    this.#startedEnd = Math.max(this.#startedEnd, segment.index + 1);
    this.#running.push({ segment, estimatedMs: segment.text.length * ESTIMATED_MS_PER_CHARACTER });
    this.#hold();
    return { segment, playFromMs };
  }

  /** Its listener waited for the gate, not for the threads: what comes next is due now. */
  #opened(): void {
    this.#gated = false;
    this.#restartPlayback();
    this.#readySinceMs = this.#scheduler.nowMs();
    const [next] = this.#queued;
    if (next !== undefined) this.#onResumed(this.#readySinceMs, next.index);
  }

  /** Audio that waits for its socket, and what is being made. */
  #aheadMs(): number {
    return this.#running.reduce((sum, running) => sum + running.estimatedMs, this.unsentMs);
  }

  /** Takes from the pool what it has now, or gives back what it has no more. */
  #hold(): void {
    const heldBytes = this.#dropped ? 0 : Math.round(this.#aheadMs() * this.#bytesAMs);
    const changeBytes = heldBytes - this.#heldBytes;
    this.#heldBytes = heldBytes;
    this.#scheduler.room.change(changeBytes);
  }

  /** All but what an encoder may hold back. */
  #isHeardOut(): boolean {
    return this.unsentMs < HELD_BACK_MS;
  }

  #startOf(position: number): number {
    let startMs = this.#playbackStartMs + this.#madeMs;
    for (let i = 0; i < position; i++) startMs += this.#running[i]?.estimatedMs ?? 0;
    return startMs;
  }

  #restartPlayback(): void {
    this.#playbackStartMs = Math.max(this.#playbackStartMs, this.#scheduler.nowMs() - this.#madeMs);
    this.#tellMoved();
  }

  #tellMoved(): void {
    this.#running.forEach((running, position) =>
      this.#scheduler.moved(this, running.segment, this.#startOf(position)),
    );
  }

  #takeRunning(segment: ScheduledSegment): boolean {
    const position = this.#running.findIndex((running) => running.segment === segment);
    if (position < 0) return false;
    this.#running.splice(position, 1);
    return true;
  }
}

export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #leases = new Map<object, LeaseSchedule>();
  /** What audio takes until its socket has it, over all contexts. */
  readonly room: AudioRoom;
  #running = 0;
  #paused = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.room = new AudioRoom(options.unsentAudioBytesMax ?? Number.POSITIVE_INFINITY, () => this.wake());
  }

  get unsentAudioMsMax(): number {
    return this.#options.unsentAudioMsMax;
  }

  get runningSegments(): number {
    return this.#running;
  }

  /** Leases that have a context open. */
  get leases(): number {
    return this.#leases.size;
  }

  nowMs(): number {
    return this.#options.clock();
  }

  /** Milliseconds of audio made and not handed, over all contexts. */
  get unsentAudioMs(): number {
    let unsentMs = 0;
    for (const group of this.#leases.values()) unsentMs += Math.max(0, group.unsentMs);
    return unsentMs;
  }

  /** @param lease contexts with the same lease share its one running segment */
  open(lease: object, options: ScheduleOptions = {}): ContextSchedule {
    let group = this.#leases.get(lease);
    if (group === undefined) {
      const { unsentAudioMsMax, unsentAudioMsPerLeaseMax = 2 * unsentAudioMsMax } = this.#options;
      this.#leases.set(lease, (group = new LeaseSchedule(unsentAudioMsPerLeaseMax)));
    }
    const schedule = new ContextSchedule(this, lease, group, this.nowMs(), options);
    group.contexts.add(schedule);
    return schedule;
  }

  /** The context is over. Segments of it that still run end by themselves and are then forgotten. Idempotent. */
  close(schedule: ContextSchedule): void {
    const group = this.#leases.get(schedule.lease);
    const wasFull = group?.isFull() ?? false;
    schedule.drop();
    if (group === undefined) return;
    group.contexts.delete(schedule);
    this.#forgetIfEmpty(schedule.lease, group);
    // Its siblings may have waited for the audio that is now forgotten.
    if (wasFull && !group.isFull()) this.wake();
  }

  /** Stops and resumes starting segments, while no thread can take one. */
  setPaused(paused: boolean): void {
    this.#paused = paused;
    if (!paused) this.wake();
  }

  moved(schedule: ContextSchedule, segment: ScheduledSegment, playFromMs: number): void {
    this.#options.moved(schedule, segment, playFromMs);
  }

  ended(schedule: ContextSchedule): void {
    this.#running--;
    const group = this.#leases.get(schedule.lease);
    if (group !== undefined) {
      group.running--;
      if (group.running === 0) group.idleSinceMs = this.nowMs();
      this.#forgetIfEmpty(schedule.lease, group);
    }
    this.wake();
  }

  /** The one loop that starts segments; called whenever something could have become startable. */
  wake(): void {
    while (!this.#paused && this.#running < this.#options.jobsMax) {
      const threadsIdle = this.#running < this.#options.threads;
      const next = this.#earliest(false) ?? (threadsIdle ? this.#earliest(true) : undefined);
      if (next === undefined) return;
      this.#start(next.group, next.context);
    }
  }

  #earliest(allowBusyLeases: boolean): { group: LeaseSchedule; context: ContextSchedule } | undefined {
    let best: { group: LeaseSchedule; context: ContextSchedule; dueMs: number } | undefined;
    for (const group of this.#leases.values()) {
      if (group.running > 0 && !allowBusyLeases) continue;
      const context = group.next();
      if (context === undefined) continue;
      const dueMs = context.dueMs();
      if (best === undefined || dueMs < best.dueMs) best = { group, context, dueMs };
    }
    return best;
  }

  #start(group: LeaseSchedule, context: ContextSchedule): void {
    const { segment, playFromMs } = context.begin();
    // While another of its lease runs it need not run yet: it begins ahead of its turn, because a thread is idle.
    const readySinceMs = group.running > 0 ? this.nowMs() : Math.max(context.readySinceMs, group.idleSinceMs);
    group.running++;
    this.#running++;
    group.rotate(context);
    this.#options.start(context, segment, playFromMs, readySinceMs);
  }

  #forgetIfEmpty(lease: object, group: LeaseSchedule): void {
    if (group.contexts.size === 0 && group.running === 0) this.#leases.delete(lease);
  }
}
