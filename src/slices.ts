/**
 * Work over many members, in slices: between two slices the event loop runs everything else.
 *
 * A generator does the work, and yields after each member. It may iterate over a live `Set` or `Map`: members that leave
 * before their turn are not visited, and members that join are visited at the end.
 */
import type { Clock } from './monotonic.js';

export interface SlicesParts {
  readonly clock: Clock;
  /** Time after which a slice ends; the piece of work in progress is finished first. */
  readonly sliceMsMax: number;
}

/**
 * Runs the first slice now, and the others one in each tick.
 *
 * @param work must not throw
 * @param next runs a slice in a later tick
 */
export const inSlices = (
  work: Iterator<unknown>,
  { clock, sliceMsMax }: SlicesParts,
  next: (slice: () => void) => void = setImmediate,
): void => {
  const slice = (): void => {
    const endMs = clock() + sliceMsMax;
    while (work.next().done !== true)
      if (clock() >= endMs) {
        next(slice);
        return;
      }
  };
  slice();
};

/** @returns what runs the work in slices. While the last run is not done, which takes long on a slow machine, it does nothing */
export const repeatedly = (work: () => Generator<void>, parts: SlicesParts): (() => void) => {
  let isRunning = false;
  const run = function* (): Generator<void> {
    isRunning = true;
    try {
      yield* work();
    } finally {
      isRunning = false;
    }
  };
  return () => {
    if (!isRunning) inSlices(run(), parts);
  };
};

/** Runs deferred work, one piece in each tick, so that many pieces do not block the thread together. Accounts take turns. */
export class OneByOne {
  /** The next account first. None is empty. */
  readonly #waiting = new Map<string, Set<() => void>>();

  has(run: () => void, account: string): boolean {
    return this.#waiting.get(account)?.has(run) === true;
  }

  /** @param run may add itself again. Must not throw */
  add(run: () => void, account: string): void {
    if (this.#waiting.size === 0) setImmediate(() => this.#next());
    const runs = this.#waiting.get(account);
    if (runs === undefined) this.#waiting.set(account, new Set([run]));
    else runs.add(run);
  }

  #next(): void {
    const [next] = this.#waiting;
    if (next === undefined) return;
    const [account, runs] = next;
    const [run] = runs;
    runs.delete(run!);
    this.#waiting.delete(account);
    if (runs.size > 0) this.#waiting.set(account, runs);
    if (this.#waiting.size > 0) setImmediate(() => this.#next());
    run?.();
  }
}
