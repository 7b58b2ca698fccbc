/**
 * The times of all characters of a context's text, white space included, from the times of its words: for protocols whose
 * clients rebuild the text from the characters.
 *
 * A word's time is divided evenly among its characters, in whole milliseconds. White space lasts from the word before it to
 * the word after it; where the next word is not known yet it has no duration, so that no report waits. Times never decrease.
 */
import type { ActorCommand, WordTime, WordTimings } from '../../src/threads/messages.js';

type SegmentCommand = Extract<ActorCommand, { type: 'segment' }>;

export class CharacterClock {
  readonly #samplesAMs: number;
  /** The text arrives in pieces. Clients wait for a space, so the last word of an utterance gets one. */
  readonly #endsWithSpace: boolean;
  #elapsedSamples = 0;
  /** White space and words of the current segment in turn, and how many of them are reported. */
  #pieces: readonly string[] = [];
  #reported = 0;
  /** When the last character that was reported ends. */
  #endMs = 0;
  #isAfterWord = false;
  /** White space at the end of `#pending`: it may still get a duration. */
  #openCharacters = 0;
  #pending: WordTimings = { words: [], start_seconds: [], end_seconds: [] };

  constructor(sampleRateHz: number, endsWithSpace: boolean) {
    this.#samplesAMs = sampleRateHz / 1000;
    this.#endsWithSpace = endsWithSpace;
  }

  beginSegment({ gaps = [], words }: SegmentCommand): void {
    this.#pieces = [gaps[0] ?? '', ...words.flatMap((word, index) => [word, gaps[index + 1] ?? ''])];
    this.#reported = 0;
  }

  /** A word's time is final. Words come in order. */
  add({ word, startSample, endSample }: WordTime): void {
    const at = 2 * word + 1;
    const text = this.#pieces[at];
    if (text === undefined || at < this.#reported) return;
    const startMs = this.#msOf(startSample);
    this.#stretch(startMs);
    this.#report(this.#pieces.slice(this.#reported, at).join(''), startMs);
    this.#report(text, this.#msOf(endSample));
    const gap = this.#pieces[at + 1] ?? '';
    this.#report(gap, this.#endMs);
    this.#openCharacters = gap.length;
    this.#isAfterWord = gap === '';
    this.#reported = at + 2;
  }

  /** Silence, or a codec's delay, follows the samples so far. */
  silence(samples: number): void {
    this.#elapsedSamples += samples;
  }

  endSegment(samples: number): void {
    this.#elapsedSamples += samples;
    const rest = this.#pieces.slice(this.#reported).join('');
    if (rest !== '') this.#report(rest, this.#msOf(0));
    this.#pieces = [];
  }

  /** The utterance ends. @param blank the white space at its end that is in no segment */
  finish(blank = ''): void {
    const space = this.#isAfterWord && blank === '' && this.#endsWithSpace ? ' ' : blank;
    if (space === '') return;
    this.#report(space, this.#msOf(0));
    this.#isAfterWord = false;
  }

  /** @returns the characters that became final since the last call, or `undefined` if there are none */
  take(): WordTimings | undefined {
    if (this.#pending.words.length === 0) return undefined;
    const timings = this.#pending;
    this.#pending = { words: [], start_seconds: [], end_seconds: [] };
    this.#openCharacters = 0;
    return timings;
  }

  #msOf(sample: number): number {
    return Math.max(this.#endMs, Math.round((this.#elapsedSamples + sample) / this.#samplesAMs));
  }

  /** Reports a text that lasts from the end of the one before it. */
  #report(text: string, untilMs: number): void {
    const startMs = this.#endMs;
    this.#endMs = untilMs;
    if (text === '') return;
    this.#openCharacters = 0;
    const { words, start_seconds, end_seconds } = this.#pending;
    const characters = Array.from(text);
    characters.forEach((character, index) => {
      const part = (at: number) =>
        Math.round(startMs + ((untilMs - startMs) * at) / characters.length) / 1000;
      words.push(character);
      start_seconds.push(part(index));
      end_seconds.push(part(index + 1));
    });
  }

  /** Extends the white space at the end of the last report, unless a word has followed it. */
  #stretch(untilMs: number): void {
    if (this.#openCharacters === 0) return;
    const gap = this.#pending.words.splice(-this.#openCharacters).join('');
    this.#endMs = this.#pending.start_seconds.splice(-this.#openCharacters)[0]! * 1000;
    this.#pending.end_seconds.splice(-this.#openCharacters);
    this.#report(gap, untilMs);
  }
}
