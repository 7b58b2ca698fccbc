/** Seeded chance: the same seed gives the same draws. */

/** A small generator (mulberry32) of numbers from 0, below 1. */
export const seededRandom = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
};

export interface Weighted<T> {
  readonly weight: number;
  readonly value: T;
}

export class Dice {
  /** From 0, below 1. */
  readonly unit: () => number;

  /** @param numbers a seed, then indices: each combination has its own draws, whatever was drawn for others */
  constructor(...numbers: readonly number[]) {
    // Neighbouring numbers must not give neighbouring draws.
    let seed = 0x9e3779b9;
    for (const number of numbers) seed = Math.imul(seed ^ number, 0x85ebca6b) ^ (seed >>> 13);
    this.unit = seededRandom(seed);
  }

  /** @returns true for a share (0 to 1) of the calls */
  chance(share: number): boolean {
    return this.unit() < share;
  }

  /** A whole number from 0, below `end`. */
  below(end: number): number {
    return Math.floor(this.unit() * end);
  }

  /** A whole number, both ends included. */
  between(min: number, max: number): number {
    return min + this.below(max - min + 1);
  }

  /** A number from `min`, below `max`. */
  within(min: number, max: number): number {
    return min + this.unit() * (max - min);
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }

  weighted<T>(choices: readonly Weighted<T>[]): T {
    let left = this.unit() * choices.reduce((sum, { weight }) => sum + weight, 0);
    for (const { weight, value } of choices) {
      left -= weight;
      if (left < 0) return value;
    }
    return choices.at(-1)!.value;
  }

  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.below(256)));
  }
}
