/** The pool of audio that no socket has yet, and those who wait for room in it. */
import { SharedPool } from '../shared-pool.js';

/** Those who wait are looked at again whenever this part of the pool was freed. */
const STEPS = 256;

export class AudioRoom {
  readonly #pool: SharedPool;
  readonly #onRoom: () => void;
  /** The most in the pool at which somebody was found to wait, since those who wait were told. */
  #crowdedBytes: number | null = null;

  /** @param onRoom called when those who were refused may have room now */
  constructor(bytesMax: number, onRoom: () => void) {
    this.#pool = new SharedPool(bytesMax);
    this.#onRoom = onRoom;
  }

  /** Held by all. */
  get bytes(): number {
    return this.#pool.bytes;
  }

  /** Whether one that holds so many bytes may add to them. */
  isFor(heldBytes: number): boolean {
    const isRoom = !this.#pool.isFull && heldBytes <= this.#pool.allowance(Number.POSITIVE_INFINITY);
    // Who looks again and again must not put off by it when it is told.
    if (!isRoom) this.#crowdedBytes = Math.max(this.#crowdedBytes ?? 0, this.#pool.bytes);
    return isRoom;
  }

  /** One holds so many bytes more, or fewer. */
  change(bytes: number): void {
    const wasFull = this.#pool.isFull;
    this.#pool.change(bytes);
    if (this.#crowdedBytes === null || bytes >= 0) return;
    const { bytesMax, bytes: nowBytes } = this.#pool;
    const isRoomAgain = wasFull && nowBytes < bytesMax;
    if (!isRoomAgain && this.#crowdedBytes - nowBytes < bytesMax / STEPS) return;
    this.#crowdedBytes = null;
    this.#onRoom();
  }
}
