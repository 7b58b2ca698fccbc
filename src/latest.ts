/** Keys that were added last and their values, in bounded memory. */
export class Latest<K, V> {
  readonly #max: number;
  readonly #values = new Map<K, V>();

  constructor(max: number) {
    this.#max = max;
  }

  get(key: K): V | undefined {
    return this.#values.get(key);
  }

  /** A key that is there keeps its value, and counts as added last. */
  add(key: K, value: V): void {
    const kept = this.#values.get(key) ?? value;
    this.#values.delete(key);
    this.#values.set(key, kept);
    if (this.#values.size <= this.#max) return;
    const [first] = this.#values.keys();
    this.#values.delete(first!);
  }

  /** @returns its value, which is made if it is not there. The key counts as added last */
  use(key: K, make: () => V): V {
    const value = this.#values.get(key) ?? make();
    this.add(key, value);
    return value;
  }

  delete(key: K): void {
    this.#values.delete(key);
  }

  clear(): void {
    this.#values.clear();
  }
}
