/** Counts by name. */

export class Tally {
  readonly #counts = new Map<string, number>();

  add(name: string, count = 1): void {
    this.#counts.set(name, this.of(name) + count);
  }

  /** Adds all counts of another tally. */
  merge(other: Tally): void {
    for (const [name, count] of other.#counts) this.add(name, count);
  }

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  /** Names with a count above 0, the most frequent first. */
  get names(): string[] {
    return this.#sorted().map(([name]) => name);
  }

  get sum(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  /** `429 × 4,990, 200 × 10` */
  toString(): string {
    const parts = this.#sorted().map(([name, count]) => `${name} × ${count.toLocaleString('en')}`);
    return parts.join(', ') || 'nothing';
  }

  /** `wait 47 %, reset 0.80 %` */
  toShares(): string {
    const { sum } = this;
    return this.#sorted()
      .map(([name, count]) => `${name} ${((100 * count) / sum).toFixed(count * 100 < sum ? 2 : 0)} %`)
      .join(', ');
  }

  #sorted(): [string, number][] {
    return [...this.#counts].filter(([, count]) => count > 0).sort(([, a], [, b]) => b - a);
  }
}
