/** Fractions: 1/2, 3/4, 2 1/2, 2/3rds; scores like 8/10 stars; what only looks like one: 24/7. */
import { cardinal, decimal, ordinal } from './numbers.js';
import { type Reading, type Rule, say, sayIf } from './reading.js';
import type { Tokens } from './tokens.js';
import { rateOf, unitOf } from './units.js';

const form = /^(?<sign>[-−])?(?<above>\d{1,4})[/⁄](?<below>\d{1,5})(?:th|ths|rd|rds|nd|nds)?$/;
const idioms: Readonly<Record<string, string>> = {
  '24/7': 'twenty four seven',
  '50/50': 'fifty fifty',
  '20/20': 'twenty twenty',
};

const part = (below: string, many: boolean): string => {
  if (below === '2') return many ? 'halves' : 'half';
  if (below === '4') return many ? 'quarters' : 'quarter';
  return ordinal(below) + (many ? 's' : '');
};

/** Whether the lower number is told as a part (eighths) or as a number (one hundred twenty over eighty). */
const isPart = (above: string, below: string): boolean =>
  !/^0/.test(below) &&
  !/^0/.test(above) &&
  Number(above) < 100 &&
  Number(below) > 1 &&
  (Number(below) < 100 || /^10{2,4}$/.test(below));

const fractionOf = (text: string): { above: string; below: string; words: string } | null => {
  const { sign, above = '', below = '' } = form.exec(text)?.groups ?? {};
  if (above === '') return null;
  const minus = sign === undefined ? '' : 'minus ';
  const words = isPart(above, below)
    ? `${cardinal(above)} ${part(below, above !== '1')}`
    : `${cardinal(above)} over ${cardinal(below)}`;
  return { above, below, words: minus + words };
};

/** "2 1/2", "1 3/4 tsp": a number and a proper fraction. */
const mixed = (tokens: Tokens, at: number): Reading | null => {
  const { core } = tokens.at(at);
  const next = tokens.next(at);
  if (next === undefined || !/^[-−]?\d{1,4}$/.test(core)) return null;
  const fraction = fractionOf(next.core);
  if (fraction === null || !isPart(fraction.above, fraction.below)) return null;
  if (Number(fraction.above) >= Number(fraction.below) || Number(fraction.below) > 64) return null;
  const whole = core.replace(/^[-−]/, '');
  const article = /^(?:8|11|18)$/.test(fraction.below) ? 'an' : 'a';
  const rest = fraction.above === '1' ? `${article} ${part(fraction.below, false)}` : fraction.words;
  const unit = unitAfter(tokens, at + 1);
  const parts = [{ core: `${whole === core ? '' : 'minus '}${cardinal(whole)}` }, { core: `and ${rest}` }];
  return { parts: unit === null ? parts : [...parts, unit.many] };
};

/** "1/2 tsp": the unit after a fraction, as it goes on after a whole number and after a part. */
const unitAfter = (tokens: Tokens, at: number) => {
  const next = tokens.next(at);
  const unit = next === undefined ? null : unitOf(next.core, false);
  if (unit === null) return null;
  const tail = tokens.tailOfAbbreviation(at + 1);
  const article = /^(?:[aeio]|hour)/.test(unit.one) ? 'an' : 'a';
  return {
    many: { core: unit.many, tail },
    half: { core: `${article} ${unit.one}`, tail },
    part: { core: `of ${article} ${unit.one}`, tail },
  };
};

/** "4/5 stars", "3.5/5", "10/10": so many out of so many. */
const score = (tokens: Tokens, at: number): string | null => {
  const { above = '', below = '' } =
    /^(?<above>\d{1,3}(?:\.\d{1,2})?)\/(?<below>\d{1,3})$/.exec(tokens.at(at).core)?.groups ?? {};
  if (above === '' || Number(above) > Number(below) || Number(below) < 2) return null;
  const isScore = above === below || above.includes('.') || /^stars?\b/.test(tokens.next(at)?.core ?? '');
  const [whole = '', digits] = above.split('.');
  return isScore
    ? `${digits === undefined ? cardinal(whole) : decimal(whole, digits)} out of ${cardinal(below)}`
    : null;
};

export const fractions: Rule = (tokens, at) => {
  const { core } = tokens.at(at);
  if (!/\d/.test(core)) return null;
  const idiom = Object.hasOwn(idioms, core) ? idioms[core]! : null;
  const scored = idiom ?? score(tokens, at);
  if (scored !== null) return say(scored);
  const fraction = fractionOf(core);
  if (fraction !== null) {
    const unit = isPart(fraction.above, fraction.below) ? unitAfter(tokens, at) : null;
    if (unit === null) return say(fraction.words);
    return core === '1/2'
      ? { parts: [{ core: 'half' }, unit.half] }
      : { parts: [{ core: fraction.words }, unit.part] };
  }
  // "1/2-inch", "3/4-mile".
  const compound = /^(?<fraction>\d{1,3}\/\d{1,3})-(?<noun>\p{L}+(?:-\p{L}+)*)$/u.exec(core)?.groups;
  if (compound !== undefined) {
    const words = fractionOf(compound['fraction']!)!.words;
    return say(`${words.replace(/s$/, '')} ${compound['noun']!.replaceAll('-', ' ')}`);
  }
  // "5/day".
  const { count, rate } = /^(?<count>\d{1,6})\/(?<rate>[a-z]{2,6})$/.exec(core)?.groups ?? {};
  if (count !== undefined && rate !== undefined) {
    const per = rateOf(rate);
    return sayIf(per && `${cardinal(count)} per ${per}`);
  }
  return mixed(tokens, at);
};
