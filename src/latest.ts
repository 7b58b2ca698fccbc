/** The values that were added last, in bounded memory. */
export class Latest<T> {
  readonly #max: number;
  readonly #values = new Set<T>();

  constructor(max: number) {
    this.#max = max;
  }

  has(value: T): boolean {
    return this.#values.has(value);
  }

  add(value: T): void {
    if (this.#values.has(value)) return;
    this.#values.add(value);
    const [first] = this.#values;
    if (this.#values.size > this.#max && first !== undefined) this.#values.delete(first);
  }

  delete(value: T): void {
    this.#values.delete(value);
  }
}
