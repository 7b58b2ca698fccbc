/**
 * What makes two readings of a sentence differ: pace, the length of each sound, the course of F0. It depends only on
 * the seeds and on phone and frame numbers, never on when a step ran. Pace, pitch and range, which a listener hears
 * as a mood, belong to the utterance, so that its segments sound like one reading.
 */
import type { SegmentRequest } from '../../../src/threads/messages.js';
import type { Speaker } from './manifest.js';

/** Uniform numbers in [0, 1) from 32-bit state (mulberry32): fast, and good enough for a voice. */
export const randomFrom = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value = (value + Math.imul(value ^ (value >>> 7), value | 61)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 0x1_0000_0000;
  };
};

/** Spreads similar seeds (0, 1, 2 ...) over the whole state. */
const scramble = (seed: number, salt: number): number => {
  let value = Math.imul((seed ^ Math.imul(salt, 0x9e3779b1)) >>> 0, 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
};

/** Standard normal, limited to three deviations so that no sound becomes absurd. */
const gaussian = (random: () => number): number => {
  const radius = Math.sqrt(-2 * Math.log(1 - random()));
  return Math.max(-3, Math.min(3, radius * Math.cos(2 * Math.PI * random())));
};

/** Frames between two knots of the F0 drift: about one foot. */
const driftFrames = 32;
/**
 * Frames over which the drift fades out before a cut in a clause: that many must be known after those that are
 * shaped.
 */
export const driftEndFrames = 20;
/** A smooth step from 0 to 1. */
const ease = (progress: number): number => {
  const share = Math.max(0, Math.min(1, progress));
  return share * share * (3 - 2 * share);
};
/** Limit of an F0 excursion in natural logarithms, a little more than an octave in all. */
const excursionMax = 0.62;

/** How much a temperature widens range and variation, relative to 1. Chosen by ear and by word error rate. */
export const rangeAt = (temperature: number): number => temperature ** 0.45;
export const spreadAt = (temperature: number): number => temperature ** 0.75;

export type ProsodyRequest = Pick<SegmentRequest, 'seed' | 'utteranceSeed' | 'settings' | 'before' | 'after'>;

export class Prosody {
  /** Where the decoder starts in its noise and its pulse train. */
  readonly noiseIndex: number;
  readonly startPhase: number;
  readonly #seed: number;
  readonly #random: () => number;
  readonly #pitchMean: number;
  readonly #pitchShift: number;
  readonly #range: number;
  readonly #drift: number;
  readonly #pace: number;
  readonly #speed: number;
  readonly #phoneSpread: number;
  readonly #knots: number[] = [];
  readonly #isCut: boolean;
  #carry = 0;

  /** @param pitchMean natural logarithm of the mean F0, in Hz, that the nets give this speaker */
  constructor(request: ProsodyRequest, speaker: Speaker, pitchMean: number) {
    const { seed, utteranceSeed, before, after } = request;
    const { temperature, speed = 1 } = request.settings;
    const spread = spreadAt(temperature);
    const ofUtterance = randomFrom(scramble(utteranceSeed, 0));
    this.#pitchMean = pitchMean;
    this.#range = speaker.liveliness * rangeAt(temperature) * Math.exp(0.06 * spread * gaussian(ofUtterance));
    this.#pitchShift = Math.log(speaker.pitch) + 0.012 * spread * gaussian(ofUtterance);
    this.#pace = Math.exp(0.03 * spread * gaussian(ofUtterance)) / (speaker.rate * speed);
    this.#speed = speed;
    this.#seed = seed;
    this.#random = randomFrom(scramble(seed, 1));
    this.#drift = 0.03 * spread;
    this.#isCut = after !== '';
    // Where segments meet within a clause, neither knows the drift of the other: there it is zero.
    if (before !== '') this.#knots[0] = 0;
    this.#phoneSpread = 0.07 * spread;
    this.noiseIndex = Math.floor(1024 * this.#random());
    this.startPhase = this.#random();
  }

  /** A sound's length in whole frames. Call it once for each phone, in order: it carries the rounding error on. */
  durationFrames(predictedFrames: number, minFrames: number): number {
    const varied = predictedFrames * this.#pace * Math.exp(this.#phoneSpread * gaussian(this.#random));
    const wanted = varied + this.#carry;
    const frames = Math.max(minFrames, Math.round(wanted));
    this.#carry = Math.max(-0.5, Math.min(0.5, wanted - frames));
    return frames;
  }

  /** The length of a sound that another segment speaks. */
  usualFrames(predictedFrames: number): number {
    return Math.max(1, Math.round(predictedFrames * this.#pace));
  }

  /** Varies the length of a silence. It follows the speed of the request, not the voice's own rate. */
  vary(length: number, spread: number): number {
    return (length * (1 + spread * (2 * this.#random() - 1))) / this.#speed;
  }

  /**
   * Shapes F0 in place.
   * @param f0 two values for each frame
   * @param firstFrame number of the first frame within the segment; below 0 where another segment speaks
   * @param endFrame end of the segment; if it is unknown, any number at least `driftEndFrames` after the last value
   */
  shapePitch(f0: Float32Array, firstFrame: number, endFrame: number): void {
    for (let at = 0; at < f0.length; at++) {
      const frame = Math.max(0, firstFrame + at / 2);
      const fade = this.#isCut ? ease((endFrame - frame) / driftEndFrames) : 1;
      const excursion = (Math.log(f0[at]!) - this.#pitchMean) * this.#range + fade * this.#driftAt(frame);
      f0[at] = Math.exp(
        this.#pitchMean + this.#pitchShift + excursionMax * Math.tanh(excursion / excursionMax),
      );
    }
  }

  #driftAt(frame: number): number {
    const knot = Math.floor(frame / driftFrames);
    const progress = frame / driftFrames - knot;
    const share = ease(progress);
    return this.#drift * (this.#knot(knot) * (1 - share) + this.#knot(knot + 1) * share);
  }

  #knot(number: number): number {
    return (this.#knots[number] ??= gaussian(randomFrom(scramble(this.#seed, number + 2))));
  }
}
