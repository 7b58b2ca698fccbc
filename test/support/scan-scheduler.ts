/**
 * The scheduler's policy as a scan: on every wake it looks at every context. Too slow for the service, and short enough
 * to be read as the definition that the scheduler's heap must keep.
 */
import type { Bounds } from '../../src/limits.js';
import { AudioBudget, UnsentAudio } from '../../src/speech/audio-budget.js';
import type { ScheduledSegment, SegmentOwner } from '../../src/speech/schedule.js';
import type { SchedulerOptions } from '../../src/speech/scheduler.js';

interface Group {
  readonly key: object;
  /** In the order of their turns. */
  readonly contexts: Set<ScanContext>;
  running: number;
  idleSinceMs: number;
  unsentMs: number;
}

class ScanContext {
  readonly queued: ScheduledSegment[] = [];
  readonly running: { segment: ScheduledSegment; estimatedMs: number }[] = [];
  playbackStartMs: number;
  readySinceMs = 0;
  #madeMs = 0;
  #handedMs = 0;
  #handedBeforeMs = 0;
  #startedEnd = 0;
  #heldBytes = 0;
  #isGated = false;
  #isDropped = false;
  readonly #unsent = new UnsentAudio();

  constructor(
    readonly host: ScanScheduler,
    readonly group: Group,
    readonly owner: SegmentOwner,
    readonly bytesPerMs: number,
  ) {
    this.playbackStartMs = host.nowMs();
  }

  get isHeard(): boolean {
    return this.#handedMs > this.#handedBeforeMs;
  }

  get dueMs(): number {
    return this.#startOf(this.running.length);
  }

  enqueue(segment: ScheduledSegment): void {
    if (this.#isDropped) return;
    if (this.queued.length === 0 && this.running.length === 0) {
      if (this.#madeMs - this.#handedMs < 250) this.#handedBeforeMs = this.#handedMs;
      this.#restartPlayback();
      this.owner.resumed(this.host.nowMs(), segment.index);
    }
    if (this.queued.length === 0) this.readySinceMs = this.host.nowMs();
    this.queued.push(segment);
    this.host.wake();
  }

  withdraw(fromIndex: number): void {
    const kept = this.queued.filter(({ index }) => index < fromIndex);
    this.queued.splice(0, this.queued.length, ...kept);
  }

  finished(segment: ScheduledSegment, durationMs: number): void {
    if (!this.#takeRunning(segment)) return;
    this.#unsent.finished(segment.index, durationMs);
    if (!this.#isDropped) {
      this.#madeMs += durationMs;
      this.group.unsentMs += durationMs;
    }
    this.#hold();
    this.#reportMoves();
    this.host.ended(this.group);
  }

  requeue(segment: ScheduledSegment): void {
    if (!this.#takeRunning(segment)) return;
    this.#unsent.interrupted(segment.index);
    if (!this.#isDropped) {
      if (this.queued.length === 0) this.readySinceMs = this.host.nowMs();
      this.queued.push(segment);
      this.queued.sort((a, b) => a.index - b.index);
    }
    this.#hold();
    this.host.ended(this.group);
  }

  handed(durationMs: number): void {
    if (this.#isDropped) return;
    const isFirst = !this.isHeard;
    const wasFull = this.host.isFull(this.group);
    this.#handedMs += durationMs;
    this.group.unsentMs -= durationMs;
    this.#unsent.handed(durationMs);
    this.#hold();
    if (isFirst || (wasFull && !this.host.isFull(this.group))) this.host.wake();
    if (!this.#isGated || this.isGateShut()) return;
    this.#open();
    this.host.wake();
  }

  drop(): void {
    if (this.#isDropped) return;
    this.#isDropped = true;
    this.group.unsentMs -= this.#madeMs - this.#handedMs;
    this.queued.length = 0;
    this.#hold();
  }

  isReady(): boolean {
    if (this.queued.length === 0) return false;
    if (this.isGateShut()) this.#isGated = true;
    else if (this.#isGated) this.#open();
    return !this.#isGated;
  }

  isGateShut(): boolean {
    if ((this.queued[0]?.index ?? this.#startedEnd) < this.#startedEnd) return false;
    if (this.host.isFull(this.group)) return true;
    const unsentMs = this.#unsent.ms;
    return (
      unsentMs > this.host.bounds.unsentAudioMsMax || !this.host.audio.hasRoomFor(unsentMs * this.bytesPerMs)
    );
  }

  start(readySinceMs: number): void {
    const segment = this.queued.shift();
    if (segment === undefined) throw new Error('nothing is queued');
    const playFromMs = this.dueMs;
    this.#startedEnd = Math.max(this.#startedEnd, segment.index + 1);
    const estimatedMs = segment.text.length * 70;
    this.running.push({ segment, estimatedMs });
    this.#unsent.started(segment.index, estimatedMs);
    this.#hold();
    this.owner.start(segment, playFromMs, readySinceMs);
  }

  #open(): void {
    this.#isGated = false;
    this.#restartPlayback();
    this.readySinceMs = this.host.nowMs();
    const [next] = this.queued;
    if (next !== undefined) this.owner.resumed(this.readySinceMs, next.index);
  }

  #hold(): void {
    const bytes = this.#isDropped ? 0 : Math.round(this.#unsent.ms * this.bytesPerMs);
    const change = bytes - this.#heldBytes;
    this.#heldBytes = bytes;
    this.host.audio.change(change);
  }

  #startOf(position: number): number {
    let startMs = this.playbackStartMs + this.#madeMs;
    for (const { estimatedMs } of this.running.slice(0, position)) startMs += estimatedMs;
    return startMs;
  }

  #restartPlayback(): void {
    this.playbackStartMs = Math.max(this.playbackStartMs, this.host.nowMs() - this.#madeMs);
    this.#reportMoves();
  }

  #reportMoves(): void {
    this.running.forEach(({ segment }, position) => this.owner.moved(segment, this.#startOf(position)));
  }

  #takeRunning(segment: ScheduledSegment): boolean {
    const position = this.running.findIndex((running) => running.segment === segment);
    if (position >= 0) this.running.splice(position, 1);
    return position >= 0;
  }
}

export class ScanScheduler {
  readonly audio: AudioBudget;
  readonly bounds: Pick<Bounds, 'unsentAudioMsMax' | 'unsentAudioMsPerLeaseMax'>;
  readonly #options: SchedulerOptions;
  readonly #groups = new Map<object, Group>();
  #running = 0;
  #isPaused = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.bounds = options.bounds;
    this.audio = new AudioBudget(options.bounds.unsentAudioBytesMax, () => this.wake());
  }

  nowMs(): number {
    return this.#options.clock();
  }

  isFull(group: Group): boolean {
    return group.unsentMs > this.bounds.unsentAudioMsPerLeaseMax;
  }

  open(key: object, owner: SegmentOwner, bytesPerMs = 0): ScanContext {
    let group = this.#groups.get(key);
    if (group === undefined) {
      group = { key, contexts: new Set(), running: 0, idleSinceMs: Number.NEGATIVE_INFINITY, unsentMs: 0 };
      this.#groups.set(key, group);
    }
    const context = new ScanContext(this, group, owner, bytesPerMs);
    group.contexts.add(context);
    return context;
  }

  close(context: ScanContext): void {
    const { group } = context;
    const wasFull = this.isFull(group);
    if (!group.contexts.delete(context)) return;
    context.drop();
    this.#forgetIfEmpty(group);
    if (wasFull && !this.isFull(group)) this.wake();
  }

  setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused;
    if (!isPaused) this.wake();
  }

  ended(group: Group): void {
    this.#running--;
    group.running--;
    if (group.running === 0) group.idleSinceMs = this.nowMs();
    this.#forgetIfEmpty(group);
    this.wake();
  }

  wake(): void {
    while (!this.#isPaused && this.#running < this.#options.jobsMax) {
      const next =
        this.#earliest(false) ?? (this.#running < this.#options.threads ? this.#earliest(true) : undefined);
      if (next === undefined) return;
      const { group } = next;
      const readySinceMs = group.running > 0 ? this.nowMs() : Math.max(next.readySinceMs, group.idleSinceMs);
      group.running++;
      this.#running++;
      group.contexts.delete(next);
      group.contexts.add(next);
      next.start(readySinceMs);
    }
  }

  #earliest(allowsBusyGroups: boolean): ScanContext | undefined {
    let best: ScanContext | undefined;
    for (const group of this.#groups.values()) {
      if (group.running > 0 && !allowsBusyGroups) continue;
      for (const context of group.contexts) {
        if (!context.isReady() || (group.running > 0 && !context.isHeard)) continue;
        if (best === undefined || context.dueMs < best.dueMs) best = context;
      }
    }
    return best;
  }

  #forgetIfEmpty(group: Group): void {
    if (group.contexts.size === 0 && group.running === 0) this.#groups.delete(group.key);
  }
}
