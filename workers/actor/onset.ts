/**
 * Finds where speech begins for a listener: the first sample of a segment and its first audible one, and the frames whose
 * bytes let a decoder play them. It looks at samples only until it has found an audible one, so it costs almost nothing.
 *
 * Times are places in what a decoder plays, in milliseconds.
 */
import type { Onset } from '../../src/threads/messages.js';

/** -50 dBFS: a sample further from zero is audible. Full scale is 32,768. */
export const AUDIBLE_SAMPLE = 32_768 * 10 ** (-50 / 20);

export class OnsetFinder {
  readonly #sampleRateHz: number;
  readonly #skippedMs: number;
  /** Samples before the next one: the codec's delay, speech and silence. May be fractional. */
  #samples: number;
  #decodableMs = 0;
  /** The segment has no sample yet. */
  #isEmpty = false;
  /** The segment has no audible sample yet. */
  #isSilent = false;
  /** Places that were found and that no frame has reached. */
  #firstMs: number | undefined;
  #audibleMs: number | undefined;

  /**
   * @param sampleRateHz of the speech
   * @param delaySamples that a player plays before the speech
   * @param skippedMs that a decoder makes and a player does not play
   */
  constructor(sampleRateHz: number, delaySamples: number, skippedMs: number) {
    this.#sampleRateHz = sampleRateHz;
    this.#samples = delaySamples;
    this.#skippedMs = skippedMs;
  }

  beginSegment(): void {
    // A codec may hold back all of the segment before: then that one is reported.
    if (this.#audibleMs !== undefined) return;
    this.#isEmpty = true;
    this.#isSilent = true;
  }

  /** Speech goes into the encoder. */
  speech(pcm: Int16Array): void {
    if (this.#isEmpty && pcm.length > 0) {
      this.#isEmpty = false;
      this.#firstMs = this.#placeMs(0);
    }
    if (this.#isSilent) {
      const index = pcm.findIndex((sample) => Math.abs(sample) > AUDIBLE_SAMPLE);
      if (index >= 0) {
        this.#isSilent = false;
        this.#audibleMs = this.#placeMs(index);
      }
    }
    this.#samples += pcm.length;
  }

  /** Silence follows the speech so far. */
  silence(samples: number): void {
    this.#samples += samples;
  }

  /**
   * Bytes leave the encoder.
   *
   * @param totalMs that a decoder makes of all bytes so far
   * @returns what these bytes add; `undefined` when the listener hears the segment already
   */
  decodable(totalMs: number): Onset | undefined {
    const beforeMs = this.#decodableMs;
    const untilMs = Math.max(0, totalMs - this.#skippedMs);
    this.#decodableMs = untilMs;
    const [first, audible] = [this.#firstMs, this.#audibleMs];
    if (!this.#isSilent && first === undefined && audible === undefined) return undefined;
    const hasFirst = first !== undefined && first < untilMs;
    const hasAudible = audible !== undefined && audible < untilMs;
    if (hasFirst) this.#firstMs = undefined;
    if (hasAudible) this.#audibleMs = undefined;
    return {
      decodedMs: untilMs - beforeMs,
      ...(hasFirst && { firstMs: Math.max(0, first - beforeMs) }),
      ...(hasAudible && { audibleMs: Math.max(0, audible - beforeMs) }),
    };
  }

  #placeMs(index: number): number {
    return ((this.#samples + index) * 1000) / this.#sampleRateHz;
  }
}
