/** The tokens of a segment as the rules see them, and what a rule returns. */
import type { Bounds } from '../../limits.js';
import { fullStopAfter } from '../full-stop.js';
import type { Span } from '../words.js';

export interface Token {
  readonly raw: string;
  /** Opening punctuation. `lead + core + tail` is `raw`, except that apostrophes and hyphens in `core` are plain. */
  readonly lead: string;
  /** Empty if the token is too long to examine. */
  readonly core: string;
  /** Closing punctuation, including a final full stop. */
  readonly tail: string;
  /** Between the previous token and this one: white space within a line, a line break, or nothing. */
  readonly gap: 'space' | 'line' | 'none';
  /** A straight double quote is open before its closing punctuation. */
  readonly quoted: boolean;
  /** In Latin writing, read with words of the language; other numbers are left to the voice. */
  readonly latin: boolean;
}

const opening = new Set('([{"\'‘’“«‹„¿¡*_`—…');
const closing = new Set('.,;:!?…)]}"\'’‘”“»›*_`—');

/** A letter of a script other than Latin, except micro and ohm, which are units. */
const foreign = /(?![\p{Script=Latin}\u00b5\u03bcΩ])\p{L}/u;
const latinLetter = /\p{Script=Latin}/u;
const lineBreak = /[\n\r\v\f\u0085\u2028\u2029]/;

/** With straight apostrophes and plain hyphens. */
const plain = (text: string): string =>
  /[‐‑’]/.test(text) ? text.replaceAll('’', "'").replace(/[‐‑]/g, '-') : text;

/** A token without its punctuation, and that. */
export const trim = (raw: string, tokenMax: number): Pick<Token, 'lead' | 'core' | 'tail'> => {
  if (raw.length > tokenMax) return { lead: raw, core: '', tail: '' };
  let start = 0;
  let end = raw.length;
  while (end > 0 && closing.has(raw[end - 1]!)) end--;
  while (start < end && opening.has(raw[start]!)) start++;
  return {
    lead: raw.slice(0, start),
    core: plain(raw.slice(start, end)),
    tail: raw.slice(end),
  };
};

const countQuotes = (text: string): number => {
  let count = 0;
  for (const mark of text) if (mark === '"') count++;
  return count;
};

/** Whether each token is in Latin writing: by its own letters, or by those before it, or by those after it. */
const latinRuns = (raws: readonly string[], tokenMax: number): boolean[] => {
  const own = raws.map((raw) => {
    if (raw.length > tokenMax) return null;
    return foreign.test(raw) ? false : latinLetter.test(raw) ? true : null;
  });
  let current = own.find((isLatin) => isLatin !== null) ?? true;
  return own.map((isLatin) => (current = isLatin ?? current));
};

export class Tokens {
  readonly #tokens: readonly Token[];
  readonly #code: string;

  /** @param code of the language: `de` */
  constructor(
    text: string,
    words: readonly Span[],
    { normalisedTokenMax: tokenMax }: Pick<Bounds, 'normalisedTokenMax'>,
    code: string,
  ) {
    this.#code = code;
    const raws = words.map(({ start, end }) => text.slice(start, end));
    const latin = latinRuns(raws, tokenMax);
    let quotes = 0;
    this.#tokens = words.map(({ start }, i) => {
      const gap = text.slice(words[i - 1]?.end ?? start, start);
      const trimmed = trim(raws[i]!, tokenMax);
      const open = quotes + countQuotes(trimmed.lead);
      // After a digit, a quote is the sign of inches, unless a quotation is open: then it closes that.
      quotes = open + (open % 2 === 1 || !/\d$/.test(trimmed.core) ? countQuotes(trimmed.tail) : 0);
      return {
        raw: raws[i]!,
        ...trimmed,
        quoted: open % 2 === 1,
        gap: gap === '' ? 'none' : lineBreak.test(gap) ? 'line' : 'space',
        latin: latin[i]!,
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

  /** The next token on the same line; any punctuation may stand between. */
  following(at: number): Token | undefined {
    const token = this.#tokens[at + 1];
    return token?.gap === 'space' && token.latin ? token : undefined;
  }

  /** The next token, if only white space stands between. */
  next(at: number): Token | undefined {
    const token = this.following(at);
    return token?.lead === '' && this.at(at).tail === '' ? token : undefined;
  }

  /** As `next`, but a full stop of an abbreviation may stand between. */
  nextAfterStop(at: number): Token | undefined {
    const token = this.following(at);
    return token?.lead === '' && /^\.?$/.test(this.at(at).tail) ? token : undefined;
  }

  /** The previous token, if only white space or the full stop of an abbreviation stands between. */
  previous(at: number): Token | undefined {
    const token = this.#tokens[at - 1];
    return token !== undefined &&
      this.at(at).gap === 'space' &&
      this.at(at).lead === '' &&
      /^\.?$/.test(token.tail)
      ? token
      : undefined;
  }

  /** The previous word in lower case; a colon or quote may stand between. Empty if there is none. */
  wordBefore(at: number): string {
    const token = this.#tokens[at - 1];
    return token === undefined || this.at(at).gap !== 'space' || /[.!?,;]/.test(token.tail)
      ? ''
      : token.core.toLowerCase();
  }

  /** As `wordBefore`, and also an abbreviation with its full stop: "Tel. 123". */
  cueBefore(at: number): string {
    return this.wordBefore(at) || (this.previous(at)?.core.toLowerCase() ?? '');
  }

  /** The punctuation after an expanded abbreviation: the full stop stays only if it also ends the sentence. */
  tailOfAbbreviation(at: number): string {
    const { core, tail } = this.at(at);
    if (!tail.startsWith('.')) return tail;
    const following = this.#tokens[at + 1];
    if (following === undefined) return tail;
    const initial = following.lead.startsWith('(') ? '(' : following.core.charAt(0);
    const goesOn = () => {
      const number = /\d$/.test(this.#tokens[at - 1]?.core ?? '') ? '0 ' : '';
      switch (fullStopAfter(`${number}${core}.`, false, this.#code)) {
        case 'inside':
          return true;
        case 'unless-digit':
          return /\p{Nd}/u.test(initial);
        case 'ends':
        case 'unless-lower-case':
        case 'unless-either':
          return /[\p{Ll}\p{Nd}(]/u.test(initial);
      }
    };
    return tail.length > 1 || goesOn() ? tail.slice(1) : tail;
  }
}

/** The spoken form of one or more tokens, by default with the punctuation of the token. */
export interface Part {
  readonly core: string;
  readonly lead?: string;
  readonly tail?: string;
}

/** One part per token, or a single part for `count` tokens whose words cannot be separated. */
export interface Reading {
  readonly parts: readonly Part[];
  readonly count?: number;
}

/** The words of a language for the signs of an address. */
export interface AddressWords {
  readonly at: string;
  readonly dot: string;
  readonly hyphen: string;
  readonly underscore: string;
  readonly slash: string;
  readonly colon: string;
  readonly plus: string;
  readonly equals: string;
  readonly and: string;
  cardinal(digits: string): string;
  /** One letter, in upper case. */
  letter(letter: string): string;
}

/** `null` if the rule does not apply. Examines a bounded number of tokens, so that all rules take linear time. */
export type Rule = (tokens: Tokens, at: number) => Reading | null;

/** Names a rule that was made for a language. */
export const named = (name: string, rule: Rule): Rule => Object.defineProperty(rule, 'name', { value: name });

/** One part per token. */
export const say = (...cores: readonly string[]): Reading => ({ parts: cores.map((core) => ({ core })) });

/** As `say` for one token; `null` gives `null`. */
export const sayIf = (core: string | null): Reading | null => (core === null ? null : say(core));

/** How a language is normalised. */
export interface LanguageRules {
  /** The first rule that applies wins: specific rules stand before general ones. */
  readonly rules: readonly Rule[];
  /** No rule applies to a token that does not match. */
  readonly touchable: RegExp;
  /** Words that a rule sees as one token, such as `12 345`; by default each word is a token. */
  readonly joined?: (text: string, words: readonly Span[]) => readonly Joined[];
  readonly addressWords: AddressWords;
}

/** Words `first` to `last`. */
export interface Joined {
  readonly first: number;
  readonly last: number;
}

export const wordSet = (list: string): ReadonlySet<string> => new Set(list.split(' '));

/** A table from entries such as `Mr: Mister; Mrs: Missus`. */
export const wordTable = (entries: string): ReadonlyMap<string, string> =>
  new Map(entries.split(/;\s/).map((entry) => entry.trim().split(': ') as [string, string]));

/** Fractions in one character. */
export const vulgarSigns = '½¼¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞';
/** The digits above and below of such a fraction. */
export const partsOfVulgar = (sign: string) => sign.normalize('NFKD').split('⁄') as [string, string];
