/** Numbers that are dialled or typed, not counted: read digit by digit, with a pause between the groups. */
import { digitGroups, digitWords } from './numbers.js';
import { type Part, type Reading, type Rule, say, wordSet } from './reading.js';
import type { Tokens } from './tokens.js';
import { unitOf } from './units.js';

/** Tokens that one number may be spread over: +33 1 23 45 67 89. */
const tokensMax = 7;
const digitsMax = 15;

const callCues = wordSet('call phone tel telephone fax mobile cell dial text sms whatsapp hotline');
const codeCues = wordSet('pin passcode password code extension ext zip');
const states = wordSet(
  'AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR PA ' +
    'RI SC SD TN TX UT VT VA WA WV WI WY DC',
);

const piece = /^\+?\(?\d[\d().–-]*$/;
const american = /^(?:\+?1[-. ])?(?:\([2-9]\d\d\)[-. ]?|[2-9]\d\d[-. ])\d{3}[-. ]\d{4}$/;
const local = /^[2-9]\d\d-\d{4}$/;

/** The token without the punctuation around it, but for brackets of its own: (555). */
const bare = (raw: string): { lead: string; text: string; tail: string } => {
  let start = 0;
  let end = raw.length;
  while (start < end && '"\'‘’“[{'.includes(raw[start]!)) start++;
  while (end > start && '.,;:!?…"\'’”]}'.includes(raw[end - 1]!)) end--;
  const opens = raw[start] === '(';
  const closes = raw[end - 1] === ')';
  // "(555-1234)", "(call 555-1234)": brackets around more than an area code.
  if (closes && (!opens || end - start > 5)) end--;
  if (opens && closes && end - start > 5) start++;
  return { lead: raw.slice(0, start), text: raw.slice(start, end), tail: raw.slice(end) };
};

const isNumber = (text: string, digits: number, cued: boolean): boolean => {
  if (digits < 3 || digits > digitsMax) return false;
  if (text.startsWith('+')) return digits >= 7 && /[ (.-]/.test(text);
  if (american.test(text)) return true;
  if (cued) return digits >= (/^\d+$/.test(text) ? 3 : 7);
  // 020 7946 0958
  return /^0\d+(?: \d{2,}){1,4}$/.test(text) && digits >= 9 && digits <= 11;
};

/** 555-1234, but not a range of amounts: 200-1500 mg. */
const isLocal = (text: string, tokens: Tokens, at: number): boolean =>
  local.test(text) && !/0-\d*0$/.test(text) && unitOf(tokens.next(at)?.core ?? '', false) === null;

const partsOf = (texts: readonly string[], tokens: Tokens, at: number): Part[] =>
  texts.map((text, i) => {
    const { lead, tail } = bare(tokens.at(at + i).raw);
    const plus = text.startsWith('+') ? 'plus ' : '';
    const core = plus + digitGroups(text.match(/\d+/g) ?? []);
    return { core, lead, tail: i < texts.length - 1 ? ',' : tail };
  });

/** The longest number that begins here. */
const dialled = (tokens: Tokens, at: number): Reading | null => {
  const cued =
    callCues.has(tokens.wordBefore(at)) ||
    (/^at$/.test(tokens.wordBefore(at)) && callCues.has(tokens.wordBefore(at - 1)));
  const texts: string[] = [];
  // Most numbers cannot begin one.
  if (!cued && !/^\W*(?:\+|\(|0\d|1\b|[2-9]\d\d)/.test(tokens.at(at).raw)) return null;
  for (let i = at; i < Math.min(tokens.length, at + tokensMax); i++) {
    const { raw, gap } = tokens.at(i);
    const { lead, text, tail } = bare(raw);
    if (!piece.test(text) || text.length > 24 || (i > at && (gap !== 'space' || lead !== ''))) break;
    texts.push(text);
    if (tail !== '') break;
  }
  for (; texts.length > 0; texts.pop()) {
    const joined = texts.join(' ');
    const digits = joined.replace(/\D/g, '').length;
    if (isNumber(joined, digits, cued) || (texts.length === 1 && isLocal(joined, tokens, at)))
      return { parts: partsOf(texts, tokens, at) };
  }
  return null;
};

/** Four groups of four: a card; or any number after a word that says so. */
const typed = (tokens: Tokens, at: number): Reading | null => {
  const { core } = tokens.at(at);
  const previous = tokens.previous(at)?.core ?? '';
  let groups = 0;
  while (groups < 5 && /^\d{4}$/.test(tokens.at(at + groups).core) && tokens.next(at + groups) !== undefined)
    groups++;
  if (/^\d{4}$/.test(tokens.at(at + groups).core)) groups++;
  if (groups >= 3) {
    const last = at + groups - 1;
    const parts = Array.from({ length: groups }, (_, i): Part => {
      const { core: digits, tail } = tokens.at(at + i);
      return { core: digitWords(digits), tail: at + i < last ? ',' : tail };
    });
    return { parts };
  }
  if (
    /^\d{2,10}$/.test(core) &&
    (codeCues.has(tokens.wordBefore(at)) || codeCues.has(previous.toLowerCase()))
  )
    return say(digitWords(core));
  if (/^\d{5}(?:-\d{4})?$/.test(core) && states.has(previous)) return say(digitGroups(core.split('-')));
  return null;
};

/** 978-3-16-148410-0, 123-45-6789. */
const hyphenated = (text: string): Reading | null =>
  /^\d+(?:-\d+){2,6}$/.test(text) && text.replaceAll('-', '').length >= 7
    ? say(digitGroups(text.split('-')))
    : null;

export const telephone: Rule = (tokens, at) => {
  const { core, raw } = tokens.at(at);
  if (core === '' || !/^\W{0,4}\d/.test(raw)) return null;
  return typed(tokens, at) ?? dialled(tokens, at) ?? hyphenated(core);
};
