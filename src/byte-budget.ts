import { InvariantError } from './fault.js';

/** A holder may have this fraction of what is free. */
const FRACTION_OF_FREE = 16;

/**
 * A shared bound on bytes (or characters, contexts, files). Holders take from it and give back.
 *
 * Most holders take a known amount, or nothing: `take`. Holders that grow step by step ask for their `allowance` first
 * and then report every `change`. The allowance shrinks as the budget fills: large holders are stopped first, and a
 * holder of nothing has room until the budget is exhausted. Of N holders that take all they may, and give back as they go,
 * none has more than 1 / (N + 16) of the budget in the long run.
 */
export class ByteBudget {
  readonly bytesMax: number;
  #takenBytes = 0;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  /** Bytes of all holders. */
  get taken(): number {
    return this.#takenBytes;
  }

  get isExhausted(): boolean {
    return this.#takenBytes >= this.bytesMax;
  }

  /** @returns false if the budget has fewer bytes left: then nothing is taken */
  take(bytes: number): boolean {
    if (this.#takenBytes + bytes > this.bytesMax) return false;
    this.#takenBytes += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.change(-bytes);
  }

  /**
   * A holder has so many bytes more, or fewer. It asked for its allowance before.
   *
   * @throws {InvariantError} more bytes are given back than were taken: an accounting error, and the budget stays as it is
   */
  change(bytes: number): void {
    if (this.#takenBytes + bytes < 0)
      throw new InvariantError(
        `a budget would fall below zero: ${this.#takenBytes} taken, ${-bytes} given back`,
      );
    this.#takenBytes += bytes;
  }

  /** What one holder may have now. @param mostBytes its own bound */
  allowance(mostBytes: number): number {
    return Math.max(0, Math.min(mostBytes, (this.bytesMax - this.#takenBytes) / FRACTION_OF_FREE));
  }
}
