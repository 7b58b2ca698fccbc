/**
 * The text of a context: it waits here, is cut into segments as the scheduler's queue drains, and is charged by segment.
 * So a megabyte of text neither blocks the thread nor fills the queue.
 */
import type { SpeechSettings } from '../api/speech-settings.js';
import type { Bounds } from '../limits.js';
import { codePointCount, endOfSlice } from '../text/code-points.js';
import { primaryLanguage } from '../text/language.js';
import { pronounced, type Lexicon } from '../text/lexicon.js';
import { partsOf, type SpokenPart } from '../text/long-segments.js';
import { normalise } from '../text/normalise/normalise.js';
import { MarkedForms } from '../text/marked-forms.js';
import {
  mergeReplacements,
  type MarkedText,
  type Markup,
  type Origins,
  type SpokenForm,
} from '../text/replacements.js';
import { Segmenter, type Segment } from '../text/segments.js';
import { lettersOf, spokenMs, spokenSize } from '../text/spoken-size.js';
import { isBlank, wordSpans } from '../text/words.js';
import { isSocketFraming, timesCharacters, type ActorCommand } from '../threads/messages.js';
import type { ScheduledSegment, UnseededRequest } from './scheduler.js';
import type { ContextOptions } from './speech.js';

/** UTF-16 units cut at a time: about 0.05 ms of work, so that the first segment starts before the rest is looked at. */
const SLICE_UNITS = 512;

interface Flush {
  readonly flushId: string;
  /** Once its text is cut: the white space that comes before it and is in no segment. */
  readonly blank?: string;
}

/**
 * What an engine is asked to speak. The caller adds the seeds.
 *
 * @param language of the voice, BCP 47
 * @param lexicons the strongest first; their entries win over the spoken forms of numbers
 * @param origins gets what each spoken form came from
 */
export const requestOf = (
  { text, words, forms = [], pauseMs, before, beforeIsWhole, after, startsInToken }: Segment,
  settings: SpeechSettings,
  bounds: Bounds,
  language: string,
  lexicons: readonly Lexicon[] = [],
  origins?: Origins,
): UnseededRequest => {
  const numbers = settings.normalizeText ? normalise(text, words, bounds, language, origins) : [];
  const found = pronounced(lexicons, text, words, language, origins, startsInToken);
  const all = mergeReplacements(forms, mergeReplacements(found, numbers));
  // A form cannot be divided. A word whose form takes too long to say is spoken as it is written.
  const spoken = all.filter((form) => lettersOf(form) <= bounds.spokenLettersMax);
  const request = { text, words, before, beforeIsWhole: beforeIsWhole === true, after, settings };
  if (pauseMs !== undefined) return { ...request, pauseMs };
  return spoken.length === 0 ? request : { ...request, spoken };
};

/**
 * Milliseconds of speech that a text makes. Of a long one only the beginning is looked at, as far as admission looks ahead; the
 * rest counts as it is written.
 *
 * @param lexicons those of the settings
 */
export const aheadMs = (
  pieces: readonly MarkedText[],
  { speed }: SpeechSettings,
  language: string,
  lexicons: readonly Lexicon[],
): number => {
  const forms = new MarkedForms();
  let text = '';
  let units = 0;
  let pausesMs = 0;
  let hasForms = lexicons.length > 0;
  for (const piece of pieces) {
    units += piece.text.length;
    pausesMs += piece.pauseMs ?? 0;
    if (text.length >= SLICE_UNITS) continue;
    const end = piece.form === undefined ? endOfSlice(piece.text, SLICE_UNITS) : piece.text.length;
    forms.push(piece.text.slice(0, end), piece.form);
    text += piece.text.slice(0, end);
    hasForms ||= piece.form !== undefined;
  }
  // Words of Chinese are slow to find.
  const words = hasForms ? wordSpans(text) : [];
  const spoken = mergeReplacements(
    forms.take({ text, words }),
    lexicons.length === 0 ? [] : pronounced(lexicons, text, words, language),
  );
  return pausesMs + spokenMs(spokenSize({ text, words, spoken }) + units - text.length, speed);
};

/** The tokens of a segment, from which the actor reports times. */
export const tokensOf = (
  { request: { text, words }, blank }: ScheduledSegment,
  { framing, timestamps }: Pick<ContextOptions, 'framing' | 'timestamps'>,
): Pick<Extract<ActorCommand, { type: 'segment' }>, 'words' | 'gaps'> => {
  if (!timestamps) return { words: [] };
  const tokens = words.map(({ start, end }) => text.slice(start, end));
  if (!timesCharacters(framing)) return { words: tokens };
  const ends = [0, ...words.map(({ end }) => end)];
  const gaps = ends.map((end, index) => text.slice(end, words[index]?.start));
  return { words: tokens, gaps: [(blank ?? '') + gaps[0]!, ...gaps.slice(1)] };
};

type UtteranceOptions = Pick<ContextOptions, 'framing' | 'settings' | 'settingsNow'>;
interface Piece {
  readonly text: string;
  /** Of the pause before it. */
  readonly pauseMs: number;
  readonly form: SpokenForm | undefined;
}

/** What stands for a piece, or a flush, that was cut. */
const CUT: Piece = { text: '', pauseMs: 0, form: undefined };

const pauseOf = (pauseMs: number): Segment => ({
  ...{ text: '', words: [], tokenContinues: false, before: '', after: '', speak: true },
  pauseMs,
});

export class Utterances {
  readonly #segmenter: Segmenter;
  readonly #bounds: Bounds;
  readonly #settingsNow: () => SpeechSettings;
  /** Of the utterance that is being cut. */
  #settings: SpeechSettings;
  readonly #language: string;
  readonly #lexicons: (settings: SpeechSettings) => readonly Lexicon[];
  readonly #speaksBlankText: boolean;
  readonly #pending: (Piece | Flush)[] = [];
  /** The first of them that is not cut. Those before it are removed now and then: each time would take long. */
  #uncutFrom = 0;
  /** Cut, and not numbered: the spoken form of each takes time. */
  readonly #cut: (Segment | Flush)[] = [];
  readonly #forms = new MarkedForms();
  /** Flushes whose text is cut, with the number of segments before them. */
  readonly #flushes: { readonly flush: Flush; readonly segments: number }[] = [];
  /** Code points to charge, of the segments from `#charged` on. White space is charged with the text after it. */
  readonly #charges: number[] = [];
  #charged = 0;
  /** Code points cut after the last segment. */
  #uncharged = 0;
  #cutSegments = 0;
  /** UTF-16 units that were appended and are in no segment yet. */
  #uncutUnits = 0;
  #uncutPausesMs = 0;
  /** Of the segments that were cut. */
  #cutUnits = 0;
  #cutMs = 0;
  /** Segments before the last flush that was cut: they belong to complete utterances. */
  #utteranceStart = 0;
  #isEnded = false;
  #isCutToEnd = false;
  readonly #keepsBlanks: boolean;
  /** White space after the last segment, if its times are reported. It is bounded, because it costs nothing at the end of a text. */
  #blank = '';

  /**
   * A request has its whole text at once, and one for blank text is answered by a short silence. On a socket text arrives
   * in pieces: speech starts early, and blank text is not a request.
   *
   * @param language of the voice, BCP 47
   * @param lexicons called for each segment, so that a reload takes effect from the next one on
   */
  constructor(
    bounds: Bounds,
    { framing, settings, settingsNow = () => settings }: UtteranceOptions,
    language: string,
    lexicons: (settings: SpeechSettings) => readonly Lexicon[],
  ) {
    const arrivesInPieces = isSocketFraming(framing);
    this.#bounds = bounds;
    this.#settingsNow = settingsNow;
    this.#settings = settings;
    this.#language = language;
    this.#lexicons = lexicons;
    this.#segmenter = new Segmenter(bounds, arrivesInPieces, language);
    this.#speaksBlankText = !arrivesInPieces;
    this.#keepsBlanks = timesCharacters(framing);
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
    return this.#isCutToEnd && this.#cut.length === 0;
  }

  /** Some text or flush is not cut yet. */
  get hasPending(): boolean {
    return this.#pending.length + this.#cut.length > 0;
  }

  /** UTF-16 units of text that is in no segment yet. */
  get uncutUnits(): number {
    return this.#uncutUnits;
  }

  /** Milliseconds of speech that such text makes: letters, or if that is more, as the text before it; and of its pauses. */
  get uncutMs(): number {
    const spokenAsBeforeMs = (this.#uncutUnits * this.#cutMs) / (this.#cutUnits || 1);
    return this.#uncutPausesMs + Math.max(spokenMs(this.#uncutUnits, this.#settings.speed), spokenAsBeforeMs);
  }

  /** There are words whose segment is not final. */
  get holdsWords(): boolean {
    return this.#segmenter.holdsWords;
  }

  /** Segments of the utterance that is not complete yet were cut. */
  get hasBegunUtterance(): boolean {
    return this.#cutSegments > this.#utteranceStart;
  }

  append(text: string, { pauseMs = 0, form }: Markup = {}): void {
    this.#uncutUnits += text.length;
    this.#uncutPausesMs += pauseMs;
    const last = this.#pending.at(-1);
    const isPlain = pauseMs === 0 && form === undefined;
    // Words that come letter by letter wait as a few long texts.
    if (
      isPlain &&
      last !== undefined &&
      'text' in last &&
      last.form === undefined &&
      last.text.length < SLICE_UNITS
    )
      this.#pending[this.#pending.length - 1] = { ...last, text: last.text + text };
    else this.#pending.push({ text, pauseMs, form });
  }

  flush(flushId: string): void {
    this.#pending.push({ flushId });
  }

  end(): void {
    this.#isEnded = true;
  }

  /**
   * Cuts the next slice of text, or takes the next segment of the last one.
   *
   * @returns the segments that are ready, often none; `null` when there is nothing to cut
   */
  cut(): readonly ScheduledSegment[] | null {
    const segment = this.#cut.shift();
    if (segment !== undefined) return this.#number(segment);
    const segments = this.#cutPending();
    if (segments === null) return null;
    this.#cut.push(...segments);
    return [];
  }

  #cutPending(): readonly (Segment | Flush)[] | null {
    const next = this.#pending[this.#uncutFrom];
    if (next !== undefined && 'flushId' in next) {
      this.#leave(CUT);
      return [...this.#segmenter.flush(), next];
    }
    if (next !== undefined) {
      const { text, pauseMs, form } = next;
      const end = pauseMs > 0 ? 0 : form === undefined ? endOfSlice(text, SLICE_UNITS) : text.length;
      this.#leave({ text: text.slice(end), pauseMs: 0, form });
      if (pauseMs > 0) return [...this.#segmenter.flush(), pauseOf(pauseMs)];
      this.#forms.push(text.slice(0, end), form);
      return this.#segmenter.push(text.slice(0, end));
    }
    if (!this.#isEnded || this.#isCutToEnd) return null;
    this.#isCutToEnd = true;
    return this.#segmenter[this.#speaksBlankText ? 'end' : 'flush']();
  }

  /** @param rest of the first that waits */
  #leave(rest: Piece): void {
    this.#pending[this.#uncutFrom] = rest;
    if (rest.text === '') this.#uncutFrom++;
    if (2 * this.#uncutFrom < this.#pending.length) return;
    this.#pending.splice(0, this.#uncutFrom);
    this.#uncutFrom = 0;
  }

  /** @returns the next flush, once, if no more than `announced` segments come before it */
  takeFlush(announced: number): Flush | undefined {
    const next = this.#flushes[0];
    if (next === undefined || next.segments > announced) return undefined;
    this.#flushes.shift();
    return next.flush;
  }

  /** White space after the last segment that was cut, once. */
  takeBlank(): { readonly blank?: string } {
    const blank = this.#blank;
    this.#blank = '';
    return blank === '' ? {} : { blank };
  }

  /**
   * Drops what was appended since the last flush, but for announced segments.
   *
   * @param withdraw is called with the index of the first dropped segment, if segments may be dropped
   * @returns code points that were dropped
   */
  drop(announced: number, withdraw: (fromSegment: number) => void): number {
    let characters = 0;
    const isFlush = (entry: object) => 'flushId' in entry;
    const lastFlush = this.#pending.findLastIndex(isFlush);
    for (const entry of this.#pending.splice(lastFlush + 1)) {
      const { text, pauseMs } = entry as Piece;
      characters += codePointCount(text);
      this.#uncutUnits -= text.length;
      this.#uncutPausesMs -= pauseMs;
    }
    this.#uncutFrom = Math.min(this.#uncutFrom, this.#pending.length);
    // All text that is cut comes before a flush: it belongs to a complete utterance.
    if (lastFlush >= 0 || this.#cut.some(isFlush)) return characters;
    for (const segment of [...this.#cut.splice(0), ...this.#segmenter.flush()] as Segment[]) {
      this.#forms.take(segment);
      characters += codePointCount(segment.text);
      this.#uncutUnits -= segment.text.length;
      this.#uncutPausesMs -= segment.pauseMs ?? 0;
    }
    const kept = Math.max(announced, this.#utteranceStart);
    withdraw(kept);
    for (const charge of this.#charges.splice(kept - this.#charged)) characters += charge;
    characters += this.#uncharged;
    this.#uncharged = 0;
    this.#blank = '';
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
    this.#pending.length = this.#uncutFrom = 0;
    this.#cut.length = 0;
    this.#flushes.length = 0;
    this.#uncutUnits = this.#uncutPausesMs = 0;
  }

  #number(cut: Segment | Flush): readonly ScheduledSegment[] {
    if ('flushId' in cut) {
      this.#utteranceStart = this.#cutSegments;
      const flush = { flushId: cut.flushId, ...this.takeBlank() };
      this.#flushes.push({ flush, segments: this.#cutSegments });
      return [];
    }
    this.#uncutUnits -= cut.text.length;
    this.#uncutPausesMs -= cut.pauseMs ?? 0;
    const forms = this.#forms.take(cut);
    if (!cut.speak) {
      this.#uncharged += codePointCount(cut.text);
      if (this.#keepsBlanks)
        this.#blank = (this.#blank + cut.text).slice(0, this.#bounds.segmentCharactersMax);
      return [];
    }
    if (!this.hasBegunUtterance) this.#settings = this.#settingsNow();
    const settings = this.#settings;
    const lexicons = this.#lexicons(settings);
    const request = requestOf({ ...cut, forms }, settings, this.#bounds, this.#language, lexicons);
    const { spoken = [] } = request;
    const code = primaryLanguage(this.#language);
    const parts = partsOf({ segment: cut, spoken }, this.#bounds.spokenLettersMax, code);
    return parts.map((part) => this.#schedule(part, request));
  }

  /** @param whole what is asked of the segment that it is a part of */
  #schedule({ segment, spoken, size }: SpokenPart, whole: UnseededRequest): ScheduledSegment {
    const { text, words, before, beforeIsWhole = false, after } = segment;
    const { speed } = whole.settings;
    // A silence for blank text is free.
    this.#charges.push(isBlank(text) ? 0 : this.#uncharged + codePointCount(text));
    this.#uncharged = 0;
    const expectedMs = whole.pauseMs ?? spokenMs(size, speed);
    this.#cutUnits += text.length;
    if (whole.pauseMs === undefined) this.#cutMs += expectedMs;
    return {
      ...this.takeBlank(),
      tokenContinues: segment.tokenContinues,
      index: this.#cutSegments++,
      expectedMs,
      request: {
        ...whole,
        text,
        words,
        before,
        beforeIsWhole,
        after,
        ...(whole.spoken !== undefined && { spoken }),
      },
    };
  }
}
