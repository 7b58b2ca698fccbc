/** The requests in flight, so that a drain knows when the last one is over. */
export class Registry<T> {
  readonly #members = new Set<T>();
  #waiting: (() => void)[] = [];

  get size(): number {
    return this.#members.size;
  }

  /** A copy: whoever is looked at may leave. */
  get members(): readonly T[] {
    return [...this.#members];
  }

  add(member: T): void {
    this.#members.add(member);
  }

  delete(member: T): void {
    if (!this.#members.delete(member) || this.#members.size > 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  /** Resolves when nothing is in flight: at once, when nothing is. */
  whenIdle(): Promise<void> {
    if (this.#members.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }
}
