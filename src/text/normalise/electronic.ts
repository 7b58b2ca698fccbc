/** E-mail and web addresses, spelled as people read them out: "jane dot doe at example dot com". */
import { type Rule, say, wordSet } from './tokens.js';

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
  readonly question: string;
  /** One digit. */
  digit(digit: string): string;
  /** One letter, in upper case. */
  letter(letter: string): string;
}

/** Top-level domains: "example.com" is an address without "www" too. */
const endings = wordSet(
  'com org net edu gov mil io ai dev app info biz tv xyz uk de fr es nl pl ru eu ca au nz ch se dk fi jp cn br mx online shop cloud tech gg sm',
);
/** Read letter by letter, although they have vowels. */
const spelled = wordSet('www http https ftp html htm xml pdf api faq usa url io ai tv eu id ip ui');

const label = String.raw`[\p{L}\d](?:[\p{L}\d_-]{0,62})`;
const host = String.raw`${label}(?:\.${label}){1,7}`;
const rest = String.raw`(?::\d{1,5})?(?:[/?#][^\s]*)?`;
const mail = new RegExp(`^(?:mailto:)?[\\p{L}\\d._%+&'-]{1,64}@${host}${rest}$`, 'u');
const page = new RegExp(`^(?:[a-z]{2,8}://\\S+|www\\.${host}${rest})$`, 'iu');
const bare = new RegExp(`^(?:${label}\\.){1,7}(?<ending>\\p{L}{2,10})(?<path>${rest})$`, 'u');

const isAddress = (text: string): boolean => {
  if (!/[.@:]/.test(text)) return false;
  if (mail.test(text) || page.test(text)) return true;
  const { ending, path = '' } = bare.exec(text)?.groups ?? {};
  // "end.Next" lacks a space, and is not an address.
  return ending !== undefined && (endings.has(ending) || (path.startsWith('/') && ending.length === 2));
};

/** Whether a run of letters is read letter by letter: it is short, has no vowel or is known. */
export const isSpelled = (run: string): boolean =>
  run.length === 1 || spelled.has(run.toLowerCase()) || (run.length <= 5 && !/[aeiouyà-ÿ]/iu.test(run));

const piece = /\p{L}+|\d|[^\p{L}\d]/gu;

const addressWords = (text: string, words: AddressWords): string => {
  const signs: Readonly<Record<string, string>> = {
    ...{ '@': words.at, '.': words.dot, '-': words.hyphen, _: words.underscore, '/': words.slash },
    ...{ ':': words.colon, '+': words.plus, '=': words.equals, '&': words.and, '?': words.question },
  };
  const spoken: string[] = [];
  const end = /[@./](?<country>\p{L}{2})$/u.exec(text.replace(/[/?#:].*$/, ''))?.groups?.['country'];
  for (const { 0: part, index } of text.matchAll(piece)) {
    if (/\d/.test(part)) spoken.push(words.digit(part));
    else if (!/\p{L}/u.test(part)) spoken.push(signs[part] ?? part);
    else if (isSpelled(part) || (part === end && text.charAt(index - 1) === '.' && part !== 'co'))
      spoken.push(...Array.from(part.toUpperCase(), (letter) => words.letter(letter)));
    else spoken.push(part);
  }
  return spoken.join(' ');
};

/** @param words of the language */
export const addresses =
  (words: AddressWords): Rule =>
  (tokens, at) => {
    const { core } = tokens.at(at);
    return isAddress(core) ? say(addressWords(core, words)) : null;
  };
