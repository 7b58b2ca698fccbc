/**
 * Bytes that many hold parts of, none of whom can take them all: what a member may hold shrinks as the pool fills. So
 * those who hold much are stopped first, and who holds nothing has room until the pool is full. Of N members who take
 * all that they may, and give back as they go, none holds more than 1 / (N + 16) of it in the long run.
 */

/** A member may hold this part of what is free. */
const PART_OF_FREE = 16;

export class SharedPool {
  readonly bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  /** Held by all. */
  get bytes(): number {
    return this.#bytes;
  }

  get isFull(): boolean {
    return this.#bytes >= this.bytesMax;
  }

  /** A member holds so many more, or fewer. The caller asked for its allowance before. */
  change(bytes: number): void {
    this.#bytes += bytes;
  }

  /** What one member may hold now. @param most what it may at best */
  allowance(most: number): number {
    return Math.max(0, Math.min(most, (this.bytesMax - this.#bytes) / PART_OF_FREE));
  }
}
