/**
 * How written forms are spoken: numbers, dates, times, money, units, abbreviations.
 *
 * The text and its tokens do not change, since timestamps report them. Replacements stand beside them.
 */
import type { Bounds } from '../../limits.js';
import { primaryLanguage } from '../language.js';
import { type Origins, type Replacement, silentForm } from '../replacements.js';
import { type Span, wordSpans } from '../words.js';
import { spokenAddress } from './electronic.js';
import { english } from './english/english.js';
import { french } from './european/french.js';
import { german } from './european/german.js';
import { spanish } from './european/spanish.js';
import {
  type Joined,
  type LanguageRules,
  type Reading,
  type Rule,
  type Token,
  Tokens,
  trim,
} from './tokens.js';

/** Rules of a BCP 47 tag. The other languages leave all forms to the voice. */
const languages: Readonly<Record<string, (language: string) => LanguageRules>> = {
  en: () => english,
  de: german,
  fr: french,
  es: spanish,
};

const kept = new Map<string, LanguageRules | null>();
/** Voices have few tags, but each reload can bring others: the rules in memory must have a bound. */
const keptMax = 256;

const rulesFor = (language: string): LanguageRules | null => {
  const known = kept.get(language);
  if (known !== undefined) return known;
  const code = primaryLanguage(language);
  const made = Object.hasOwn(languages, code) ? languages[code]!(language) : null;
  if (kept.size >= keptMax) kept.clear();
  kept.set(language, made);
  return made;
};

/** What a rule says, and which it was. */
type Found = readonly [reading: Reading, rule: Rule];

const read = ({ rules, touchable }: LanguageRules, tokens: Tokens, at: number): Found | null => {
  const { core, raw, latin } = tokens.at(at);
  if (!latin || raw.length === 0 || !touchable.test(core === '' ? raw.slice(0, 1) : core)) return null;
  for (const rule of rules) {
    const reading = rule(tokens, at);
    if (reading !== null) return [reading, rule];
  }
  return null;
};

/** A mark with no white space after it, where one belongs: "5pm,4pm", "(1)Hello", "no?17", "<b>5</b>". */
const seam =
  /(?<=[;!?)\]>…]|\.{3})(?=[\p{L}\p{N}$€£¥(]|[-−]\d)|(?<=\d\S?)(?=<\/)|(?<=(?<!\d),)(?=[\p{L}\p{N}$€£¥(])|(?<=,)(?=[\p{L}$€£¥(])/u;

/** The pieces of a token that no rule knows, each read by itself. */
const readPieces = (
  { raw, core, latin }: Token,
  bounds: Pick<Bounds, 'normalisedTokenMax'>,
  language: string,
): string | null => {
  if (!latin || core === '' || !/\d/.test(raw)) return null;
  const pieces = raw.split(seam);
  if (pieces.length < 2) return null;
  const text = pieces.join(' ');
  const words = wordSpans(text);
  const replacements = normalise(text, words, bounds, language);
  if (replacements.length === 0) return null;
  let spoken = '';
  let end = 0;
  for (const { first, last, spoken: replacement } of replacements) {
    spoken += text.slice(end, words[first]!.start) + replacement;
    end = words[last]!.end;
  }
  return spoken + text.slice(end);
};

/**
 * @param words the tokens of the text (`wordSpans`)
 * @param language of the voice, BCP 47
 * @returns in order, without overlap; empty if the text is spoken as written. Time is proportional to the length of the
 *   text; the result is at most about sixteen times as long.
 * @param origins gets the name of the rule of each replacement
 */
export const normalise = (
  text: string,
  words: readonly Span[],
  bounds: Pick<Bounds, 'normalisedTokenMax'>,
  language = 'en-US',
  origins?: Origins,
): Replacement[] => {
  const rules = rulesFor(language);
  if (rules === null) return [];
  const groups: readonly Joined[] =
    rules.joined?.(text, words) ?? words.map((_, at) => ({ first: at, last: at }));
  const spans = groups.map(({ first, last }) => ({ start: words[first]!.start, end: words[last]!.end }));
  const tokens = new Tokens(text, spans, bounds, primaryLanguage(language));
  const replacements: Replacement[] = [];
  const replace = (replacement: Replacement, rule: string) => {
    replacements.push(replacement);
    origins?.set(replacement, `rule: ${rule}`);
  };
  for (let at = 0; at < tokens.length;) {
    const found = read(rules, tokens, at);
    if (found === null) {
      const spoken = readPieces(tokens.at(at), bounds, language);
      if (spoken !== null) replace({ ...groups[at]!, spoken }, 'pieces');
      at++;
      continue;
    }
    const [{ parts, count }, rule] = found;
    for (const [i, part] of parts.entries()) {
      const token = tokens.at(at + i);
      const spoken = `${part.lead ?? token.lead}${part.core}${part.tail ?? token.tail}`;
      const { first } = groups[at + i]!;
      const { last } = groups[at + i + (count ?? 1) - 1]!;
      if (spoken !== token.raw) replace({ first, last, spoken }, rule.name);
    }
    at += count ?? parts.length;
  }
  return replacements;
};

/** The end of a long address, of which the segment before has the beginning. */
const restOfAddress = /^[^/\s][^\s?&]*[?&][\w.-]+=/;
/** A full stop inside a word, as few words but addresses have. */
const innerStop = /\.[^\s\d.,;:!?)\]"'”’…*_-]{2}/y;

const placeOf = (sign: string, text: string, from: number): number => {
  const at = text.indexOf(sign, from);
  return at < 0 ? Infinity : at;
};

const placeOfStop = (text: string, from: number): number => {
  let at = text.indexOf('.', from);
  while (at >= 0) {
    // Most end a sentence, or stand in "p.m.".
    if (text.charCodeAt(at + 1) > 0x20 && text.charCodeAt(at + 2) !== 0x2e) {
      innerStop.lastIndex = at;
      if (innerStop.test(text)) return at;
    }
    at = text.indexOf('.', at + 1);
  }
  return Infinity;
};

/** Calls back with the places of signs that each address has, in order. Most texts have none: that must cost little. */
const eachAddressSign = (text: string, found: (at: number) => void): void => {
  let [mail, scheme, link] = [placeOf('@', text, 0), placeOf('://', text, 0), placeOf('](', text, 0)];
  let stop = placeOfStop(text, 0);
  for (;;) {
    const at = Math.min(mail, scheme, link, stop);
    if (at === Infinity) return;
    found(at);
    if (mail === at) mail = placeOf('@', text, at + 1);
    else if (scheme === at) scheme = placeOf('://', text, at + 1);
    else if (link === at) link = placeOf('](', text, at + 1);
    else stop = placeOfStop(text, at + 1);
  }
};

/** [text](address): the text may have begun in a word before. */
const linkForm = /^(?:([^[\]!]*)!?\[)?([^[\]]*)\]\((?=\S*[/.#:@])\S*\)/;
/** The most words of the text of a link. */
const linkWordsMax = 16;

/** Leaves out the bracket that opens the text of a link, in one of the words before its address. */
const openLink = (text: string, words: readonly Span[], end: number, found: Replacement[]): void => {
  const least = Math.max(end - linkWordsMax, found.at(-1)?.first ?? -1);
  for (let at = end - 1; at > least; at--) {
    const word = text.slice(words[at]!.start, words[at]!.end);
    const spoken = word.replace(/!?\[/, '') || silentForm;
    if (spoken !== word) found.push({ first: at, last: at, spoken });
    if (/[[\]]/.test(word)) return;
  }
};

/**
 * E-mail and web addresses, which no voice reads well as they are written.
 *
 * @param words the tokens of the text (`wordSpans`)
 * @param language of the voice, BCP 47
 * @param origins gets `address` for each replacement
 * @param startsInToken the text begins with the rest of a token
 */
export const addressesIn = (
  text: string,
  words: readonly Span[],
  language: string,
  origins?: Origins,
  startsInToken = false,
): Replacement[] => {
  const found: Replacement[] = [];
  if (startsInToken && restOfAddress.test(text)) found.push({ first: 0, last: 0, spoken: silentForm });
  let at = 0;
  let end = 0;
  eachAddressSign(text, (sign) => {
    if (sign < end) return;
    while (words[at]!.end <= sign) at++;
    const { start } = words[at]!;
    end = words[at]!.end;
    const written = text.slice(start, end);
    const label = written.replace(linkForm, '$1$2');
    // The brackets of <https://example.com> are none of the text's.
    const { lead, core, tail } = trim(label.replace(/^([^\w<]{0,4})<([^<>]*)>/, '$1$2'), end - start);
    const address = spokenAddress(core, rulesFor(language)?.addressWords);
    const spoken = address === null ? label || silentForm : lead + address + tail;
    if (spoken === written || address === written) return;
    if (at === 0) found.length = 0;
    if (label !== written && !written.includes('[')) openLink(text, words, at, found);
    found.push({ first: at, last: at, spoken });
  });
  if (origins !== undefined) for (const replacement of found) origins.set(replacement, 'address');
  return found;
};
