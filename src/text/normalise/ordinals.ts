/** Ordinal numbers, and words with a number before or after a hyphen: 22nd, 7-year-old, COVID-19, 20th-century. */
import { ordinal } from './numbers.js';
import { quantityOf } from './quantities.js';
import { type Rule, sayIf } from './reading.js';
import { yearWords } from './numbers.js';

const ordinalForm = /^(?<digits>\d{1,3}(?:,\d{3})+|\d{1,9})(?:st|nd|rd|th)(?<owner>'s)?$/i;

/** `null` where the text is no ordinal number. */
export const ordinalOf = (text: string): string | null => {
  const { digits, owner = '' } = ordinalForm.exec(text)?.groups ?? {};
  return digits === undefined ? null : ordinal(digits.replaceAll(',', '')) + owner;
};

/** 7-year-old, 10-minute, 20th-century, 5-km. */
const numberFirst = (text: string): string | null => {
  const { number = '', rest = '' } =
    /^(?<number>[\d.,]{1,12}(?:st|nd|rd|th)?)-(?<rest>\p{L}+(?:-\p{L}+)*)$/u.exec(text)?.groups ?? {};
  if (number === '') return null;
  const words = ordinalOf(number) ?? quantityOf(number)?.spoken;
  return words === undefined ? null : `${words} ${rest.replaceAll('-', ' ')}`;
};

/** COVID-19, F-16, Expo-2024. */
const numberLast = (text: string): string | null => {
  const { word, digits } = /^(?<word>\p{L}{1,20})-(?<digits>\d{1,4})$/u.exec(text)?.groups ?? {};
  if (word === undefined || digits === undefined) return null;
  const isYear = /^(?:19|20)\d\d$/.test(digits);
  return `${word} ${isYear ? yearWords(digits) : quantityOf(digits)!.spoken}`;
};

export const ordinals: Rule = (tokens, at) => {
  const { core } = tokens.at(at);
  return sayIf(ordinalOf(core) ?? numberFirst(core) ?? numberLast(core));
};
