/** Chance that can be had again: all draws follow from a seed. */
import { seededRandom } from '../rig-old/random.js';

export interface Weighted<T> {
  readonly weight: number;
  readonly value: T;
}

export class Dice {
  readonly #random: () => number;

  /** @param index of what is drawn for: each has draws of its own, whatever was drawn for others */
  constructor(seed: number, index = 0) {
    this.#random = seededRandom(Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(index + 1, 0xc2b2ae35));
    this.unit();
  }

  /** From 0, below 1. */
  unit(): number {
    return this.#random();
  }

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

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }

  /** The first of the shares that chance falls into, else the last value. */
  weighted<T>(choices: readonly Weighted<T>[]): T {
    let left = this.unit() * choices.reduce((sum, { weight }) => sum + weight, 0);
    for (const { weight, value } of choices) {
      left -= weight;
      if (left < 0) return value;
    }
    return choices.at(-1)!.value;
  }

  bytes(length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length);
    for (let i = 0; i < length; i++) bytes[i] = this.below(256);
    return bytes;
  }
}
