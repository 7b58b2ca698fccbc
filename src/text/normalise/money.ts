/** Money: $5, £1.50, €3.5M, $5 million, 20 USD, 50¢, $5/month, $5-$10. */
import { isAttributive, rateOf } from './measures.js';
import { cardinal, numberPattern, quantityOf } from './numbers.js';
import { type Reading, type Rule, say, type Tokens, wordSet } from './tokens.js';

interface Currency {
  readonly one: string;
  readonly many: string;
  /** The hundredths: singular, plural. */
  readonly cents?: readonly [one: string, many: string];
}

const cents = ['cent', 'cents'] as const;
const dollars = (of = ''): Currency => ({ one: `${of}dollar`, many: `${of}dollars`, cents });

const currencies: Readonly<Record<string, Currency>> = {
  $: dollars(),
  US$: dollars('U.S '),
  USD: dollars('U.S '),
  C$: dollars('Canadian '),
  CA$: dollars('Canadian '),
  CAD: dollars('Canadian '),
  A$: dollars('Australian '),
  AU$: dollars('Australian '),
  AUD: dollars('Australian '),
  NZ$: dollars('New Zealand '),
  NZD: dollars('New Zealand '),
  HK$: dollars('Hong Kong '),
  HKD: dollars('Hong Kong '),
  S$: dollars('Singapore '),
  SGD: dollars('Singapore '),
  '€': { one: 'euro', many: 'euros', cents },
  EUR: { one: 'euro', many: 'euros', cents },
  '£': { one: 'pound', many: 'pounds', cents: ['penny', 'pence'] },
  GBP: { one: 'British pound', many: 'British pounds', cents: ['penny', 'pence'] },
  '¥': { one: 'yen', many: 'yen' },
  JPY: { one: 'Japanese yen', many: 'Japanese yen' },
  CNY: { one: 'Chinese yuan', many: 'Chinese yuan' },
  CHF: { one: 'Swiss franc', many: 'Swiss francs' },
  R$: { one: 'Brazilian real', many: 'Brazilian reais' },
  '₹': { one: 'rupee', many: 'rupees' },
  INR: { one: 'Indian rupee', many: 'Indian rupees' },
  '₽': { one: 'ruble', many: 'rubles' },
  '₩': { one: 'won', many: 'won' },
  '₺': { one: 'lira', many: 'lira' },
  '₪': { one: 'shekel', many: 'shekels' },
  '₱': { one: 'peso', many: 'pesos' },
  '₿': { one: 'bitcoin', many: 'bitcoins' },
};

const scales: Readonly<Record<string, string>> = {
  k: 'thousand',
  m: 'million',
  mn: 'million',
  mm: 'million',
  b: 'billion',
  bn: 'billion',
  t: 'trillion',
  tn: 'trillion',
};
const scaleWords = wordSet('hundred thousand million billion trillion');

const symbol = String.raw`(?:US|CA?|AU?|NZ|HK|S|R)?\$|[€£¥₹₽₩₺₪₱₿]`;
const scale = String.raw`(?:k|mn|mm|m|bn|b|tn|t)`;
const form = new RegExp(
  `^(?<sign>[-−–+~<>≈≤≥]?)(?<symbol>${symbol})(?<minus>[-−]?)(?<amount>${numberPattern})` +
    `(?:[-–—](?:${symbol})?(?<to>${numberPattern}))?(?<scale>${scale})?(?<more>\\+)?` +
    `(?:(?:/|-per-)(?<rate>\\p{L}+)|-(?<compound>\\p{L}[\\p{L}-]*))?$`,
  'iu',
);
const after = new RegExp(
  `^(?<amount>[-−]?${numberPattern})(?<scale>${scale})?(?<symbol>[$€£¥₹₽₩₺₪₱₿]|[A-Z]{3})$`,
  'u',
);

/** `5.50` of a currency as a price: whole units and hundredths. */
const price = (amount: string, currency: Currency): string | null => {
  const [whole = '', hundredths] = amount.replaceAll(',', '').split('.');
  if (hundredths?.length !== 2 || currency.cents === undefined) return null;
  const units = `${cardinal(whole)} ${Number(whole) === 1 ? currency.one : currency.many}`;
  if (hundredths === '00') return units;
  const part = `${cardinal(hundredths)} ${currency.cents[Number(hundredths) === 1 ? 0 : 1]}`;
  return Number(whole) === 0 ? part : `${units} and ${part}`;
};

const amountWords = (amount: string): { words: string; isOne: boolean } => ({
  words: quantityOf(amount)?.spoken ?? amount,
  isOne: /^[-−]?1$/.test(amount),
});

type Parts = Readonly<Record<string, string | undefined>>;

interface Sum {
  /** Without the currency: "minus five", "one point five million". */
  readonly number: string;
  readonly currency: Currency;
  readonly isOne: boolean;
  /** The whole sum, if it reads as a price. */
  readonly price: string | null;
  readonly suffix: string;
  readonly compound: string | undefined;
}

const sumOf = (parts: Parts): Sum | null => {
  const currency = currencies[(parts['symbol'] ?? '').toUpperCase()];
  const amount = parts['amount'];
  if (currency === undefined || amount === undefined) return null;
  const before =
    quantityOf(`${parts['sign'] ?? ''}${parts['minus'] ?? ''}1`)?.spoken.replace(/one$/, '') ?? '';
  const { words, isOne } = amountWords(amount);
  const to = parts['to'];
  const multiple = parts['scale'] === undefined ? '' : ` ${scales[parts['scale'].toLowerCase()]!}`;
  const rate = parts['rate'] === undefined ? '' : rateOf(parts['rate']);
  if (rate === null) return null;
  const whole = to === undefined && multiple === '' ? price(amount, currency) : null;
  return {
    number: `${before}${words}${to === undefined ? '' : ` to ${amountWords(to).words}`}${multiple}`,
    currency,
    isOne: isOne && to === undefined && multiple === '',
    price: whole && before + whole,
    suffix: `${parts['more'] === undefined ? '' : ' plus'}${rate === '' ? '' : ` per ${rate}`}`,
    compound: parts['compound'],
  };
};

const sumWords = (sum: Sum, attributive: boolean): string => {
  const name = sum.isOne || attributive ? sum.currency.one : sum.currency.many;
  return `${sum.price ?? `${sum.number} ${name}`}${sum.suffix}`;
};

/** `$5`, `5€` in one token; `null` if the text is no money. */
export const moneyOf = (text: string): string | null => {
  const sum = sumOf((form.exec(text) ?? after.exec(text))?.groups ?? {});
  return sum?.compound === undefined ? sum && sumWords(sum, false) : null;
};

/** $5 million, €2.5 bn: the name of the currency comes after the scale. */
const scaled = (sum: Sum, tokens: Tokens, at: number): Reading | null => {
  const next = tokens.next(at)?.core ?? '';
  const word = scaleWords.has(next.toLowerCase())
    ? next
    : /^(?:mn|bn|tn)$/.test(next)
      ? scales[next]
      : undefined;
  if (word === undefined || sum.suffix !== '') return null;
  // "$5 million-plus" and similar forms are left to the voice.
  const name = isAttributive(tokens, at, at + 1) ? sum.currency.one : sum.currency.many;
  return say(sum.number, `${word} ${name}`);
};

/** The sign or code is a token: "$ 5", "USD 20", "20 EUR", "5 €". */
const separate = (tokens: Tokens, at: number): Reading | null => {
  const { core, lead } = tokens.at(at);
  const next = tokens.next(at);
  if (next === undefined) return null;
  if (Object.hasOwn(currencies, core)) {
    const amount = amountParts(next.core);
    const named = amount && sumOf({ ...amount, symbol: core });
    return named && { parts: [{ core: sumWords(named, false), lead, tail: next.tail }], count: 2 };
  }
  if (!Object.hasOwn(currencies, next.core)) return null;
  const amount = amountParts(core);
  const sum = amount && sumOf({ ...amount, symbol: next.core });
  return sum && say(sum.number, sum.isOne ? sum.currency.one : sum.currency.many);
};

const amountForm = new RegExp(`^(?<amount>[-−]?${numberPattern})(?<scale>${scale})?$`, 'i');
const amountParts = (text: string): Parts | null => amountForm.exec(text)?.groups ?? null;

export const money: Rule = (tokens, at) => {
  const { core } = tokens.at(at);
  const sum = sumOf((form.exec(core) ?? after.exec(core))?.groups ?? {});
  if (sum === null) return separate(tokens, at);
  // "a $5-million deal", "a $20-a-day habit".
  if (sum.compound !== undefined) {
    const [head = '', ...rest] = sum.compound.split('-');
    const scaleWord = scaleWords.has(head.toLowerCase());
    const tail = (scaleWord ? rest : [head, ...rest]).join(' ');
    return say(
      `${sum.number}${scaleWord ? ` ${head}` : ''} ${sum.currency.one}${tail === '' ? '' : ` ${tail}`}`,
    );
  }
  return scaled(sum, tokens, at) ?? say(sumWords(sum, isAttributive(tokens, at, at)));
};
