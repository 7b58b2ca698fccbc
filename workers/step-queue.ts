/** Which job of a synthesis thread runs its next step. */
import { type Clock, monotonicMs } from '../src/monotonic.js';
import type { GroupClock } from '../src/threads/control.js';
import type { Engine } from './engines/engine.js';

/** What decides with which others a step can run as one. */
export interface BatchStep {
  /** Its engine must make batches, and be that of the others. */
  readonly engine: Pick<Engine, 'batchMax'> | undefined;
  /** The same for all of them. */
  readonly window: number;
}

interface WaitingStep<Step> {
  readonly dueMs: () => number;
  readonly groupClock: GroupClock | undefined;
  /** Of a long step; else 0. */
  readonly longMs: number;
  readonly step: Step | undefined;
  readonly resolve: (others: Step[]) => void;
}

interface RankedStep<Step> {
  readonly waiting: WaitingStep<Step>;
  readonly dueMs: number;
  readonly ownMs: number;
}

const rankOf = <Step>(waiting: WaitingStep<Step>): RankedStep<Step> => {
  const ownMs = waiting.dueMs();
  const { groupClock } = waiting;
  return { waiting, ownMs, dueMs: groupClock === undefined ? ownMs : Math.max(ownMs, groupClock.dueMs) };
};

const earlier = <Step>(a: RankedStep<Step>, b: RankedStep<Step>): number =>
  a.dueMs === b.dueMs ? a.ownMs - b.ownMs : a.dueMs - b.dueMs;

const isEarlier = <Step>(a: RankedStep<Step>, b: RankedStep<Step> | undefined): boolean =>
  b === undefined || earlier(a, b) < 0;

/**
 * Decides which job runs the next step. Steps run one at a time. When one ends, the job with the earliest playback
 * deadline runs the next, which may be the same one: so a new utterance waits for a step, never for a segment. A job that
 * counts for a group is not due before the group's clock. Within the group the job's own deadline decides.
 *
 * A long step cannot be interrupted. It lets short ones go first that are due before its end, but waits for them no longer
 * than it takes itself.
 *
 * On a GPU several steps run as one: with the one that is due first, those that wait and have the same window, the most urgent
 * first. None waits for others to come.
 */
export class StepQueue<Step extends BatchStep = BatchStep> {
  readonly #clock: Clock;
  readonly #size: number;
  readonly #waiting = new Set<WaitingStep<Step>>();
  #taken = 0;

  /** @param clock of the deadlines @param size the most callers that run at a time */
  constructor(clock: Clock = monotonicMs, size = 1) {
    this.#clock = clock;
    this.#size = size;
  }

  /**
   * Resolves when the caller's step may run; `leave` ends it. Reads the deadlines at each choice, because they move.
   *
   * @param step absent: it runs alone
   * @returns the steps of others that the caller runs with its own. Their `enter` never resolves
   */
  enter(dueMs: () => number, groupClock?: GroupClock, longMs = 0, step?: Step): Promise<Step[]> {
    return new Promise((resolve) => {
      this.#waiting.add({ dueMs, groupClock, longMs, step, resolve });
      if (this.#taken < this.#size) this.#next();
    });
  }

  leave(): void {
    // After the messages that arrived during the step: they may bring a job that is more urgent than all that wait. The
    // caller may enter again meanwhile.
    setImmediate(() => {
      this.#taken--;
      this.#next();
    });
  }

  readonly #next = (): void => {
    let long: RankedStep<Step> | undefined;
    let short: RankedStep<Step> | undefined;
    for (const waiting of this.#waiting) {
      const ranked = rankOf(waiting);
      if (waiting.longMs > 0) long = isEarlier(ranked, long) ? ranked : long;
      else short = isEarlier(ranked, short) ? ranked : short;
    }
    const next = short === undefined ? long : this.#firstOf(short, long);
    if (next === undefined) return;
    this.#taken++;
    this.#waiting.delete(next.waiting);
    next.waiting.resolve(this.#othersFor(next));
  };

  #firstOf(short: RankedStep<Step>, long: RankedStep<Step> | undefined): RankedStep<Step> {
    if (long === undefined || !isEarlier(long, short)) return short;
    const { longMs } = long.waiting;
    const nowMs = this.#clock();
    return short.dueMs < nowMs + longMs && nowMs < long.dueMs + longMs ? short : long;
  }

  /** Takes the steps that run with this one. */
  #othersFor({ waiting: { step: first, groupClock } }: RankedStep<Step>): Step[] {
    const count = (first?.engine?.batchMax ?? 1) - 1;
    if (first === undefined || count < 1) return [];
    const isFit = ({ step, longMs }: WaitingStep<Step>) =>
      step !== undefined && longMs === 0 && step.engine === first.engine && step.window === first.window;
    const ranked = [...this.#waiting].filter(isFit).map(rankOf).toSorted(earlier);
    // A group counts as one listener, which has one step in a batch. Its others get the places that are left.
    const groups = new Set(groupClock === undefined ? [] : [groupClock.id]);
    const others: RankedStep<Step>[] = [];
    const rest: RankedStep<Step>[] = [];
    for (const one of ranked) {
      const group = one.waiting.groupClock?.id;
      if (group !== undefined && groups.has(group)) rest.push(one);
      else others.push(one);
      if (group !== undefined) groups.add(group);
    }
    const chosen = [...others, ...rest].slice(0, count);
    for (const { waiting } of chosen) this.#waiting.delete(waiting);
    return chosen.map(({ waiting }) => waiting.step!);
  }
}
