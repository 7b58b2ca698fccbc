/** How often each of many may do something: a bucket of each fills again with time. */
import type { Clock } from './monotonic.js';

interface Bucket {
  left: number;
  atMs: number;
}

interface BucketsParts {
  readonly atOnceMax: number;
  /** Milliseconds until one more is allowed. */
  readonly everyMs: number;
  readonly countedMax: number;
  readonly clock: Clock;
}

/** Buckets by name, the one that was used last at the end. */
export class Buckets {
  readonly #parts: BucketsParts;
  readonly #buckets = new Map<string, Bucket>();

  constructor(parts: BucketsParts) {
    this.#parts = parts;
  }

  /** Milliseconds until so many may be taken; 0 if they may now. */
  waitMs(name: string, count = 1): number {
    const { left } = this.#filled(name);
    return left >= count ? 0 : Math.ceil((count - left) * this.#parts.everyMs);
  }

  take(name: string, count = 1): void {
    const bucket = this.#filled(name);
    this.#buckets.delete(name);
    this.#buckets.set(name, { ...bucket, left: Math.max(0, bucket.left - count) });
    if (this.#buckets.size <= this.#parts.countedMax) return;
    const [oldest] = this.#buckets.keys();
    if (oldest !== undefined) this.#buckets.delete(oldest);
  }

  #filled(name: string): Bucket {
    const { atOnceMax, clock, everyMs } = this.#parts;
    const atMs = clock();
    const { left, atMs: before } = this.#buckets.get(name) ?? { left: atOnceMax, atMs };
    return { left: Math.min(atOnceMax, left + (atMs - before) / everyMs), atMs };
  }
}
