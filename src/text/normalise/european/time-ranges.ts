/** Ranges of times: 10:00-17:30, 10h-17h, 9.30-14 Uhr, "von 1 bis 3 Uhr". */
import { type Reading, type Rule, say, type Tokens } from '../tokens.js';
import { clockOf, isClockUnit } from './calendar.js';
import type { Grammar } from './grammar.js';

interface Side {
  readonly hour: number;
  /** `null`: it has none. */
  readonly minute: number | null;
  /** It needs no other word: "10:30", "10h", "10 Uhr". */
  readonly hasUnit: boolean;
}

const sideForm =
  /^(?<hour>[01]?\d|2[0-4])(?:(?<mark>[:.h])(?<minute>[0-5]\d))?(?: ?(?<unit>Uhr|hs?|hrs|horas|heures))?$/;

const sideOf = (text: string): Side | null => {
  const { hour, mark = '', minute, unit } = sideForm.exec(text)?.groups ?? {};
  if (hour === undefined) return null;
  const hasUnit = unit !== undefined || (minute !== undefined && mark !== '.');
  return { hour: Number(hour), minute: minute === undefined ? null : Number(minute), hasUnit };
};

/** The time without its unit, which follows: "ein", "vingt et une", "zehn Uhr dreißig". */
const beforeUnit = (grammar: Grammar, { hour, minute }: Side): string =>
  minute === null
    ? grammar.cardinal(String(hour), grammar.code === 'de' ? 'm' : 'f')
    : grammar.clock(hour, minute, null);

const unitAfter = (grammar: Grammar, { hour }: Side): string => {
  const hours = grammar.units.get('h')!;
  return grammar.code === 'de' ? 'Uhr' : hour === 1 ? hours.one : hours.many;
};

/** "2-3 h" are a duration in German, whose times have the unit on both sides: "10h-17h". */
const isDuration = (grammar: Grammar, sides: readonly Side[], unit: string): boolean =>
  grammar.code === 'de' && !unit.endsWith('Uhr') && sides.every(({ minute }) => minute === null);

/** Both sides in one token. */
const joinedRange = (
  grammar: Grammar,
  tokens: Tokens,
  at: number,
  texts: readonly string[],
): Reading | null => {
  const next = tokens.next(at);
  const unit = next !== undefined && isClockUnit(next.core) ? next : undefined;
  const { range } = grammar.words;
  const clocks = texts.map((text) => clockOf(grammar, text));
  if (!clocks.includes(null)) {
    const core = clocks.join(` ${range} `);
    return unit === undefined ? say(core) : { parts: [{ core, tail: unit.tail }], count: 2 };
  }
  const [from = null, to = null] = texts.map(sideOf);
  if (from === null || to === null || (unit === undefined && !to.hasUnit)) return null;
  if (!from.hasUnit && isDuration(grammar, [from, to], unit?.core ?? texts[1]!)) return null;
  const first =
    beforeUnit(grammar, from) + (from.hasUnit && from.minute === null ? ` ${unitAfter(grammar, from)}` : '');
  const core = `${first} ${range} ${beforeUnit(grammar, to)}`;
  const name = to.minute === null ? unitAfter(grammar, to) : '';
  if (unit === undefined) return say(`${core} ${name}`.trim());
  return name === '' ? { parts: [{ core, tail: unit.tail }], count: 2 } : say(core, name);
};

const isHalfOfDay = (tokens: Tokens, at: number): boolean =>
  /^[ap]\.?m$/i.test(tokens.at(at).core) ||
  (/^[ap]$/i.test(tokens.at(at).core) && tokens.at(at).tail === '.');

/** "von 10.30 bis 12 Uhr", "de 21 a 23 h": the unit of this side stands after the other one. */
const firstSide = (grammar: Grammar, tokens: Tokens, at: number): Reading | null => {
  const { core, tail } = tokens.at(at);
  const from = sideOf(core);
  const sign = tokens.following(at)?.raw ?? '';
  if (from === null || from.hasUnit || tail !== '' || !/^(?:[-–—]|bis|und|à|et|a|y)$/.test(sign)) return null;
  // "le train 21 à 8 h" has no range.
  const isOpen = /^(?:de|entre|las?|von|zwischen)$/.test(tokens.wordBefore(at));
  if (from.minute === null && /^(?:und|à|et|a|y)$/.test(sign) && !isOpen) return null;
  const last = /^las?$/.test(tokens.following(at + 1)?.raw ?? '') ? at + 3 : at + 2;
  const text = tokens.following(last - 1)?.core ?? '';
  const to = sideOf(text);
  if (to === null) return null;
  const next = tokens.next(last);
  const hasHalf = grammar.code === 'es' && next !== undefined && isHalfOfDay(tokens, last + 1);
  const unit = next !== undefined && (isClockUnit(next.core) || hasHalf) ? next.core : to.hasUnit ? text : '';
  return unit === '' || isDuration(grammar, [from, to], unit) ? null : say(beforeUnit(grammar, from));
};

export const timeRanges =
  (grammar: Grammar): Rule =>
  (tokens, at) => {
    const { core } = tokens.at(at);
    if (!/^\d/.test(core) || core.length > 32) return null;
    const texts = core.split(/[-–—]/);
    if (texts.length === 1) return firstSide(grammar, tokens, at);
    return texts.length === 2 ? joinedRange(grammar, tokens, at, texts) : null;
  };

const half = String.raw`[ap]\.? ?m\.?`;
const time = String.raw`\d{1,2}(?:[:.h][0-5]\d)?`;
/** "10 Uhr-17 Uhr", "10 a. m.–5 p. m.": words with a dash inside that belongs between two times. */
export const apartRange = new RegExp(
  String.raw`^[("'«„“]*${time} (?:Uhr|hs?|${half})[-–—]${time}(?: ?(?:Uhr|hs?|${half}))?(?![\p{L}\d])`,
  'iu',
);
