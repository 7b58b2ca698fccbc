/** A binary heap. It keeps each item's place, so that an item whose rank changed can be moved, and any can be removed. */
export class Heap<T> {
  readonly #items: T[] = [];
  readonly #places = new Map<T, number>();
  readonly #isBefore: (a: T, b: T) => boolean;

  /** @param isBefore a total order of the items */
  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore;
  }

  get first(): T | undefined {
    return this.#items[0];
  }

  /** Adds the item, or moves it if its rank changed. */
  set(item: T): void {
    const place = this.#places.get(item) ?? this.#items.length;
    if (!this.#rise(item, place)) this.#sink(item, place);
  }

  /** Idempotent. */
  delete(item: T): void {
    const place = this.#places.get(item);
    if (place === undefined) return;
    this.#places.delete(item);
    const last = this.#items.pop() as T;
    if (last === item) return;
    if (!this.#rise(last, place)) this.#sink(last, place);
  }

  /** @returns false if the item stays in its place, where it is then to be put */
  #rise(item: T, from: number): boolean {
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.#items[above] as T;
      if (!this.#isBefore(item, parent)) break;
      this.#put(parent, place);
      place = above;
    }
    if (place === from) return false;
    this.#put(item, place);
    return true;
  }

  #sink(item: T, from: number): void {
    const count = Math.max(this.#items.length, from + 1);
    let place = from;
    for (let below = 2 * place + 1; below < count; below = 2 * place + 1) {
      const right = below + 1;
      if (right < count && this.#isBefore(this.#items[right] as T, this.#items[below] as T)) below = right;
      const child = this.#items[below] as T;
      if (!this.#isBefore(child, item)) break;
      this.#put(child, place);
      place = below;
    }
    this.#put(item, place);
  }

  #put(item: T, place: number): void {
    this.#items[place] = item;
    this.#places.set(item, place);
  }
}
