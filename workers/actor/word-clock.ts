/**
 * Converts the engine's word times, which count samples from their segment's start, into seconds from the context's start.
 * Keeps those that are final and not reported yet. Times never go back, because segments come in order.
 */
import type { ActorCommand, WordTime, WordTimings } from '../../src/threads/messages.js';

type SegmentCommand = Extract<ActorCommand, { type: 'segment' }>;

/** Whole milliseconds, rounded down so that no word ends after its audio. */
const seconds = (samples: number, sampleRateHz: number): number =>
  Math.floor((samples * 1000) / sampleRateHz) / 1000;

export class WordClock {
  readonly #sampleRateHz: number;
  /** Samples of all segments before the current one, and of the silence around them. May be fractional. */
  #elapsedSamples = 0;
  #segment: SegmentCommand | undefined;
  /** A token that goes on in the next segment, as far as it is known. */
  #carried: { text: string; startSample: number; endSample: number } | undefined;
  #pending: WordTimings = { words: [], start_seconds: [], end_seconds: [] };

  constructor(sampleRateHz: number) {
    this.#sampleRateHz = sampleRateHz;
  }

  beginSegment(command: SegmentCommand): void {
    this.#segment = command;
  }

  /** A word's time is final. Words come in order. */
  add(time: WordTime): void {
    const segment = this.#segment;
    const text = segment?.words[time.word];
    if (segment === undefined || text === undefined) return;
    const carried = time.word === 0 ? this.#carried : undefined;
    if (carried !== undefined) this.#carried = undefined;
    const word = {
      text: (carried?.text ?? '') + text,
      startSample: carried?.startSample ?? this.#elapsedSamples + time.startSample,
      endSample: this.#elapsedSamples + time.endSample,
    };
    if (segment.tokenContinues && time.word === segment.words.length - 1) this.#carried = word;
    else this.#report(word);
  }

  /** Silence, or a codec's delay, follows what came so far. */
  silence(samples: number): void {
    this.#elapsedSamples += samples;
  }

  endSegment(samples: number): void {
    this.#elapsedSamples += samples;
    this.#segment = undefined;
  }

  /** The utterance ends: a token that should go on ends here. */
  finish(): void {
    if (this.#carried !== undefined) this.#report(this.#carried);
    this.#carried = undefined;
  }

  /** @returns the words that became final since the last call, or `undefined` if there are none */
  take(): WordTimings | undefined {
    if (this.#pending.words.length === 0) return undefined;
    const timings = this.#pending;
    this.#pending = { words: [], start_seconds: [], end_seconds: [] };
    return timings;
  }

  #report(word: { text: string; startSample: number; endSample: number }): void {
    this.#pending.words.push(word.text);
    this.#pending.start_seconds.push(seconds(word.startSample, this.#sampleRateHz));
    this.#pending.end_seconds.push(seconds(word.endSample, this.#sampleRateHz));
  }
}
