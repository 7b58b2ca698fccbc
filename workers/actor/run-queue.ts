/**
 * Which context an actor thread works on next: the one whose listener would run out of audio first. Work is done in
 * small parts, so first audio waits for a few of them, never for all that is left of other contexts' chunks.
 *
 * Its playback clock says when: at the position that is encoded so far. Work goes on for some milliseconds, then mail is
 * read, which may bring a context that is due earlier.
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
   * @returns false when there is nothing to do until the next `wake`
   */
  readonly work: (item: T) => boolean;
  /** When the listener would run out of what was made of it. */
  readonly dueMs: (item: T) => number;
  /** Some work was done: what it made can be sent. */
  readonly onPause: () => void;
  /** Calls back after the mail was read. */
  readonly defer: (run: () => void) => void;
}

export class RunQueue<T> {
  readonly #options: RunQueueOptions<T>;
  readonly #waiting = new Set<T>();
  #isDeferred = false;

  constructor(options: RunQueueOptions<T>) {
    this.#options = options;
  }

  /** The item may have something to do. Idempotent. */
  wake(item: T): void {
    if (this.#waiting.has(item)) return;
    this.#waiting.add(item);
    this.#defer();
  }

  /** Forgets the item. Idempotent. */
  remove(item: T): void {
    this.#waiting.delete(item);
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
      if (!work(next)) this.#waiting.delete(next);
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
      const dueMs = this.#options.dueMs(item);
      if (dueMs >= earliestMs) continue;
      earliest = item;
      earliestMs = dueMs;
    }
    return earliest;
  }
}
