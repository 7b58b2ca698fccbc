/**
 * The scheduler's policy as lists and sorts, which add everything up again on every wake. Too slow for the service, and
 * short enough to be read as the definition that the scheduler must keep.
 */
import { AudioBudget, ContextAudio } from '../../src/speech/audio-budget.js';
import type { ScheduledOptions, ScheduledSegment, SchedulerOptions } from '../../src/speech/scheduler.js';
import type { Policy } from './scheduling.js';

interface Group {
  readonly key: object | string;
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

/** A context as data: what is to be made of it, what runs, and what was made. */
class ScanContext {
  readonly queued: ScheduledSegment[] = [];
  readonly running: ScheduledSegment[] = [];
  readonly finished: { readonly index: number; readonly durationMs: number }[] = [];
  readonly unsent = new ContextAudio();
  /** Counts up with every start of a segment. */
  order = 0;
  readySinceMs = 0;
  handedBeforeMs = 0;
  startedEnd = 0;
  heldBytes = 0;
  isGated = false;
  isClosed = false;

  constructor(
    readonly options: ScheduledOptions,
    readonly group: Group,
  ) {}

  get hasHandedAudio(): boolean {
    return this.options.listener.handedMs > this.handedBeforeMs;
  }

  get unsentMs(): number {
    return (
      this.finished.reduce((sum, { durationMs }) => sum + durationMs, 0) - this.options.listener.handedMs
    );
  }

  get dueMs(): number {
    return this.options.listener.clock.at(this.startOf(this.queued[0]?.index ?? Number.POSITIVE_INFINITY));
  }

  get expectedMs(): number {
    return this.isClosed ? 0 : this.unsent.ms;
  }

  get isWilling(): boolean {
    return this.queued.length > 0 && !this.isGated;
  }

  get runsAgain(): boolean {
    return (this.queued[0]?.index ?? this.startedEnd) < this.startedEnd;
  }

  get unfinishedFrom(): number {
    const unfinished = [...this.queued, ...this.running];
    return Math.min(...unfinished.map(({ index }) => index));
  }

  startOf(index: number): number {
    let startMs = 0;
    for (const finished of this.finished) if (finished.index < index) startMs += finished.durationMs;
    for (const running of this.running) if (running.index < index) startMs += running.expectedMs;
    return startMs;
  }

  takeRunning(segment: ScheduledSegment): boolean {
    const position = this.running.indexOf(segment);
    if (position >= 0) this.running.splice(position, 1);
    return position >= 0;
  }
}

export class ScanScheduler implements Policy<ScanContext> {
  readonly audio: AudioBudget;
  readonly #options: SchedulerOptions;
  readonly #groups = new Map<object | string, Group>();
  #groupsOpened = 0;
  #order = 0;
  #running = 0;
  #runningFiles = 0;
  #isPaused = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.audio = new AudioBudget(options.bounds.unsentAudioBytesMax, () => this.#wake());
  }

  nowMs(): number {
    return this.#options.clock();
  }

  open(options: ScheduledOptions): ScanContext {
    const { group: key } = options;
    let group = this.#groups.get(key);
    if (group === undefined) {
      const order = ++this.#groupsOpened;
      group = { key, order, contexts: new Set(), running: 0, idleSinceMs: -Infinity, unsentMs: 0 };
      this.#groups.set(key, group);
    }
    const context = new ScanContext(options, group);
    context.order = ++this.#order;
    group.contexts.add(context);
    return context;
  }

  close(context: ScanContext): void {
    const { group } = context;
    if (!group.contexts.delete(context)) return;
    const wasFull = this.#isFull(group);
    const hadRoom = this.#fits(group, context.expectedMs);
    group.unsentMs -= context.unsentMs;
    context.isClosed = true;
    context.queued.length = 0;
    this.#hold(context);
    this.#forgetIfEmpty(group);
    if ((wasFull && !this.#isFull(group)) || (!hadRoom && this.#hasRoom(group))) this.#wake();
  }

  setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused;
    if (!isPaused) this.#wake();
  }

  enqueue(context: ScanContext, segment: ScheduledSegment): void {
    if (context.isClosed) return;
    const { queued, running, options } = context;
    if (queued.length === 0 && running.length === 0) {
      if (context.unsentMs < 250) context.handedBeforeMs = options.listener.handedMs;
      this.#resume(context, segment.index);
    }
    if (queued.length === 0) context.readySinceMs = this.nowMs();
    queued.push(segment);
    this.#wake();
  }

  withdraw({ queued }: ScanContext, fromIndex: number): void {
    const kept = queued.filter(({ index }) => index < fromIndex);
    queued.splice(0, queued.length, ...kept);
  }

  finished(context: ScanContext, segment: ScheduledSegment, durationMs: number): void {
    if (!context.takeRunning(segment)) return;
    context.unsent.finished(segment.index, durationMs);
    if (!context.isClosed) {
      context.finished.push({ index: segment.index, durationMs });
      context.group.unsentMs += durationMs;
    }
    this.#ended(context);
  }

  requeue(context: ScanContext, segment: ScheduledSegment): void {
    if (!context.takeRunning(segment)) return;
    context.unsent.started(segment.index, 0);
    if (!context.isClosed) {
      if (context.queued.length === 0) context.readySinceMs = this.nowMs();
      context.queued.push(segment);
      context.queued.sort((a, b) => a.index - b.index);
    }
    this.#ended(context);
  }

  abandoned(context: ScanContext, segment: ScheduledSegment): void {
    if (context.takeRunning(segment)) this.#ended(context);
  }

  handed(context: ScanContext, durationMs: number): void {
    if (context.isClosed) return;
    const { group, options } = context;
    const isFirst = !context.hasHandedAudio;
    const wasFull = this.#isFull(group);
    const hadRoom = this.#hasRoom(group);
    options.listener.handed(this.nowMs(), durationMs);
    group.unsentMs -= durationMs;
    context.unsent.handed(durationMs);
    this.#hold(context);
    const opens = wasFull && !this.#isFull(group);
    if (isFirst || opens || (!hadRoom && this.#hasRoom(group))) this.#wake();
    if (!context.isGated || this.#isGateShut(context)) return;
    this.#openGate(context);
    this.#wake();
  }

  #isFull(group: Group): boolean {
    return group.unsentMs > this.#options.bounds.unsentAudioMsPerLeaseMax;
  }

  #hasRoom(group: Group): boolean {
    return this.#fits(group, 0);
  }

  #fits({ contexts }: Group, moreMs: number): boolean {
    let expectedMs = moreMs;
    for (const context of contexts) expectedMs += context.expectedMs;
    return expectedMs <= this.#options.bounds.expectedAudioMsPerLeaseMax;
  }

  #isGateShut(context: ScanContext): boolean {
    if (context.runsAgain) return false;
    const unsentMs = context.unsent.ms;
    return (
      this.#isFull(context.group) ||
      unsentMs > this.#options.bounds.unsentAudioMsMax ||
      !this.audio.hasRoomFor(context.options.account ?? '', unsentMs * context.options.bytesPerMs)
    );
  }

  #ended(context: ScanContext): void {
    const { group } = context;
    this.#running--;
    if (context.options.listener.isFile) this.#runningFiles--;
    group.running--;
    if (group.running === 0) group.idleSinceMs = this.nowMs();
    this.#forgetIfEmpty(group);
    this.#hold(context);
    for (const segment of context.running) context.options.move(segment, context.startOf(segment.index));
    this.#wake();
  }

  #wake(): void {
    while (!this.#isPaused && this.#running < this.#options.jobsMax) {
      const next = this.#next();
      if (next === undefined) return;
      this.#start(next);
    }
  }

  #start(context: ScanContext): void {
    const { group, queued, running, options } = context;
    const segment = queued.shift();
    if (segment === undefined) throw new Error('nothing is queued');
    const readySinceMs = group.running > 0 ? this.nowMs() : Math.max(context.readySinceMs, group.idleSinceMs);
    const isAwaited = !context.hasHandedAudio && running.length === 0;
    const awaited = this.#all().filter(
      (other) => other.running.length > 0 && !other.hasHandedAudio && !other.options.listener.isFile,
    ).length;
    const startMs = context.startOf(segment.index);
    const crowd = 4 * this.#options.threads;
    const hasTime = this.#running > crowd && options.listener.clock.at(startMs) > this.nowMs() + 6_000;
    const unawaited = options.listener.isFile || (hasTime && !isAwaited) ? 'longest' : 'long';
    const begins = isAwaited && !options.listener.isFile && awaited <= crowd ? 'short' : unawaited;
    group.running++;
    this.#running++;
    if (options.listener.isFile) this.#runningFiles++;
    context.order = ++this.#order;
    context.startedEnd = Math.max(context.startedEnd, segment.index + 1);
    running.push(segment);
    context.unsent.started(segment.index, segment.expectedMs);
    this.#hold(context);
    options.start({ segment, startMs, isAwaited, begins, readySinceMs });
  }

  #next(): ScanContext | undefined {
    for (;;) {
      for (const context of this.#all())
        if (context.isGated && context.queued.length > 0 && !this.#isGateShut(context))
          this.#openGate(context);
      const next = this.#ofIdleGroups() ?? this.#beside() ?? this.#behind();
      if (next === undefined) return undefined;
      next.isGated = this.#isGateShut(next);
      if (!next.isGated) return next;
    }
  }

  #all(): ScanContext[] {
    return [...this.#groups.values()].flatMap(({ contexts }) => [...contexts]);
  }

  /** Whole files run in half of the jobs at most. */
  #willing(): ScanContext[] {
    const { jobsMax, threads } = this.#options;
    const hasFileRoom = this.#runningFiles < Math.max(threads, jobsMax / 2);
    return this.#all().filter(({ options: { listener } }) => hasFileRoom || !listener.isFile);
  }

  /** A context runs one segment, a whole file as many as there are threads. */
  #startable(): ScanContext[] {
    return this.#willing().filter(
      ({ isWilling, running, options: { listener } }) =>
        isWilling && running.length < (listener.isFile ? this.#options.threads : 1),
    );
  }

  #ofIdleGroups(): ScanContext | undefined {
    const idle = this.#startable().filter(({ group }) => group.running === 0);
    return first(idle.map((context) => [context, context.dueMs, context.group.order, context.order]));
  }

  #beside(): ScanContext | undefined {
    const { jobsMax, threads } = this.#options;
    const left = jobsMax / 2 - this.#running;
    const besides = this.#startable().filter(
      ({ group }) =>
        group.running > 0 && this.#hasRoom(group) && (this.#running < threads || group.running < left),
    );
    return first(
      besides.map((context) => {
        const { dueMs, group, order } = context;
        return [context, group.running, dueMs, group.order, order];
      }),
    );
  }

  #behind(): ScanContext | undefined {
    if (this.#running >= this.#options.threads) return undefined;
    const heard = this.#willing().filter(
      ({ isWilling, group, running, hasHandedAudio }) =>
        isWilling && running.length > 0 && hasHandedAudio && this.#hasRoom(group),
    );
    return first(heard.map((context) => [context, context.dueMs, context.order]));
  }

  #openGate(context: ScanContext): void {
    context.isGated = false;
    context.readySinceMs = this.nowMs();
    const [next] = context.queued;
    if (next !== undefined) this.#resume(context, next.index);
  }

  /** A listener who had to wait for text or the gate is due now at the earliest; a file is due by its length. */
  #resume(context: ScanContext, segment: number): void {
    const { listener } = context.options;
    listener.resumed(this.nowMs(), segment);
    if (!listener.isFile) listener.clock.reach(context.startOf(context.unfinishedFrom), this.nowMs());
  }

  #hold(context: ScanContext): void {
    const bytes = Math.round(context.expectedMs * context.options.bytesPerMs);
    const change = bytes - context.heldBytes;
    context.heldBytes = bytes;
    this.audio.change(context.options.account ?? '', change);
  }

  #forgetIfEmpty(group: Group): void {
    if (group.contexts.size === 0 && group.running === 0) this.#groups.delete(group.key);
  }
}
