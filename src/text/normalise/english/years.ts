/** Years and decades, by the words around them. */
import { monthOf } from './dates.js';
import { unitOf } from './measures.js';
import { cardinal, pluralOf, yearWords } from './numbers.js';
import { type Rule, say, sayIf, type Tokens, wordSet } from '../tokens.js';

/** A year without its century: '05 oh five. */
const twoDigits = (digits: string): string =>
  digits.startsWith('0') ? `oh ${cardinal(digits)}` : cardinal(digits);

/** A year follows, even before a plural: "in 1984 items were counted by hand". */
const yearCues = wordSet(
  'in since during until till year years circa ca summer spring autumn fall winter early late mid anno fy ad',
);
const countCues = wordSet(
  'than exactly nearly almost least most number no no. page pages item line chapter step level size model port code pin',
);
const decadeCues = wordSet('the early late mid his her their my your our its in');
const countedPlurals = wordSet(
  'people men women children feet percent thousand million billion meters miles sq',
);
/** What a decade has: "90s music". */
const eras = wordSet('music songs hits pop rock fashion style kids movies films party nostalgia vibe vibes');
/** These words end like plurals. */
const singular = wordSet(
  'was has is does as this its us plus minus always sometimes perhaps versus across besides towards less unless ' +
    'thus process access success business class series news physics politics crisis census whereas yes ours yours',
);

/** "10s of PCs", but "10s of video". */
const isManyOf = (tokens: Tokens, at: number): boolean =>
  tokens.next(at)?.core === 'of' && /.s$|^people$/.test(tokens.next(at + 1)?.core ?? '');

/** Whether a number before this word is the count of it. */
export const isCounted = (word: string): boolean =>
  countedPlurals.has(word) ||
  unitOf(word, false) !== null ||
  (/^[a-z]{3,}s$/.test(word) && !singular.has(word));

const isYear = (tokens: Tokens, at: number, digits: string): boolean => {
  const value = Number(digits);
  if (value < 1000 || value > 2099) return false;
  const before = tokens.wordBefore(at);
  if (yearCues.has(before) || monthOf(tokens.previous(at)?.core ?? '') !== undefined) return true;
  if (value < 1100) return /^(?:AD|BC|CE|BCE)$/.test(tokens.next(at)?.core ?? '');
  return !countCues.has(before) && !isCounted(tokens.next(at)?.core ?? '');
};

/** 1990s, 90s, 1800s; `null` for other numbers. */
export const decadeOf = (text: string): string | null => {
  const { century = '', decade = '' } = /^(?<century>1[1-9]|20)?(?<decade>\d0)'?s$/.exec(text)?.groups ?? {};
  if (decade === '') return null;
  if (decade === '00')
    return century === '20' ? 'two thousands' : century === '' ? null : `${cardinal(century)} hundreds`;
  return `${century === '' ? '' : `${cardinal(century)} `}${pluralOf(cardinal(decade))}`;
};

/** 1984-1990, 1984–85; `null` if either side is not a year. */
const yearSpanOf = (text: string): string | null => {
  const { from, to } = /^(?<from>1[1-9]\d\d|20\d\d)[-–—](?<to>\d{4}|\d\d)$/.exec(text)?.groups ?? {};
  if (from === undefined || to === undefined) return null;
  if (to.length === 2)
    return Number(from.slice(2)) < Number(to) ? `${yearWords(from)} to ${cardinal(to)}` : null;
  const value = Number(to);
  return value >= 1100 && value <= 2099 ? `${yearWords(from)} to ${yearWords(to)}` : null;
};

export const years: Rule = (tokens, at) => {
  const { core, lead } = tokens.at(at);
  if (/^\d{4}$/.test(core)) return isYear(tokens, at, core) ? say(yearWords(core)) : null;
  // A.D. is read as letters, not as the word "ad".
  const beside = [tokens.previous(at), tokens.next(at)];
  if (core === 'AD' && beside.some((token) => /^\d+$/.test(token?.core ?? ''))) return say('A.D');
  const many = /^(?<number>10{1,8}|1(?:,000){1,2})s$/.exec(core)?.groups?.['number'];
  if (many !== undefined && (many !== '10' || isManyOf(tokens, at)))
    return say(pluralOf(cardinal(many.replaceAll(',', '')).replace(/^one /, '')));
  const possessive = /^(?<year>1[1-9]\d\d|20\d\d)'s$/.exec(core)?.groups?.['year'];
  if (possessive !== undefined && !/0$/.test(possessive)) return say(`${yearWords(possessive)}'s`);
  // Seconds, unless a word makes it a decade: "a limit of 20s", "in her 20s".
  const short = /^\d0s$/.test(core);
  const mid = /^(?<prefix>mid|early|late|pre|post)-(?<years>\d{4}|\d{2,4}s)$/i.exec(core)?.groups;
  if (mid !== undefined) {
    const years = mid['years']!;
    const words = decadeOf(years) ?? (/^(?:1[1-9]|20)\d\d$/.test(years) ? yearWords(years) : null);
    return sayIf(words && `${mid['prefix']!} ${words}`);
  }
  if (/['‘’]$/.test(lead) && /^\d\ds?$/.test(core)) {
    if (short) return { parts: [{ core: decadeOf(core)!, lead: lead.slice(0, -1) }] };
    // "the class of '24", but no number in quotes.
    const isCut = !/['’]/.test(tokens.at(at).tail);
    return isCut && core.length === 2
      ? { parts: [{ core: twoDigits(core), lead: lead.slice(0, -1) }] }
      : null;
  }
  if (short && !decadeCues.has(tokens.wordBefore(at)) && !eras.has(tokens.next(at)?.core ?? '')) return null;
  return sayIf(decadeOf(core) ?? yearSpanOf(core));
};
