/**
 * Cuts text into segments, the unit of synthesis, while it arrives.
 *
 * Every decision depends only on the text before it and on the next code point, never on timers or on how the text was
 * split. So the same text always gives the same segments.
 */
import type { Bounds } from '../limits.js';
import {
  CLAUSE,
  CLOSER,
  DENSE,
  KNOWN,
  NEWLINE,
  SPACELESS,
  TERMINATOR,
  WHITE,
  classOf,
  lastGraphemeBoundary,
  lastWordBoundary,
  needsDictionary,
  sizeOf,
  weightOf,
} from './characters.js';
import { earlyPlace, isEarlyClause } from './early-place.js';
import { type FullStop, fullStopAfter, goesOnAfter } from './full-stop.js';
import { primaryLanguage } from './language.js';
import { clauseAfter, clauseBefore } from './neighbours.js';
import type { Markup, Replacement } from './replacements.js';
import { type Span, wordSpans } from './words.js';

export interface Segment extends Pick<Markup, 'pauseMs'> {
  /** The concatenated texts of all segments are the text that was pushed. */
  readonly text: string;
  /** Tokens as offsets into `text`, in order. Empty for white space. */
  readonly words: readonly Span[];
  /** The last token continues as the first token of the next segment: they are one word. */
  readonly tokenContinues: boolean;
  /** The token that the segment before ends with goes on here. */
  readonly startsInToken?: boolean;
  /** Forms that its markup gives to some of its words. */
  readonly forms?: readonly Replacement[];
  /**
   * The text before and after it in a clause that is cut only because of its length, as far as it affects the sound: other
   * segments speak it, and this one joins it smoothly. '' if no clause is cut.
   */
  readonly before: string;
  readonly after: string;
  /** `before` reaches back to the start of its clause. */
  readonly beforeIsWhole?: boolean;
  /** False for white space between or after spoken text: there is nothing to synthesise. */
  readonly speak: boolean;
}

/** In code points, weighted by `weightOf`. */
export type SegmentBounds = Pick<Bounds, 'firstSegmentCharactersMax' | 'segmentCharactersMax'>;

/** A shorter sentence is spoken together with the next one ("Yes. OK. Sure."), unless it is the first. */
const sentenceMin = 20;
/** Share of the bound from which a segment ends with its clause. */
const clauseShareMin = 0.6;
/** At the bound, an earlier end of a clause beyond this share is a better cut than the last space. */
const earlierClauseShareMin = 0.4;
/** Kept back where a clause is cut, so that its continuation is known. */
const lookAhead = 20;
/** About seven words. */
const earlySize = 34;
/**
 * A later segment is at most this many times as long as what was spoken before it. Text that comes three times as fast
 * as speech is then there before it is needed.
 */
const growth = 2;

const isDigit = /^\p{Nd}$/u;
const isAsciiDigit = (unit: number) => unit >= 0x30 && unit <= 0x39;
const isLowSurrogate = (unit: number) => unit >= 0xdc00 && unit < 0xe000;
const isHighSurrogate = (unit: number) => unit >= 0xd800 && unit < 0xdc00;

/** A place where the segment may end. `at`: offset; `size`: of the segment up to it. */
interface Candidate {
  readonly at: number;
  readonly size: number;
}

export class Segmenter {
  readonly #bounds: SegmentBounds;
  readonly #startsEarly: boolean;
  readonly #code: string;
  /** Text not yet in a segment: the segment began at `#start`, the scan has reached `#next`. */
  #text = '';
  #start = 0;
  #next = 0;
  /** The next segment does. */
  #startsInToken = false;
  /** There was no segment with words since the start or the last flush. */
  #firstOfUtterance = true;
  /** Size of the segments with words since then; counted only with `startsEarly`. */
  #spokenSize = 0;
  #spoke = false;
  /** The end of the text before the segment, if its clause goes on. */
  #before = '';
  #beforeIsWhole = false;

  // State of the scan within a segment.
  #max: number;
  #size = 0;
  #blankSize = 0;
  #tokenStart = -1;
  #tokens = 0;
  /** The last TERMINATOR or CLAUSE mark (with SPACELESS), before any closers; 0 after any other character. */
  #mark = 0;
  #markAt = -1;
  #newlines = 0;
  #lastSpace: Candidate | null = null;
  #lastClause: Candidate | null = null;
  /** A full stop of an abbreviation; the next character decides its meaning. */
  #undecided: { readonly at: number; readonly rule: FullStop } | null = null;

  /**
   * @param startsEarly the text arrives word by word: an utterance begins with a clause of a few words, or with about
   *   seven words, and each segment is so short that its text can arrive while the ones before it are heard
   * @param language BCP 47; decides which abbreviations are known
   */
  constructor(bounds: SegmentBounds, startsEarly = false, language = 'en') {
    this.#bounds = bounds;
    this.#code = primaryLanguage(language);
    this.#startsEarly = startsEarly;
    this.#max = this.#maxNow();
  }

  /** Adds text, split anywhere. @returns the segments that became final */
  push(text: string): Segment[] {
    this.#text = this.#text.slice(this.#start) + text;
    this.#next -= this.#start;
    this.#rebase();
    const segments: Segment[] = [];
    this.#scan(segments, false);
    return segments;
  }

  /** Ends the utterance. Later text begins a new one. @returns the remaining segments */
  flush(): Segment[] {
    const segments: Segment[] = [];
    this.#scan(segments, true);
    if (this.#start < this.#text.length) this.#cut(this.#text.length, segments);
    this.#text = '';
    this.#start = this.#next = 0;
    this.#firstOfUtterance = true;
    this.#spokenSize = 0;
    this.#before = '';
    this.#beginSegment();
    return segments;
  }

  /** As `flush`, for the last time. If nothing was ever spoken, returns one segment without words: a short silence. */
  end(): Segment[] {
    const segments = this.flush();
    if (this.#spoke) return segments;
    this.#spoke = true;
    const text = segments.pop()?.text ?? '';
    return [...segments, { text, words: [], tokenContinues: false, before: '', after: '', speak: true }];
  }

  /** Whether there is text, other than white space, that is in no segment yet. */
  get holdsWords(): boolean {
    return this.#tokens > 0 || this.#next < this.#text.length;
  }

  /** So little was spoken that the next segment may end early. */
  get #mayEndEarly(): boolean {
    return this.#startsEarly && this.#spokenSize < sentenceMin;
  }

  /** Offsets count from the start of the pending text: shifts them when cut text is dropped. */
  #rebase(): void {
    const shift = this.#start;
    if (shift === 0) return;
    const move = <T extends { readonly at: number }>(place: T | null): T | null =>
      place && { ...place, at: place.at - shift };
    this.#tokenStart -= this.#tokenStart < 0 ? 0 : shift;
    this.#markAt -= shift;
    this.#lastSpace = move(this.#lastSpace);
    this.#lastClause = move(this.#lastClause);
    this.#undecided = move(this.#undecided);
    this.#start = 0;
  }

  #maxNow(): number {
    const { firstSegmentCharactersMax, segmentCharactersMax } = this.#bounds;
    if (this.#firstOfUtterance) return firstSegmentCharactersMax;
    if (!this.#startsEarly) return segmentCharactersMax;
    return Math.min(segmentCharactersMax, this.#mayEndEarly ? 2 * earlySize : growth * this.#spokenSize);
  }

  #beginSegment(): void {
    this.#max = this.#maxNow();
    this.#size = this.#blankSize = this.#tokens = this.#mark = this.#newlines = 0;
    this.#tokenStart = this.#markAt = -1;
    this.#lastSpace = this.#lastClause = this.#undecided = null;
  }

  #scan(segments: Segment[], final: boolean): void {
    while (this.#next < this.#text.length) {
      const unit = this.#text.charCodeAt(this.#next);
      // The second half of a surrogate pair may come with the next piece.
      if (!final && isHighSurrogate(unit) && this.#next + 1 === this.#text.length) return;
      const codePoint = this.#text.codePointAt(this.#next)!;
      const bits = classOf(codePoint);
      const before = this.#cutBefore(codePoint, bits);
      if (before !== null) this.#cut(before, segments, (bits & WHITE) !== 0);
      else {
        this.#take(codePoint, bits);
        if (this.#mark === 0 && !(bits & WHITE)) this.#takeLetters();
        if (bits & WHITE) {
          if (this.#endsAfterWhite(bits)) this.#cut(this.#next, segments);
          else {
            const early = this.#earlyPlace();
            if (early !== null) this.#cut(early, segments, true);
          }
        }
      }
    }
  }

  /**
   * Ends the segment at `at`. The scan goes on from there, perhaps over text that it has seen.
   * @param beforeWhite white space comes next
   */
  #cut(at: number, segments: Segment[], beforeWhite = false): void {
    const text = this.#text.slice(this.#start, at);
    const words = wordSpans(text);
    const seen = this.#text.slice(at, this.#next);
    const speak = words.length > 0;
    const splitsToken =
      at < this.#text.length &&
      !(classOf(this.#text.charCodeAt(at)) & WHITE) &&
      !(classOf(text.charCodeAt(text.length - 1)) & WHITE);
    const after = speak ? clauseAfter(text, words.length === 1, seen, beforeWhite, this.#code) : '';
    const before = speak ? this.#before : '';
    const tokenContinues = splitsToken && !this.#isWordSeam(at);
    const beforeIsWhole = before !== '' && this.#beforeIsWhole;
    const startsInToken = this.#startsInToken;
    // Without spreads, which cost half a microsecond.
    segments.push({ text, words, tokenContinues, startsInToken, before, beforeIsWhole, after, speak });
    if (speak) {
      const known = before + text;
      const isWhole = before === '' || this.#beforeIsWhole;
      this.#before = after === '' ? '' : clauseBefore(known);
      this.#beforeIsWhole = isWhole && this.#before === known;
      this.#firstOfUtterance = false;
      if (this.#startsEarly) this.#spokenSize += sizeOf(text);
      this.#spoke = true;
    }
    this.#startsInToken = tokenContinues;
    this.#start = this.#next = at;
    this.#beginSegment();
  }

  /** Whether a cut within a token falls between two words of a script without spaces. */
  #isWordSeam(at: number): boolean {
    const before = this.#text.slice(this.#tokenOf(at), at);
    return needsDictionary(before) && lastWordBoundary(this.#text, this.#tokenOf(at), at) === at;
  }

  #tokenOf(at: number): number {
    let start = at;
    while (start > this.#start && !(classOf(this.#text.charCodeAt(start - 1)) & WHITE)) start--;
    return start;
  }

  /** The end of the segment if this code point comes next; `null` to take the code point. */
  #cutBefore(codePoint: number, bits: number): number | null {
    if (this.#undecided !== null && !(bits & WHITE)) {
      const { at, rule } = this.#undecided;
      this.#undecided = null;
      if (!goesOnAfter(rule, String.fromCodePoint(codePoint))) return at;
    }
    if (this.#mark & SPACELESS && !(bits & (WHITE | CLOSER | TERMINATOR | CLAUSE))) {
      if (this.#mark & TERMINATOR) {
        if (this.#isLongEnough()) return this.#next;
        this.#lastClause = { at: this.#next, size: this.#size };
      } else if (!isDigit.test(String.fromCodePoint(codePoint))) {
        if (this.#endsClause()) return this.#next;
        this.#lastClause = { at: this.#next, size: this.#size };
      }
    }
    const early = bits & DENSE ? this.#earlyPlace() : null;
    if (early !== null) return early;
    return this.#size + weightOf(bits) > this.#max && this.#size > 0 ? this.#cutAtBound(bits) : null;
  }

  #cutAtBound(nextBits: number): number {
    const isWhole = this.#tokenStart < 0 || (nextBits & WHITE) !== 0;
    const mark = isWhole ? this.#mark : 0;
    if (this.#tokens === 0 || mark & CLAUSE || (mark & TERMINATOR && this.#fullStop(this.#next) !== 'inside'))
      return this.#next;
    const clause = this.#lastClause;
    if (clause !== null && clause.size >= this.#max * earlierClauseShareMin) return clause.at;
    const good = this.#startsEarly ? this.#goodPlace() : null;
    if (good !== null) return good;
    if (this.#lastSpace !== null) return this.#lastSpace.at;
    if (isWhole) return this.#next;
    // Without the leading white space the token would fit.
    if (this.#blankSize > 0) return this.#tokenStart;
    const end = this.#backFrom(this.#next);
    if (needsDictionary(this.#text.slice(this.#tokenStart, end))) {
      const boundary = lastWordBoundary(this.#text, this.#tokenOf(end), end);
      if (boundary - this.#start > (end - this.#start) / 2) return boundary;
    }
    return this.#graphemeBoundary(end);
  }

  /** Leaves out the look-ahead within a token. */
  #backFrom(end: number): number {
    let at = end;
    for (let size = 0; size < lookAhead && at > this.#start + 2;) {
      at -= isLowSurrogate(this.#text.charCodeAt(at - 1)) ? 2 : 1;
      size += weightOf(classOf(this.#text.codePointAt(at)!));
    }
    return at;
  }

  /** The last boundary between user-perceived characters; `end` if the segment is a single one. */
  #graphemeBoundary(end: number): number {
    if (this.#text.charCodeAt(end - 1) < 0x80 && this.#text.charCodeAt(end) < 0x80) return end;
    const boundary = lastGraphemeBoundary(this.#text, this.#start, end);
    return boundary > this.#start ? boundary : end;
  }

  /** Adds one code point to the segment. */
  #take(codePoint: number, bits: number): void {
    this.#size += weightOf(bits);
    if (bits & WHITE) {
      if (this.#tokens === 0) this.#blankSize = this.#size;
    } else {
      if (this.#tokenStart < 0) {
        this.#tokenStart = this.#next;
        this.#tokens++;
        this.#newlines = 0;
      }
      if (bits & (TERMINATOR | CLAUSE)) {
        this.#mark = bits;
        this.#markAt = this.#next;
      } else if (!(bits & CLOSER)) this.#mark = 0;
    }
    this.#next += codePoint > 0xffff ? 2 : 1;
  }

  /** Takes the next letters of a token, most of a text, at once: nothing is decided before them. */
  #takeLetters(): void {
    const text = this.#text;
    const from = this.#next;
    const end = Math.min(text.length, from + this.#max - this.#size);
    let at = from;
    for (; at < end; at++) {
      const unit = text.charCodeAt(at);
      if (isHighSurrogate(unit) || classOf(unit) !== KNOWN) break;
    }
    this.#next = at;
    this.#size += at - from;
  }

  /** Whether the segment ends with the white space just taken. */
  #endsAfterWhite(bits: number): boolean {
    if (this.#tokens === 0) return false;
    const place = { at: this.#next, size: this.#size };
    const tokenEnded = this.#tokenStart >= 0;
    const mark = tokenEnded ? this.#mark : 0;
    const fullStop = mark & TERMINATOR ? this.#fullStop(this.#next - 1) : 'ends';
    this.#tokenStart = -1;
    this.#mark = 0;
    if (this.#lastSpace === null || place.size <= this.#max - lookAhead) this.#lastSpace = place;
    if (bits & NEWLINE && this.#isParagraph()) return true;
    if (mark & TERMINATOR) {
      if (fullStop === 'inside') return false;
      this.#lastClause = place;
      if (!this.#isLongEnough()) return false;
      if (fullStop === 'ends') return true;
      this.#undecided = { at: place.at, rule: fullStop };
      return false;
    }
    if (mark & CLAUSE || bits & NEWLINE) {
      if (this.#endsClause()) return true;
      this.#lastClause = place;
    }
    return false;
  }

  /** A place before the last whole words, once about seven words are there. */
  #earlyPlace(): number | null {
    if (!this.#mayEndEarly || this.#size - this.#blankSize < earlySize) return null;
    return this.#goodPlace();
  }

  #goodPlace(): number | null {
    const place = earlyPlace(this.#text.slice(this.#start, this.#next), this.#code);
    if (place === null) return null;
    const at = this.#start + place;
    return classOf(this.#text.charCodeAt(at - 1)) & WHITE || this.#isWordSeam(at) ? at : null;
  }

  /** The meaning of the terminator of the token that ends at `end`. */
  #fullStop(end: number): FullStop {
    if (!'.…'.includes(this.#text.charAt(this.#markAt))) return 'ends';
    const isAfterNumber =
      this.#tokens > 1 &&
      this.#text.charCodeAt(this.#tokenStart - 1) === 0x20 &&
      isAsciiDigit(this.#text.charCodeAt(this.#tokenStart - 2));
    const start = this.#tokenStart - (isAfterNumber ? 2 : 0);
    return fullStopAfter(this.#text.slice(start, end), this.#tokens === 1, this.#code);
  }

  /** Counts line breaks in a run of white space; \r\n is one. */
  #isParagraph(): boolean {
    const at = this.#next - 1;
    const unit = this.#text.charCodeAt(at);
    if (unit === 0x2029) return true;
    if (!(unit === 0x0a && at > this.#start && this.#text.charCodeAt(at - 1) === 0x0d)) this.#newlines++;
    return this.#newlines >= 2;
  }

  #isLongEnough(): boolean {
    return this.#firstOfUtterance || this.#size - this.#blankSize >= sentenceMin;
  }

  /** Whether the segment ends with its clause. */
  #endsClause(): boolean {
    const isLong = this.#size >= this.#max * clauseShareMin;
    return isLong || (this.#mayEndEarly && isEarlyClause(this.#text.slice(this.#start, this.#next)));
  }
}
