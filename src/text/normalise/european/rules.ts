/** The rules of a grammar, in the order in which they are tried. */
import type { Span } from '../../words.js';
import { networkAddresses } from '../electronic.js';
import {
  type AddressWords,
  type Joined,
  type LanguageRules,
  named,
  type Rule,
  sayIf,
  type Token,
  type Tokens,
} from '../tokens.js';
import { amountOf } from './amounts.js';
import { calendarSpans, dates, times } from './calendar.js';
import type { Grammar } from './grammar.js';
import { measures, money } from './measures.js';
import { fractions, ranges, signs, telephone, typed } from './signs.js';
import { apartRange, timeRanges } from './time-ranges.js';

/** The most words of one abbreviation: "z. B.", "i. d. R.". */
const abbreviationWordsMax = 3;
/** Abbreviations that can end a sentence. After the others the sentence continues, whatever letter follows. */
const mayEnd = /^(?:etc|usw|usf|u\.v\.m|ff|cía|ee\.uu|s\.a|a\.m|p\.m|jr|hab|env|pág)$/;

/** "so." is a word, "So., 3. Mai" a day; "sept." is a month in "3 sept.". */
const isBesideNumber = (tokens: Tokens, first: number, last: number): boolean =>
  /^\d/.test(tokens.following(last)?.core ?? '') ||
  /\d$/.test(tokens.previous(first)?.core ?? '') ||
  tokens.at(last).tail.startsWith('.,');

/** z. B., p. ej., Dr., janv., Mio. */
const abbreviations =
  (grammar: Grammar): Rule =>
  (tokens, at) => {
    const pieces: Token[] = [];
    while (pieces.length < abbreviationWordsMax && at + pieces.length < tokens.length) {
      const piece = tokens.at(at + pieces.length);
      const isNext = pieces.length === 0 || (piece.gap === 'space' && pieces.at(-1)!.tail === '.');
      if (!isNext || piece.core.length > 12 || !/^\p{L}/u.test(piece.core)) break;
      pieces.push(piece);
    }
    for (; pieces.length > 0; pieces.pop()) {
      const written = pieces.map(({ core }) => core).join('.');
      const key = written.toLowerCase();
      const word = grammar.abbreviations.get(written) ?? grammar.abbreviations.get(key);
      const { tail } = pieces.at(-1)!;
      if (word === undefined || (!tail.startsWith('.') && !grammar.bare.has(key))) continue;
      const last = at + pieces.length - 1;
      if (grammar.ambiguous.has(key) && !isBesideNumber(tokens, at, last)) continue;
      const goesOn = tokens.following(last) !== undefined && !mayEnd.test(key);
      const rest = goesOn ? tail.replace(/^\./, '') : tokens.tailOfAbbreviation(last);
      return { parts: [{ core: word, tail: rest }], count: pieces.length };
    }
    return null;
  };

const plainNumbers =
  (grammar: Grammar): Rule =>
  (tokens, at) => {
    const { core } = tokens.at(at);
    return /[\d½¼¾⅐-⅞]/.test(core) ? sayIf(amountOf(grammar, core)?.spoken ?? null) : null;
  };

const groupOf = /^\d{3}(?:,\d+)?(?:[%€$£°]|\p{L}{1,3})?[.,;:!?)\]}"'’”»…]*$/u;
/** The most groups of three digits after the first. */
const groupsMax = 4;

/** The most characters of a range of times. */
const rangeMax = 40;

/** One token are `12 345,67`, groups of three digits, unless the number is dialled; and `10 Uhr-17 Uhr`. */
const joinSpaced =
  (grammar: Grammar) =>
  (text: string, words: readonly Span[]): Joined[] => {
    const raw = (at: number) => text.slice(words[at]!.start, Math.min(words[at]!.end, words[at]!.start + 24));
    const joined: Joined[] = [];
    for (let first = 0; first < words.length;) {
      let last = first;
      const { start } = words[first]!;
      const range = /^\W*\d/.test(raw(first)) ? apartRange.exec(text.slice(start, start + rangeMax)) : null;
      if (range !== null)
        while (last < words.length - 1 && words[last + 1]!.start < start + range[0].length) last++;
      const before =
        first > 0
          ? raw(first - 1)
              .toLowerCase()
              .replace(/(?<![.:])[.:]+$/, '')
          : '';
      const isDialled = /^[+(]?\d/.test(before) || grammar.callCues.has(before);
      if (range === null && /^[("'«„“]*[-−~]?[€$£]?[1-9]\d{0,2}$/.test(raw(first)) && !isDialled)
        while (
          last < Math.min(words.length - 1, first + groupsMax) &&
          words[last + 1]!.start === words[last]!.end + 1 &&
          groupOf.test(raw(last + 1)) &&
          (last === first || /^\d+$/.test(raw(last)))
        )
          last++;
      joined.push({ first, last });
      first = last + 1;
    }
    return joined;
  };

const addressWordsOf = (grammar: Grammar): AddressWords => ({
  ...grammar.words,
  cardinal: (digits) => grammar.cardinal(digits),
  letter: (letter) => letter,
});

const rulesFor = (grammar: Grammar, ...makers: readonly ((grammar: Grammar) => Rule)[]): Rule[] =>
  makers.map((make) => named(make.name, make(grammar)));

export const rulesOf = (grammar: Grammar): LanguageRules => ({
  rules: [
    networkAddresses(addressWordsOf(grammar)),
    ...rulesFor(grammar, dates, calendarSpans, telephone, typed),
    ...grammar.ownRules,
    ...rulesFor(grammar, timeRanges, times, money),
    ...rulesFor(grammar, fractions, signs, measures, ranges, abbreviations, plainNumbers),
  ],
  addressWords: addressWordsOf(grammar),
  touchable: /^[^\p{L}]|\d|^\p{L}{1,12}(?:[.'/–-]{1,2}\p{L}{0,8}){0,4}[º°]?$/u,
  joined: joinSpaced(grammar),
});
