/**
 * Written forms as they are spoken in English: numbers, dates, times, money, units, abbreviations.
 *
 * The text and its tokens stay as they are, for they are what timestamps report; what differs is told beside them.
 */
import type { Bounds } from '../../limits.js';
import type { Span } from '../words.js';
import { abbreviations } from './abbreviations.js';
import { codes } from './codes.js';
import { dates } from './dates.js';
import { fractions } from './fractions.js';
import { measures } from './measures.js';
import { money } from './money.js';
import { names } from './names.js';
import { ordinals } from './ordinals.js';
import { plainNumbers } from './plain-numbers.js';
import { ranges } from './ranges.js';
import type { Reading, Rule } from './reading.js';
import { romanNumerals } from './roman.js';
import { signs } from './signs.js';
import { telephone } from './telephone.js';
import { times } from './times.js';
import { Tokens } from './tokens.js';
import { years } from './years.js';

/** Tokens `first` to `last`, both included, are spoken as this text, which has their punctuation. */
export interface Replacement {
  readonly first: number;
  readonly last: number;
  /** Never blank. */
  readonly spoken: string;
}

/** The first that applies reads: what is more particular stands before what is more general. */
const rules: readonly Rule[] = [
  ...[dates, telephone, times, money, fractions, signs],
  ...[years, codes, measures, ordinals, ranges, romanNumerals, names, abbreviations, plainNumbers],
];

/** Every rule needs one of these in a token, or a letter that begins a word. */
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
 * @param text a segment, or any other text
 * @param words its tokens (`wordSpans`)
 * @returns in order, without overlap; empty where the text is spoken as it is written. Takes time in proportion to the
 *   text's length and gives no more than about sixteen times as much.
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
