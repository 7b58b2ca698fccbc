/** What of a context's text is still to be charged: its code points, by the segments that they were cut into. */
export class Charges {
  /** Of segments from `#next` on. */
  readonly #charges: number[] = [];
  /** Of text behind the last segment. */
  #rest = 0;
  #next = 0;

  /** Text was cut off. */
  add(characters: number): void {
    this.#rest += characters;
  }

  /** It is a segment, with what was added since the one before: white space is charged with what follows it. */
  endSegment(): void {
    this.#charges.push(this.#rest);
    this.#rest = 0;
  }

  /** @returns what segments up to this one are to be charged, once */
  take(segment: number): number {
    let characters = 0;
    for (; this.#next <= segment; this.#next++) characters += this.#charges.shift() ?? 0;
    return characters;
  }

  /** @returns what was added for segments from this one on, and behind them, and is to be charged no more */
  drop(fromSegment: number): number {
    const dropped = this.#charges.splice(fromSegment - this.#next);
    const characters = dropped.reduce((sum, charge) => sum + charge, this.#rest);
    this.#rest = 0;
    return characters;
  }
}
