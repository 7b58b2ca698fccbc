/** Signs between words, sums, hashtags: &, @, +, =, 2+2=4, 10^6, 18+, #tag. */
import { powerWords, numberPattern, numberWords, quantityOf } from './quantities.js';
import { type Reading, type Rule, say, sayIf } from './reading.js';
import type { Tokens } from './tokens.js';

const alone: Readonly<Record<string, string>> = {
  '&': 'and',
  '@': 'at',
  '+': 'plus',
  '=': 'equals',
  '%': 'percent',
  '×': 'times',
  '÷': 'divided by',
  '±': 'plus or minus',
  '≈': 'is about',
  'w/': 'with',
  'w/o': 'without',
  'b/c': 'because',
};

const operators: Readonly<Record<string, string>> = {
  '+': 'plus',
  '-': 'minus',
  '−': 'minus',
  '–': 'minus',
  '*': 'times',
  '×': 'times',
  x: 'times',
  '÷': 'divided by',
  '/': 'over',
  '=': 'equals',
};

const sum = new RegExp(`^-?${numberPattern}(?:[-+−–*×x÷/=]-?${numberPattern}){1,8}=?$`);
const sumParts = new RegExp(`(?<=\\d)[-+−–*×x÷/=]|-?${numberPattern}`, 'g');

/** 2+2=4, 10*3: a sum, where one of its signs is nothing else. */
const sumOf = (text: string): string | null => {
  if (text.length > 64 || !/[+*=÷]/.test(text) || !sum.test(text)) return null;
  const words = text.match(sumParts)?.map((part) => operators[part] ?? quantityOf(part)?.spoken);
  return words === undefined || words.includes(undefined) ? null : words.join(' ');
};

const superscripts = '⁰¹²³⁴⁵⁶⁷⁸⁹';

/** 10^6, 10², 10⁻³ */
const powerOf = (text: string): string | null => {
  const { mantissa, power } = /^(?<mantissa>[\d.]{1,12})[×x*·](?<power>10.{1,6})$/u.exec(text)?.groups ?? {};
  if (mantissa !== undefined && power !== undefined) {
    const words = [numberWords(mantissa), powerOf(power)];
    return words.includes(null) ? null : words.join(' times ');
  }
  const { base, caret, raised } =
    /^(?<base>[\d.,]{1,12})(?:\^(?<caret>[-−]?\d{1,4})|(?<raised>⁻?[⁰¹²³⁴-⁹]{1,4}))$/u.exec(text)?.groups ??
    {};
  const exponent =
    caret ?? raised?.replace(/./gu, (sign) => (sign === '⁻' ? '-' : String(superscripts.indexOf(sign))));
  const words = base === undefined ? null : numberWords(base);
  if (words === null || exponent === undefined) return null;
  if (exponent === '2') return `${words} squared`;
  return exponent === '3' ? `${words} cubed` : `${words} to the ${powerWords(exponent)}`;
};

/** "3 × 4", "3 x 4": sizes, unless a result follows. */
const cross = (tokens: Tokens, at: number): Reading | null => {
  if (!/\d$/.test(tokens.previous(at)?.core ?? '') || !/^\d/.test(tokens.next(at)?.core ?? '')) return null;
  for (let i = at + 2; i < Math.min(at + 4, tokens.length); i++)
    if (tokens.at(i).core === '=') return say('times');
  return say('by');
};

export const signs: Rule = (tokens, at) => {
  const { core, raw } = tokens.at(at);
  if (/^[x×]$/.test(core)) return cross(tokens, at);
  if (Object.hasOwn(alone, core)) return core === raw ? say(alone[core]!) : null;
  const tag = /^(?<sign>[#@])(?<name>\p{L}[\p{L}\d_]{0,60})$/u.exec(core)?.groups;
  if (tag !== undefined)
    return say(`${tag['sign'] === '#' ? 'hashtag' : 'at'} ${tag['name']!.replaceAll('_', ' ').trim()}`);
  const plus = /^(?<number>[\d.,]{1,12})\+$/.exec(core)?.groups?.['number'];
  const atLeast = plus === undefined ? null : numberWords(plus);
  return sayIf(atLeast === null ? (sumOf(core) ?? powerOf(core)) : `${atLeast} plus`);
};
