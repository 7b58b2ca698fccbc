/**
 * The text of a context: it waits here, is cut into segments as the scheduler's queue drains, and is charged by segment.
 * So a megabyte of text neither blocks the thread nor fills the queue.
 */
import type { SpeechSettings } from '../api/speech-settings.js';
import type { Bounds } from '../limits.js';
import { codePointCount, endOfSlice } from '../text/code-points.js';
import { normalise } from '../text/normalise/normalise.js';
import { Segmenter, type Segment } from '../text/segments.js';
import type { SegmentRequest } from '../threads/messages.js';
import type { ScheduledSegment } from './schedule.js';

/** UTF-16 units cut at a time: about 0.05 ms of work, so that the first segment starts before the rest is looked at. */
const SLICE_UNITS = 512;

/** What an engine is asked to speak. The caller adds the seeds. */
export const requestOf = (
  { text, words, before, beforeIsWhole, after }: Segment,
  settings: SpeechSettings,
  bounds: Bounds,
): Omit<SegmentRequest, 'seed' | 'utteranceSeed'> => ({
  text,
  words,
  ...(settings.normalizeText && { spoken: normalise(text, words, bounds) }),
  before,
  beforeIsWhole: beforeIsWhole === true,
  after,
  settings,
});

export class Utterances {
  readonly #segmenter: Segmenter;
  readonly #speaksBlankText: boolean;
  readonly #pending: (string | { readonly flushId: string })[] = [];
  /** Flushes whose text is cut, with the number of segments before them. */
  readonly #flushes: { readonly flushId: string; readonly segments: number }[] = [];
  /** Code points to charge, of the segments from `#charged` on. White space is charged with the text after it. */
  readonly #charges: number[] = [];
  #charged = 0;
  /** Code points cut after the last segment. */
  #uncharged = 0;
  #cutSegments = 0;
  /** UTF-16 units that were appended and are in no segment yet. */
  #uncutUnits = 0;
  /** Segments before the last flush that was cut: they belong to complete utterances. */
  #utteranceStart = 0;
  #isEnded = false;
  #isCutToEnd = false;

  /** @param arrivesInPieces speech starts early; without it, a context without a word is answered by a short silence */
  constructor(bounds: Bounds, arrivesInPieces: boolean) {
    this.#segmenter = new Segmenter(bounds, arrivesInPieces);
    this.#speaksBlankText = !arrivesInPieces;
  }

  /** Segments cut so far, but for dropped ones. */
  get cutSegments(): number {
    return this.#cutSegments;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** No segment and no flush will be cut any more. */
  get isCutToEnd(): boolean {
    return this.#isCutToEnd;
  }

  /** Some text or flush is not cut yet. */
  get hasPending(): boolean {
    return this.#pending.length > 0;
  }

  /** UTF-16 units of text that is in no segment yet. */
  get uncutUnits(): number {
    return this.#uncutUnits;
  }

  /** There are words whose segment is not final. */
  get holdsWords(): boolean {
    return this.#segmenter.holdsWords;
  }

  /** Segments of the utterance that is not complete yet were cut. */
  get hasBegunUtterance(): boolean {
    return this.#cutSegments > this.#utteranceStart;
  }

  append(text: string): void {
    this.#uncutUnits += text.length;
    const last = this.#pending.at(-1);
    // Words that come letter by letter wait as a few long texts.
    if (typeof last === 'string' && last.length < SLICE_UNITS)
      this.#pending[this.#pending.length - 1] = last + text;
    else this.#pending.push(text);
  }

  flush(flushId: string): void {
    this.#pending.push({ flushId });
  }

  end(): void {
    this.#isEnded = true;
  }

  /**
   * Cuts the next slice of text.
   *
   * @returns the segments that became final; `null` when there is nothing to cut
   */
  cut(): ScheduledSegment[] | null {
    const next = this.#pending.shift();
    if (typeof next === 'string') {
      const end = endOfSlice(next, SLICE_UNITS);
      if (end < next.length) this.#pending.unshift(next.slice(end));
      return this.#number(this.#segmenter.push(next.slice(0, end)));
    }
    if (next !== undefined) {
      const segments = this.#number(this.#segmenter.flush());
      this.#utteranceStart = this.#cutSegments;
      this.#flushes.push({ flushId: next.flushId, segments: this.#cutSegments });
      return segments;
    }
    if (!this.#isEnded || this.#isCutToEnd) return null;
    this.#isCutToEnd = true;
    return this.#number(this.#segmenter[this.#speaksBlankText ? 'end' : 'flush']());
  }

  /** @returns the id of the next flush, once, if no more than `announced` segments come before it */
  takeFlush(announced: number): string | undefined {
    const next = this.#flushes[0];
    if (next === undefined || next.segments > announced) return undefined;
    this.#flushes.shift();
    return next.flushId;
  }

  /**
   * Drops what was appended since the last flush, but for announced segments.
   *
   * @param withdraw is called with the index of the first dropped segment, if segments may be dropped
   * @returns code points that were dropped
   */
  drop(announced: number, withdraw: (fromSegment: number) => void): number {
    let characters = 0;
    const lastFlush = this.#pending.findLastIndex((entry) => typeof entry !== 'string');
    for (const text of this.#pending.splice(lastFlush + 1) as string[]) {
      characters += codePointCount(text);
      this.#uncutUnits -= text.length;
    }
    // All text that is cut comes before a flush: it belongs to a complete utterance.
    if (lastFlush >= 0) return characters;
    for (const { text } of this.#segmenter.flush()) {
      characters += codePointCount(text);
      this.#uncutUnits -= text.length;
    }
    const kept = Math.max(announced, this.#utteranceStart);
    withdraw(kept);
    for (const charge of this.#charges.splice(kept - this.#charged)) characters += charge;
    characters += this.#uncharged;
    this.#uncharged = 0;
    this.#cutSegments = kept;
    return characters;
  }

  /** @returns code points to charge for the segments up to this one, once */
  charge(segment: number): number {
    let characters = 0;
    for (; this.#charged <= segment; this.#charged++) characters += this.#charges.shift() ?? 0;
    return characters;
  }

  /** Forgets text and flushes that wait. */
  clear(): void {
    this.#pending.length = 0;
    this.#flushes.length = 0;
    this.#uncutUnits = 0;
  }

  #number(segments: readonly Segment[]): ScheduledSegment[] {
    const spoken: ScheduledSegment[] = [];
    for (const segment of segments) {
      this.#uncharged += codePointCount(segment.text);
      this.#uncutUnits -= segment.text.length;
      if (!segment.speak) continue;
      this.#charges.push(this.#uncharged);
      this.#uncharged = 0;
      spoken.push({ ...segment, index: this.#cutSegments++ });
    }
    return spoken;
  }
}
