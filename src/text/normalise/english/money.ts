/** Money: $5, £1.50, €3.5M, $5 million, 20 USD, 50¢, $5/month, $5-$10. */
import { isAttributive, rateOf } from './measures.js';
import { cardinal, numberPattern, quantityOf, withPoint } from './numbers.js';
import { type Reading, type Rule, say, type Tokens, wordSet, wordTable } from '../tokens.js';

interface Currency {
  readonly one: string;
  readonly many: string;
  /** The hundredths: singular and plural. */
  readonly cents: readonly string[] | null;
}

/** Symbols, singular, plural, and the hundredths unless there are none: `c` cents, `p` pence. */
const currencyTable = wordTable(`
  $: dollar, dollars, c; US$ USD: U.S dollar, U.S dollars, c; C$ CA$ CAD: Canadian dollar, Canadian dollars, c;
  A$ AU$ AUD: Australian dollar, Australian dollars, c; NZ$ NZD: New Zealand dollar, New Zealand dollars, c;
  HK$ HKD: Hong Kong dollar, Hong Kong dollars, c; S$ SGD: Singapore dollar, Singapore dollars, c;
  € EUR: euro, euros, c; £: pound, pounds, p; GBP: British pound, British pounds, p; ¥: yen, yen;
  JPY: Japanese yen, Japanese yen; CNY: Chinese yuan, Chinese yuan; CHF: Swiss franc, Swiss francs;
  R$: Brazilian real, Brazilian reais; ₹: rupee, rupees; INR: Indian rupee, Indian rupees; ₽: ruble, rubles;
  ₩: won, won; ₺: lira, lira; ₪: shekel, shekels; ₱: peso, pesos; ₦: naira, naira; ₴: hryvnia, hryvnias; ฿: baht, baht; ₫: dong, dong; ₿: bitcoin, bitcoins
`);

const currencies = new Map<string, Currency>();
for (const [symbols, names] of currencyTable) {
  const [one = '', many = '', hundredths] = names.split(', ');
  const cents = hundredths === undefined ? null : hundredths === 'c' ? ['cent', 'cents'] : ['penny', 'pence'];
  for (const symbol of symbols.split(' ')) currencies.set(symbol, { one, many, cents });
}

const scales = wordTable(`
  k: thousand; m: million; mn: million; mm: million; b: billion; bn: billion; t: trillion; tn: trillion
`);
const scaleWords = wordSet('hundred thousand million billion trillion');

const symbol = String.raw`(?:US|CA?|AU?|NZ|HK|S|R)?\$|[€£¥₹₽₩₺₪₱₦₴฿₫₿]|(?:USD|EUR|GBP|CAD|AUD|JPY|INR|CHF)(?=\d)`;
const scale = String.raw`(?:k|mn|mm|m|bn|b|tn|t)`;
const form = new RegExp(
  `^(?<sign>[-−–+~<>≈≤≥]?)(?<symbol>${symbol})(?<minus>[-−]?)(?<amount>${numberPattern})` +
    `(?:[-–—](?:${symbol})?(?<to>${numberPattern}))?(?<scale>${scale})?(?<more>\\+)?` +
    `(?:(?:/|-per-)(?<rate>\\p{L}+)|-(?<compound>\\p{L}[\\p{L}-]*))?$`,
  'iu',
);
const after = new RegExp(
  `^(?<amount>[-−]?${numberPattern})(?<scale>${scale})?(?<symbol>[$€£¥₹₽₩₺₪₱₦₴฿₫₿]|[A-Z]{3})$`,
  'u',
);

/** `5.50` of a currency as a price: whole units and hundredths. */
const price = (amount: string, currency: Currency): string | null => {
  const [whole = '', digits] = amount.replaceAll(',', '').split('.');
  // $20.500 is a price, $20.506 is not.
  const hundredths = digits?.replace(/(?<=\d\d)(?<!\d\d0)0+$/, '');
  if (hundredths === undefined || hundredths.length > 2 || currency.cents === null) return null;
  const units = `${cardinal(whole)} ${Number(whole) === 1 ? currency.one : currency.many}`;
  // $20.5 is twenty dollars and fifty cents.
  const value = Number(hundredths.padEnd(2, '0'));
  if (value === 0) return units;
  const part = `${cardinal(String(value))} ${currency.cents[value === 1 ? 0 : 1]}`;
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

const countOf = (amount: string, { one, many }: Currency): string =>
  `${amountWords(amount).words} ${amount === '1' ? one : many}`;

const sumOf = (parts: Parts): Sum | null => {
  const currency = currencies.get((parts['symbol'] ?? '').toUpperCase());
  const amount = parts['amount'];
  if (currency === undefined || amount === undefined) return null;
  const before =
    quantityOf(`${parts['sign'] ?? ''}${parts['minus'] ?? ''}1`)?.spoken.replace(/one$/, '') ?? '';
  const { words, isOne } = amountWords(amount);
  const to = parts['to'];
  const multiple = parts['scale'] === undefined ? '' : ` ${scales.get(parts['scale'].toLowerCase())!}`;
  const rate = parts['rate'] === undefined ? '' : rateOf(parts['rate']);
  if (rate === null) return null;
  const single = to === undefined && multiple === '' ? price(amount, currency) : null;
  // $50.00-$100.00: two prices.
  const prices =
    to !== undefined && multiple === '' && /\./.test(amount + to)
      ? [price(amount, currency) ?? countOf(amount, currency), price(to, currency) ?? countOf(to, currency)]
      : null;
  const whole = prices === null ? single : prices.join(' to ');
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

const sumIn = (text: string): Sum | null => {
  const amount = withPoint(text);
  return sumOf((form.exec(amount) ?? after.exec(amount))?.groups ?? {});
};

/** `$5`, `5€` in one token; `null` if the text is not an amount of money. */
export const moneyOf = (text: string): string | null => {
  const sum = sumIn(text);
  return sum?.compound === undefined ? sum && sumWords(sum, false) : null;
};

/** $5 million, €2.5 bn: the name of the currency comes after the scale. */
const scaled = (sum: Sum, tokens: Tokens, at: number): Reading | null => {
  const next = tokens.next(at)?.core ?? '';
  const word = scaleWords.has(next.toLowerCase())
    ? next
    : /^(?:mn|bn|tn|[kmbt])$/i.test(next)
      ? scales.get(next.toLowerCase())
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
  if (currencies.has(core)) {
    const amount = amountParts(next.core);
    const named = amount && sumOf({ ...amount, symbol: core });
    return named && { parts: [{ core: sumWords(named, false), lead, tail: next.tail }], count: 2 };
  }
  const code = lowerCodes.has(next.core) ? next.core.toUpperCase() : next.core;
  if (!currencies.has(code)) return null;
  const amount = amountParts(core);
  const sum = amount && sumOf({ ...amount, symbol: code });
  return sum && say(sum.number, sum.isOne ? sum.currency.one : sum.currency.many);
};

/** Codes that are not words, even in lower case. */
const lowerCodes = wordSet('usd eur gbp cad aud inr jpy chf nzd');

const amountForm = new RegExp(`^(?<amount>[-−]?${numberPattern})(?<scale>${scale})?$`, 'i');
const amountParts = (text: string): Parts | null => amountForm.exec(withPoint(text))?.groups ?? null;

export const money: Rule = (tokens, at) => {
  const { core } = tokens.at(at);
  const sum = sumIn(core);
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
  const words = sumWords(sum, isAttributive(tokens, at, at));
  // "$5/mo. for a year": the full stop may be that of the rate.
  return scaled(sum, tokens, at) ?? { parts: [{ core: words, tail: tokens.tailOfAbbreviation(at) }] };
};
