/** Amounts with units and money: 5km, -5 °C, 10 %, 60 km/h, 5,50 €, $20, 3 Mio. €. */
import { type Reading, type Rule, say, sayIf, type Tokens } from '../tokens.js';
import { amountOf, countOf } from './amounts.js';
import type { Currency, Gender, Grammar, Noun } from './grammar.js';

const powers: Readonly<Record<string, 2 | 3>> = { '²': 2, '2': 2, '³': 3, '3': 3 };

/** The unit of a symbol: km, km², km/h, €/Monat. */
export const unitOf = (grammar: Grammar, symbol: string, attached: boolean): Noun | null => {
  if (symbol.length > 16 || (!attached && grammar.attachedOnly.has(symbol))) return null;
  const known = grammar.units.get(symbol);
  if (known !== undefined) return known;
  const { length = '', power = '' } = /^(?<length>[kcdm]?m)(?<power>[²³23])$/.exec(symbol)?.groups ?? {};
  if (length !== '') return grammar.power(grammar.units.get(length)!, powers[power]!);
  const stroke = symbol.indexOf('/');
  if (stroke <= 0) return null;
  const unit = unitOf(grammar, symbol.slice(0, stroke), attached);
  const rate = rateOf(grammar, symbol.slice(stroke + 1));
  return unit === null || rate === null
    ? null
    : { one: unit.one + rate, many: unit.many + rate, gender: unit.gender };
};

/** " pro Stunde": the words for what is after the stroke of a rate. */
const rateOf = (grammar: Grammar, text: string): string | null => {
  const name = unitOf(grammar, text, true)?.one ?? (/^\p{L}{3,12}$/u.test(text) ? text : null);
  return name === null || name === '' ? null : ` ${grammar.words.per} ${name}`;
};

const amountAndUnit = /^(?<amount>[^\p{L}°º%‰′″×/€£$¥]*[\d½¼¾⅐-⅞])\s?(?<unit>[\p{L}°º%‰′″×].*)$/u;

/** `5km` in one token. */
export const measureOf = (grammar: Grammar, text: string): string | null => {
  const { amount = '', unit: symbol = '' } = amountAndUnit.exec(text)?.groups ?? {};
  const unit = symbol === '' ? null : unitOf(grammar, symbol, true);
  return unit && countOf(grammar, amount, unit);
};

/** The full stop of "5 Min." belongs to the unit unless it ends the sentence. */
const tailOfUnit = (tokens: Tokens, at: number): string => {
  const { core, tail } = tokens.at(at);
  return /^(?:min|std|sek|sec|h|hrs|seg|km|pág|mio|mrd|tsd|m[dn])$/i.test(core.replace(/^\d+/, ''))
    ? tokens.tailOfAbbreviation(at)
    : tail;
};

const genders = new WeakMap<Grammar, ReadonlyMap<string, Gender>>();

/** The genders of nouns that are written out. */
const gendersOf = (grammar: Grammar): ReadonlyMap<string, Gender> => {
  const known = genders.get(grammar);
  if (known !== undefined) return known;
  const { units, currencies, scales, feminine } = grammar;
  const found = new Map<string, Gender>();
  for (const table of [units, currencies, scales])
    for (const { one, many, gender } of table.values()) found.set(one, gender).set(many, gender);
  for (const noun of feminine) found.set(noun, 'f');
  genders.set(grammar, found);
  return found;
};

export const measures =
  (grammar: Grammar): Rule =>
  (tokens, at) => {
    const { core } = tokens.at(at);
    if (!/[\d½¼¾⅐-⅞]/.test(core)) return null;
    const attached = measureOf(grammar, core);
    if (attached !== null) return { parts: [{ core: attached, tail: tailOfUnit(tokens, at) }] };
    const next = tokens.next(at);
    if (next === undefined) return null;
    const scale = /^[°º]$/.test(next.core) ? tokens.next(at + 1) : undefined;
    const degrees = scale === undefined ? null : unitOf(grammar, `°${scale.core}`, true);
    const temperature = degrees === null ? null : countOf(grammar, core, degrees);
    if (scale !== undefined && temperature !== null)
      return { parts: [{ core: temperature, tail: scale.tail }], count: 3 };
    // "1 Stunde", "21 libras": the noun is written out, and the number agrees with it.
    const gender = gendersOf(grammar).get(next.core);
    if (gender !== undefined) return sayIf(amountOf(grammar, core, gender)?.spoken ?? null);
    const unit = unitOf(grammar, next.core, false) ?? grammar.scales.get(next.core) ?? null;
    const amount = unit && amountOf(grammar, core, unit.gender);
    if (unit === null || amount === null) return null;
    const name = amount.isOne ? unit.one : unit.many;
    const isScale = !grammar.units.has(next.core) && grammar.scales.has(next.core);
    const currency = isScale ? grammar.currencies.get(tokens.nextAfterStop(at + 1)?.core ?? '') : undefined;
    if (currency !== undefined)
      return {
        parts: [
          {
            core: `${amount.spoken} ${grammar.scaled(name, currency.many)}`,
            tail: tokens.at(at + 2).tail,
          },
        ],
        count: 3,
      };
    return { parts: [{ core: amount.spoken }, { core: name, tail: tailOfUnit(tokens, at + 1) }] };
  };

const symbols = String.raw`(?:US|CA|A|NZ|HK|R)?\$|[€£¥₹₽₩₺₿]|CHF|EUR|USD|GBP`;
const scale = String.raw`(?:k|M|Mio|Mrd|Md|mn|bn|B)`;
const before = new RegExp(
  `^(?<sign>[-−+~≈<>]?)(?<symbol>${symbols})(?<amount>[-−]?\\d[\\d.,']*)(?<scale>${scale})?(?:/(?<rate>\\p{L}+))?$`,
  'u',
);
const after = new RegExp(
  `^(?<amount>[-−+~≈<>]?\\d[\\d\\s.,'–-]*?)\\s?(?<scale>${scale})?(?<symbol>${symbols})(?:/(?<rate>\\p{L}+))?$`,
  'u',
);

interface Sum {
  readonly amount: string;
  readonly currency: Currency;
  readonly scale?: Noun | undefined;
  readonly rate: string;
}

const sumOf = (grammar: Grammar, text: string): Sum | null => {
  const parts = (before.exec(text) ?? after.exec(text))?.groups;
  const currency = grammar.currencies.get(parts?.['symbol'] ?? '');
  if (parts === undefined || currency === undefined) return null;
  const rate = parts['rate'] === undefined ? '' : rateOf(grammar, parts['rate']);
  const scaleNoun = parts['scale'] === undefined ? undefined : grammar.scales.get(parts['scale']);
  if (rate === null || (parts['scale'] !== undefined && scaleNoun === undefined)) return null;
  return { amount: `${parts['sign'] ?? ''}${parts['amount']!}`, currency, scale: scaleNoun, rate };
};

/** `5,50`, with two decimals: units and hundredths. */
const priceOf = (grammar: Grammar, amount: string, currency: Currency): string | null => {
  const compact = amount.replace(/\s/g, '');
  const {
    sign = '',
    whole = '',
    cents = '',
  } = /^(?<sign>[-−+~≈<>]?)(?<whole>\d[\d.,']*?)[.,](?<cents>\d\d|-{1,2}|–|—)$/.exec(compact)?.groups ?? {};
  if (whole === '') return null;
  if (/^\D+$|^00$/.test(cents)) return countOf(grammar, sign + whole, currency);
  if (currency.cents === null) return null;
  const hundredths = countOf(grammar, String(Number(cents)), currency.cents);
  if (/^0$/.test(whole)) return hundredths;
  const units = countOf(grammar, sign + whole, currency);
  return units && grammar.price(units, grammar.cardinal(String(Number(cents))));
};

const sumWords = (grammar: Grammar, { amount, currency, scale: scaleNoun, rate }: Sum): string | null => {
  if (scaleNoun !== undefined) {
    const counted = amountOf(grammar, amount, scaleNoun.gender);
    const name = counted?.isOne === true ? scaleNoun.one : scaleNoun.many;
    return counted && `${counted.spoken} ${grammar.scaled(name, currency.many)}${rate}`;
  }
  const words = priceOf(grammar, amount, currency) ?? countOf(grammar, amount, currency);
  return words && words + rate;
};

/** `5 €`, `€5`, `5,50€`; `null` if the text is not an amount of money. */
export const moneyOf = (grammar: Grammar, text: string): string | null => {
  const sum = sumOf(grammar, text);
  return sum && sumWords(grammar, sum);
};

/** The sign is a token: "5 €", "€ 5", "5 Mio. €". */
const separate = (grammar: Grammar, tokens: Tokens, at: number): Reading | null => {
  const { core, lead } = tokens.at(at);
  const next = tokens.next(at);
  if (next === undefined) return null;
  if (!grammar.currencies.has(core) && !/^[-−+~≈<>]?\d/.test(core)) return null;
  const words = moneyOf(grammar, core + next.core);
  return words === null ? null : { parts: [{ core: words, lead, tail: next.tail }], count: 2 };
};

export const money =
  (grammar: Grammar): Rule =>
  (tokens, at) => {
    const { core } = tokens.at(at);
    const words = moneyOf(grammar, core);
    if (words !== null) {
      // "$5 million": the scale stands after the sum.
      const scaleWord = tokens.next(at)?.core ?? '';
      const sum = sumOf(grammar, core);
      if (sum !== null && /^(?:milli|milliard|millón|millones|mil$)/i.test(scaleWord)) {
        const amount = amountOf(grammar, sum.amount)?.spoken;
        if (amount !== undefined) return say(amount, grammar.scaled(scaleWord, sum.currency.many));
      }
      return say(words);
    }
    const pair = separate(grammar, tokens, at);
    if (pair !== null) return pair;
    // A sign by itself, as after a number in words.
    const alone = /^\W+$/.test(core) ? grammar.currencies.get(core) : undefined;
    return alone === undefined ? null : say(alone.many);
  };
