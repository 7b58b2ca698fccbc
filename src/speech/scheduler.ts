/**
 * Decides which segment runs next: the earliest playback deadline first, each group like one listener, bounded by what
 * the listeners have taken.
 *
 * A group (the contexts of one lease, or of one socket) may always run one segment. Further contexts of the group run
 * theirs beside it while threads idle, or while fewer than half of the jobs are taken: then each group may have as many
 * as are left of that half. How much the threads work for them is decided there, between steps (`GroupClock`). A
 * second segment of the same context runs only while threads would otherwise idle, and only after its listener heard
 * something: it would delay the first chunk of the first.
 *
 * A context gets no segment while its unsent audio, or that of its group, is over the bound. This is the backpressure
 * gate, and the only place where backpressure acts.
 *
 * Pure policy: it runs nothing and knows no thread. Time comes from the given clock.
 */
import { Heap } from '../heap.js';
import type { Bounds } from '../limits.js';
import type { Clock } from '../monotonic.js';
import { AudioBudget } from './audio-budget.js';
import { Group, type GroupBounds } from './group.js';
import { ContextSchedule, type ContextGroup, type ScheduleHost, type SegmentOwner } from './schedule.js';

export interface SchedulerOptions {
  readonly clock: Clock;
  /** Synthesis threads. */
  readonly threads: number;
  /** Segments that may be with the threads at once. */
  readonly jobsMax: number;
  readonly bounds: Pick<Bounds, 'unsentAudioMsMax' | 'unsentAudioBytesMax'> & GroupBounds;
}

/** A total order of groups by their first context, of equal ones the older group first. */
const isDueBefore = (a: ContextGroup, b: ContextGroup): boolean => {
  const [aMs, bMs] = [a.startable.first?.rankMs ?? 0, b.startable.first?.rankMs ?? 0];
  return aMs !== bMs ? aMs < bMs : a.order < b.order;
};

/** The group that runs fewest first. */
const isBehind = (a: ContextGroup, b: ContextGroup): boolean =>
  a.running !== b.running ? a.running < b.running : isDueBefore(a, b);

const wantsLess = (a: ContextSchedule, b: ContextSchedule): boolean =>
  a.refusedBytes !== b.refusedBytes ? a.refusedBytes < b.refusedBytes : a.order < b.order;

export class Scheduler implements ScheduleHost {
  /** Bytes of audio that no socket has yet, over all contexts. */
  readonly audio: AudioBudget;
  readonly #options: SchedulerOptions;
  readonly #groups = new Map<object, ContextGroup>();
  /** Groups that run nothing and may start a segment. */
  readonly #idle = new Heap(isDueBefore);
  /** Groups that run something, and may start a segment of another of their contexts beside it. */
  readonly #busy = new Heap(isBehind);
  /** Contexts that run something: no more than there are running segments. */
  readonly #speaking = new Set<ContextSchedule>();
  /** Contexts whose gate only the audio budget shuts. */
  readonly #refused = new Heap(wantsLess);
  /** Contexts that may have to enter or leave a heap, or move in it. */
  readonly #changed = new Set<ContextSchedule>();
  #groupsOpened = 0;
  #order = 0;
  #running = 0;
  /** When the last segment ended. */
  #endedMs = -Infinity;
  #isPaused = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.audio = new AudioBudget(options.bounds.unsentAudioBytesMax, () => this.wake());
  }

  get unsentAudioMsMax(): number {
    return this.#options.bounds.unsentAudioMsMax;
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

  /**
   * @param groupKey contexts with the same key are one group
   * @param bytesPerMs what a millisecond of the context's audio takes of the audio budget
   * @param speed factor of pace
   * @param leadMs the context's first sample is due so much later than now
   */
  open(groupKey: object, owner: SegmentOwner, bytesPerMs = 0, speed = 1, leadMs = 0): ContextSchedule {
    let group = this.#groups.get(groupKey);
    if (group === undefined) {
      group = new Group(groupKey, ++this.#groupsOpened, this.#options.bounds);
      this.#groups.set(groupKey, group);
    }
    const context = new ContextSchedule(this, group, owner, bytesPerMs, speed, leadMs);
    context.order = ++this.#order;
    group.contexts.add(context);
    return context;
  }

  /** The context is over. Its running segments end by themselves and are then forgotten. Idempotent. */
  close(context: ContextSchedule): void {
    const { group } = context;
    if (!group.contexts.delete(context)) return;
    this.#changed.delete(context);
    this.#refused.delete(context);
    group.startable.delete(context);
    this.#place(group);
    const wasFull = group.isFull();
    const hadRoom = group.hasRoom();
    context.drop();
    this.#forgetIfEmpty(group);
    // The other contexts of the group may have waited for the audio that is now forgotten.
    if ((wasFull && !group.isFull()) || (!hadRoom && group.hasRoom())) this.wake();
  }

  /** Stops and resumes starting segments, while no thread can take one. */
  setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused;
    if (!isPaused) this.wake();
  }

  changed(context: ContextSchedule): void {
    this.#changed.add(context);
  }

  groupChanged(group: ContextGroup): void {
    for (const context of group.contexts) this.#changed.add(context);
  }

  roomChanged(group: ContextGroup): void {
    this.#place(group);
  }

  ended(context: ContextSchedule): void {
    const { group } = context;
    this.#running--;
    this.#endedMs = this.nowMs();
    group.running--;
    if (group.running === 0) group.idleSinceMs = this.nowMs();
    if (context.runningSegments === 0) this.#speaking.delete(context);
    if (group.contexts.has(context)) this.#changed.add(context);
    this.#place(group);
    this.#forgetIfEmpty(group);
  }

  /** The one loop that starts segments; called whenever something could have become startable. */
  wake(): void {
    while (!this.#isPaused && this.#running < this.#options.jobsMax) {
      const next = this.#next();
      if (next === undefined) return;
      this.#start(next);
    }
  }

  #next(): ContextSchedule | undefined {
    for (;;) {
      this.#refresh();
      const next = this.#idle.first?.startable.first ?? this.#nextBeside() ?? this.#nextBehind();
      if (next === undefined || next.passesGate()) return next;
      this.#changed.add(next);
    }
  }

  /** Brings the heaps up to date. */
  #refresh(): void {
    for (const context of this.#changed) this.#review(context);
    this.#changed.clear();
    for (let { first } = this.#refused; first !== undefined; { first } = this.#refused) {
      if (!this.audio.hasRoomFor(first.refusedBytes)) return;
      this.#review(first);
    }
  }

  #review(context: ContextSchedule): void {
    const { startable } = context.group;
    context.refreshGate();
    if (context.isWilling && context.runningSegments === 0) {
      context.rankMs = context.dueMs;
      startable.set(context);
    } else startable.delete(context);
    this.#place(context.group);
    if (context.isRefused) {
      context.refusedBytes = context.unsentBytes;
      this.#refused.set(context);
    } else this.#refused.delete(context);
  }

  /** A context that runs nothing, of a group that does. */
  #nextBeside(): ContextSchedule | undefined {
    const group = this.#busy.first;
    if (group === undefined) return undefined;
    const { jobsMax, threads } = this.#options;
    const mayRun = this.#running < threads || group.running < jobsMax / 2 - this.#running;
    return mayRun ? group.startable.first : undefined;
  }

  /** A context that runs something already. There are fewer than threads. */
  #nextBehind(): ContextSchedule | undefined {
    if (this.#running >= this.#options.threads) return undefined;
    let best: ContextSchedule | undefined;
    for (const context of this.#speaking) {
      if (!context.isWilling || !context.isHeard || !context.group.hasRoom()) continue;
      if (best === undefined || context.dueMs < best.dueMs) best = context;
      else if (context.dueMs === best.dueMs && context.order < best.order) best = context;
    }
    return best;
  }

  #start(context: ContextSchedule): void {
    const { group } = context;
    const groupIsBusy = group.running > 0;
    group.startable.delete(context);
    group.running++;
    this.#running++;
    this.#speaking.add(context);
    this.#place(group);
    context.order = ++this.#order;
    context.start(groupIsBusy);
  }

  /** The group's first context, its running segments or its room changed. */
  #place(group: ContextGroup): void {
    const isStartable = group.startable.first !== undefined;
    if (isStartable && group.running === 0) this.#idle.set(group);
    else this.#idle.delete(group);
    if (isStartable && group.running > 0 && group.hasRoom()) this.#busy.set(group);
    else this.#busy.delete(group);
  }

  #forgetIfEmpty(group: ContextGroup): void {
    if (group.contexts.size === 0 && group.running === 0) this.#groups.delete(group.key);
  }
}
