/**
 * How written forms are spoken in English: numbers, dates, times, money, units, abbreviations.
 *
 * The text and its tokens do not change, since timestamps report them. Replacements stand beside them.
 */
import type { Bounds } from '../../limits.js';
import type { Span } from '../words.js';
import { abbreviations, names } from './abbreviations.js';
import { codes, romanNumerals, telephone } from './codes.js';
import { dates, times, years } from './dates.js';
import { measures } from './measures.js';
import { money } from './money.js';
import { fractions, ordinals, plainNumbers, ranges, signs } from './number-forms.js';
import { type Reading, type Rule, Tokens } from './tokens.js';

/** Tokens `first` to `last` (inclusive) are spoken as this text, which includes their punctuation. */
export interface Replacement {
  readonly first: number;
  readonly last: number;
  /** Never blank. */
  readonly spoken: string;
}

/** The first rule that applies wins: specific rules stand before general ones. */
const rules: readonly Rule[] = [
  ...[dates, telephone, times, money, fractions, signs],
  ...[years, codes, measures, ordinals, ranges, romanNumerals, names, abbreviations, plainNumbers],
];

/** No rule applies to a token that does not match. */
const touchable = /^[^\p{L}]|\d|^\p{L}{1,9}(?:[.'/–-]{1,2}\p{L}{0,5})?$/u;

const read = (tokens: Tokens, at: number): Reading | null => {
  const { core, raw, english } = tokens.at(at);
  if (!english || raw.length === 0 || !touchable.test(core === '' ? raw.slice(0, 1) : core)) return null;
  for (const rule of rules) {
    const reading = rule(tokens, at);
    if (reading !== null) return reading;
  }
  return null;
};

/**
 * @param words the tokens of the text (`wordSpans`)
 * @returns in order, without overlap; empty if the text is spoken as written. Time is proportional to the length of the
 *   text; the result is at most about sixteen times as long.
 */
export const normalise = (
  text: string,
  words: readonly Span[],
  bounds: Pick<Bounds, 'normalisedTokenMax'>,
): Replacement[] => {
  const tokens = new Tokens(text, words, bounds);
  const replacements: Replacement[] = [];
  for (let at = 0; at < tokens.length;) {
    const reading = read(tokens, at);
    if (reading === null) {
      at++;
      continue;
    }
    const { parts, count } = reading;
    for (const [i, part] of parts.entries()) {
      const token = tokens.at(at + i);
      const spoken = `${part.lead ?? token.lead}${part.core}${part.tail ?? token.tail}`;
      if (spoken !== token.raw) replacements.push({ first: at + i, last: at + i + (count ?? 1) - 1, spoken });
    }
    at += count ?? parts.length;
  }
  return replacements;
};
