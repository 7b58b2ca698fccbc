/** A common bound on bytes (or characters, or contexts) that are held: whoever takes some gives them back. */
export class ByteBudget {
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get taken(): number {
    return this.#bytes;
  }

  /** @returns whether they could be had */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > this.#bytesMax) return false;
    this.#bytes += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#bytes -= bytes;
  }
}
