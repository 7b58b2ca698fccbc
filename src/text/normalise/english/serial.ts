/** Letters and digits mixed: B2A23C, t-0t25d12-f, flight AA123, CO2, C++. */
import { isSpelled } from '../electronic.js';
import { type AddressWords, type Rule, say } from '../tokens.js';
import { timeOf } from './dates.js';
import { measureOf } from './measures.js';
import { cardinal, digitWords, letterName, ordinalOf, pairs } from './numbers.js';

const spellOut = (letters: string): string => Array.from(letters, letterName).join(' ');

export const addressWords: AddressWords = {
  ...{ at: 'at', dot: 'dot', hyphen: 'dash', underscore: 'underscore', slash: 'slash', colon: 'colon' },
  ...{ plus: 'plus', equals: 'equals', and: 'ampersand' },
  cardinal,
  letter: letterName,
};

/** Two digits and round thousands as a number, other digits one by one. */
const digitsOf = (digits: string): string =>
  (digits.length <= 2 && !/^0\d/.test(digits)) || /^[1-9]000$/.test(digits)
    ? cardinal(digits)
    : digitWords(digits);

/** Capitals up to three letters and short runs are letters; the rest is a word. */
const lettersOf = (letters: string): string =>
  isSpelled(letters) || letters.length <= 2 || /^\p{Lu}{3}$/u.test(letters) ? spellOut(letters) : letters;

/** Letters and digits, in pieces with hyphens, strokes or full stops between. */
export const serialForm = /^(?=.*\d)(?=.*[a-z])[a-z\d]+(?:[-/.][a-z\d]+)*$/i;

export const serialWords = (text: string): string =>
  text.includes('/') ? text.split('/').map(alternative).join(' slash ') : plainSerial(text);

/** "2nd/3rd", "5mg/10mg", "B2B/B2C". */
const alternative = (text: string): string =>
  ordinalOf(text) ?? timeOf(text) ?? measureOf(text) ?? plainSerial(text);

const plainSerial = (text: string): string =>
  (text.match(/[a-z]+|\d+|\./gi) ?? [])
    .map((part) => {
      if (part === '.') return 'point';
      return /\d/.test(part) ? digitsOf(part) : lettersOf(part);
    })
    .join(' ');

/** Anywhere, once no other rule knows the token. */
export const serials: Rule = (tokens, at) => {
  const { core } = tokens.at(at);
  // "221B Baker Street"
  const house = /^(?<number>[1-9]\d{2,3})(?<letter>[A-Z])$/.exec(core)?.groups;
  if (house !== undefined && /^\p{Lu}/u.test(tokens.next(at)?.core ?? ''))
    return say(`${pairs(house['number']!)} ${letterName(house['letter']!)}`);
  const { name, tone } = /^(?:(?<name>[a-z]{1,6})\+\+|(?<tone>[a-z])#)$/i.exec(core)?.groups ?? {};
  if (name !== undefined) return say(`${lettersOf(name)} plus plus`);
  if (tone !== undefined) return say(`${letterName(tone)} sharp`);
  // 31/31/100, 123/261788/2021
  if (/^\d{1,9}(?:\/\d{1,9}){2,7}$/.test(core)) return say(core.split('/').map(numberOf).join(' slash '));
  if (/^[a-z]{2,}(?:[#$]+(?![#$])[a-z]*){1,4}$/i.test(core))
    return say(
      core
        .replace(/[#$]/g, (sign) => (sign === '#' ? ' hash ' : ' dollar '))
        .trim()
        .replace(/ +/g, ' '),
    );
  return serialForm.test(core) ? say(serialWords(core)) : null;
};

const numberOf = (digits: string): string =>
  digits.length > 4 || /^0\d/.test(digits) ? digitWords(digits) : cardinal(digits);
