/** Times of the day: 3:05pm, 15:30, 10 a.m., 9am-5pm, 12:30:15. */
import { cardinal } from './numbers.js';
import type { Reading, Rule } from './reading.js';
import type { Tokens } from './tokens.js';

const half = String.raw`[ap]\.?m`;
const clock = String.raw`(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d(?:\.\d{1,3})?)?`;
const single = new RegExp(`^(?<clock>${clock}|(?:0?[1-9]|1[0-2])(?=${half}))(?<half>${half})?$`, 'i');
const range = new RegExp(
  `^(?<from>${clock}|\\d{1,2})(?<fromHalf>${half})?[-–—](?<to>${clock}|\\d{1,2})(?<toHalf>${half})?$`,
  'i',
);
const zone = /^(?:[ECMP][SD]?T|GMT|UTC|BST|CES?T|IST|JST|AES?T)$/;
const halfForm = new RegExp(`^${half}$`, 'i');

/** Written so that it is read as two letters, with no full stop of its own. */
const halfWords = (half: string): string => (/^a/i.test(half) ? 'a.m' : 'p.m');

/** Hours and minutes; alone, a full hour has a name: three o'clock, fifteen hundred. */
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
  const head = minute === '00' ? `${hours} ${alone ? 'hundred' : 'oh zero'}` : `${hours} ${minutes}`;
  return `${head} and ${seconds} ${whole === '01' && fraction === undefined ? 'second' : 'seconds'}`;
};

/** `null` where the text is no time. A bare number is none. */
export const timeOf = (text: string): string | null => {
  const parts = single.exec(text)?.groups;
  if (parts !== undefined) {
    const { clock: time = '', half: suffix } = parts;
    return suffix === undefined ? clockWords(time, true) : `${clockWords(time, false)} ${halfWords(suffix)}`;
  }
  const { from, fromHalf, to, toHalf } = range.exec(text)?.groups ?? {};
  if (from === undefined || to === undefined) return null;
  const known = fromHalf ?? toHalf;
  if (known === undefined && !(from.includes(':') && to.includes(':'))) return null;
  const hoursFit = [from, to].every((time) => Number(time.split(':')[0]) <= (known === undefined ? 24 : 12));
  if (!hoursFit) return null;
  const side = (time: string, suffix: string | undefined) =>
    `${clockWords(time, known === undefined)}${suffix === undefined ? '' : ` ${halfWords(suffix)}`}`;
  return `${side(from, fromHalf)} to ${side(to, toHalf)}`;
};

/** "10 a.m.", "3:05 PM", "9-5 pm". */
const withHalf = (tokens: Tokens, at: number): Reading | null => {
  const next = tokens.next(at);
  if (next === undefined || !halfForm.test(next.core)) return null;
  const { core } = tokens.at(at);
  const joined = timeOf(`${core}${next.core}`);
  if (joined === null) return null;
  const words = halfWords(next.core);
  // A full stop after a plain "am" ends the sentence; after "a.m" it may be its own.
  const isZoneNext = zone.test(tokens.following(at + 1)?.core ?? '') && next.tail === '.';
  const own = isZoneNext ? '' : tokens.tailOfAbbreviation(at + 1);
  const tail = next.core.includes('.') ? own : next.tail;
  return { parts: [{ core: joined.slice(0, -words.length - 1) }, { core: words, tail }] };
};

export const times: Rule = (tokens, at) => {
  const token = tokens.at(at);
  if (!/^\d/.test(token.core)) return null;
  const pair = withHalf(tokens, at);
  if (pair !== null) return pair;
  const time = timeOf(token.core);
  if (time === null) return null;
  const dotted = /[ap]\.m$/i.test(token.core);
  return { parts: [{ core: time, tail: dotted ? tokens.tailOfAbbreviation(at) : token.tail }] };
};
