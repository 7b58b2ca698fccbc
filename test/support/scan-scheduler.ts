/**
 * The scheduler's policy as a scan: on every wake it looks at every context. Too slow for the service, and short enough
 * to be read as the definition that the scheduler's heap must keep.
 */
import type { Bounds } from '../../src/limits.js';
import { AudioBudget, UnsentAudio } from '../../src/speech/audio-budget.js';
import type { GroupBounds } from '../../src/speech/group.js';
import type { ScheduledSegment, SegmentOwner } from '../../src/speech/schedule.js';
import type { SchedulerOptions } from '../../src/speech/scheduler.js';

interface Group {
  readonly key: object;
  readonly order: number;
  readonly contexts: Set<ScanContext>;
  running: number;
  idleSinceMs: number;
  unsentMs: number;
}

/** A context that may be next, by what decides between several, most important first. */
type Candidate = [ScanContext, ...number[]];

const first = (candidates: readonly Candidate[]): ScanContext | undefined =>
  candidates.toSorted(([, ...a], [, ...b]) => {
    const at = a.findIndex((value, index) => value !== b[index]);
    return at < 0 ? 0 : (a[at] ?? 0) - (b[at] ?? 0);
  })[0]?.[0];

class ScanContext {
  readonly queued: ScheduledSegment[] = [];
  readonly running: { segment: ScheduledSegment; estimatedMs: number }[] = [];
  readonly #finished: { index: number; durationMs: number }[] = [];
  playbackStartMs: number;
  /** Counts up with every start of a segment. */
  order = 0;
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
    return this.#startOf(this.queued[0]?.index ?? Number.POSITIVE_INFINITY);
  }

  get expectedMs(): number {
    return this.#isDropped ? 0 : this.#unsent.ms;
  }

  get isWilling(): boolean {
    return this.queued.length > 0 && !this.#isGated;
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
      this.#finished.push({ index: segment.index, durationMs });
      this.group.unsentMs += durationMs;
    }
    this.host.ended(this.group);
    this.#hold();
    this.#reportMoves();
    this.host.wake();
  }

  requeue(segment: ScheduledSegment): void {
    if (!this.#takeRunning(segment)) return;
    this.#unsent.interrupted(segment.index);
    if (!this.#isDropped) {
      if (this.queued.length === 0) this.readySinceMs = this.host.nowMs();
      this.queued.push(segment);
      this.queued.sort((a, b) => a.index - b.index);
    }
    this.host.ended(this.group);
    this.#hold();
    this.host.wake();
  }

  handed(durationMs: number): void {
    if (this.#isDropped) return;
    const isFirst = !this.isHeard;
    const wasFull = this.host.isFull(this.group);
    const hadRoom = this.host.hasRoom(this.group);
    this.#handedMs += durationMs;
    this.group.unsentMs -= durationMs;
    this.#unsent.handed(durationMs);
    this.#hold();
    const opens = wasFull && !this.host.isFull(this.group);
    if (isFirst || opens || (!hadRoom && this.host.hasRoom(this.group))) this.host.wake();
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

  refreshGate(): void {
    if (this.#isGated && this.queued.length > 0 && !this.isGateShut()) this.#open();
  }

  passesGate(): boolean {
    this.#isGated = this.isGateShut();
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
    const playFromMs = this.#startOf(segment.index);
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

  #startOf(index: number): number {
    let startMs = this.playbackStartMs;
    for (const finished of this.#finished) if (finished.index < index) startMs += finished.durationMs;
    for (const { segment, estimatedMs } of this.running) if (segment.index < index) startMs += estimatedMs;
    return startMs;
  }

  #restartPlayback(): void {
    const unfinished = [...this.queued, ...this.running.map(({ segment }) => segment)];
    const first = Math.min(...unfinished.map(({ index }) => index));
    this.playbackStartMs += Math.max(0, this.host.nowMs() - this.#startOf(first));
    this.#reportMoves();
  }

  #reportMoves(): void {
    for (const { segment } of this.running) this.owner.moved(segment, this.#startOf(segment.index));
  }

  #takeRunning(segment: ScheduledSegment): boolean {
    const position = this.running.findIndex((running) => running.segment === segment);
    if (position >= 0) this.running.splice(position, 1);
    return position >= 0;
  }
}

export class ScanScheduler {
  readonly audio: AudioBudget;
  readonly bounds: Pick<Bounds, 'unsentAudioMsMax'> & GroupBounds;
  readonly #options: SchedulerOptions;
  readonly #groups = new Map<object, Group>();
  #groupsOpened = 0;
  #order = 0;
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

  hasRoom(group: Group): boolean {
    let expectedMs = 0;
    for (const context of group.contexts) expectedMs += context.expectedMs;
    return expectedMs <= this.bounds.expectedAudioMsPerLeaseMax;
  }

  open(key: object, owner: SegmentOwner, bytesPerMs = 0): ScanContext {
    let group = this.#groups.get(key);
    if (group === undefined) {
      const order = ++this.#groupsOpened;
      group = { key, order, contexts: new Set(), running: 0, idleSinceMs: -Infinity, unsentMs: 0 };
      this.#groups.set(key, group);
    }
    const context = new ScanContext(this, group, owner, bytesPerMs);
    context.order = ++this.#order;
    group.contexts.add(context);
    return context;
  }

  close(context: ScanContext): void {
    const { group } = context;
    const wasFull = this.isFull(group);
    const hadRoom = this.hasRoom(group);
    if (!group.contexts.has(context)) return;
    context.drop();
    group.contexts.delete(context);
    this.#forgetIfEmpty(group);
    if ((wasFull && !this.isFull(group)) || (!hadRoom && this.hasRoom(group))) this.wake();
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
  }

  wake(): void {
    while (!this.#isPaused && this.#running < this.#options.jobsMax) {
      const next = this.#next();
      if (next === undefined) return;
      const { group } = next;
      const readySinceMs = group.running > 0 ? this.nowMs() : Math.max(next.readySinceMs, group.idleSinceMs);
      group.running++;
      this.#running++;
      next.order = ++this.#order;
      next.start(readySinceMs);
    }
  }

  #next(): ScanContext | undefined {
    for (;;) {
      for (const { contexts } of this.#groups.values()) for (const context of contexts) context.refreshGate();
      const next = this.#ofIdleGroups() ?? this.#beside() ?? this.#behind();
      if (next === undefined || next.passesGate()) return next;
    }
  }

  /** Contexts of groups with so many running segments. */
  #willing(runs: (running: number) => boolean): ScanContext[] {
    const groups = [...this.#groups.values()].filter(({ running }) => runs(running));
    return groups.flatMap(({ contexts }) => [...contexts].filter(({ isWilling }) => isWilling));
  }

  #ofIdleGroups(): ScanContext | undefined {
    const all = this.#willing((running) => running === 0);
    return first(all.map((context) => [context, context.dueMs, context.group.order, context.order]));
  }

  #beside(): ScanContext | undefined {
    const { jobsMax, threads } = this.#options;
    const left = jobsMax / 2 - this.#running;
    const all = this.#willing((running) => running > 0 && (this.#running < threads || running < left));
    const idle = all.filter(({ group, running }) => running.length === 0 && this.hasRoom(group));
    return first(
      idle.map((context) => {
        const { dueMs, group, order } = context;
        return [context, group.running, dueMs, group.order, order];
      }),
    );
  }

  #behind(): ScanContext | undefined {
    if (this.#running >= this.#options.threads) return undefined;
    const all = this.#willing((running) => running > 0);
    const heard = all.filter(
      ({ group, running, isHeard }) => running.length > 0 && isHeard && this.hasRoom(group),
    );
    return first(heard.map((context) => [context, context.dueMs, context.order]));
  }

  #forgetIfEmpty(group: Group): void {
    if (group.contexts.size === 0 && group.running === 0) this.#groups.delete(group.key);
  }
}
