/** Numbers and amounts as words, in American English. Digits are strings, so that no number is too long. */
import { toCardinal, toOrdinal } from 'n2words/en-US';
import { partsOfVulgar, vulgarSigns } from '../tokens.js';

/** Longest string of digits read as a number; a longer one is read digit by digit. */
const countedDigitsMax = 24;

/** `twenty four`: a hyphen joins the words of a compound. */
const spaced = (words: string): string => words.replaceAll('-', ' ');

const digitNames = Array.from('0123456789', (digit) => toCardinal(digit));

/** `407` -> four zero seven. */
export const digitWords = (digits: string): string =>
  Array.from(digits, (digit) => digitNames[Number(digit)]).join(' ');

/** The name of a letter. espeak-ng reads a lone A as the article. */
export const letterName = (letter: string): string => {
  const capital = letter.toUpperCase();
  return capital === 'A' ? 'eigh' : capital;
};

/** Digits in groups, with a pause between groups. */
export const digitGroups = (groups: readonly string[]): string => groups.map(digitWords).join(', ');

/** `1234` -> one thousand two hundred thirty four. */
export const cardinal = (digits: string): string =>
  digits.replace(/^0+/, '').length > countedDigitsMax
    ? digitWords(digits)
    : spaced(toCardinal(BigInt(digits)));

/** `22` -> twenty second. */
export const ordinal = (digits: string): string =>
  Number(digits) === 0 ? 'zeroth' : spaced(toOrdinal(BigInt(digits)));

const ordinalForm = /^(?<digits>\d{1,3}(?:,\d{3})+|\d{1,9})(?:st|nd|rd|th)(?<owner>'s)?$/i;

/** `22nd` -> twenty second; `null` if the text is not an ordinal number. */
export const ordinalOf = (text: string): string | null => {
  const { digits, owner = '' } = ordinalForm.exec(text)?.groups ?? {};
  return digits === undefined ? null : ordinal(digits.replaceAll(',', '')) + owner;
};

/** `3.14` -> three point one four. */
export const decimal = (integer: string, fraction: string): string => {
  const whole = integer === '' ? '' : `${cardinal(integer)} `;
  return `${whole}point ${digitWords(fraction)}`;
};

/** In pairs of digits, as rooms, streets and years are read: `101` one oh one, `815` eight fifteen. */
export const pairs = (digits: string): string => {
  const value = Number(digits);
  const rest = value % 100;
  const head = String((value - rest) / 100);
  if (head === '0') return cardinal(String(rest));
  if (rest === 0) return head.endsWith('0') ? cardinal(digits) : `${cardinal(head)} hundred`;
  return `${cardinal(head)} ${rest < 10 ? 'oh ' : ''}${cardinal(String(rest))}`;
};

/** Four digits as a year: `1905` nineteen oh five, `2005` two thousand five, `2024` twenty twenty four. */
export const yearWords = (digits: string): string =>
  /^20(?=0)/.test(digits) ? cardinal(digits) : pairs(digits);

/** The plural of the last word: sixes, nineties, hundreds. */
export const pluralOf = (words: string): string => {
  if (words.endsWith('y')) return `${words.slice(0, -1)}ies`;
  return words.endsWith('x') ? `${words}es` : `${words}s`;
};

export interface Quantity {
  readonly spoken: string;
  /** The singular follows. */
  readonly isOne: boolean;
}

/** With or without commas between thousands (or lakhs). */
const integerPattern = String.raw`(?:\d{1,3}(?:,\d{3})+|\d{1,2}(?:,\d{2})+,\d{3}|\d+)`;
export const numberPattern = String.raw`(?:${integerPattern}(?:\.\d+)?|\.\d+)`;

/** Where thousands have points and hundredths a comma: `1.234,50` -> `1234.50`. A comma before three digits is that of thousands. */
export const withPoint = (text: string): string =>
  text
    .replace(
      /(?<![\d.,])(\d{1,3}(?:\.\d{3})+|\d+),(\d{1,2})(?![\d.,])/g,
      (_, whole: string, decimals: string) => `${whole.replaceAll('.', '')}.${decimals}`,
    )
    .replace(/(?<![\d.,])\d{1,3}(?:\.\d{3}){2,}(?![\d.,])/g, (whole) => whole.replaceAll('.', ''));

/** A part by the number below: half, quarter, eighths. */
export const partWords = (below: string, many: boolean): string => {
  if (below === '2') return many ? 'halves' : 'half';
  if (below === '4') return many ? 'quarters' : 'quarter';
  return ordinal(below) + (many ? 's' : '');
};

const signs: Readonly<Record<string, string>> = { '-': 'minus ', '−': 'minus ', '–': 'minus ', '+': 'plus ' };
const prefixes: Readonly<Record<string, string>> = {
  '~': 'about ',
  '≈': 'about ',
  '<': 'less than ',
  '>': 'more than ',
  '≤': 'at most ',
  '≥': 'at least ',
  '±': 'plus or minus ',
  '×': 'times ',
};

const numberForm = new RegExp(`^${numberPattern}$`);
const singleForm = new RegExp(
  `^(?<prefix>[~≈<>≤≥±×])?(?<sign>[-−–+])?(?:(?<number>${numberPattern})(?:[eE](?<exponent>[-−+]?\\d{1,3}))?|` +
    `(?<whole>\\d{1,9})?(?<vulgar>[${vulgarSigns}]))$`,
);
const rangeForm = new RegExp(
  `^(?<from>[-−]?[^-–—−]+)(?:[-–—−]|\\.\\.\\.?)(?<to>${numberPattern}|\\d*[${vulgarSigns}])$`,
);

/** From this length, digits without separators are not an amount, but an account, telephone or order number. */
const uncountedFrom = 10;

/** An unsigned number; long strings of digits are read digit by digit. `null` if the text is not a number. */
export const numberWords = (text: string): string | null => {
  if (!numberForm.test(text)) return null;
  const [integer = '', fraction] = text.replaceAll(',', '').split('.');
  if (fraction !== undefined) return decimal(integer, fraction);
  if (/^0\d/.test(integer) && integer.length < uncountedFrom) return digitWords(integer);
  const isGrouped = text.includes(',') && integer.length <= countedDigitsMax;
  return isGrouped || integer.length < uncountedFrom ? cardinal(integer) : digitGroups(groupsOf(integer));
};

/** Ten digits as in a telephone number; otherwise fours, with a shorter last group. */
const groupsOf = (digits: string): string[] =>
  digits.length === 10
    ? [digits.slice(0, 3), digits.slice(3, 6), digits.slice(6)]
    : (digits.match(/\d{1,4}/g) ?? [digits]);

const vulgarWords = (whole: string | undefined, sign: string): string => {
  const [above, below] = partsOfVulgar(sign);
  const isUnit = above === '1';
  const fraction = `${isUnit ? '' : `${cardinal(above)} `}${partWords(below, !isUnit)}`;
  if (whole === undefined || whole === '') return isUnit ? `one ${fraction}` : fraction;
  const article = below === '8' ? 'an' : 'a';
  return `${cardinal(whole)} and ${isUnit ? `${article} ${fraction}` : fraction}`;
};

const singleQuantity = (text: string): Quantity | null => {
  const parts = singleForm.exec(text)?.groups;
  if (parts === undefined) return null;
  const before = `${prefixes[parts['prefix'] ?? ''] ?? ''}${signs[parts['sign'] ?? ''] ?? ''}`;
  const { number, exponent } = parts;
  if (number === undefined) {
    const spoken = `${before}${vulgarWords(parts['whole'], parts['vulgar']!)}`;
    return { spoken, isOne: parts['whole'] === undefined };
  }
  const words = numberWords(number)!;
  if (exponent === undefined) return { spoken: before + words, isOne: number === '1' };
  return { spoken: `${before}${words} times ten to the ${powerWords(exponent)}`, isOne: false };
};

/** `-3` -> power of minus three. */
export const powerWords = (exponent: string): string =>
  `power of ${signs[exponent.charAt(0)]?.replace('plus ', '') ?? ''}${cardinal(exponent.replace(/^[-−+]/, ''))}`;

/** @returns `null` unless the whole text is one amount, or a range: `10-20` ten to twenty */
export const quantityOf = (text: string): Quantity | null => {
  const one = singleQuantity(text);
  if (one !== null) return one;
  const { from, to } = rangeForm.exec(text)?.groups ?? {};
  if (from === undefined || to === undefined) return null;
  const first = singleQuantity(from);
  const last = singleQuantity(to);
  return first === null || last === null
    ? null
    : { spoken: `${first.spoken} to ${last.spoken}`, isOne: false };
};
