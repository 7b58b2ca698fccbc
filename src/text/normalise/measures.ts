/** Amounts with their units: 5km, -5°C, 10 %, 60 mph, 5'10". */
import { type Quantity, quantityOf } from './quantities.js';
import { cardinal } from './numbers.js';
import { type Reading, type Rule, say } from './reading.js';
import type { Token, Tokens } from './tokens.js';
import { unitOf } from './units.js';

/** Ends where the unit begins: a letter or one of the signs that units begin with. */
const split = /^(?<amount>[^\p{L}°º℃℉%‰¢′″×/]*[\d½¼¾⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])(?<unit>[\p{L}°º℃℉%‰¢′″×/].*)$/u;

const prepositions = new Set(
  'of in on at to for from by with and or but than as is was per into onto over under'.split(' '),
);

/** Whether an amount that ends with token `last` describes what follows: "a 5 km run", "a $20 ticket". */
export const isAttributive = (tokens: Tokens, first: number, last: number): boolean => {
  const next = tokens.next(last)?.core;
  return (
    /^an?$/i.test(tokens.previous(first)?.core ?? '') &&
    next !== undefined &&
    /^\p{Ll}+$/u.test(next) &&
    !prepositions.has(next)
  );
};

const named = ({ isOne }: Quantity, unit: { one: string; many: string }, attributive: boolean): string =>
  isOne || attributive ? unit.one : unit.many;

/** `5km` as one piece of text; `null` where it is none. */
export const measureOf = (text: string, attributive = false): string | null => {
  const { amount = '', unit: symbol = '' } = split.exec(text)?.groups ?? {};
  const unit = symbol === '' ? null : unitOf(symbol, true);
  const quantity = unit && quantityOf(amount);
  return quantity && `${quantity.spoken} ${named(quantity, unit, attributive)}`;
};

/** "5 ft. tall", "10 sec. later": a full stop of the unit's, where the sentence goes on. */
const tailOfUnit = (tokens: Tokens, at: number): string => {
  const { core, tail } = tokens.at(at);
  return /(?:^|\d)(?:ft|in|lbs?|oz|yds?|mi|gal|qt|tsp|tbsp|secs?|mins?|hrs?|wks?|mos?|yrs?)$/.test(core)
    ? tokens.tailOfAbbreviation(at)
    : tail;
};

/** Two units in a row: 5h30m, 1h05, 6ft2in. */
const compound = /^(?<first>\d{1,3})(?<big>h|hr|ft|lbs?|′|')(?<second>\d{1,2})(?<small>m|min|in|oz|″)?$/;
const compoundNames: Readonly<Record<string, readonly [big: string, small: string]>> = {
  h: ['hour', 'minute'],
  hr: ['hour', 'minute'],
  ft: ['foot', 'inch'],
  "'": ['foot', 'inch'],
  '′': ['foot', 'inch'],
  lb: ['pound', 'ounce'],
  lbs: ['pound', 'ounce'],
};

const counted = (digits: string, name: string): string => {
  const plural = name === 'foot' ? 'feet' : name === 'inch' ? 'inches' : `${name}s`;
  return `${cardinal(digits)} ${Number(digits) === 1 ? name : plural}`;
};

const compoundOf = ({ core, tail }: Token): Reading | null => {
  const { first = '', big = '', second = '', small } = compound.exec(core)?.groups ?? {};
  const names = compoundNames[big];
  if (names === undefined) return null;
  const feet = big === "'";
  // 5'10" with its inch sign, which looks like a closing quote; without it only in feet and inches: 5'10.
  const spoken = `${counted(first, names[0])} ${counted(second, names[1])}`;
  if (feet && /^["”]/.test(tail)) return { parts: [{ core: spoken, tail: tail.slice(1) }] };
  return small === undefined && !feet && big !== '′' ? null : say(spoken);
};

/** 1.5 km, 10 %, 25 ° C, 5 ft.; 25 °C. */
const separate = (tokens: Tokens, at: number): Reading | null => {
  const { core } = tokens.at(at);
  const quantity = quantityOf(core);
  const next = tokens.next(at);
  if (quantity === null || next === undefined) return null;
  const degrees = /^[°º]$/.test(next.core) ? tokens.next(at + 1)?.core : undefined;
  if (degrees !== undefined && /^[CF]$/.test(degrees)) {
    const unit = unitOf(`°${degrees}`, true)!;
    const [degree = '', scale = ''] = named(quantity, unit, false).split(' ');
    return say(quantity.spoken, degree, scale);
  }
  // "sq. ft", "fl oz": two words of one unit.
  const second = tokens.nextAfterStop(at + 1);
  if (second !== undefined && /^sq$/i.test(next.core)) {
    const unit = unitOf(second.core, false);
    if (unit !== null)
      return {
        parts: [
          { core: quantity.spoken },
          { core: 'square', tail: '' },
          { core: named(quantity, unit, false), tail: tailOfUnit(tokens, at + 2) },
        ],
      };
  }
  const isInch = next.core === 'in' && next.tail.startsWith('.') && /(?:^|[^.])$/.test(next.tail.slice(1));
  const unit = unitOf(next.core, isInch);
  if (unit === null || (isInch && tokens.following(at + 1) === undefined)) return null;
  const attributive = isAttributive(tokens, at, at + 1);
  return {
    parts: [
      { core: quantity.spoken },
      { core: named(quantity, unit, attributive), tail: tailOfUnit(tokens, at + 1) },
    ],
  };
};

export const measures: Rule = (tokens, at) => {
  const token = tokens.at(at);
  if (!/\d|[½¼¾⅓⅔⅕-⅞]/.test(token.core)) return null;
  const compoundReading = compoundOf(token);
  if (compoundReading !== null) return compoundReading;
  // "1h 30m": minutes after hours, not meters.
  if (/^\d{1,2}m$/.test(token.core) && /^\d{1,3}h$/.test(tokens.previous(at)?.core ?? ''))
    return say(counted(token.core.slice(0, -1), 'minute'));
  // "221B Baker Street", "Model 3B Plus": a part of a name.
  if (/\d[BM]$/.test(token.core) && /^\p{Lu}/u.test(tokens.next(at)?.core ?? '')) return null;
  const attached = measureOf(token.core, isAttributive(tokens, at, at));
  if (attached !== null) {
    return { parts: [{ core: attached, tail: tailOfUnit(tokens, at) }] };
  }
  return separate(tokens, at);
};
