/** Dates and times: 3.10.2024, 03/10/2024, 2024-10-03, Mo-Fr, 14:30, 14.30 Uhr, 14h30. */
import { type Reading, type Rule, sayIf, type Tokens } from '../tokens.js';
import type { Grammar } from './grammar.js';

const isDay = (digits: string): boolean => Number(digits) >= 1 && Number(digits) <= 31;
const isMonth = (digits: string): boolean => Number(digits) >= 1 && Number(digits) <= 12;

/** Two digits up to 49 are a year of this century. */
const fullYear = (digits: string): string =>
  digits.length === 4 ? digits : `${Number(digits) < 50 ? '20' : '19'}${digits}`;

const iso =
  /^(?<year>(?:1\d|20)\d\d)(?<mark>[-/.])(?<month>\d{1,2})\k<mark>(?<day>\d{1,2})(?:T(?<time>\d\d:\d\d(?::\d\d)?)Z?)?$/;
const numeric = /^(?<day>\d{1,2})(?<mark>[-/.])(?<month>\d{1,2})\k<mark>(?<year>(?:1\d|20)?\d\d)?$/;
const dayAndMonth = /^(?<day>\d{1,2})(?<mark>[./])(?<month>\d{1,2})$/;

const dateOf = (grammar: Grammar, text: string, wordBefore: string): string | null => {
  const parts = (iso.exec(text) ?? numeric.exec(text))?.groups;
  if (parts === undefined) return null;
  const { day = '', month = '', year, mark, time } = parts;
  if (year?.length === 2 && mark === '-') return null;
  // The day stands first, unless only the other order is a date.
  const [first, second] = isMonth(month) ? [day, month] : [month, day];
  if (!isDay(first) || !isMonth(second)) return null;
  const date = grammar.date(
    { day: Number(first), month: Number(second), year: year === undefined ? null : fullYear(year) },
    wordBefore,
  );
  const clock = time === undefined ? null : clockOf(grammar, time.replace(/(:\d\d):00$/, '$1'));
  return clock === null ? date : `${date}, ${clock}`;
};

/** Words before a date, beside weekdays. */
const dateCues = /^(?:am|vom|bis|zum|ab|seit|der|den|dem|le|du|au|el|del|al)$/;

export const dates =
  (grammar: Grammar): Rule =>
  (tokens, at) => {
    const { core, tail } = tokens.at(at);
    if (!/^\d/.test(core)) return null;
    const before = tokens.cueBefore(at);
    const whole = dateOf(grammar, core, before);
    if (whole !== null) return sayIf(whole);
    const { day = '', mark, month = '' } = dayAndMonth.exec(core)?.groups ?? {};
    if (mark === undefined || !isDay(day) || !isMonth(month)) return null;
    // "am 3.10. um", "le 3/10": without a year only what stands around it makes a date.
    const isDate = mark === '.' ? tail.startsWith('.') && grammar.code === 'de' : true;
    const isRange = mark === '.' && /^(?:bis|und|oder)$/.test(tokens.following(at)?.core ?? '');
    const isCued =
      dateCues.test(before) || grammar.weekdays.some((weekday) => weekday.toLowerCase() === before);
    if (!isDate || (!isRange && !isCued)) return null;
    const spoken = grammar.date({ day: Number(day), month: Number(month), year: null }, before);
    return {
      parts: [
        { core: spoken, tail: mark === '.' && tokens.following(at) !== undefined ? tail.slice(1) : tail },
      ],
    };
  };

const span = /^(?<from>\p{L}{2,5})(?<mark>\.?)[-–](?<to>\p{L}{2,5})$/u;

/** Mo-Fr, lun.-ven., jan.–mars: short forms of two weekdays or of two months. */
export const calendarSpans =
  ({ months, weekdayLetters, weekdays, words }: Grammar): Rule =>
  (tokens, at) => {
    const { core, tail } = tokens.at(at);
    const { from = '', mark, to = '' } = span.exec(core)?.groups ?? {};
    if (mark === undefined) return null;
    // Two letters can be a word: "do", "so", "mi".
    if ((from.length === 2 || to.length === 2) && !/^\p{Lu}.*\P{L}\p{Lu}/u.test(core)) return null;
    const shorts = [from, to].map((short) => short.toLowerCase());
    const dayOf = (short: string) =>
      short.length === weekdayLetters
        ? weekdays.find((day) => day.toLowerCase().startsWith(short))
        : undefined;
    const monthOf = (short: string) =>
      short.length >= 3 ? months.find((month) => month.toLowerCase().startsWith(short)) : undefined;
    const days = shorts.map(dayOf);
    const names = days.includes(undefined) ? shorts.map(monthOf) : days;
    if (names.includes(undefined)) return null;
    const isShortened = mark === '.' && tokens.following(at) !== undefined;
    const rest = isShortened ? tail.replace(/^\./, '') : tokens.tailOfAbbreviation(at);
    return { parts: [{ core: names.join(` ${words.range} `), tail: rest }] };
  };

const clock = /^(?<hour>[01]?\d|2[0-4])[:h](?<minute>[0-5]\d)(?::(?<second>[0-5]\d))?(?:h|hs|min|mn)?$/;
const dotted = /^(?<hour>[01]?\d|2[0-4])\.(?<minute>[0-5]\d)$/;

export const clockOf = (grammar: Grammar, text: string): string | null => {
  const { hour, minute, second } = clock.exec(text)?.groups ?? {};
  if (hour === undefined) return null;
  return grammar.clock(Number(hour), Number(minute), second === undefined ? null : Number(second));
};

/** A word after the number of an hour. */
export const isClockUnit = (word: string): boolean => /^(?:Uhr|h|hs|hrs|horas|heures)$/.test(word);
const minuteForm = /^(?:min|mn|minutes?|Min|Minuten?|minutos?)$/;

/** The word after a time: "14:30 Uhr", "14 h 30", "14:30 h". */
const withUnit = (grammar: Grammar, tokens: Tokens, at: number): Reading | null => {
  const { core, lead } = tokens.at(at);
  const next = tokens.next(at);
  if (next === undefined || !isClockUnit(next.core)) return null;
  const parts = (clock.exec(core) ?? dotted.exec(core))?.groups;
  if (parts !== undefined) {
    const spoken = grammar.clock(Number(parts['hour']), Number(parts['minute']), null);
    return { parts: [{ core: spoken, lead, tail: next.tail.replace(/^\.(?=.)/, '') }], count: 2 };
  }
  const minute = tokens.next(at + 1);
  if (!/^(?:[01]?\d|2[0-4])$/.test(core) || minute === undefined || !/^[0-5]\d$/.test(minute.core))
    return null;
  // "1 h 30 min" is a duration.
  if (minuteForm.test(tokens.next(at + 2)?.core ?? '')) return null;
  const spoken = grammar.clock(Number(core), Number(minute.core), null);
  return { parts: [{ core: spoken, lead, tail: minute.tail }], count: 3 };
};

export const times =
  (grammar: Grammar): Rule =>
  (tokens, at) => {
    const { core } = tokens.at(at);
    if (!/^\d/.test(core)) return null;
    return withUnit(grammar, tokens, at) ?? sayIf(clockOf(grammar, core));
  };
