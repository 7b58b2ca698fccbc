const LATE_MS = 30_000;

/** Things that come when they come, and can be awaited one by one. */
export class Arrivals<T> {
  readonly #items: T[] = [];
  readonly #waiting: ((item: T) => void)[] = [];

  push(item: T): void {
    const waiting = this.#waiting.shift();
    if (waiting === undefined) this.#items.push(item);
    else waiting(item);
  }

  /** At once when it comes: what follows may depend on the tick. */
  next(): Promise<T> {
    const item = this.#items.shift();
    if (item !== undefined) return Promise.resolve(item);
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`nothing came within ${LATE_MS} ms`)), LATE_MS);
      this.#waiting.push((came) => {
        clearTimeout(late);
        resolve(came);
      });
    });
  }

  /** What came and was not awaited. */
  get rest(): readonly T[] {
    return this.#items;
  }
}
