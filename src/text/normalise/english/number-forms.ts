/** Numbers in combination: fractions, sums, powers, ranges, sizes, ordinals, lists. */
import { dayOf, monthOf, timeOf } from './dates.js';
import { isAttributive, measureOf, rateOf, sizes, tailOfUnit, unitAt, unitOf } from './measures.js';
import { moneyOf } from './money.js';
import {
  cardinal,
  decimal,
  numberPattern,
  numberWords,
  ordinalOf,
  pairs,
  partWords,
  powerWords,
  quantityOf,
  letterName,
  withPoint,
} from './numbers.js';
import { decadeOf } from './years.js';
import { silentForm } from '../../replacements.js';
import { isInSum, signOf, termOf } from '../sums.js';
import { partsOfVulgar, type Reading, type Rule, say, sayIf, type Tokens, wordTable } from '../tokens.js';

const fractionForm = /^(?<sign>[-−])?(?<above>\d{1,4})[/⁄](?<below>\d{1,5})(?:th|ths|rd|rds|nd|nds)?$/;
const idioms = wordTable(`
  24/7: twenty four seven; 50/50: fifty fifty; 50-50: fifty fifty; 20/20: twenty twenty; 80/20: eighty twenty; 70/30: seventy thirty;
  60/40: sixty forty; 90/10: ninety ten
`);

/** Whether the lower number reads as a part (eighths) or as a number (one hundred twenty over eighty). */
const isPart = (above: string, below: string): boolean =>
  !/^0/.test(below) &&
  !/^0/.test(above) &&
  Number(above) < 100 &&
  Number(below) > 1 &&
  (Number(below) < 100 || /^10{2,4}$/.test(below));

const fractionOf = (text: string): { above: string; below: string; words: string } | null => {
  const { sign, above = '', below = '' } = fractionForm.exec(text)?.groups ?? {};
  if (above === '') return null;
  const minus = sign === undefined ? '' : 'minus ';
  const words = isPart(above, below)
    ? `${cardinal(above)} ${partWords(below, above !== '1')}`
    : `${cardinal(above)} over ${cardinal(below)}`;
  return { above, below, words: minus + words };
};

/** "2 1/2", "1 3/4 tsp", "2 ½", "1-1/2": a number and a proper fraction. */
const mixed = (tokens: Tokens, at: number): Reading | null => {
  const [, number = '', joined] = /^([-−]?\d{1,4})(?:-(\d\/\d{1,2}))?$/.exec(tokens.at(at).core) ?? [];
  const part = joined ?? tokens.next(at)?.core ?? '';
  const isSign = /^[½¼¾⅐-⅞]$/.test(part);
  const fraction = number === '' ? null : fractionOf(isSign ? partsOfVulgar(part).join('/') : part);
  if (fraction === null || !isPart(fraction.above, fraction.below)) return null;
  if (Number(fraction.above) >= Number(fraction.below) || Number(fraction.below) > 64) return null;
  const whole = number.replace(/^[-−]/, '');
  const article = /^(?:8|11|18)$/.test(fraction.below) ? 'an' : 'a';
  const rest = fraction.above === '1' ? `${article} ${partWords(fraction.below, false)}` : fraction.words;
  const unit = unitAfter(tokens, joined === undefined ? at + 1 : at);
  const words = [`${whole === number ? '' : 'minus '}${cardinal(whole)}`, `and ${rest}`];
  const { parts } = joined === undefined ? say(...words) : say(words.join(' '));
  return { parts: unit === null ? parts : [...parts, unit.many] };
};

/** "1/2 tsp": the forms of the unit after a fraction. */
const unitAfter = (tokens: Tokens, at: number) => {
  const next = tokens.next(at);
  const unit = next === undefined ? null : unitAt(tokens, at + 1);
  if (unit === null) return null;
  const tail = tailOfUnit(tokens, at + 1);
  const article = /^(?:[aeio]|hour)/.test(unit.one) ? 'an' : 'a';
  return {
    many: { core: unit.many, tail },
    half: { core: `${article} ${unit.one}`, tail },
    part: { core: `of ${article} ${unit.one}`, tail },
  };
};

/** "9/10 of a mile", "1/10 the size": tenths. Otherwise ten is the best score. */
const ofTen = /^(?:of|the|as|an?|scale|full|miles?|inch|inches|seconds?|percent|degrees?)$/;

/** "4/5 stars", "3.5/5", "9/10": a score. */
const score = (tokens: Tokens, at: number): string | null => {
  const { above = '', below = '' } =
    /^(?<above>\d{1,3}(?:\.\d{1,2})?)\/(?<below>\d{1,3})$/.exec(tokens.at(at).core)?.groups ?? {};
  if (above === '' || Number(above) > Number(below) || Number(below) < 2) return null;
  const next = tokens.next(at)?.core ?? '';
  const isScore =
    above === below ||
    above.includes('.') ||
    (below === '10' && above !== '1' && !ofTen.test(next) && unitOf(next, false) === null) ||
    /^stars?\b/.test(next);
  const [whole = '', digits] = above.split('.');
  return isScore
    ? `${digits === undefined ? cardinal(whole) : decimal(whole, digits)} out of ${cardinal(below)}`
    : null;
};

export const fractions: Rule = (tokens, at) => {
  const { core } = tokens.at(at);
  if (!/\d/.test(core)) return null;
  const scored = idioms.get(core) ?? score(tokens, at);
  if (scored !== null) return say(scored);
  const fraction = fractionOf(core);
  if (fraction !== null) {
    const unit = unitAfter(tokens, at);
    if (unit === null) return say(fraction.words);
    // "120/80 mmHg"
    if (!isPart(fraction.above, fraction.below)) return { parts: [{ core: fraction.words }, unit.many] };
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

const alone = wordTable(`
  &: and; @: at; +: plus; =: equals; %: percent; ×: times; ÷: divided by; ±: plus or minus; ≈: is about; w/: with;
  w/o: without; w/i: within; b/c: because; >=: is at least; <=: is at most; !=: is not; ==: equals;
  and/or: and or; yes/no: yes or no; he/she: he or she; she/he: she or he; s/he: she or he; his/her: his or her; him/her: him or her;
  .net: dot net; asp.net: A S P dot net
`);

const operators = wordTable(`
  +: plus; -: minus; −: minus; –: minus; *: times; ∗: times; ×: times; x: times; ∙: times; ⋅: times; ·: times;
  ÷: divided by; ∕: divided by; :: divided by; /: over; ±: plus or minus; =: equals; ≠: is not; ≈: is about; <: is less than;
  >: is greater than; ≤: is less than or equal to; ≥: is greater than or equal to; ≦: is less than or equal to;
  ≧: is greater than or equal to
`);

const operator = '[-+−–*∗×x∙⋅·÷∕/:±=≠≈<>≤≥≦≧]';
/** A variable is one letter. An x is a variable where it is not a sign. */
const operand = `-?(?:${numberPattern}|[a-z](?![a-z]))`;
const sum = new RegExp(`^${operand}(?:${operator}${operand}){1,8}=?$`);
const sumParts = new RegExp(`(?<operand>${operand})(?<operator>${operator})?`, 'g');
/** At least one sign has no other meaning. */
const certain = /[+*=÷∗∙⋅∕±≠≈<>≤≥≦≧]/;

/** 2+2=4, 10*3, y=x+1 */
const sumOf = (text: string): string | null => {
  if (text.length > 64 || !certain.test(text) || !sum.test(text)) return null;
  // "10:30+2" has a time.
  if (text.includes(':') && !text.includes('=')) return null;
  // "a+b" and "x<y" may be names; with a result they are sums.
  if (/[a-z]/.test(text.replaceAll(/(?<=\d)x(?=\d)/g, '')) && !text.includes('=')) return null;
  const words = Array.from(text.matchAll(sumParts), ({ groups }) => {
    const { operand: value = '', operator: sign } = groups!;
    const minus = /^-[a-z]/.test(value) ? 'minus ' : '';
    const spoken = /[a-z]$/.test(value) ? minus + letterName(value.at(-1)!) : quantityOf(value)?.spoken;
    return sign === undefined ? [spoken] : [spoken, operators.get(sign)];
  }).flat();
  return words.includes(undefined) ? null : words.join(' ');
};

/** "12@$5", "@12": each side by itself. */
const atSign = (text: string): string | null => {
  const sides = /^(?<before>[^@]{0,16})@(?<after>[^@]{0,16})$/.exec(text)?.groups;
  if (sides === undefined || !/\d/.test(text)) return null;
  const words = [sides['before']!, sides['after']!].map((side) => (side === '' ? '' : endOf(side)));
  return words.includes(null) ? null : `${words[0]!} at ${words[1]!}`.trim();
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
    /^(?<base>[\d.,]{1,12}|[a-z])(?:\^(?<caret>[-−]?\d{1,4})|(?<raised>⁻?[⁰¹²³⁴-⁹]{1,4}))$/iu.exec(text)
      ?.groups ?? {};
  const exponent =
    caret ?? raised?.replace(/./gu, (sign) => (sign === '⁻' ? '-' : String(superscripts.indexOf(sign))));
  const words = base === undefined ? null : /^[a-z]/i.test(base) ? letterName(base) : numberWords(base);
  if (words === null || exponent === undefined) return null;
  if (exponent === '2') return `${words} squared`;
  return exponent === '3' ? `${words} cubed` : `${words} to the ${powerWords(exponent)}`;
};

/** "3 × 4", "3 x 4", "3 mm x 4 mm": a size. */
const cross = (tokens: Tokens, at: number): Reading | null => {
  const before = at > 0 ? tokens.at(at - 1) : undefined;
  const isUnit = /\d$/.test(tokens.previous(at - 1)?.core ?? '') && unitAt(tokens, at - 1) !== null;
  if (!(isUnit || /\d(?:\p{L}{1,2})?$/u.test(before?.core ?? '')) || !/^["”.]?$/.test(before?.tail ?? ''))
    return null;
  return /^\d/.test(tokens.following(at)?.core ?? '') ? say('by') : null;
};

/** "12 / 4 = 3", "2x + 3 = 7": an operator or a term of a sum. */
const inSum = (tokens: Tokens, at: number): Reading | null => {
  const sign = signOf(tokens, at);
  const word = sign === '/' ? 'divided by' : operators.get(sign);
  if (word !== undefined && isInSum(tokens, at)) return { parts: [{ core: word, lead: '', tail: '' }] };
  const term = termOf(tokens, at);
  return term && say(`${numberWords(term.count) ?? term.count} ${letterName(term.variable)}`);
};

export const signs: Rule = (tokens, at) => {
  const { core, raw } = tokens.at(at);
  const operation = inSum(tokens, at);
  if (operation !== null) return operation;
  if (/^[x×]$/.test(core)) return cross(tokens, at);
  const word = alone.get(core.toLowerCase());
  if (word !== undefined) return core === raw || /\p{L}/u.test(core) ? say(word) : null;
  // "ten EST / seven PST"
  if (raw === '/' && /^\p{L}+$/u.test(tokens.previous(at)?.core ?? '') && tokens.following(at) !== undefined)
    return { parts: [{ core: silentForm, tail: ',' }] };
  const [, things, rate = ''] = /^([a-z]{3,9}s)\/([a-z]{2,5})$/.exec(core) ?? [];
  const per = things === undefined || !/\d$/.test(tokens.previous(at)?.core ?? '') ? null : rateOf(rate);
  if (per !== null) return say(`${things} per ${per}`);
  const tag = /^(?<sign>[#@])(?<name>\p{L}[\p{L}\d_]{0,60})$/u.exec(core)?.groups;
  if (tag !== undefined)
    return say(`${tag['sign'] === '#' ? 'hashtag' : 'at'} ${tag['name']!.replaceAll('_', ' ').trim()}`);
  const around = atSign(core);
  if (around !== null) return say(around);
  const plus = /^(?<number>[\d.,]{1,12})\+$/.exec(core)?.groups?.['number'];
  const atLeast = plus === undefined ? null : numberWords(plus);
  return sayIf(atLeast === null ? (sumOf(core) ?? powerOf(core)) : `${atLeast} plus`);
};

/** One end of a range. */
export const endOf = (text: string): string | null =>
  (/^(?:noon|midnight)$/.test(text) ? text : null) ??
  decadeOf(text) ??
  timeOf(text) ??
  moneyOf(text) ??
  measureOf(text) ??
  ordinalOf(text) ??
  quantityOf(text)?.spoken ??
  null;

const rangeOf = (text: string): string | null => {
  const { from, to } = /^(?<from>[^-–—]{1,20})[-–—](?<to>[^-–—]{1,20})$/.exec(text)?.groups ?? {};
  if (from === undefined || to === undefined || !/\d/.test(text)) return null;
  const first = endOf(from);
  const last = endOf(to);
  return first === null || last === null ? null : `${first} to ${last}`;
};

const size = new RegExp(`^(?<sizes>${numberPattern}(?:[x×]${numberPattern}){1,2})(?<unit>[a-zA-Z"″]{0,3})$`);

/** 3x4, 10×10×2cm; screen sizes read in pairs: 1920x1080 nineteen twenty by ten eighty. */
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

/** 3:1, 16:9: a ratio or a score, after the rule of times. */
const ratioOf = (text: string): string | null => {
  const { from, to } = /^(?<from>\d{1,4}):(?<to>\d{1,4})$/.exec(text)?.groups ?? {};
  return from !== undefined && to !== undefined ? `${cardinal(from)} to ${cardinal(to)}` : null;
};

/** 1-2-3, 4-4-2. */
const rowOf = (text: string): string | null =>
  /^\d{1,3}(?:-\d{1,3}){2,5}$/.test(text) ? text.split('-').map(cardinal).join(' ') : null;

/** "10 - 20", "Mon - Fri". */
const dash = (tokens: Tokens, at: number): string | null => {
  if (!/^[-–—]$/.test(signOf(tokens, at))) return null;
  const before = at > 0 ? tokens.at(at - 1).core : '';
  const after = tokens.following(at)?.core ?? '';
  if (
    signOf(tokens, at) !== '—' &&
    [dayOf, monthOf].some((of) => of(before) !== undefined && of(after) !== undefined)
  )
    return 'to';
  if (!/\d|^[ap]\.?m$/i.test(before) || !/^[$€£¥]?\d/.test(after)) return null;
  return 'to';
};

/** 5—not 6: each piece beside a long dash is read by itself. */
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
  const size = sizeOf(core);
  const unit = size === null || tokens.next(at) === undefined ? null : unitAt(tokens, at + 1);
  if (size !== null && unit !== null) return say(size, unit.many);
  return sayIf(rowOf(core) ?? size ?? ratioOf(core) ?? rangeOf(core) ?? joinedByDash(core));
};

const groupsMax = 5;

/** "1 000 000": groups of three digits that end in 000, so that it is not a row of numbers. */
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
  if (!/[\d½¼¾⅐-⅞]/.test(core)) return null;
  const owned = /^(?<number>\d{1,4})'s$/.exec(core)?.groups?.['number'];
  if (owned !== undefined) return sayIf(`${numberWords(owned)!}'s`);
  const quantity = quantityOf(core) ?? (/\.\d{3},/.test(core) ? quantityOf(withPoint(core)) : null);
  return spaced(tokens, at) ?? sayIf(quantity?.spoken ?? listOf(core));
};

/** `12"`: a straight quote after a number that opens no quotation and closes none. */
const isInch = (tokens: Tokens, at: number): boolean => {
  const { lead, tail, quoted } = tokens.at(at);
  return tail.startsWith('"') && !quoted && !/["“]/.test(lead);
};

const lengthOf = (core: string): { spoken: string; isOne: boolean } | null => {
  const fraction = fractionOf(core)?.words ?? null;
  return fraction === null ? quantityOf(core) : { spoken: fraction.replace(/s$/, ''), isOne: true };
};

const inch = (tokens: Tokens, at: number): Reading | null => {
  const { core, tail } = tokens.at(at);
  const amount = isInch(tokens, at) ? lengthOf(core) : null;
  if (amount === null) return null;
  const next = tokens.following(at);
  const isSingular = amount.isOne || (tail === '"' && next !== undefined && isSized(tokens, at, next.core));
  return { parts: [{ core: `${amount.spoken} ${isSingular ? 'inch' : 'inches'}`, tail: tail.slice(1) }] };
};

/** "a 12" pizza": the length describes what follows. */
const isSized = (tokens: Tokens, at: number, next: string): boolean =>
  isAttributive(tokens, at, at) ||
  (/^an?$/i.test(tokens.previous(at)?.core ?? '') && /^\p{Ll}{3,}$/u.test(next));

/** `5' 10"`, `6' tall`, `10'x12'`, `10' x 12'`. */
const feet = (tokens: Tokens, at: number): Reading | null => {
  const { core, lead, tail } = tokens.at(at);
  const [, width, length] = /^(\d{1,3})['′][x×](\d{1,3})$/.exec(core) ?? [];
  if (width !== undefined && length !== undefined && /^['’′]/.test(tail))
    return { parts: [{ core: `${cardinal(width)} by ${cardinal(length)} feet`, tail: tail.slice(1) }] };
  if (!/^\d{1,3}$/.test(core) || !/^['’′]$/.test(tail) || /['‘]/.test(lead)) return null;
  const next = tokens.following(at);
  const other = /^[x×]$/.test(next?.core ?? '') ? tokens.following(at + 1) : undefined;
  if (other !== undefined && /^\d{1,3}$/.test(other.core) && /^['’′]/.test(other.tail)) {
    const last = { core: `${cardinal(other.core)} feet`, tail: other.tail.slice(1) };
    return { parts: [{ core: cardinal(core), tail: '' }, { core: 'by' }, last] };
  }
  const isPair = next !== undefined && /^\d{1,2}$/.test(next.core) && isInch(tokens, at + 1);
  if (!isPair && !(sizes.has(next?.core ?? '') || /^(?:away|above|below)$/.test(next?.core ?? '')))
    return null;
  const amount = quantityOf(core)!;
  return { parts: [{ core: `${amount.spoken} ${amount.isOne ? 'foot' : 'feet'}`, tail: '' }] };
};

export const inches: Rule = (tokens, at) => {
  const { core, tail } = tokens.at(at);
  return /^['’′"]/.test(tail) && /\d$/.test(core) ? (feet(tokens, at) ?? inch(tokens, at)) : null;
};
