/** Cleans text for a phonemiser, and splits tokens into what is spoken and the marks that make pauses. */

/**
 * Characters without a glyph, except line breaks and tabs: control characters, lone surrogates, private and
 * unassigned code points, and the replacement character, from which espeak-ng concludes another encoding. Joiners
 * stay: they build letters and emoji.
 */
const unspeakable = /(?![\t\n\r\u200c\u200d])[\p{C}\ufffd]/gu;

/**
 * Full-width, circled, mathematical and presentation forms: espeak-ng would read their code points. It knows symbols
 * such as ½, so they stay.
 */
const compatibility =
  /[\p{Nl}\u00aa\u00ba\u2100-\u214f\u2460-\u24ff\uf900-\ufdff\ufe70-\ufeff\uff00-\uffef]|[\u{1d400}-\u{1d7ff}]|[\ufb00-\ufb4f]/gu;

/** Removes from any string what cannot be spoken, and replaces look-alike letters. */
export const cleanText = (text: string): string =>
  text
    .toWellFormed()
    .normalize('NFC')
    .replace(unspeakable, '')
    .replace(compatibility, (character) => character.normalize('NFKC'));

/** How a clause ends: without a mark or with a comma, with a full stop, as a question, as an exclamation. */
export const terminals = { continuing: 0, period: 1, question: 2, exclamation: 3 } as const;
export type Terminal = (typeof terminals)[keyof typeof terminals];

export type Lexeme =
  | { readonly kind: 'spoken'; readonly text: string }
  | { readonly kind: 'break'; readonly terminal: Terminal };

// Letters, digits and marks, and what may be inside a word: 3.14, don't, well-known, 10:30, 1,000, example.com.
const letter = String.raw`[\p{L}\p{M}\p{N}\u200c\u200d]`;
const connector = String.raw`(?:['’.\-‐‑](?=[\p{L}\p{N}])|(?<=\p{N})[,:](?=\p{N}))`;
const emojiTail = String.raw`[\ufe0f\u{1f3fb}-\u{1f3ff}]*`;
const emoji = String.raw`(?:\p{Extended_Pictographic}|\p{RI}{2})${emojiTail}(?:\u200d\p{Extended_Pictographic}${emojiTail})*`;

const lexemes = new RegExp(
  [
    String.raw`(?<currency>[$€£¥₹₽₩])(?<amount>\p{Nd}+(?:[,.]\p{Nd}+)*)(?<scale>(?:k|m|bn|b)(?![\p{L}\p{N}]))?`,
    String.raw`(?<initials>\p{L}(?:\.\p{L})+(?=\.))`,
    String.raw`(?<word>${letter}+(?:${connector}${letter}+)*)`,
    String.raw`(?<emoji>${emoji})`,
    String.raw`(?<query>(?<=[a-z0-9/])\?(?=[a-z0-9]))`,
    String.raw`(?<scheme>:(?=//))`,
    String.raw`(?<stop>[.!?…。｡؟।॥۔։።፧‽]+)`,
    String.raw`(?<minus>(?<![\p{L}\p{N}])[-−](?=\p{N}))`,
    String.raw`(?<pause>[-–—―,;:()[\]{}、，；：،؛·፣]+)`,
    String.raw`(?<decoration>[*#=~]{2,}|[_${'`'}]+)`,
    String.raw`(?<sign>[\p{S}%@#/\\*&§¶†‰№|])`,
    String.raw`(?<silent>.)`,
  ].join('|'),
  'gisu',
);

/** Signs that espeak-ng would take for markup or leave out. It reads all others itself. */
const spokenSigns: Readonly<Record<string, string>> = {
  '<': 'less than',
  '>': 'greater than',
  '|': 'bar',
  '^': 'caret',
  '≤': 'at most',
  '≥': 'at least',
  '≠': 'is not',
  '≈': 'about',
  '→': 'to',
};

const currencies: Readonly<Record<string, readonly [one: string, many: string]>> = {
  $: ['dollar', 'dollars'],
  '€': ['euro', 'euros'],
  '£': ['pound', 'pounds'],
  '¥': ['yen', 'yen'],
  '₹': ['rupee', 'rupees'],
  '₽': ['rouble', 'roubles'],
  '₩': ['won', 'won'],
};

const scales: Readonly<Record<string, string>> = { k: 'thousand', m: 'million', b: 'billion', bn: 'billion' };

const money = (currency: string, amount: string, scale: string | undefined): string => {
  const [one, many] = currencies[currency] ?? ['', ''];
  if (scale !== undefined) return `${amount} ${scales[scale.toLowerCase()] ?? ''} ${many}`;
  const cents = /^(.*)\.(\p{Nd}\p{Nd})$/u.exec(amount);
  const whole = cents?.[1] ?? amount;
  const name = whole === '1' ? one : many;
  return cents === null ? `${whole} ${name}` : `${whole} ${name} ${cents[2]}`;
};

const terminalOf = (stop: string): Terminal => {
  if (/[?؟፧‽]/.test(stop)) return terminals.question;
  return stop.includes('!') ? terminals.exclamation : terminals.period;
};

type Parts = Readonly<Record<string, string | undefined>>;

/** The lexeme of a match, or `null` if it is silent. */
const lexemeOf = (text: string, part: Parts): Lexeme | null => {
  const spoken = (words: string): Lexeme => ({ kind: 'spoken', text: words });
  if (part['currency'] !== undefined)
    return spoken(money(part['currency'], part['amount'] ?? '', part['scale']));
  if (part['initials'] !== undefined) return spoken(`${text}.`);
  if (part['word'] !== undefined) return spoken(text.replace(/’/g, "'").replace(/[\ufe0e\ufe0f\u20e3]/g, ''));
  if (part['emoji'] !== undefined) return spoken(text);
  if (part['query'] !== undefined) return spoken('question mark');
  if (part['scheme'] !== undefined) return spoken('colon');
  if (part['stop'] !== undefined) return { kind: 'break', terminal: terminalOf(text) };
  if (part['minus'] !== undefined) return spoken('minus');
  if (part['pause'] !== undefined && /^\[\[|\]\]$/.test(text)) return spoken('double bracket');
  if (part['pause'] !== undefined) return { kind: 'break', terminal: terminals.continuing };
  if (part['sign'] !== undefined) return spoken(spokenSigns[text] ?? text);
  return null;
};

/** @param token cleaned text without white space */
export const lex = (token: string): Lexeme[] => {
  const result: Lexeme[] = [];
  let emojiBefore = '';
  for (const match of token.matchAll(lexemes)) {
    const part: Parts = match.groups ?? {};
    // Five laughing faces in a row are spoken once.
    if (part['emoji'] !== undefined && match[0] === emojiBefore) continue;
    emojiBefore = part['emoji'] ?? '';
    const lexeme = lexemeOf(match[0], part);
    if (lexeme !== null) result.push(lexeme);
  }
  return result;
};
