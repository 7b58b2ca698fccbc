/** E-mail, web and network addresses, spelled as people read them out: "jane dot doe at example dot com". */
import { named, type Reading, type Rule, say, type Token, wordSet } from './tokens.js';

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

const digits = String.raw`[\da-f]{1,4}`;
const fewGroups = `${digits}(?::${digits}){0,6}`;
const lastAddress = String.raw`(?:ffff:)?\d{1,3}(?:\.\d{1,3}){3}`;
/** An IPv6 address, with the length of its prefix or with a port. */
const ipv6 = new RegExp(
  `^(?:(?:${digits}:){7}${digits}|(?:${fewGroups})?::(?:${fewGroups}|${lastAddress})?)(?:/\\d{1,3}|\\]:\\d{1,5})?$`,
  'i',
);
/** The address of a network card; with other marks than colons it must have a letter. */
const mac =
  /^[\da-f]{2}(?::[\da-f]{2}){5}$|^(?=.*[a-f])(?:[\da-f]{2}(?:-[\da-f]{2}){5}|[\da-f]{4}(?:\.[\da-f]{4}){2})$/i;

/** Digit by digit and letter by letter. */
const hexWords = (text: string, words: AddressWords): string =>
  Array.from(text.matchAll(/[\da-f]|[:./]/gi), ([sign]) => {
    if (/\d/.test(sign)) return words.digit(sign);
    if (/[a-f]/i.test(sign)) return words.letter(sign.toUpperCase());
    return sign === ':' ? words.colon : sign === '.' ? words.dot : words.slash;
  }).join(' ');

/** 2001:db8::1, [::1]:8080, 00:1A:2B:3C:4D:5E */
const networkAddress = ({ core, lead, tail }: Token, words: AddressWords): Reading | null => {
  if (mac.test(core))
    return say(Array.from(core.matchAll(/[\da-f]{2}/gi), ([pair]) => hexWords(pair, words)).join(', '));
  // The colons at the end of "fe80::" look like punctuation.
  const text = tail.startsWith('::') ? `${core}::` : core;
  if (!text.includes(':') || !/\d/.test(text) || !ipv6.test(text)) return null;
  return {
    parts: [
      {
        core: hexWords(text, words),
        lead: text.includes(']') ? lead.replace(/\[$/, '') : lead,
        tail: tail.slice(text.length - core.length),
      },
    ],
  };
};

/** @param words of the language */
export const addresses = (words: AddressWords): Rule =>
  named('addresses', (tokens, at) => {
    const token = tokens.at(at);
    return isAddress(token.core) ? say(addressWords(token.core, words)) : networkAddress(token, words);
  });
