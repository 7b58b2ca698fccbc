/**
 * Whose sound an actor thread works on next: that of the context whose listener would run dry first. Work is done in
 * small steps, so that a first sound waits for a few of them, and never for all that others' chunks still take.
 *
 * A context is due when all is heard that was made of it so far, as if it was heard from its first step on; who had
 * nothing to do while that time passed is due at once. Steps are taken for some milliseconds, then mail is read, which
 * may bring somebody who is due earlier.
 *
 *   asleep --wake--> waiting --step--> waiting;  --(nothing to do)--> asleep;  any --remove--> unknown
 */
import type { Clock } from '../../src/monotonic.js';

export interface RunQueueOptions<T> {
  readonly clock: Clock;
  /** Steps are taken for as long, then the event loop turns. */
  readonly turnMs: number;
  /**
   * Does a little of what there is to do. Must not throw.
   * @returns milliseconds of sound that went into it; `null` when there is nothing to do until it is woken
   */
  readonly step: (item: T) => number | null;
  /** Some steps were taken: what they made can go. */
  readonly endTurn: () => void;
  /** Calls back when mail was read. */
  readonly defer: (turn: () => void) => void;
}

export class RunQueue<T> {
  readonly #options: RunQueueOptions<T>;
  readonly #dueMs = new Map<T, number>();
  readonly #waiting = new Set<T>();
  #isDeferred = false;

  constructor(options: RunQueueOptions<T>) {
    this.#options = options;
  }

  /** It may have something to do. Idempotent. */
  wake(item: T): void {
    if (this.#waiting.has(item)) return;
    this.#dueMs.set(item, Math.max(this.#dueMs.get(item) ?? 0, this.#options.clock()));
    this.#waiting.add(item);
    this.#defer();
  }

  /** Forgets it. Idempotent. */
  remove(item: T): void {
    this.#waiting.delete(item);
    this.#dueMs.delete(item);
  }

  #defer(): void {
    if (this.#isDeferred) return;
    this.#isDeferred = true;
    this.#options.defer(() => this.#turn());
  }

  #turn(): void {
    const { clock, turnMs, step, endTurn } = this.#options;
    this.#isDeferred = false;
    const endMs = clock() + turnMs;
    for (let next = this.#earliest(); next !== undefined; next = this.#earliest()) {
      const madeMs = step(next);
      if (madeMs === null) this.#waiting.delete(next);
      else if (this.#waiting.has(next)) this.#dueMs.set(next, (this.#dueMs.get(next) ?? 0) + madeMs);
      if (clock() >= endMs) break;
    }
    endTurn();
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
