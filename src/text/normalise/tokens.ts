/** A segment's tokens as the rules see them: each without the punctuation around it, and what stands between them. */
import type { Bounds } from '../../limits.js';
import { fullStopAfter } from '../full-stop.js';
import type { Span } from '../words.js';

export interface Token {
  readonly raw: string;
  /** Opening punctuation; `lead + core + tail` is `raw`, but for apostrophes, which are straight in `core`. */
  readonly lead: string;
  /** Empty where a token is too long to be looked into. */
  readonly core: string;
  /** Closing punctuation, a final full stop always with it. */
  readonly tail: string;
  /** Between the token before and this one: white space of a line, a line break, or nothing. */
  readonly gap: 'space' | 'line' | 'none';
  /** Read with English words; otherwise the numbers of its own language are left to the voice. */
  readonly english: boolean;
}

const opening = new Set('([{"\'‘’“«‹„¿¡*_`—…');
const closing = new Set('.,;:!?…)]}"\'’”»›*_`—');

/** A letter of another script than the Latin one; micro and ohm are units. */
const foreign = /(?![\p{Script=Latin}μΩ])\p{L}/u;
const latin = /\p{Script=Latin}/u;
const lineBreak = /[\n\r\v\f\u0085\u2028\u2029]/;

const trim = (raw: string, tokenMax: number): Pick<Token, 'lead' | 'core' | 'tail'> => {
  if (raw.length > tokenMax) return { lead: raw, core: '', tail: '' };
  let start = 0;
  let end = raw.length;
  while (end > 0 && closing.has(raw[end - 1]!)) end--;
  while (start < end && opening.has(raw[start]!)) start++;
  return {
    lead: raw.slice(0, start),
    core: raw.slice(start, end).replaceAll('’', "'"),
    tail: raw.slice(end),
  };
};

/** Per token, whether it is in a run of Latin writing: by its own letters, else those before it, else those after. */
const latinRuns = (raws: readonly string[], tokenMax: number): boolean[] => {
  const own = raws.map((raw) => {
    if (raw.length > tokenMax) return null;
    return foreign.test(raw) ? false : latin.test(raw) ? true : null;
  });
  let current = own.find((isLatin) => isLatin !== null) ?? true;
  return own.map((isLatin) => (current = isLatin ?? current));
};

export class Tokens {
  readonly #tokens: readonly Token[];

  constructor(
    text: string,
    words: readonly Span[],
    { normalisedTokenMax: tokenMax }: Pick<Bounds, 'normalisedTokenMax'>,
  ) {
    const raws = words.map(({ start, end }) => text.slice(start, end));
    const english = latinRuns(raws, tokenMax);
    this.#tokens = words.map(({ start }, i) => {
      const gap = text.slice(words[i - 1]?.end ?? start, start);
      return {
        raw: raws[i]!,
        ...trim(raws[i]!, tokenMax),
        gap: gap === '' ? 'none' : lineBreak.test(gap) ? 'line' : 'space',
        english: english[i]!,
      };
    });
  }

  get length(): number {
    return this.#tokens.length;
  }

  /** @param at below `length` */
  at(at: number): Token {
    return this.#tokens[at]!;
  }

  /** The token after, on the same line, whatever punctuation stands between. */
  following(at: number): Token | undefined {
    const token = this.#tokens[at + 1];
    return token?.gap === 'space' && token.english ? token : undefined;
  }

  /** The token after, with nothing but white space between. */
  next(at: number): Token | undefined {
    const token = this.following(at);
    return this.at(at).tail === '' && token?.lead === '' ? token : undefined;
  }

  /** As `next`, where this token may be an abbreviation with its full stop. */
  nextAfterStop(at: number): Token | undefined {
    const token = this.following(at);
    return /^\.?$/.test(this.at(at).tail) && token?.lead === '' ? token : undefined;
  }

  /** The token before, with nothing but white space, or the full stop of an abbreviation, between. */
  previous(at: number): Token | undefined {
    const token = this.#tokens[at - 1];
    return token !== undefined &&
      this.at(at).gap === 'space' &&
      this.at(at).lead === '' &&
      /^\.?$/.test(token.tail)
      ? token
      : undefined;
  }

  /** The word before in lower case, whatever colon or quote stands between; empty where there is none. */
  wordBefore(at: number): string {
    const token = this.#tokens[at - 1];
    return token === undefined || this.at(at).gap !== 'space' || /[.!?,;]/.test(token.tail)
      ? ''
      : token.core.toLowerCase();
  }

  /** The punctuation that is left of an abbreviation's: its full stop stays only where it ends the sentence too. */
  tailOfAbbreviation(at: number): string {
    const { core, tail } = this.at(at);
    if (!tail.startsWith('.')) return tail;
    const following = this.#tokens[at + 1];
    if (following === undefined) return tail;
    const initial = following.core.charAt(0);
    const goesOn = () => {
      switch (fullStopAfter(`${core}.`, false)) {
        case 'inside':
          return true;
        case 'unless-digit':
          return /\p{Nd}/u.test(initial);
        case 'ends':
        case 'unless-lower-case':
          return /[\p{Ll}\p{Nd}]/u.test(initial);
      }
    };
    return tail.length > 1 || goesOn() ? tail.slice(1) : tail;
  }
}
