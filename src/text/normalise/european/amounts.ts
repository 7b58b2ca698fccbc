/** Numbers as the languages of this folder write them: `1.234,5`, `1 234`, `-3`, `½`, `10-20`. */
import { partsOfVulgar, vulgarSigns } from '../tokens.js';
import type { Gender, Grammar, Noun } from './grammar.js';

export interface Amount {
  readonly spoken: string;
  /** The singular follows. */
  readonly isOne: boolean;
}

/** Longest string of digits read as a number; a longer one is read digit by digit. */
const countedDigitsMax = 15;
/** From this length, digits without separators are an account, telephone or order number. */
const uncountedFrom = 9;

/**
 * Decimals as a number, after their leading zeros; one by one if there are more than `countedMax`.
 *
 * @param cardinal of the language
 */
export const decimalsBy =
  (cardinal: Grammar['cardinal'], countedMax: number): Grammar['decimals'] =>
  (digits) => {
    const [zeros] = /^0*/.exec(digits)!;
    const rest = digits.slice(zeros.length);
    const counted = rest.length > countedMax ? Array.from(rest) : rest === '' ? [] : [rest];
    return [...Array.from(zeros), ...counted].map((part) => cardinal(part)).join(' ');
  };

export const digitsOf = (grammar: Grammar, digits: string): string =>
  Array.from(digits, (digit) => grammar.cardinal(digit)).join(' ');

/** A whole number; long ones and those with a leading zero digit by digit. */
const wholeOf = (grammar: Grammar, digits: string, before?: Gender): string =>
  digits.length > countedDigitsMax || /^0\d/.test(digits)
    ? digitsOf(grammar, digits)
    : grammar.cardinal(digits, before);

/** The patterns of a language. */
interface Forms {
  readonly number: RegExp;
  readonly single: RegExp;
  readonly range: RegExp;
  readonly groups: RegExp;
}

const made = new WeakMap<Grammar, Forms>();

const formsOf = (grammar: Grammar): Forms => {
  const known = made.get(grammar);
  if (known !== undefined) return known;
  const { decimalMark: mark, groupMarks } = grammar;
  const whole = `\\d{1,3}(?:[${groupMarks}]\\d{3})+|\\d+`;
  // 20.5 is a decimal wherever it cannot be a group of thousands.
  const number = `(?<whole>${whole})(?:${mark}(?<decimals>\\d+)|[.,](?<other>\\d{1,2}|\\d{4,}))?|${mark}(?<bare>\\d+)`;
  const plain = `(?:(?:${whole})(?:${mark}\\d+|[.,](?:\\d{1,2}|\\d{4,})(?!\\d))?|${mark}\\d+)`;
  const forms = {
    number: new RegExp(`^(?:${number})$`),
    single: new RegExp(
      `^(?<prefix>[~≈<>≤≥±])?(?<sign>[-−–+])?(?:(?<number>${plain})|(?<integer>\\d{1,9})?(?<vulgar>[${vulgarSigns}]))$`,
    ),
    range: new RegExp(
      `^(?<from>[-−]?[^-–—−]{1,24})(?:[-–—−]|\\.\\.\\.?)(?<to>${plain}|\\d*[${vulgarSigns}])$`,
    ),
    groups: new RegExp(`[${groupMarks}]`, 'g'),
  };
  made.set(grammar, forms);
  return forms;
};

/** An unsigned number; `null` if the text is none. */
export const numberOf = (grammar: Grammar, text: string, before?: Gender): Amount | null => {
  const { number, groups } = formsOf(grammar);
  const parts = number.exec(text)?.groups;
  if (parts === undefined) return null;
  const { words } = grammar;
  const decimals = parts['decimals'] ?? parts['other'] ?? parts['bare'];
  const written = parts['whole'];
  const whole = written?.replace(groups, '') ?? '0';
  if (decimals !== undefined)
    return {
      spoken: `${wholeOf(grammar, whole)} ${words.decimal} ${grammar.decimals(decimals)}`,
      isOne: grammar.singularBelowTwo && Number(whole) < 2,
    };
  const isCounted = written !== whole || whole.length < uncountedFrom;
  const spoken = isCounted ? wholeOf(grammar, whole, before) : grammar.phone(whole.match(/\d{1,3}/g)!);
  return { spoken, isOne: whole === '1' || (grammar.singularBelowTwo && whole === '0') };
};

const signOf = (grammar: Grammar, prefix = '', sign = ''): string => {
  const { words } = grammar;
  const before: Readonly<Record<string, string>> = {
    ...{ '~': words.about, '≈': words.about, '<': words.less, '>': words.more, '≤': words.atMost },
    ...{ '≥': words.atLeast, '±': words.plusMinus },
  };
  const minus = sign === '' ? '' : `${sign === '+' ? words.plus : words.minus} `;
  return `${prefix === '' ? '' : `${before[prefix]!} `}${minus}`;
};

const singleOf = (grammar: Grammar, text: string, before?: Gender): Amount | null => {
  const parts = formsOf(grammar).single.exec(text)?.groups;
  if (parts === undefined) return null;
  const sign = signOf(grammar, parts['prefix'], parts['sign']);
  if (parts['number'] !== undefined) {
    const amount = numberOf(grammar, parts['number'], before);
    return amount && { ...amount, spoken: sign + amount.spoken };
  }
  const [above, below] = partsOfVulgar(parts['vulgar']!);
  const part = grammar.part(Number(above), Number(below))!;
  const { integer } = parts;
  const spoken = integer === undefined ? part : grammar.mixed(integer, part);
  return { spoken: sign + spoken, isOne: integer === undefined };
};

/** One amount or a range. @param before the gender of the noun that follows */
export const amountOf = (grammar: Grammar, text: string, before?: Gender): Amount | null => {
  // A space between thousands counts as a mark between them.
  const compact = text.replace(/\s/g, grammar.groupMarks.charAt(0));
  const one = singleOf(grammar, compact, before);
  if (one !== null) return one;
  const { from, to } = formsOf(grammar).range.exec(compact)?.groups ?? {};
  if (from === undefined || to === undefined) return null;
  const first = singleOf(grammar, from);
  const last = singleOf(grammar, to, before);
  return first && last && { spoken: `${first.spoken} ${grammar.words.range} ${last.spoken}`, isOne: false };
};

/** An amount with a noun: "une heure", "zwei Stunden". */
export const countOf = (grammar: Grammar, text: string, noun: Noun): string | null => {
  const amount = amountOf(grammar, text, noun.gender);
  return amount && `${amount.spoken} ${amount.isOne ? noun.one : noun.many}`;
};
