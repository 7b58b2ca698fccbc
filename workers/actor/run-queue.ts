/**
 * Which context an actor thread works on next: the one whose listener would run out of audio first. Work is done in
 * small parts, so first audio waits for a few of them, never for all that is left of other contexts' chunks.
 *
 * A context is due when all audio made of it so far is heard, counted from its first part; a context that had nothing to
 * do when that moment passed is due at once. Work goes on for some milliseconds, then mail is read, which may bring a
 * context that is due earlier.
 *
 *   asleep --wake--> waiting --work--> waiting;  --(nothing to do)--> asleep;  any --remove--> unknown
 */
import type { Clock } from '../../src/monotonic.js';

export interface RunQueueOptions<T> {
  readonly clock: Clock;
  /** Milliseconds of work between two readings of the mail. */
  readonly workMs: number;
  /**
   * Does a small part of what there is to do. Must not throw.
   *
   * @returns milliseconds of audio that went into it; `null` when there is nothing to do until the next `wake`
   */
  readonly work: (item: T) => number | null;
  /** Some work was done: what it made can be sent. */
  readonly onPause: () => void;
  /** Calls back after the mail was read. */
  readonly defer: (run: () => void) => void;
}

export class RunQueue<T> {
  readonly #options: RunQueueOptions<T>;
  readonly #dueMs = new Map<T, number>();
  readonly #waiting = new Set<T>();
  #isDeferred = false;

  constructor(options: RunQueueOptions<T>) {
    this.#options = options;
  }

  /** The item may have something to do. Idempotent. */
  wake(item: T): void {
    if (this.#waiting.has(item)) return;
    this.#dueMs.set(item, Math.max(this.#dueMs.get(item) ?? 0, this.#options.clock()));
    this.#waiting.add(item);
    this.#defer();
  }

  /** Forgets the item. Idempotent. */
  remove(item: T): void {
    this.#waiting.delete(item);
    this.#dueMs.delete(item);
  }

  #defer(): void {
    if (this.#isDeferred) return;
    this.#isDeferred = true;
    this.#options.defer(() => this.#run());
  }

  #run(): void {
    const { clock, workMs, work, onPause } = this.#options;
    this.#isDeferred = false;
    const endMs = clock() + workMs;
    for (let next = this.#earliest(); next !== undefined; next = this.#earliest()) {
      const madeMs = work(next);
      if (madeMs === null) this.#waiting.delete(next);
      else if (this.#waiting.has(next)) this.#dueMs.set(next, (this.#dueMs.get(next) ?? 0) + madeMs);
      if (clock() >= endMs) break;
    }
    onPause();
    if (this.#waiting.size > 0) this.#defer();
  }

  /** Among equals the one that waited longest. */
  #earliest(): T | undefined {
    let earliest: T | undefined;
    let earliestMs = Number.POSITIVE_INFINITY;
    for (const item of this.#waiting) {
      const dueMs = this.#dueMs.get(item) ?? 0;
      if (dueMs >= earliestMs) continue;
      earliest = item;
      earliestMs = dueMs;
    }
    return earliest;
  }
}
