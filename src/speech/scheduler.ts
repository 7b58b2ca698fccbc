/**
 * Decides which segment runs next: the earliest playback deadline first, one running segment per group, bounded by what
 * the listener has taken.
 *
 * A group (the contexts of one lease, or of one socket) runs one segment at a time under contention. It runs more only
 * while threads would otherwise idle, and only after its listener heard something: a second segment would delay the
 * first chunk of the first. Its contexts take turns. A context gets no segment while its unsent audio, or that of its
 * group, is over the bound. This is the backpressure gate, and the only place where backpressure acts.
 *
 * Pure policy: it runs nothing and knows no thread. Time comes from the given clock.
 */
import { Heap } from '../heap.js';
import type { Bounds } from '../limits.js';
import type { Clock } from '../monotonic.js';
import { AudioBudget } from './audio-budget.js';
import { ContextSchedule, Group, type ScheduleHost, type SegmentOwner } from './schedule.js';

export interface SchedulerOptions {
  readonly clock: Clock;
  /** Synthesis threads. */
  readonly threads: number;
  /** Segments that may be with the threads at once. */
  readonly jobsMax: number;
  readonly bounds: Pick<Bounds, 'unsentAudioMsMax' | 'unsentAudioMsPerLeaseMax' | 'unsentAudioBytesMax'>;
}

/** A total order. Contexts of equal deadline: older groups first, then the context that waited longest. */
const isBefore = (a: ContextSchedule, b: ContextSchedule): boolean =>
  a.rankMs !== b.rankMs
    ? a.rankMs < b.rankMs
    : a.group.order !== b.group.order
      ? a.group.order < b.group.order
      : a.order < b.order;

export class Scheduler implements ScheduleHost {
  /** Bytes of audio that no socket has yet, over all contexts. */
  readonly audio: AudioBudget;
  readonly #options: SchedulerOptions;
  readonly #groups = new Map<object, Group>();
  /** Groups with a running segment: no more than there are running segments. */
  readonly #busy = new Set<Group>();
  /**
   * Contexts that may start a segment, while their group runs none. Contexts of a group that became busy since are
   * removed when they come first, and added again when the group is idle.
   */
  readonly #startable = new Heap(isBefore);
  /** Contexts that may have to enter or leave the heap, or move in it. */
  readonly #changed = new Set<ContextSchedule>();
  /** The audio budget may have refused a context when the heap was last refreshed. */
  #wasTight = false;
  #bytesPerMsMax = 0;
  #groupsOpened = 0;
  #order = 0;
  #running = 0;
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
   */
  open(groupKey: object, owner: SegmentOwner, bytesPerMs = 0, speed = 1): ContextSchedule {
    let group = this.#groups.get(groupKey);
    if (group === undefined) {
      group = new Group(groupKey, ++this.#groupsOpened, this.#options.bounds.unsentAudioMsPerLeaseMax);
      this.#groups.set(groupKey, group);
    }
    const context = new ContextSchedule(this, group, owner, bytesPerMs, speed);
    context.order = ++this.#order;
    this.#bytesPerMsMax = Math.max(this.#bytesPerMsMax, bytesPerMs);
    group.contexts.add(context);
    return context;
  }

  /** The context is over. Its running segments end by themselves and are then forgotten. Idempotent. */
  close(context: ContextSchedule): void {
    const { group } = context;
    if (!group.contexts.delete(context)) return;
    this.#changed.delete(context);
    this.#startable.delete(context);
    const wasFull = group.isFull();
    context.drop();
    this.#forgetIfEmpty(group);
    if (!wasFull || group.isFull()) return;
    // The other contexts of the group may have waited for the audio that is now forgotten.
    this.groupChanged(group);
    this.wake();
  }

  /** Stops and resumes starting segments, while no thread can take one. */
  setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused;
    if (!isPaused) this.wake();
  }

  changed(context: ContextSchedule): void {
    this.#changed.add(context);
  }

  groupChanged(group: Group): void {
    for (const context of group.contexts) this.#changed.add(context);
  }

  ended(context: ContextSchedule): void {
    const { group } = context;
    this.#running--;
    group.running--;
    if (group.running === 0) {
      group.idleSinceMs = this.nowMs();
      this.#busy.delete(group);
      this.groupChanged(group);
      this.#forgetIfEmpty(group);
    }
    this.wake();
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
    this.#refresh();
    for (let { first } = this.#startable; first !== undefined; { first } = this.#startable) {
      if (first.group.running === 0) return first;
      this.#startable.delete(first);
    }
    return this.#running < this.#options.threads ? this.#nextOfBusyGroups() : undefined;
  }

  /** Brings the heap up to date. */
  #refresh(): void {
    // While the budget is short, any change of it may shut or open the gate of any context.
    const isTight = this.audio.isTightFor(this.unsentAudioMsMax * this.#bytesPerMsMax);
    if (isTight || this.#wasTight) for (const group of this.#groups.values()) this.groupChanged(group);
    this.#wasTight = isTight;
    for (const context of this.#changed) {
      // It is looked at again when its group is idle.
      if (context.group.running > 0) continue;
      if (!context.refreshGate()) this.#startable.delete(context);
      else {
        context.rankMs = context.dueMs;
        this.#startable.set(context);
      }
    }
    this.#changed.clear();
  }

  /** Looks at all contexts of busy groups. There are fewer such groups than threads. */
  #nextOfBusyGroups(): ContextSchedule | undefined {
    let best: ContextSchedule | undefined;
    for (const { contexts } of this.#busy)
      for (const context of contexts) {
        if (!context.refreshGate() || !context.isHeard) continue;
        this.#startable.delete(context);
        context.rankMs = context.dueMs;
        if (best === undefined || isBefore(context, best)) best = context;
      }
    return best;
  }

  #start(context: ContextSchedule): void {
    const { group } = context;
    const groupIsBusy = group.running > 0;
    this.#startable.delete(context);
    this.#busy.add(group);
    group.running++;
    this.#running++;
    context.order = ++this.#order;
    context.start(groupIsBusy);
  }

  #forgetIfEmpty(group: Group): void {
    if (group.contexts.size === 0 && group.running === 0) this.#groups.delete(group.key);
  }
}
