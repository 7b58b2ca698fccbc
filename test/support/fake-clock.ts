/** Timers on a clock that the test advances. */
interface Timer {
  readonly dueMs: number;
  readonly action: () => void;
}

export class FakeClock {
  readonly #timers = new Set<Timer>();
  #nowMs = 0;

  /** Milliseconds until the next timer, or `undefined`. */
  get nextMs(): number | undefined {
    const due = [...this.#timers].map(({ dueMs }) => dueMs);
    return due.length === 0 ? undefined : Math.min(...due) - this.#nowMs;
  }

  after(ms: number, action: () => void): () => void {
    const timer = { dueMs: this.#nowMs + ms, action };
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  /** Fires the timers that are due within `ms`, in order. Timers of the same time fire in the order in which they were set. */
  advance(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (;;) {
      let next: Timer | undefined;
      for (const timer of this.#timers)
        if (timer.dueMs <= endMs && (next === undefined || timer.dueMs < next.dueMs)) next = timer;
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#nowMs = next.dueMs;
      next.action();
    }
    this.#nowMs = endMs;
  }
}
