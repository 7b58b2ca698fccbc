/** E-mail, web and network addresses, as people read them out: "jane dot doe at example dot com". */
import { isIPv6 } from 'node:net';
import { type AddressWords, named, type Reading, type Rule, say, type Token, wordSet } from './tokens.js';

/** Top-level domains: "example.com" is an address without "www" too. */
const endings = wordSet(
  'com org net edu gov mil io ai dev app info biz tv xyz uk de fr es nl pl ru eu ca au nz ch se dk fi jp cn br mx online shop cloud tech gg sm',
);
/** Read letter by letter, although they have vowels. */
const spelled = wordSet('www http https ftp html htm xml pdf api faq usa url io ai tv eu id ip ui');

const label = String.raw`[\p{L}\d](?:[\p{L}\d_-]{0,62})`;
/** What begins with `?` or `#`, or has a password, is not read out. */
const form = new RegExp(
  String.raw`^(?:([A-Za-z][A-Za-z\d+]{1,9}):\/\/(?:[^\s/?#@]*@(?=[^\s@]))?|mailto:)?(?:([\p{L}\d._%+&'-]{1,64})@)?` +
    String.raw`(${label}(?:\.${label}){0,7}|\[[\dA-Fa-f:.]+\]|)(:\d{1,5})?(/[^\s?#]*)?(?:[?#]\S*)?$`,
  'u',
);

const octets = /^\[?\d{1,3}(?:\.\d{1,3}){3}\]?$/;

interface Address {
  /** With a scheme there is no doubt. */
  readonly scheme: string | undefined;
  readonly user: string | undefined;
  readonly host: string;
  readonly port: string | undefined;
  readonly path: string | undefined;
}

/** The parts of an address; `null` if the text is none. */
const partsOf = (text: string): Address | null => {
  const [, scheme, user, host, port, path] = form.exec(text) ?? [];
  if (host === undefined) return null;
  const address = { scheme, user, host, port, path };
  if (scheme !== undefined) return host === '' && path === undefined ? null : address;
  const ending = host.slice(host.lastIndexOf('.') + 1);
  if (ending === host) return null;
  // "100@1.25" is a price.
  if (user !== undefined) return /^\p{L}{2,}$/u.test(ending) || octets.test(host) ? address : null;
  if (/^www\./i.test(host)) return address;
  // "end.Next" lacks a space, and is not an address; nor are "3.5" and "a.m".
  if (!/^\p{L}{2,10}$/u.test(ending)) return null;
  const isKnown = endings.has(ending) || (path !== undefined && ending.length === 2);
  return isKnown || (port !== undefined && ending.length <= 4) ? address : null;
};

/** Whether a run of letters is read letter by letter: it is short, has no vowel or is known. */
export const isSpelled = (run: string): boolean =>
  run.length <= 5 && (run.length === 1 || spelled.has(run.toLowerCase()) || !/[AEIOUYaeiouyÀ-ÿŸ]/.test(run));

/** Steps of a path that are read out. */
const stepsMax = 4;
/** A hyphen is read out where it is the only one; more of them join the words of a title. */
const hyphensMax = 1;
/** People do not read out names that a machine made: an identifier, a hash, escaped bytes. */
const isOpaque = (step: string): boolean =>
  /\d{7}|%(?!2[0-9a-f])/i.test(step) ||
  (step.match(/\d(?=\p{L})|\p{L}(?=\d)/gu)?.length ?? 0) > 2 ||
  /[\p{L}\d]{25}/u.test(step);

/** Most steps: nothing in them can be opaque, or joined. */
const isWord = /^[a-z]{1,24}$/i;

/** The steps of a path that are worth reading. */
const stepsOf = (path: string): string[] => {
  const steps: string[] = [];
  for (const step of path === '' ? [] : path.split('/')) {
    if (step === '') continue;
    if (steps.length === stepsMax) break;
    if (isWord.test(step)) steps.push(step);
    else if (isOpaque(step)) break;
    else {
      const plain = step.replace(/%2[0-9a-f]/gi, ' ');
      const isJoined = (plain.match(/[-_]/g)?.length ?? 0) > hyphensMax;
      steps.push(isJoined ? plain.replace(/[-_]+/g, ' ') : plain);
    }
  }
  return steps;
};

type Kind = 'letter' | 'digit' | 'sign';
const isLetter = /\p{L}/u;

const kindOf = (character: number): Kind => {
  const folded = character | 0x20;
  if (folded >= 0x61 && folded <= 0x7a) return 'letter';
  if (character >= 0x30 && character <= 0x39) return 'digit';
  return character > 0x7f && isLetter.test(String.fromCodePoint(character)) ? 'letter' : 'sign';
};

/** The end of the run of letters or digits, or of the sign, that begins at `from`. */
const endOfPiece = (text: string, from: number, kind: Kind): number => {
  const sizeAt = (at: number) => (text.codePointAt(at)! > 0xff_ff ? 2 : 1);
  let at = from + sizeAt(from);
  while (kind !== 'sign' && at < text.length && kindOf(text.codePointAt(at)!) === kind) at += sizeAt(at);
  return at;
};

const signNames: ReadonlyMap<string, Exclude<keyof AddressWords, 'cardinal' | 'letter'>> = new Map([
  ['@', 'at'],
  ['.', 'dot'],
  ['-', 'hyphen'],
  ['_', 'underscore'],
  ['/', 'slash'],
  [':', 'colon'],
  ['+', 'plus'],
  ['=', 'equals'],
  ['&', 'and'],
]);

/** With a space between, where both have words. */
const apart = (before: string, after: string): string =>
  before === '' ? after : after === '' ? before : `${before} ${after}`;

const eachOf = (text: string, wordOf: (character: string) => string): string => {
  let spoken = '';
  for (const character of text) spoken = apart(spoken, wordOf(character));
  return spoken;
};

/** @param country the letters of a country at the end, which are read one by one */
const spell = (text: string, words: AddressWords, country = ''): string => {
  let spoken = '';
  let before = '';
  for (let from = 0, end = 0; from < text.length; from = end) {
    const kind = kindOf(text.codePointAt(from)!);
    end = endOfPiece(text, from, kind);
    const part = text.slice(from, end);
    let said = part;
    if (kind === 'sign') {
      const sign = signNames.get(part);
      said = sign === undefined ? '' : words[sign];
    } else if (kind === 'digit') {
      const isRound = /^[1-9]000$/.test(part) && before !== ':';
      said = isRound ? words.cardinal(part) : eachOf(part, (digit) => words.cardinal(digit));
    } else if (part !== 'a' || before !== ' ') {
      // Not the article in a title: "how-to-bake-a-cake".
      const isCountry = part === country && before === '.' && part !== 'co';
      if (isCountry || isSpelled(part)) said = eachOf(part.toUpperCase(), (letter) => words.letter(letter));
    }
    before = part;
    spoken = apart(spoken, said);
  }
  return spoken;
};

/** main.py, readme.md, and domains that are in no list @param words of the language */
export const fileNames = (words: AddressWords): Rule =>
  named('fileNames', (tokens, at) => {
    const { core } = tokens.at(at);
    return /^[a-z][a-z\d_-]{2,40}\.[a-z]{2,4}$/.test(core) ? say(spell(core, words)) : null;
  });

const countryOf = (host: string): string => /\.(\p{L}{2})$/u.exec(host)?.[1] ?? '';

const hostWords = (host: string, words: AddressWords): string =>
  /^\d{1,3}(?:\.\d{1,3}){3}$/.test(host)
    ? host
        .split('.')
        .map((octet) => words.cardinal(octet))
        .join(` ${words.dot} `)
    : spell(host, words, countryOf(host));

/**
 * How an address is spoken: without its scheme, its query and its fragment; `null` if the text is no address.
 *
 * @param words of the language; without them the voice reads what is left
 */
export const spokenAddress = (text: string, words: AddressWords | undefined): string | null => {
  const address = partsOf(text);
  if (address === null) return null;
  const { scheme, user, port = '', path = '' } = address;
  const host = scheme === undefined ? address.host : address.host.replace(/^www\./i, '');
  const steps = stepsOf(path);
  if (host === '' && steps.length === 0) return null;
  const before = user === undefined ? '' : `${user}@`;
  if (words === undefined) return before + host + port + steps.map((step) => `/${step}`).join('');
  let spoken = apart(apart(spell(before, words), hostWords(host, words)), spell(port, words));
  for (const step of steps) spoken = apart(apart(spoken, words.slash), spell(step, words));
  return spoken;
};

/** What follows an IPv6 address: the length of its prefix, or a port. */
const ipv6Rest = /(?:\/\d{1,3}|\]:\d{1,5})$/;
/** The address of a network card; with other marks than colons it must have a letter. */
const mac =
  /^[\da-f]{2}(?::[\da-f]{2}){5}$|^(?=.*[a-f])(?:[\da-f]{2}(?:-[\da-f]{2}){5}|[\da-f]{4}(?:\.[\da-f]{4}){2})$/i;

/** Digit by digit and letter by letter. */
const hexWords = (text: string, words: AddressWords): string =>
  Array.from(text.matchAll(/[\da-f]|[:./]/gi), ([sign]) => {
    if (/\d/.test(sign)) return words.cardinal(sign);
    if (/[a-f]/i.test(sign)) return words.letter(sign.toUpperCase());
    return sign === ':' ? words.colon : sign === '.' ? words.dot : words.slash;
  }).join(' ');

/** 2001:db8::1, [::1]:8080, 00:1A:2B:3C:4D:5E @param words of the language */
export const networkAddresses = (words: AddressWords): Rule =>
  named('networkAddresses', (tokens, at) => networkAddress(tokens.at(at), words));

const networkAddress = ({ core, lead, tail }: Token, words: AddressWords): Reading | null => {
  if (mac.test(core))
    return say(Array.from(core.matchAll(/[\da-f]{2}/gi), ([pair]) => hexWords(pair, words)).join(', '));
  // The colons at the end of "fe80::" look like punctuation.
  const text = tail.startsWith('::') ? `${core}::` : core;
  const address = text.replace(ipv6Rest, '');
  // With a zone behind a percent sign it is left to the voice.
  if (!text.includes(':') || !/^[^%]*\d[^%]*$/.test(address) || !isIPv6(address)) return null;
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
