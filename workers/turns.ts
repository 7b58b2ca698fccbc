/**
 * Who steps next on a synthesis thread. Steps run one at a time; whenever one ends, the job whose listener would run
 * dry first gets the next, so a new utterance waits for a step, never for a segment.
 */

interface Waiting {
  readonly dueMs: () => number;
  readonly resolve: () => void;
}

export class Turns {
  readonly #waiting = new Set<Waiting>();
  #taken = false;

  /**
   * Resolves when it is the caller's turn; `leave` ends it. Deadlines are read when the choice is made, as they move
   * while a job waits.
   */
  enter(dueMs: () => number): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.add({ dueMs, resolve });
      if (!this.#taken) this.#next();
    });
  }

  leave(): void {
    this.#taken = false;
    this.#next();
  }

  #next(): void {
    let earliest: Waiting | undefined;
    let earliestMs = Number.POSITIVE_INFINITY;
    for (const waiting of this.#waiting) {
      const dueMs = waiting.dueMs();
      if (earliest === undefined || dueMs < earliestMs) {
        earliest = waiting;
        earliestMs = dueMs;
      }
    }
    if (earliest === undefined) return;
    this.#waiting.delete(earliest);
    this.#taken = true;
    earliest.resolve();
  }
}
