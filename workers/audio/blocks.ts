/** Cuts samples into blocks of one size, which codecs take. */
export class Blocks {
  readonly #block: Int16Array;
  #filled = 0;

  constructor(samples: number) {
    this.#block = new Int16Array(samples);
  }

  /** The samples of the incomplete block; valid until the next `push`. */
  get rest(): Int16Array {
    return this.#block.subarray(0, this.#filled);
  }

  /** @returns the blocks that are now complete, one at a time: each is valid until the next */
  *push(samples: Int16Array): Generator<Int16Array, void> {
    for (let start = 0; start < samples.length;) {
      const part = samples.subarray(start, start + this.#block.length - this.#filled);
      this.#block.set(part, this.#filled);
      this.#filled += part.length;
      start += part.length;
      if (this.#filled < this.#block.length) return;
      this.#filled = 0;
      yield this.#block;
    }
  }
}
