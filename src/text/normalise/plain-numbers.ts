/** Numbers that no other rule has claimed, lists of them, and thousands set apart by spaces. */
import { cardinal } from './numbers.js';
import { numberWords, quantityOf } from './quantities.js';
import { type Reading, type Rule, sayIf } from './reading.js';
import type { Tokens } from './tokens.js';

const groupsMax = 5;

/** "1 000 000": three digits each, and nothing that could be a row of numbers. */
const spaced = (tokens: Tokens, at: number): Reading | null => {
  const { core, lead } = tokens.at(at);
  if (!/^[1-9]\d{0,2}$/.test(core)) return null;
  let last = at;
  for (let next = tokens.next(last); next !== undefined && last < at + groupsMax; next = tokens.next(last)) {
    if (!/^\d{3}$/.test(next.core)) break;
    last++;
  }
  if (last === at || tokens.at(last).core !== '000') return null;
  const digits = Array.from({ length: last - at + 1 }, (_, i) => tokens.at(at + i).core).join('');
  return { parts: [{ core: cardinal(digits), lead, tail: tokens.at(last).tail }], count: last - at + 1 };
};

/** 1,2,3 */
const listOf = (text: string): string | null => {
  if (!/^\d{1,9}(?:,\d{1,9}){1,15}$/.test(text)) return null;
  return text
    .split(',')
    .map((digits) => numberWords(digits)!)
    .join(', ');
};

export const plainNumbers: Rule = (tokens, at) => {
  const { core } = tokens.at(at);
  if (!/[\d½¼¾⅓⅔⅕-⅞]/.test(core)) return null;
  const owned = /^(?<number>\d{1,4})'s$/.exec(core)?.groups?.['number'];
  if (owned !== undefined) return sayIf(`${numberWords(owned)!}'s`);
  return spaced(tokens, at) ?? sayIf(quantityOf(core)?.spoken ?? listOf(core));
};
