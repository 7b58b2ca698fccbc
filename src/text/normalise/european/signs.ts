/** Numbers in combination, and what is dialled: fractions, sums, ratios, sizes, ranges, versions, telephone numbers. */
import { isInSum, signOf, termOf } from '../sums.js';
import { type Part, type Rule, say, sayIf, type Tokens } from '../tokens.js';
import { amountOf, digitsOf } from './amounts.js';
import { clockOf } from './calendar.js';
import type { Grammar } from './grammar.js';
import { measureOf, moneyOf, unitOf } from './measures.js';

/** 1/2, 3/4, 120/80. */
const fractionOf = (grammar: Grammar, text: string): string | null => {
  const {
    sign,
    above = '',
    below = '',
  } = /^(?<sign>[-−])?(?<above>\d{1,4})[/⁄](?<below>\d{1,4})$/.exec(text)?.groups ?? {};
  if (above === '') return null;
  const named = /^0/.test(above) || /^0/.test(below) ? null : grammar.part(Number(above), Number(below));
  const words = named ?? `${grammar.cardinal(above)} ${grammar.words.over} ${grammar.cardinal(below)}`;
  return sign === undefined ? words : `${grammar.words.minus} ${words}`;
};

export const fractions =
  (grammar: Grammar): Rule =>
  (tokens, at) => {
    const { core } = tokens.at(at);
    if (!/\d/.test(core)) return null;
    const next = tokens.next(at);
    // "2 1/2"
    if (/^\d{1,3}$/.test(core) && next !== undefined && /^\d\/[2-9]$/.test(next.core)) {
      const spoken = grammar.mixed(core, fractionOf(grammar, next.core)!);
      return { parts: [{ core: spoken, tail: next.tail }], count: 2 };
    }
    return sayIf(fractionOf(grammar, core));
  };

const operators = (grammar: Grammar): Readonly<Record<string, string>> => {
  const { plus, minus, times, divided, equals, isLess, isMore, isUnequal } = grammar.words;
  return {
    ...{ '+': plus, '-': minus, '−': minus, '–': minus, '*': times, '×': times, x: times, '·': times },
    ...{ '÷': divided, '/': divided, ':': divided, '=': equals, '<': isLess, '>': isMore, '≠': isUnequal },
  };
};

/** 2+2=4, 10*3. */
const sumOf = (grammar: Grammar, text: string): string | null => {
  if (text.length > 64 || !/[+*=÷]/.test(text)) return null;
  if (!/^\d[\d.,]*(?:[-+−–*×x·÷/:=]\d[\d.,]*){1,8}=?$/.test(text)) return null;
  // "10:30+2" has a time.
  if (text.includes(':') && !text.includes('=')) return null;
  const signs = operators(grammar);
  const words = text
    .split(/([-+−–*×x·÷/:=])/)
    .filter((part) => part !== '')
    .map((part) => (Object.hasOwn(signs, part) ? signs[part]! : amountOf(grammar, part)?.spoken));
  return words.includes(undefined) ? null : words.join(' ');
};

/** What a number has after it, in its token or in the next ones: "Uhr", "h", "am", "a. m.". */
const isTimeUnit = (text: string): boolean => /^(?:Uhr|hs?|[ap]?\.?m)$/i.test(text.replace(/^\d+/, ''));

/** "10 Uhr - 17 Uhr", "10 am - 5 pm", "7 a. m. - 7 p. m.". */
const isBetweenTimes = (tokens: Tokens, at: number): boolean => {
  const next = tokens.following(at)?.core ?? '';
  const unit = /^\d+$/.test(next) ? (tokens.following(at + 1)?.core ?? '') : next;
  return (
    /^\d/.test(next) &&
    isTimeUnit(tokens.previous(at)?.core ?? '') &&
    (isTimeUnit(unit) || /^[ap]$/i.test(unit))
  );
};

/** A sign that stands by itself. */
const loneSign = (grammar: Grammar, tokens: Tokens, at: number): string | null => {
  const sign = signOf(tokens, at);
  if (sign.length !== 1) return null;
  const { words } = grammar;
  if (isInSum(tokens, at)) return operators(grammar)[sign] ?? null;
  const isBetween =
    /\d$/.test(tokens.previous(at)?.core ?? '') && /^[\d€$£]/.test(tokens.following(at)?.core ?? '');
  if (/[-–—]/.test(sign)) return isBetween || isBetweenTimes(tokens, at) ? words.range : null;
  if (sign === 'x') return isBetween ? words.size : null;
  const lone: Readonly<Record<string, string>> = {
    ...{ '&': words.and, '+': words.plus, '=': words.equals, '×': words.times, '÷': words.divided },
    ...{ '≈': words.about, '±': words.plusMinus, '§': words.section, '*': isBetween ? words.times : '' },
  };
  const word = Object.hasOwn(lone, sign) ? lone[sign]! : '';
  return word === '' ? null : word;
};

const counter = /^(?<sign>#|№|§|n°|nº|Nr\.|núm\.)(?<number>\d[\d.,-]{0,12})$/i;

export const signs =
  (grammar: Grammar): Rule =>
  (tokens, at) => {
    const { core, raw } = tokens.at(at);
    const lone = loneSign(grammar, tokens, at);
    if (lone !== null) return core === '' ? { parts: [{ core: lone, lead: '', tail: '' }] } : say(lone);
    const term = termOf(tokens, at);
    const count = term && amountOf(grammar, term.count);
    if (term !== null && count !== null) return say(`${count.spoken} ${term.variable.toUpperCase()}`);
    if (core.length === raw.length || /^[#@№§n]/i.test(core)) {
      const tag = /^(?<sign>[#@])(?<name>\p{L}[\p{L}\d_]{0,60})$/u.exec(core)?.groups;
      const { words } = grammar;
      if (tag !== undefined)
        return say(
          `${tag['sign'] === '#' ? words.hashtag : words.at} ${tag['name']!.replaceAll('_', ' ').trim()}`,
        );
    }
    const counted = counter.exec(core)?.groups;
    if (counted !== undefined) {
      const amount = amountOf(grammar, counted['number']!);
      const word = counted['sign'] === '§' ? grammar.words.section : grammar.words.number;
      return sayIf(amount && `${word} ${amount.spoken}`);
    }
    const plus = /^(?<number>\d[\d.,]{0,11})\+$/.exec(core)?.groups?.['number'];
    const least = plus === undefined ? null : amountOf(grammar, plus);
    return sayIf(least === null ? sumOf(grammar, core) : `${least.spoken} ${grammar.words.plus}`);
  };

const endOf = (grammar: Grammar, text: string): string | null =>
  clockOf(grammar, text) ??
  moneyOf(grammar, text) ??
  measureOf(grammar, text) ??
  amountOf(grammar, text)?.spoken ??
  null;

/** 10-20, 5km-10km, 1914-1918. */
const rangeOf = (grammar: Grammar, text: string): string | null => {
  const { from, to } = /^(?<from>[^-–—]{1,20})[-–—](?<to>[^-–—]{1,20})$/.exec(text)?.groups ?? {};
  if (from === undefined || to === undefined || !/\d/.test(from) || !/\d/.test(to)) return null;
  const years = [from, to].every((year) => /^(?:1[1-9]|20)\d\d$/.test(year));
  const first = years ? grammar.year(from) : endOf(grammar, from);
  const last = years ? grammar.year(to) : endOf(grammar, to);
  return first && last && `${first} ${grammar.words.range} ${last}`;
};

/** 3:1, 16:9. */
const ratioOf = (grammar: Grammar, text: string): string | null => {
  const { from, to } = /^(?<from>\d{1,4}):(?<to>\d{1,4})$/.exec(text)?.groups ?? {};
  return from === undefined || to === undefined
    ? null
    : `${grammar.cardinal(from)} ${grammar.words.ratio} ${grammar.cardinal(to)}`;
};

/** 3x4, 10×20cm. */
const sizeOf = (grammar: Grammar, text: string): string | null => {
  const { sizes, symbol = '' } =
    /^(?<sizes>[\d.,]{1,8}(?:[x×][\d.,]{1,8}){1,2})(?<symbol>\p{L}{0,3})$/u.exec(text)?.groups ?? {};
  if (sizes === undefined) return null;
  const unit = symbol === '' ? null : unitOf(grammar, symbol, true);
  const sides = sizes.split(/[x×]/).map((side) => amountOf(grammar, side)?.spoken);
  if (sides.includes(undefined) || (symbol !== '' && unit === null)) return null;
  return `${sides.join(` ${grammar.words.size} `)}${unit === null ? '' : ` ${unit.many}`}`;
};

/** 1.2.3, v2.0, 192.168.1.1. */
const versionOf = (grammar: Grammar, text: string): string | null => {
  const { letter = '', numbers } =
    /^(?<letter>v)?(?<numbers>\d{1,5}(?:\.\d{1,5}){0,4})$/.exec(text)?.groups ?? {};
  if (numbers === undefined) return null;
  const groups = numbers.split('.');
  // 1.234.567 is a number, 13.13.2024 a date that does not exist.
  if (/^\d{1,2}\.\d{1,2}\.\d{4}$/.test(numbers)) return null;
  if (letter === '' && (groups.length < 3 || groups.slice(1).every((group) => group.length === 3)))
    return null;
  const spoken = groups.map((group) => grammar.cardinal(group)).join(` ${grammar.words.dot} `);
  return letter === '' ? spoken : `${grammar.words.version} ${spoken}`;
};

export const ranges =
  (grammar: Grammar): Rule =>
  (tokens, at) => {
    const { core } = tokens.at(at);
    if (!/\d/.test(core)) return null;
    const size = sizeOf(grammar, core);
    const unit = size === null ? null : unitOf(grammar, tokens.next(at)?.core ?? '', false);
    if (size !== null && unit !== null) return say(size, unit.many);
    return sayIf(
      versionOf(grammar, core) ??
        size ??
        ratioOf(grammar, core) ??
        rangeOf(grammar, core) ??
        numberFirst(grammar, core),
    );
  };

/** 10-minütig, COVID-19. */
const numberFirst = (grammar: Grammar, text: string): string | null => {
  const { number, rest, word, digits } =
    /^(?:(?<number>[\d.,]{1,12})-(?<rest>\p{L}[\p{L}-]*)|(?<word>\p{L}{1,20})-(?<digits>\d{1,4}))$/u.exec(
      text,
    )?.groups ?? {};
  if (word !== undefined && digits !== undefined) return `${word} ${amountOf(grammar, digits)!.spoken}`;
  const amount = number === undefined ? null : amountOf(grammar, number);
  return amount && `${amount.spoken} ${rest!}`;
};

const dialledForm = /^(?:\+|00|0)\d[\d().\/-]*$/;
const groupForm = /^\(?\d[\d().\/-]*$/;
/** The most tokens of a telephone number. */
const tokensMax = 7;

/** +49 30 1234567, 01 23 45 67 89, 0170/1234567; any long number after "Tel.". */
export const telephone =
  (grammar: Grammar): Rule =>
  (tokens, at) => {
    const { core, lead } = tokens.at(at);
    if (!/^\+?\d/.test(core)) return null;
    const cued = grammar.callCues.has(tokens.cueBefore(at));
    if (!(cued ? groupForm : dialledForm).test(core.replace(/^\+/, '0')) || core.length > 24) return null;
    const texts = [core];
    for (let i = at + 1; i < Math.min(tokens.length, at + tokensMax); i++) {
      const token = tokens.at(i);
      if (tokens.at(i - 1).tail.replace(')', '') !== '' || token.gap !== 'space') break;
      if (!/^\d[\d./-]*$/.test(token.core) || token.core.length > 12) break;
      texts.push(token.core);
    }
    const digits = texts.join('').replace(/\D/g, '').length;
    const isNumber = core.startsWith('+')
      ? digits >= 7
      : cued
        ? digits >= 3
        : texts.length > 1 || /[/-]/.test(core) || digits >= 9;
    if (!isNumber || digits > 15 || (!cued && digits < 7)) return null;
    const parts = texts.map((piece, i): Part => {
      const groups = piece.match(/\d+/g) ?? [];
      const plus = piece.startsWith('+') ? `${grammar.words.plus} ` : '';
      const own = tokens.at(at + i).tail;
      return {
        core: plus + grammar.phone(groups),
        tail: i < texts.length - 1 ? ',' : own,
        lead: i === 0 ? lead.replace('(', '') : '',
      };
    });
    return { parts };
  };

/** Digits after words such as "PIN" are read one by one. */
export const typed =
  (grammar: Grammar): Rule =>
  (tokens, at) => {
    const { core } = tokens.at(at);
    return /^\d{3,10}$/.test(core) && /^(?:pin|code|código|plz|tan|zip)$/.test(tokens.cueBefore(at))
      ? say(digitsOf(grammar, core))
      : null;
  };
