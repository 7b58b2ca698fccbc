import { eventually } from './waiting.js';

/** Things that come when they come, and can be awaited one by one. */
export class Arrivals<T> {
  readonly #items: T[] = [];

  push(item: T): void {
    this.#items.push(item);
  }

  async next(): Promise<T> {
    await eventually(() => this.#items.length > 0);
    return this.#items.shift()!;
  }

  /** What came and was not awaited. */
  get rest(): readonly T[] {
    return this.#items;
  }
}
