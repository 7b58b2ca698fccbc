/** Two amounts with a dash or a cross between, in one token or three: 5km-10km, 10 - 20, 3x4, 1920x1080, 3:1. */
import { measureOf } from './measures.js';
import { moneyOf } from './money.js';
import { cardinal, pairs } from './numbers.js';
import { ordinalOf } from './ordinals.js';
import { numberPattern, numberWords, quantityOf } from './quantities.js';
import { type Rule, sayIf } from './reading.js';
import { timeOf } from './times.js';
import type { Tokens } from './tokens.js';
import { unitOf } from './units.js';
import { decadeOf } from './years.js';

/** One end of a range. */
const endOf = (text: string): string | null =>
  decadeOf(text) ??
  timeOf(text) ??
  moneyOf(text) ??
  measureOf(text) ??
  ordinalOf(text) ??
  quantityOf(text)?.spoken ??
  null;

const rangeOf = (text: string): string | null => {
  const { from, to } = /^(?<from>[^-–—]{1,20})[-–—](?<to>[^-–—]{1,20})$/.exec(text)?.groups ?? {};
  if (from === undefined || to === undefined || !/\d/.test(from) || !/\d/.test(to)) return null;
  const first = endOf(from);
  const last = endOf(to);
  return first === null || last === null ? null : `${first} to ${last}`;
};

const size = new RegExp(`^(?<sizes>${numberPattern}(?:[x×]${numberPattern}){1,2})(?<unit>[a-zA-Z"″]{0,3})$`);

/** 3x4, 10×10×2cm; screens are told as 1920x1080 is: nineteen twenty by ten eighty. */
const sizeOf = (text: string): string | null => {
  const { sizes, unit: symbol = '' } = size.exec(text)?.groups ?? {};
  if (sizes === undefined) return null;
  const sides = sizes.split(/[x×]/);
  const isScreen = sides.length === 2 && sides.every((side) => /^[1-9]\d{2,3}$/.test(side)) && symbol === '';
  const unit = symbol === '' ? null : unitOf(symbol, true);
  if (symbol !== '' && unit === null) return null;
  const words = sides.map((side) => (isScreen ? pairs(side) : numberWords(side)!)).join(' by ');
  return unit === null ? words : `${words} ${unit.many}`;
};

/** 3:1, 16:9: what is no time is a ratio or a score. */
const ratioOf = (text: string): string | null => {
  const { from, to } = /^(?<from>\d{1,4}):(?<to>\d{1,4})$/.exec(text)?.groups ?? {};
  return from !== undefined && to !== undefined ? `${cardinal(from)} to ${cardinal(to)}` : null;
};

/** 1-2-3, 4-4-2. */
const rowOf = (text: string): string | null =>
  /^\d{1,3}(?:-\d{1,3}){2,5}$/.test(text) ? text.split('-').map(cardinal).join(' ') : null;

/** "10 - 20", but "10 - 2 = 8". */
const dash = (tokens: Tokens, at: number): string | null => {
  const { core, raw } = tokens.at(at);
  if (!/^[-–—]$/.test(core === '' ? raw : core)) return null;
  const before = at > 0 ? tokens.at(at - 1).core : '';
  const after = tokens.following(at)?.core ?? '';
  if (!/\d/.test(before) || !/^[$€£¥]?\d/.test(after)) return null;
  for (let i = at + 2; i < Math.min(at + 5, tokens.length); i++)
    if (tokens.at(i).core === '=') return 'minus';
  return 'to';
};

/** 5—not 6: what a long dash joins is read piece by piece. */
const joinedByDash = (text: string): string | null => {
  const pieces = text.split('—');
  if (pieces.length < 2 || pieces.length > 4) return null;
  const words = pieces.map((piece) => (piece.length > 20 ? piece : (endOf(piece) ?? piece))).join('—');
  return words === text ? null : words;
};

export const ranges: Rule = (tokens, at) => {
  const { core } = tokens.at(at);
  const between = dash(tokens, at);
  if (between !== null) return { parts: [{ core: between, lead: '', tail: '' }] };
  if (!/\d/.test(core)) return null;
  return sayIf(rowOf(core) ?? sizeOf(core) ?? ratioOf(core) ?? rangeOf(core) ?? joinedByDash(core));
};
