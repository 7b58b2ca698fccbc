/** Bytes of one connection that wait, in one buffer: as objects, tiny messages would take many times their size. */
import type { PartOfAccount } from '../byte-budget.js';

const CAPACITY_BYTES_MIN = 4 * 1024;
const GROWTH = 1.5;
/** The buffer of all queues in which no byte waits. */
const EMPTY = Buffer.alloc(0);

export class ByteQueue {
  /** Counts the capacity. */
  readonly #budget: PartOfAccount;
  #buffer = EMPTY;
  #begin = 0;
  #end = 0;

  constructor(budget: PartOfAccount) {
    this.#budget = budget;
  }

  get length(): number {
    return this.#end - this.#begin;
  }

  /** All that waits. Valid until the next `push`. */
  get bytes(): Buffer {
    return this.#buffer.subarray(this.#begin, this.#end);
  }

  /** Copies all parts, or none. @returns false if the budget has no room for them */
  push(...parts: readonly Uint8Array[]): boolean {
    const bytes = parts.reduce((sum, { length }) => sum + length, 0);
    if (this.#end + bytes > this.#buffer.length && !this.#makeRoom(bytes)) return false;
    for (const part of parts) {
      this.#buffer.set(part, this.#end);
      this.#end += part.length;
    }
    return true;
  }

  /** Takes the oldest bytes out. They are valid until the next `push`. */
  cut(bytes: number): Buffer {
    const cut = this.#buffer.subarray(this.#begin, this.#begin + bytes);
    this.#begin += bytes;
    return cut;
  }

  /** Drops what waits, and gives the memory back. Idempotent. */
  clear(): void {
    this.#budget.giveBack(this.#buffer.length);
    this.#buffer = EMPTY;
    this.#begin = this.#end = 0;
  }

  #makeRoom(bytes: number): boolean {
    const waiting = this.bytes;
    const capacity = this.#buffer.length;
    // What was taken out in front makes room only if it is much: otherwise each message would move all others.
    if (waiting.length + bytes <= capacity / 2) this.#buffer.set(waiting);
    else {
      const wanted = Math.max(CAPACITY_BYTES_MIN, Math.ceil(capacity * GROWTH), waiting.length + bytes);
      if (!this.#budget.take(wanted - capacity)) return false;
      this.#buffer = Buffer.allocUnsafeSlow(wanted);
      this.#buffer.set(waiting);
    }
    this.#begin = 0;
    this.#end = waiting.length;
    return true;
  }
}
