/** Dates and times of day. */
import { unitOf } from './measures.js';
import { cardinal, ordinal, yearWords } from './numbers.js';
import { type Part, type Reading, type Rule, say, sayIf, type Tokens, wordSet } from '../tokens.js';

export const monthNames = [
  ...['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October'],
  ...['November', 'December'],
] as const;

const dayNames = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'] as const;

const months = new Map<string, string>();
for (const name of monthNames) {
  months.set(name, name);
  months.set(name.slice(0, 3), name);
}
months.set('Sept', 'September');

const days = new Map<string, string>();
for (const name of dayNames) days.set(name, name).set(name.slice(0, 3), name);
for (const short of ['Tues', 'Wednes', 'Thur', 'Thurs'])
  days.set(
    short,
    dayNames.find((name) => name.startsWith(short.slice(0, 3)))!,
  );

/** Also accepts capitals, as in a heading. */
const normal = (word: string): string => word.replace(/(?<=^[A-Z])[A-Z]{2,8}$/, (rest) => rest.toLowerCase());

/** Months in lower case that are not words of another meaning. */
const lowerMonths = wordSet(
  'january february april june july august september october november december jan feb mar apr jun jul aug sep sept oct nov dec',
);
/** The month named by a word in lower case; "may" and "march" only beside a year or after "on". */
const lowerMonthOf = (word: string, isSure: boolean): string | undefined =>
  lowerMonths.has(word) || (isSure && /^(?:may|march)$/.test(word))
    ? months.get(word.charAt(0).toUpperCase() + word.slice(1))
    : undefined;

/** The month named by a capitalised word, in full or shortened. */
export const monthOf = (word: string): string | undefined =>
  word.length > 9 ? undefined : months.get(normal(word));
/** The day named by a capitalised word, in full or shortened. */
export const dayOf = (word: string): string | undefined =>
  word.length > 9 ? undefined : days.get(normal(word));

const half = String.raw`[ap]\.?m`;
const clock = String.raw`(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d(?:\.\d{1,3})?)?`;
/** 1.59 is a time only before "p.m.". */
const hourForm = `(?:0?[1-9]|1[0-2])(?:\\.[0-5]\\d)?(?=${half})`;
const timeForm = new RegExp(`^(?<clock>${clock}|${hourForm})(?<half>${half})?$`, 'i');
const timeRange = new RegExp(
  `^(?<from>${clock}|\\d{1,2})(?:(?<fromHalf>${half})\\.?)?[-–—](?:(?<to>${clock}|\\d{1,2})(?<toHalf>${half})?|(?<word>noon|midnight))$`,
  'i',
);
const zone = /^(?:[ECMP][SD]?T|GMT|UTC|BST|CES?T|IST|JST|AES?T)$/;
const zoned = /^(?<time>\d.*[\dm]\.?)(?<where>[ECMP][SD]?T|GMT|UTC|BST|CEST|IST|JST)$/i;
const halfForm = new RegExp(`^${half}$`, 'i');

/** Written so that the voice reads two letters, without a final full stop. */
const halfWords = (half: string): string => (/^a/i.test(half) ? 'a.m' : 'p.m');

/** Hours and minutes. @param alone without am or pm: a full hour is then three o'clock or fifteen hundred */
const clockWords = (text: string, alone: boolean): string => {
  const [hour = '', minute, second] = text.split(':');
  const hours = /^0\d/.test(hour) && alone && Number(hour) === 0 ? 'zero' : cardinal(hour);
  if (minute === undefined) return hours;
  const fullHour = () => {
    if (!alone) return hours;
    const value = Number(hour);
    return value >= 1 && value <= 12 ? `${hours} o'clock` : `${hours} hundred`;
  };
  const minutes = minute.startsWith('0') ? `oh ${cardinal(minute)}` : cardinal(minute);
  const withMinutes = minute === '00' ? fullHour() : `${hours} ${minutes}`;
  if (second === undefined) return withMinutes;
  const [whole = '', fraction] = second.split('.');
  const seconds =
    cardinal(whole) + (fraction === undefined ? '' : ` point ${Array.from(fraction, cardinal).join(' ')}`);
  if (whole === '00' && fraction === undefined) return withMinutes;
  const isOne = whole === '01' && fraction === undefined;
  const withSeconds = `and ${seconds} ${isOne ? 'second' : 'seconds'}`;
  if (!alone && minute === '00') return `${hours} oh zero ${withSeconds}`;
  const isOfDay = /^[12]/.test(hour) && hour.length === 2 && !minute.startsWith('0');
  if (!alone || isOfDay) return `${hours} ${minutes} ${withSeconds}`;
  // 1:05:09 is a duration rather than a time of day.
  return `${hours} ${Number(hour) === 1 ? 'hour' : 'hours'} ${cardinal(minute)} ${minute === '01' ? 'minute' : 'minutes'} ${withSeconds}`;
};

/** `null` if the text is not a time. A bare number is not a time. A zone may follow: 11:30EST, 1:59p.m.est; ~ may precede. */
export const timeOf = (text: string): string | null => {
  // 7:30p, 9a-5p
  if (/^(?:\d{1,2}(?::\d\d)?[ap][-–]\d{1,2}(?::\d\d)?[ap]|\d{1,2}:\d\d[ap])$/i.test(text))
    return timeOf(text.replace(/[ap]/gi, '$&m'));
  const exact = text.startsWith('~') ? timeOf(text.slice(1)) : null;
  if (exact !== null) return `about ${exact}`;
  const { time, where } = zoned.exec(text)?.groups ?? {};
  if (time !== undefined && where !== undefined) {
    const words = timeOf(time.replace(/(?<=[ap]\.m)\.$/i, ''));
    return words && `${words} ${where.toUpperCase()}`;
  }
  const parts = timeForm.exec(text)?.groups;
  if (parts !== undefined) {
    const { clock: written = '', half: suffix } = parts;
    const time = written.replace(/^(\d{1,2})\.(?=\d\d$)/, '$1:');
    return suffix === undefined ? clockWords(time, true) : `${clockWords(time, false)} ${halfWords(suffix)}`;
  }
  const { from, fromHalf, to, toHalf, word } = timeRange.exec(text)?.groups ?? {};
  if (from === undefined) return null;
  if (to === undefined)
    return fromHalf === undefined ? null : `${timeOf(from + fromHalf) ?? from} to ${word!}`;
  const known = fromHalf ?? toHalf;
  if (known === undefined && !(from.includes(':') && to.includes(':'))) return null;
  const hoursFit = [from, to].every((time) => Number(time.split(':')[0]) <= (known === undefined ? 24 : 12));
  if (!hoursFit) return null;
  const side = (time: string, suffix: string | undefined) =>
    `${clockWords(time, known === undefined)}${suffix === undefined ? '' : ` ${halfWords(suffix)}`}`;
  return `${side(from, fromHalf)} to ${side(to, toHalf)}`;
};

/** The token "a.m." or "PM" after a time. */
const halfPart = (tokens: Tokens, at: number): Part => {
  const { core, tail } = tokens.at(at);
  // A full stop after "am" ends the sentence; after "a.m" it may belong to the abbreviation.
  const following = tokens.following(at);
  const isRange =
    tail === '.' && /^[-–—]?$/.test(following?.core ?? 'x') && /^[-–—]/.test(following?.raw ?? '');
  const isZoneNext = isRange || (zone.test(following?.core ?? '') && tail === '.');
  const own = isZoneNext ? '' : tokens.tailOfAbbreviation(at);
  return { core: halfWords(core), tail: core.includes('.') ? own : tail };
};

/** "10 a.m.", "3:05 PM", "9-5 pm". */
const withHalf = (tokens: Tokens, at: number): Reading | null => {
  const next = tokens.next(at);
  if (next === undefined || !halfForm.test(next.core)) return null;
  const joined = timeOf(`${tokens.at(at).core}${next.core}`);
  if (joined === null) return null;
  const half = halfPart(tokens, at + 1);
  return { parts: [{ core: joined.slice(0, -half.core.length - 1) }, half] };
};

/** "10 a.m.–5 p.m.", "9 AM-noon": the middle token has the end of one time and the beginning of the other. */
const rangeWithHalf = (tokens: Tokens, at: number): Reading | null => {
  const next = tokens.next(at);
  if (next === undefined || !/^[ap]\.?m\.?[-–—]/i.test(next.core)) return null;
  const third = tokens.next(at + 1);
  const last = third !== undefined && halfForm.test(third.core) ? third.core : '';
  const joined = timeOf(`${tokens.at(at).core}${next.core}${last}`);
  const { from, to } = /^(?<from>.*?) (?<to>[ap]\.m to .*)$/.exec(joined ?? '')?.groups ?? {};
  if (from === undefined || to === undefined) return null;
  if (last === '') {
    const tail = /[ap]\.m$/i.test(next.core) ? tokens.tailOfAbbreviation(at + 1) : next.tail;
    return { parts: [{ core: from }, { core: to, tail }] };
  }
  const half = halfPart(tokens, at + 2);
  return { parts: [{ core: from }, { core: to.slice(0, -half.core.length - 1) }, half] };
};

export const times: Rule = (tokens, at) => {
  const token = tokens.at(at);
  if (!/^~?\d/.test(token.core)) return null;
  const withNext = withHalf(tokens, at) ?? rangeWithHalf(tokens, at);
  if (withNext !== null) return withNext;
  const time = timeOf(token.core);
  if (time === null) return null;
  const dotted = /[ap]\.m$/i.test(token.core);
  return { parts: [{ core: time, tail: dotted ? tokens.tailOfAbbreviation(at) : token.tail }] };
};

const dayForm = /^(?<day>\d{1,2})(?:st|nd|rd|th)?$/i;
const dayRange = /^(?<day>\d{1,2})(?:st|nd|rd|th)?[-–—](?<to>\d{1,2})(?:st|nd|rd|th)?$/i;
const isDay = (digits: string): boolean => Number(digits) >= 1 && Number(digits) <= 31;
const isMonth = (digits: string): boolean => Number(digits) >= 1 && Number(digits) <= 12;

/** Two digits up to 49 are a year of this century. */
const fullYear = (digits: string): string =>
  digits.length === 4 ? yearWords(digits) : yearWords(`${Number(digits) < 50 ? '20' : '19'}${digits}`);

/** 5, 5th, 5-7. */
const dayWords = (core: string): string | null => {
  const { day, to } = (dayForm.exec(core) ?? dayRange.exec(core))?.groups ?? {};
  if (day === undefined || !isDay(day) || (to !== undefined && !isDay(to))) return null;
  return to === undefined ? ordinal(day) : `${ordinal(day)} to ${ordinal(to)}`;
};

/** The year after a date's day: 2024 or '24, with or without a comma before it. */
const yearAfter = (tokens: Tokens, at: number): Part | null => {
  const year = tokens.following(at);
  if (year === undefined || !/^,?$/.test(tokens.at(at).tail)) return null;
  if (/^(?:1\d|20)\d\d$/.test(year.core) && year.lead === '') return { core: fullYear(year.core) };
  if (/^\d\d$/.test(year.core) && /^['’‘]$/.test(year.lead)) return { core: fullYear(year.core), lead: '' };
  return null;
};

/** "March 5 miles", "May 2 people": the word is not a month, but a verb or name before an amount. */
const countsNext = (tokens: Tokens, at: number): boolean => {
  const next = tokens.next(at)?.core ?? '';
  return unitOf(next, false) !== null || /^[a-z]{3,}s$/.test(next) || next === 'people';
};

const isYearNumber = (text = ''): boolean => /^(?:1\d|20)\d\d$/.test(text);

/** January 5, Jan. 5th, 2024. */
const monthFirst = (tokens: Tokens, at: number): Reading | null => {
  const { core } = tokens.at(at);
  const month = monthOf(core) ?? lowerMonthOf(core, isYearNumber(tokens.following(at + 1)?.core));
  const next = tokens.nextAfterStop(at);
  const day = month !== undefined && next !== undefined ? dayWords(next.core) : null;
  // "Jan 1-Feb 15"
  const span = /^(\d{1,2})[-–—](\p{L}+)$/u.exec(next?.core ?? '');
  const to = monthOf(span?.[2] ?? '');
  const last = to === undefined ? null : dayWords(tokens.next(at + 1)?.core ?? '');
  if (month !== undefined && last !== null) return say(month, `${ordinal(span![1]!)} to ${to}`, last);
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
  if (next === undefined) return null;
  const isSure = tokens.wordBefore(at) === 'on' || isYearNumber(tokens.following(at + 1)?.core);
  const month = monthOf(next.core) ?? lowerMonthOf(next.core, isSure);
  if (month === undefined) return null;
  const article = tokens.wordBefore(at) === 'the' ? '' : 'the ';
  const year = next.tail === '.' ? null : yearAfter(tokens, at + 1);
  const isShort = next.core.length < month.length;
  const parts: Part[] = [
    { core: `${article}${day!} of` },
    { core: month, tail: isShort ? tokens.tailOfAbbreviation(at + 1) : next.tail },
  ];
  return { parts: year === null ? parts : [...parts, year] };
};

const dateWords = (year: string, month: string, day: string): string | null =>
  isMonth(month) && isDay(day) ? `${monthNames[Number(month) - 1]!} ${ordinal(day)} ${fullYear(year)}` : null;

const iso =
  /^(?<year>(?:1\d|20)\d\d)(?<mark>[-/.])(?<month>\d{1,2})\k<mark>(?<day>\d{1,2})(?:[Tt](?<time>\d\d:\d\d(?::\d\d)?)(?:\.\d+)?(?<zone>[Zz]|(?<sign>[-+])0?(?<hours>\d{1,2}):(?<minutes>\d\d))?)?$/;
const numeric = /^(?<first>\d{1,2})(?<mark>[-/.])(?<second>\d{1,2})\k<mark>(?<year>(?:1\d|20)?\d\d)$/;

/** `null` if the text is not a date. */
const numericDate = (text: string): string | null => {
  const written = iso.exec(text)?.groups;
  if (written !== undefined) {
    const date = dateWords(written['year']!, written['month']!, written['day']!);
    const time = written['time'] === undefined ? null : timeOf(written['time'].replace(/(:\d\d):00$/, '$1'));
    const { zone, sign, hours = '', minutes = '' } = written;
    const ahead =
      sign === undefined
        ? ''
        : ` ${sign === '-' ? 'minus' : 'plus'} ${cardinal(hours)}${minutes === '00' ? '' : ` ${cardinal(minutes)}`}`;
    return date && `${date}${time === null ? '' : ` at ${time}`}${zone === undefined ? '' : ` UTC${ahead}`}`;
  }
  const { first = '', mark, second = '', year = '' } = numeric.exec(text)?.groups ?? {};
  if (mark === undefined) return null;
  // A two-digit year makes a date only with slashes: 1.2.24 is a version, 1-2-24 a row of numbers.
  if (year.length === 2 && mark !== '/') return null;
  // With full stops the day comes first; with slashes the month, unless only the other order is a date.
  const dayIsFirst = mark === '.' ? isMonth(second) : !isMonth(first);
  return dayIsFirst ? dateWords(year, second, first) : dateWords(year, first, second);
};

/** After these, 11/30 is a date: fractions with such denominators are rare. "Reduced by 1/3", "from 1/2 to 3/4" are none. */
const dateCues = wordSet('by before until till after since through thru from starting');
const datesOnly = /\/(?:1[3-57-9]|2\d|3[01])$/;
/** No fraction has a leading zero: 12/03. */
const zeroDate = /^0\d\/\d\d?$|^\d\d?\/0\d$/;
/** But a count may have: page 01/10. */
const countedCues = wordSet('page part step slide track episode chapter disc lesson item');
/** Before a date: "due by 3/1", "week of 3/4"; and if nothing says more of it: "the meeting is 3/4", but "the meeting is 3/4 over". */
const sureDate = / (?:on|due|dated)$|^due (?:by|before)$|^week of$/;
const eventIs =
  /^(?:meeting|appointment|appt|deadline|party|wedding|birthday|flight|event|exam|interview) (?:is|was)$/;

/** The most dates of a list that are looked at: each looks at those before it. */
const listedMax = 6;
const joinsDates = /^(?:and|or|not|&|then)$/;

/** "on 5/1, 5/15 & 6/1", "on 3/17, not 3/18": one of a list that begins with a date. */
const isListed = (tokens: Tokens, at: number, left: number): boolean => {
  const before = joinsDates.test(tokens.at(at - 1).core) ? at - 2 : at - 1;
  const ends =
    tokens.at(at).tail !== '' || /^(?:and|or|not|&|then|at|from)$/.test(tokens.next(at)?.core ?? '');
  if (left === 0 || before < 0 || !ends) return false;
  const isJoined = before < at - 1 ? /^,?$/ : /^,$/;
  return isJoined.test(tokens.at(before).tail) && strokeDate(tokens, before, left - 1) !== null;
};

/** "on 1/5": without a year only the word before distinguishes a date from a fraction. */
const strokeDate = (tokens: Tokens, at: number, left = listedMax): string | null => {
  const { month = '', day = '' } =
    /^(?<month>\d{1,2})\/(?<day>\d{1,2})$/.exec(tokens.at(at).core)?.groups ?? {};
  // "Friday 3/1", "Fri., 3/1"
  const dayName =
    at > 0 && /^[.,:]*$/.test(tokens.at(at - 1).tail) ? dayOf(tokens.at(at - 1).core) : undefined;
  const before = tokens.wordBefore(at);
  const cue = `${tokens.wordBefore(at - 1)} ${before}`;
  const isLate = datesOnly.test(tokens.at(at).core);
  const isRange = tokens.next(at)?.core === 'to' && datesOnly.test(tokens.next(at + 1)?.core ?? '');
  const isSure =
    sureDate.test(cue) ||
    (dayName !== undefined && tokens.next(at)?.core !== 'of') ||
    isRange ||
    (zeroDate.test(tokens.at(at).core) && !countedCues.has(before)) ||
    (isLate &&
      /^(?:is|was)$/.test(tokens.next(at)?.core ?? '') &&
      !/^\d/.test(tokens.next(at + 1)?.core ?? '')) ||
    (day === '1' && /^(?:by|before|until|till|since|starting)$/.test(before)) ||
    (eventIs.test(cue) && (isLate || (tokens.next(at)?.core ?? 'at') === 'at')) ||
    (isLate && (dateCues.has(before) || /^\d+\/\d+ to$/.test(cue))) ||
    (month !== '' && at > 0 && isListed(tokens, at, left));
  if (month === '' || !isSure) return null;
  return isMonth(month) && isDay(day) ? `${monthNames[Number(month) - 1]!} ${ordinal(day)}` : null;
};

/** "exp 09/28", "Exp: 09/28": the month and year that a card or a medicine has. */
const expiry = (tokens: Tokens, at: number): Reading | null => {
  const { core } = tokens.at(at);
  const next = /^exp$/i.test(core) && /^[.:]?$/.test(tokens.at(at).tail) ? tokens.following(at)?.core : '';
  const { month = '', year = '' } = /^(?<month>[01]\d)\/(?<year>[2-4]\d)$/.exec(next ?? '')?.groups ?? {};
  if (!isMonth(month)) return null;
  const date = `${monthNames[Number(month) - 1]!} ${fullYear(year)}`;
  return { parts: [{ core: core === 'exp' ? 'expires' : 'Expires', tail: '' }, { core: date }] };
};

/** 2024/25, '24-'25: a season, a school year. */
const seasonOf = (text: string): string | null => {
  const { from, to } =
    /^(?<from>(?:19|20)\d\d(?=\/)|\d\d(?=[-–]['’]))(?:\/|[-–]['’])(?<to>\d\d)$/.exec(text)?.groups ?? {};
  return from !== undefined && to !== undefined && (Number(from.slice(-2)) + 1) % 100 === Number(to)
    ? `${from.length === 4 ? yearWords(from) : from.startsWith('0') ? `oh ${cardinal(from)}` : cardinal(from)} ${to.startsWith('0') ? `oh ${cardinal(to)}` : cardinal(to)}`
    : null;
};

/** Jan-15, Jan-15-2020, 15-Jan-2020. */
const hyphenatedDate = (text: string): string | null => {
  const parts =
    /^(?:(?<month>[A-Za-z]{3,9})[-/](?<day>\d{1,2})|(?<first>\d{1,2})[-/](?<name>[A-Za-z]{3,9}))(?:[-/](?<year>(?:1\d|20)?\d\d))?$/.exec(
      text,
    )?.groups;
  if (parts === undefined) return null;
  const month = monthOf(parts['month'] ?? parts['name']!);
  const day = parts['day'] ?? parts['first']!;
  if (month === undefined || !isDay(day)) return null;
  return `${month} ${ordinal(day)}${parts['year'] === undefined ? '' : ` ${fullYear(parts['year'])}`}`;
};

/** 2Q22, 3Q2024, Q3'24: a quarter of a year. */
const quarterOf = (text: string): string | null => {
  const { first, second, year } =
    /^(?:(?<first>[1-4])Q|Q(?<second>[1-4])')(?<year>(?:20)?\d\d)$/.exec(text)?.groups ?? {};
  const quarter = first ?? second;
  return quarter === undefined || year === undefined
    ? null
    : `the ${ordinal(quarter)} quarter of ${fullYear(year)}`;
};

export const dates: Rule = (tokens, at) => {
  const { core } = tokens.at(at);
  const joined = hyphenatedDate(core) ?? quarterOf(core);
  if (joined !== null) return say(joined);
  if (/^[A-Za-z]/.test(core)) return expiry(tokens, at) ?? monthFirst(tokens, at);
  if (!/^\d/.test(core)) return null;
  if (core === '9/11') return say('nine eleven');
  const season = seasonOf(core);
  if (season !== null) return { parts: [{ core: season, lead: tokens.at(at).lead.replace(/['’‘]$/, '') }] };
  return dayFirst(tokens, at) ?? sayIf(numericDate(core) ?? strokeDate(tokens, at));
};
