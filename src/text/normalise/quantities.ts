/** Amounts, as far as one piece of text holds them: signed, decimal, scientific, mixed with a fraction, a range. */
import { cardinal, countedDigitsMax, decimal, digitGroups, digitWords } from './numbers.js';

export interface Quantity {
  readonly spoken: string;
  /** What is counted is said in the singular. */
  readonly isOne: boolean;
}

/** With commas between thousands (or lakhs), or none. */
export const integerPattern = String.raw`(?:\d{1,3}(?:,\d{3})+|\d{1,2}(?:,\d{2})+,\d{3}|\d+)`;
export const numberPattern = String.raw`(?:${integerPattern}(?:\.\d+)?|\.\d+)`;

const vulgar: Readonly<Record<string, string>> = {
  '½': 'half',
  '¼': 'quarter',
  '¾': 'three quarters',
  '⅓': 'third',
  '⅔': 'two thirds',
  '⅕': 'fifth',
  '⅖': 'two fifths',
  '⅗': 'three fifths',
  '⅘': 'four fifths',
  '⅙': 'sixth',
  '⅚': 'five sixths',
  '⅛': 'eighth',
  '⅜': 'three eighths',
  '⅝': 'five eighths',
  '⅞': 'seven eighths',
};
const vulgarPattern = Object.keys(vulgar).join('');

const signs: Readonly<Record<string, string>> = { '-': 'minus ', '−': 'minus ', '–': 'minus ', '+': 'plus ' };
const prefixes: Readonly<Record<string, string>> = {
  '~': 'about ',
  '≈': 'about ',
  '<': 'less than ',
  '>': 'more than ',
  '≤': 'at most ',
  '≥': 'at least ',
  '±': 'plus or minus ',
};

const numberForm = new RegExp(`^${numberPattern}$`);
const single = new RegExp(
  `^(?<prefix>[~≈<>≤≥±])?(?<sign>[-−–+])?(?:(?<number>${numberPattern})(?:[eE](?<exponent>[-−+]?\\d{1,3}))?|` +
    `(?<whole>\\d{1,9})?(?<vulgar>[${vulgarPattern}]))$`,
);
const rangeForm = new RegExp(
  `^(?<from>[-−]?[^-–—−]+)(?:[-–—−]|\\.\\.\\.?)(?<to>${numberPattern}|\\d*[${vulgarPattern}])$`,
);

/** Digits without separators that are no amount: a number of an account, a telephone, an order. */
const uncountedFrom = 10;

/** An unsigned number; a string of digits that nobody counts is told digit by digit. */
export const numberWords = (text: string): string | null => {
  if (!numberForm.test(text)) return null;
  const [integer = '', fraction] = text.replaceAll(',', '').split('.');
  if (fraction !== undefined) return decimal(integer, fraction);
  if (/^0\d/.test(integer) && integer.length < uncountedFrom) return digitWords(integer);
  const isGrouped = text.includes(',') && integer.length <= countedDigitsMax;
  return isGrouped || integer.length < uncountedFrom ? cardinal(integer) : digitGroups(groupsOf(integer));
};

/** Ten digits as telephones have them; more in fours, the last group the shortest. */
const groupsOf = (digits: string): string[] =>
  digits.length === 10
    ? [digits.slice(0, 3), digits.slice(3, 6), digits.slice(6)]
    : (digits.match(/\d{1,4}/g) ?? [digits]);

const vulgarWords = (whole: string | undefined, sign: string): string => {
  const fraction = vulgar[sign]!;
  const isUnit = !fraction.includes(' ');
  if (whole === undefined || whole === '') return isUnit ? `one ${fraction}` : fraction;
  const article = fraction === 'eighth' ? 'an' : 'a';
  return `${cardinal(whole)} and ${isUnit ? `${article} ${fraction}` : fraction}`;
};

const singleQuantity = (text: string): Quantity | null => {
  const parts = single.exec(text)?.groups;
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

/** @returns `null` unless the whole text is one amount, or two with a dash between: `10-20` ten to twenty */
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
