/**
 * Messages of one WebSocket that wait, as bytes in one buffer: as objects, tiny ones would take many times their size. A
 * word before each holds its length and whether it is binary.
 */
import type { PartOfAccount } from '../../byte-budget.js';

const WORD_BYTES = 4;
const CAPACITY_BYTES_MIN = 4 * 1024;
const GROWTH = 1.5;
/** The buffer of all queues in which no message waits. */
const EMPTY = new DataView(new ArrayBuffer(0));

export interface WaitingFrame {
  /** Valid until the next call. */
  readonly bytes: Uint8Array;
  readonly isBinary: boolean;
}

export class FrameQueue {
  /** Counts the capacity. */
  readonly #budget: PartOfAccount;
  #buffer = EMPTY;
  #begin = 0;
  #end = 0;

  constructor(budget: PartOfAccount) {
    this.#budget = budget;
  }

  get isEmpty(): boolean {
    return this.#begin === this.#end;
  }

  /** Size of the oldest message; 0 if none waits. */
  get nextBytes(): number {
    return this.isEmpty ? 0 : this.#buffer.getUint32(this.#begin) >>> 1;
  }

  /** Copies a message. @returns false if the budget has no room for it */
  push(message: ArrayBuffer, isBinary: boolean): boolean {
    const neededBytes = WORD_BYTES + message.byteLength;
    if (this.#end + neededBytes > this.#buffer.byteLength && !this.#makeRoom(neededBytes)) return false;
    this.#buffer.setUint32(this.#end, message.byteLength * 2 + (isBinary ? 1 : 0));
    this.#bytes(this.#end + WORD_BYTES, message.byteLength).set(new Uint8Array(message));
    this.#end += neededBytes;
    return true;
  }

  /** @returns the oldest message; `undefined` if none waits */
  shift(): WaitingFrame | undefined {
    if (this.isEmpty) {
      this.clear();
      return undefined;
    }
    const word = this.#buffer.getUint32(this.#begin);
    const length = word >>> 1;
    const bytes = this.#bytes(this.#begin + WORD_BYTES, length);
    this.#begin += WORD_BYTES + length;
    return { bytes, isBinary: word % 2 === 1 };
  }

  /** Drops what waits, and gives the memory back. Idempotent. */
  clear(): void {
    this.#budget.giveBack(this.#buffer.byteLength);
    this.#buffer = EMPTY;
    this.#begin = this.#end = 0;
  }

  #bytes(at: number, length: number): Uint8Array {
    return new Uint8Array(this.#buffer.buffer, at, length);
  }

  #makeRoom(neededBytes: number): boolean {
    const waitingBytes = this.#end - this.#begin;
    const capacityBytes = this.#buffer.byteLength;
    const most = Math.max(CAPACITY_BYTES_MIN, Math.ceil(capacityBytes * GROWTH));
    const wantedBytes = Math.max(most, waitingBytes + neededBytes);
    // What was taken out in front makes room only if it is much: otherwise each message would move all others.
    if (waitingBytes + neededBytes <= capacityBytes / 2) {
      this.#bytes(0, waitingBytes).set(this.#bytes(this.#begin, waitingBytes));
    } else {
      if (!this.#budget.take(wantedBytes - capacityBytes)) return false;
      const grown = new DataView(new ArrayBuffer(wantedBytes));
      new Uint8Array(grown.buffer).set(this.#bytes(this.#begin, waitingBytes));
      this.#buffer = grown;
    }
    this.#begin = 0;
    this.#end = waitingBytes;
    return true;
  }
}
