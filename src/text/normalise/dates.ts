/** Dates: Jan. 5, 2024; 5 January; 1/5/2024 (month first); 2024-01-05; 25.12.2024. */
import { monthNames, monthOf } from './months.js';
import { cardinal, ordinal, yearWords } from './numbers.js';
import { type Part, type Reading, type Rule, say, sayIf } from './reading.js';
import { timeOf } from './times.js';
import type { Tokens } from './tokens.js';
import { unitOf } from './units.js';

const dayForm = /^(?<day>\d{1,2})(?:st|nd|rd|th)?$/i;
const dayRange = /^(?<day>\d{1,2})(?:st|nd|rd|th)?[-–—](?<to>\d{1,2})(?:st|nd|rd|th)?$/i;
const isDay = (digits: string): boolean => Number(digits) >= 1 && Number(digits) <= 31;
const isMonth = (digits: string): boolean => Number(digits) >= 1 && Number(digits) <= 12;

/** Two digits are of this century up to 49. */
const fullYear = (digits: string): string =>
  digits.length === 4 ? yearWords(digits) : yearWords(`${Number(digits) < 50 ? '20' : '19'}${digits}`);

/** 5, 5th, 5-7. */
const dayWords = (core: string): string | null => {
  const { day, to } = (dayForm.exec(core) ?? dayRange.exec(core))?.groups ?? {};
  if (day === undefined || !isDay(day) || (to !== undefined && !isDay(to))) return null;
  return to === undefined ? ordinal(day) : `${ordinal(day)} to ${ordinal(to)}`;
};

/** The year after a date's day: 2024 or '24, behind a comma or not. */
const yearAfter = (tokens: Tokens, at: number): Part | null => {
  const year = tokens.following(at);
  if (year === undefined || !/^,?$/.test(tokens.at(at).tail)) return null;
  if (/^(?:1\d|20)\d\d$/.test(year.core) && year.lead === '') return { core: fullYear(year.core) };
  if (/^\d\d$/.test(year.core) && /^['’‘]$/.test(year.lead)) return { core: fullYear(year.core), lead: '' };
  return null;
};

/** "March 5 miles", "May 2 people": a verb or a name before an amount. */
const countsNext = (tokens: Tokens, at: number): boolean => {
  const next = tokens.next(at)?.core ?? '';
  return unitOf(next, false) !== null || /^[a-z]{3,}s$/.test(next) || next === 'people';
};

/** January 5, Jan. 5th, 2024. */
const monthFirst = (tokens: Tokens, at: number): Reading | null => {
  const month = monthOf(tokens.at(at).core);
  const next = tokens.nextAfterStop(at);
  const day = month !== undefined && next !== undefined ? dayWords(next.core) : null;
  if (month === undefined || day === null) return null;
  const year = yearAfter(tokens, at + 1);
  if (year === null && /^(?:March|May)$/.test(month) && countsNext(tokens, at + 1)) return null;
  const parts: Part[] = [{ core: month, tail: '' }, { core: day }];
  return { parts: year === null ? parts : [...parts, year] };
};

/** 5 January 2024, 5th Jan. */
const dayFirst = (tokens: Tokens, at: number): Reading | null => {
  const day = dayWords(tokens.at(at).core);
  const next = day === null ? undefined : tokens.next(at);
  const month = monthOf(next?.core ?? '');
  if (next === undefined || month === undefined || !/^[A-Z]/.test(next.core)) return null;
  const article = tokens.wordBefore(at) === 'the' ? '' : 'the ';
  const year = next.tail === '.' ? null : yearAfter(tokens, at + 1);
  const isShort = next.core.length < month.length;
  const parts: Part[] = [
    { core: `${article}${day!} of` },
    { core: month, tail: isShort ? tokens.tailOfAbbreviation(at + 1) : next.tail },
  ];
  return { parts: year === null ? parts : [...parts, year] };
};

const told = (year: string, month: string, day: string): string | null =>
  isMonth(month) && isDay(day)
    ? `${monthNames[Number(month) - 1]!} ${ordinal(day)}, ${fullYear(year)}`
    : null;

const iso =
  /^(?<year>(?:1\d|20)\d\d)(?<mark>[-/.])(?<month>\d{1,2})\k<mark>(?<day>\d{1,2})(?:[Tt](?<time>\d\d:\d\d(?::\d\d)?)(?:\.\d+)?(?<utc>[Zz])?)?$/;
const numeric = /^(?<first>\d{1,2})(?<mark>[-/.])(?<second>\d{1,2})\k<mark>(?<year>(?:1\d|20)?\d\d)$/;

/** `null` where the text is no date. */
const numericDate = (text: string): string | null => {
  const written = iso.exec(text)?.groups;
  if (written !== undefined) {
    const date = told(written['year']!, written['month']!, written['day']!);
    const time = written['time'] === undefined ? null : timeOf(written['time'].replace(/(:\d\d):00$/, '$1'));
    return (
      date && `${date}${time === null ? '' : ` at ${time}`}${written['utc'] === undefined ? '' : ' UTC'}`
    );
  }
  const { first = '', mark, second = '', year = '' } = numeric.exec(text)?.groups ?? {};
  if (mark === undefined) return null;
  // Two digits of a year say "date" only with strokes: 1.2.24 is a version, 1-2-24 a row of numbers.
  if (year.length === 2 && mark !== '/') return null;
  // Stops are written where the day comes first; strokes by Americans, unless only the other order is a date.
  const dayIsFirst = mark === '.' ? isMonth(second) : !isMonth(first);
  return dayIsFirst ? told(year, second, first) : told(year, first, second);
};

/** "on 1/5": without a year only this word tells it from a fraction. */
const strokeDate = (tokens: Tokens, at: number): string | null => {
  const { month = '', day = '' } =
    /^(?<month>\d{1,2})\/(?<day>\d{1,2})$/.exec(tokens.at(at).core)?.groups ?? {};
  if (month === '' || !/^(?:on|due|dated)$/.test(tokens.wordBefore(at))) return null;
  return isMonth(month) && isDay(day) ? `${monthNames[Number(month) - 1]!} ${ordinal(day)}` : null;
};

/** 2024/25: a season, a school year. */
const seasonOf = (text: string): string | null => {
  const { from, to } = /^(?<from>(?:19|20)\d\d)\/(?<to>\d\d)$/.exec(text)?.groups ?? {};
  return from !== undefined && to !== undefined && (Number(from.slice(2)) + 1) % 100 === Number(to)
    ? `${yearWords(from)} ${to.startsWith('0') ? `oh ${cardinal(to)}` : cardinal(to)}`
    : null;
};

export const dates: Rule = (tokens, at) => {
  const { core } = tokens.at(at);
  if (/^[A-Z]/.test(core)) return monthFirst(tokens, at);
  if (!/^\d/.test(core)) return null;
  if (core === '9/11') return say('nine eleven');
  return dayFirst(tokens, at) ?? sayIf(numericDate(core) ?? strokeDate(tokens, at) ?? seasonOf(core));
};
