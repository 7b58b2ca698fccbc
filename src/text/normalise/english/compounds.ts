/** Numbers and words that hyphens join: 7-year-old, 5-km, 2-in-1, COVID-19; and ordinal numbers. */
import { sizes, tailOfUnit, unitOf } from './measures.js';
import { endOf } from './number-forms.js';
import { cardinal, ordinalOf, pairs, pluralOf, quantityOf, yearWords } from './numbers.js';
import { type Rule, wordSet } from '../tokens.js';

/** The most pieces of a compound. */
const piecesMax = 8;
/** Words that join numbers: "2-in-1", "3-to-5 days", "6-foot-2". */
const joints = wordSet(
  'in on to by for of and or at up vs out over under plus per foot feet through than point then',
);

/** The words after a number; a unit is named in the singular: "5-km", "10-mm-thick". */
const afterNumber = (words: readonly string[]): string => {
  const [first = '', second] = words;
  const isUnit = first !== 'in' || second === undefined || sizes.has(second);
  const unit = isUnit ? unitOf(first, first === 'in') : null;
  return [unit?.one ?? first, ...words.slice(1)].join(' ');
};

/** A number, in the plural too: the last one of "2-in-1s". */
const numberOf = (text: string): string | null => {
  const many = /^(?<digits>\d{1,2})s$/.exec(text)?.groups?.['digits'];
  return many === undefined ? endOf(text) : pluralOf(cardinal(many));
};

/** 2-in-1, 3-to-5-year, all-in-1: words of their own stand between numbers. */
const joinedNumbers = (pieces: readonly string[]): string | null => {
  const isNumber = (at: number) => /\d/.test(pieces[at] ?? '');
  const isJoint = (at: number) => joints.has(pieces[at]?.toLowerCase() ?? '');
  if (!pieces.some((_, at) => isJoint(at) && (isNumber(at + 1) || (isNumber(at - 1) && at > 1)))) return null;
  const words = pieces.map((piece, at) => {
    if (isNumber(at)) return numberOf(piece);
    if (isJoint(at)) return piece.toLowerCase();
    return /^(?=[^aeiouy]*[aeiouy]\p{L})\p{L}+$/iu.test(piece) ? piece : null;
  });
  return words.includes(null) ? null : words.join(' ');
};

/** COVID-19, F-16, Expo-2024. */
const numberLast = (word: string, digits: string): string => {
  // I-95, US-101: highways.
  if (/^(?:I|US|SR|CR)$/.test(word)) return `${word === 'US' ? 'U.S' : word} ${pairs(digits)}`;
  const isYear = /^(?:19|20)\d\d$/.test(digits);
  return `${word} ${isYear ? yearWords(digits) : quantityOf(digits)!.spoken}`;
};

const compoundOf = (text: string): string | null => {
  const pieces = text.split('-', piecesMax + 1);
  const [first = '', ...rest] = pieces;
  if (rest.length === 0 || pieces.length > piecesMax) return null;
  if (rest.every((piece) => /^\p{L}+$/u.test(piece))) {
    // 7-year-old, 10-minute, 20th-century, 5-km.
    const number = first.length > 14 ? null : (ordinalOf(first) ?? quantityOf(first)?.spoken ?? null);
    return number === null ? null : `${number} ${afterNumber(rest)}`;
  }
  if (rest.length === 1 && /^\p{L}{1,20}$/u.test(first) && /^\d{1,4}$/.test(rest[0]!))
    return numberLast(first, rest[0]!);
  return joinedNumbers(pieces);
};

export const compounds: Rule = (tokens, at) => {
  const { core } = tokens.at(at);
  const spoken = /\d/.test(core) ? (ordinalOf(core) ?? compoundOf(core)) : null;
  return spoken === null ? null : { parts: [{ core: spoken, tail: tailOfUnit(tokens, at) }] };
};
