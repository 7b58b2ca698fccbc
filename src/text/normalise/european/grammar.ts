/**
 * What differs between the languages that count, date and measure alike: German, French, Spanish. Each is one file of data
 * with its own words for numbers. The rules beside this file are shared.
 */
import type { AddressWords, Rule } from '../tokens.js';

/** Of the noun after a number: it changes the form of one. */
export type Gender = 'm' | 'f';

export interface Noun {
  readonly one: string;
  readonly many: string;
  readonly gender: Gender;
}

export interface Currency extends Noun {
  /** `null`: it has no hundredths. */
  readonly cents: Noun | null;
}

/** A date as numbers; the month counts from 1. */
export interface WrittenDate {
  readonly day: number;
  readonly month: number;
  /** Four digits. */
  readonly year: string | null;
}

export interface Grammar {
  readonly code: string;
  /** The mark before decimals, and the marks between thousands, as characters of a pattern. */
  readonly decimalMark: string;
  readonly groupMarks: string;
  /** @param before the gender of the noun that follows; absent if none does */
  cardinal(digits: string, before?: Gender): string;
  /** "1,5 million": the plural begins at two. */
  readonly singularBelowTwo: boolean;
  /** Decimals, without the integer. */
  decimals(digits: string): string;
  year(digits: string): string;
  date(date: WrittenDate, wordBefore: string): string;
  clock(hour: number, minute: number, second: number | null): string;
  /** The groups of a telephone number. */
  phone(groups: readonly string[]): string;
  /** Half, third ... @returns `null` if the part has no name */
  part(above: number, below: number): string | null;
  /** "zweieinhalb", "deux et demi". @param part of `part` */
  mixed(whole: string, part: string): string;
  /** Square or cubic. */
  power(unit: Noun, exponent: 2 | 3): Noun;
  /** An amount of money with units and hundredths. */
  price(units: string, cents: string): string;
  /** "millions d'euros": the name of a currency after a scale. */
  scaled(scale: string, currency: string): string;
  readonly months: readonly string[];
  /** From Monday on. */
  readonly weekdays: readonly string[];
  /** Letters of the short form of a weekday. */
  readonly weekdayLetters: number;
  readonly words: Words;
  readonly units: ReadonlyMap<string, Noun>;
  /** Units whose symbol is a common word or letter: only directly after the number. */
  readonly attachedOnly: ReadonlySet<string>;
  readonly currencies: ReadonlyMap<string, Currency>;
  /** Millions and the like, by their short forms. */
  readonly scales: ReadonlyMap<string, Noun>;
  /** Shortened words, by their form in lower case without the last full stop and without spaces. */
  readonly abbreviations: ReadonlyMap<string, string>;
  /** Those of them that need no full stop. */
  readonly bare: ReadonlySet<string>;
  /** Those of them that are words, too: shortened only beside a number. */
  readonly ambiguous: ReadonlySet<string>;
  /** Common feminine nouns, beside units and currencies, that a number agrees with. */
  readonly feminine: ReadonlySet<string>;
  /** Words before a number that is dialled. */
  readonly callCues: ReadonlySet<string>;
  /** Ordinal numbers, Roman numerals and other forms of its own, tried before the shared rules for numbers. */
  readonly ownRules: readonly Rule[];
}

/** Signs and small words between numbers. */
export interface Words extends Omit<AddressWords, 'cardinal' | 'letter'> {
  readonly decimal: string;
  readonly minus: string;
  readonly times: string;
  readonly divided: string;
  readonly isLess: string;
  readonly isMore: string;
  readonly isUnequal: string;
  readonly over: string;
  readonly range: string;
  readonly ratio: string;
  readonly size: string;
  readonly per: string;
  readonly about: string;
  readonly less: string;
  readonly more: string;
  readonly atMost: string;
  readonly atLeast: string;
  readonly plusMinus: string;
  readonly number: string;
  readonly section: string;
  readonly hashtag: string;
  readonly version: string;
}

/** `km: Kilometer; h: Stunde, Stunden, f`: symbols, singular, the plural unless it is the same, and `f`. */
export const nouns = (table: string): ReadonlyMap<string, Noun> => {
  const found = new Map<string, Noun>();
  for (const entry of table.split(';')) {
    const [symbols = '', names = ''] = entry.trim().split(': ');
    const [one = '', ...more] = names.split(', ');
    const gender = more.at(-1) === 'f' ? 'f' : 'm';
    const many = more[0] === undefined || more[0] === 'f' ? one : more[0];
    for (const symbol of symbols.split(' ')) found.set(symbol, { one, many, gender });
  }
  return found;
};

/** `€ EUR: Euro, Euro, Cent, Cent`: singular, plural and the same of the hundredths. `*` marks a feminine singular. */
export const currencyTable = (table: string): ReadonlyMap<string, Currency> => {
  const found = new Map<string, Currency>();
  const noun = (one: string, many: string): Noun => ({
    one: one.replace(/\*$/, ''),
    many,
    gender: one.endsWith('*') ? 'f' : 'm',
  });
  for (const entry of table.split(';')) {
    const [symbols = '', names = ''] = entry.trim().split(': ');
    const [one = '', many = '', cent, cents = ''] = names.split(', ');
    const currency = { ...noun(one, many), cents: cent === undefined ? null : noun(cent, cents) };
    for (const symbol of symbols.split(' ')) found.set(symbol, currency);
  }
  return found;
};
