/** How many connections each has: an address, or an account. */
import type { Member } from '../byte-budget.js';

export class Holders<M extends Member> {
  readonly #counts = new Map<M, number>();

  countOf(holder: M): number {
    return this.#counts.get(holder) ?? 0;
  }

  /** Holders that are counted. */
  get size(): number {
    return this.#counts.size;
  }

  add(holder: M): void {
    this.#counts.set(holder, this.countOf(holder) + 1);
  }

  remove(holder: M): void {
    const left = this.countOf(holder) - 1;
    if (left > 0) this.#counts.set(holder, left);
    else this.#counts.delete(holder);
  }
}
