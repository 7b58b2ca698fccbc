/** Splits tokens into what is spoken and the marks that make pauses. */

/** Signs that espeak-ng would take for markup or leave out. It reads all others itself. */
const signs: readonly string[] = ['-', '?', ':', '<', '>', '|', '^', '≤', '≥', '≠', '≈', '→', '[['];

/** Words of the signs, in their order. Without a list of its language, a sign is left out. */
const words: Readonly<Record<string, string>> = {
  en: 'minus,question mark,colon,less than,greater than,bar,caret,at most,at least,is not,about,to,double bracket',
  de: 'minus,Fragezeichen,Doppelpunkt,kleiner als,größer als,Strich,hoch,höchstens,mindestens,ungleich,ungefähr,bis,Klammer',
  fr: 'moins,point d’interrogation,deux points,inférieur à,supérieur à,barre,puissance,au plus,au moins,différent de,environ,vers,crochet',
  es: 'menos,signo de interrogación,dos puntos,menor que,mayor que,barra,elevado a,como máximo,al menos,distinto de,unos,a,corchete',
  it: 'meno,punto interrogativo,due punti,minore di,maggiore di,barra,elevato a,al massimo,almeno,diverso da,circa,a,parentesi',
  pt: 'menos,ponto de interrogação,dois pontos,menor que,maior que,barra,elevado a,no máximo,pelo menos,diferente de,cerca de,para,colchete',
  nl: 'min,vraagteken,dubbele punt,kleiner dan,groter dan,streep,tot de macht,hoogstens,minstens,ongelijk aan,ongeveer,naar,haakje',
  pl: 'minus,znak zapytania,dwukropek,mniejsze niż,większe niż,kreska,do potęgi,najwyżej,co najmniej,różne od,około,do,nawias',
  ru: 'минус,знак вопроса,двоеточие,меньше,больше,черта,в степени,не больше,не меньше,не равно,около,к,скобка',
  tr: 'eksi,soru işareti,iki nokta,küçüktür,büyüktür,çizgi,üzeri,en çok,en az,eşit değil,yaklaşık,ok,köşeli parantez',
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

/** @param scale k, m, b or bn after the amount */
const moneyOf = (code: string, currency: string, amount: string, scale: string | undefined): string => {
  // In speech, a currency comes after its amount. espeak-ng knows the names of the commonest signs.
  if (code !== 'en') return `${amount}${scale ?? ''} ${currency}`;
  const [one, many] = currencies[currency] ?? ['', ''];
  if (scale !== undefined) return `${amount} ${scales[scale.toLowerCase()] ?? ''} ${many}`;
  const cents = /^(.*)\.(\p{Nd}\p{Nd})$/u.exec(amount);
  const whole = cents?.[1] ?? amount;
  const name = whole === '1' ? one : many;
  return cents === null ? `${whole} ${name}` : `${whole} ${name} ${cents[2]}`;
};

const wordsOfSigns = new Map(Object.entries(words).map(([code, list]) => [code, list.split(',')]));

/** The words of a sign; the sign itself where espeak-ng reads it; '' for one that has no words. */
const signOf = (code: string, sign: string): string => {
  const known = wordsOfSigns.get(code)?.[signs.indexOf(sign === '−' ? '-' : sign)];
  return known ?? (signs.includes(sign) ? '' : sign);
};

/** How a clause ends: without a mark or with a comma, with a full stop, as a question, as an exclamation. */
export const terminals = { continuing: 0, period: 1, question: 2, exclamation: 3 } as const;
export type Terminal = (typeof terminals)[keyof typeof terminals];

export type Lexeme =
  | { readonly kind: 'spoken'; readonly text: string }
  | { readonly kind: 'break'; readonly terminal: Terminal; readonly text: string }
  /** A quote: no sound and no pause. */
  | { readonly kind: 'mark'; readonly text: string };

// Letters, digits and marks, and what may be inside a word: 3.14, don't, well-known, 10:30, 1,000, example.com.
const letter = String.raw`[\p{L}\p{M}\p{N}\u200c\u200d]`;
const connector = String.raw`(?:['’.\-‐‑](?=[\p{L}\p{N}])|(?<=\p{N})[,:](?=\p{N}))`;
const emojiTail = String.raw`[\ufe0e\ufe0f\u{1f3fb}-\u{1f3ff}]*`;
const emoji = String.raw`(?:\p{Extended_Pictographic}|\p{RI}{2})${emojiTail}(?:\u200d\p{Extended_Pictographic}${emojiTail})*`;

/**
 * One mark of emphasis: it stands at the start or end of what it marks, not between two words (5*3) and not alone. A ~ before a
 * number or a path is a sign.
 */
const opened = String.raw`(?<![^\s"'“‘«„¿¡([{<>*_~–—-])`;
const closed = String.raw`(?![^\s"'”’»)\]}<>*_~.,;:!?…–—-])`;
const emphasis = String.raw`${opened}(?:\*(?=[^\s./,;:)])|~(?=[\p{L}"'“‘*_(]))|(?<=[^\s([{])[*~]${closed}`;

const lexemes = new RegExp(
  [
    String.raw`(?<currency>[$€£¥₹₽₩])(?<amount>\p{Nd}+(?:[,.]\p{Nd}+)*)(?<scale>(?:k|m|bn|b)(?![\p{L}\p{N}]))?`,
    String.raw`(?<initials>\p{L}(?:\.\p{L})+(?=\.(?!\p{L})))`,
    String.raw`(?<word>${letter}+(?:${connector}${letter}+)*)`,
    String.raw`(?<emoji>${emoji})`,
    String.raw`(?<query>(?<=[a-z0-9/])\?(?=[a-z0-9]))`,
    String.raw`(?<scheme>:(?=//))`,
    String.raw`(?<pair>[-=]{1,2}>|!==?|[<>]=|(?<!.)===?(?!.))`,
    String.raw`(?<stop>[.!?…。｡؟।॥۔։።፧‽]+)`,
    String.raw`(?<minus>(?<![\p{L}\p{N}])[-−](?=\p{N}))`,
    String.raw`(?<pause>(?:[-–—―,;:()\]{}、，；：،؛·፣]|\[(?!\^?[1-9]\d{0,2}[\],–-]))+)`,
    String.raw`(?<decoration>[*#=~]{2,}|[_${'`'}]+)`,
    String.raw`(?<emphasis>${emphasis})`,
    String.raw`(?<about>(?<![\p{L}\p{N}])~(?=[\p{N}$€£¥]))`,
    String.raw`(?<sign>(?![´\u{1f3fb}-\u{1f3ff}])[\p{S}%@#/\\*&§¶†‰№|])`,
    String.raw`(?<silent>.)`,
  ].join('|'),
  'gisu',
);

const terminalOf = (stop: string): Terminal => {
  if (/[?؟፧‽]/.test(stop)) return terminals.question;
  return stop.includes('!') ? terminals.exclamation : terminals.period;
};

/** First parts of sequences that espeak-ng names: a woman, a man, flags, an eye. */
const namedSequence = /^[👩👨🏳🏴👁]/u;

/** Without skin tones and variants, which espeak-ng does not know; an unknown sequence as its parts. */
const plainEmoji = (emoji: string): string => {
  const plain = emoji.replace(/[\ufe0e\ufe0f\u{1f3fb}-\u{1f3ff}]/gu, '');
  if (!plain.includes('\u200d') || namedSequence.test(plain)) return plain;
  const [first = '', ...others] = plain.split('\u200d');
  if (/^[♀♂]$/.test(others[0]!)) return /^[🧔🕵]$/u.test(first) ? first : plain;
  return [first, ...others].join(' ');
};

/** Signs that stand for an apostrophe between two letters. */
const apostrophes = /(?<=\p{L})(?:[‘‛´ʻʼ′＇]|`(?=(?:s|t|d|m|ll|re|ve)(?!\p{L})))(?=\p{L})/giu;

/** Signs by their first two characters; the others are arrows. */
const signOfPair: Readonly<Record<string, string>> = { '!=': '≠', '<=': '≤', '>=': '≥', '==': '=' };

type Parts = Readonly<Record<string, string | undefined>>;

/** The lexeme of a match, or `null` if it is silent. */
const lexemeOf = (text: string, part: Parts, code: string): Lexeme | null => {
  const spoken = (words: string): Lexeme | null => (words === '' ? null : { kind: 'spoken', text: words });
  if (part['currency'] !== undefined)
    return spoken(moneyOf(code, part['currency'], part['amount'] ?? '', part['scale']));
  if (part['initials'] !== undefined) return spoken(`${text}.`);
  if (part['word'] !== undefined) return spoken(text.replace(/’/g, "'").replace(/[\ufe0e\ufe0f\u20e3]/g, ''));
  if (part['emoji'] !== undefined) return spoken(plainEmoji(text));
  if (part['emphasis'] !== undefined) return null;
  if (part['about'] !== undefined) return spoken(signOf(code, '≈'));
  if (part['query'] !== undefined) return spoken(signOf(code, '?'));
  if (part['scheme'] !== undefined) return spoken(signOf(code, ':'));
  if (part['pair'] !== undefined) return spoken(signOf(code, signOfPair[text.slice(0, 2)] ?? '→'));
  if (part['stop'] !== undefined) return { kind: 'break', terminal: terminalOf(text), text };
  if (part['minus'] !== undefined) return spoken(signOf(code, '-'));
  if (part['pause'] !== undefined && /^\[\[|\]\]$/.test(text)) return spoken(signOf(code, '[['));
  if (part['pause'] !== undefined) return { kind: 'break', terminal: terminals.continuing, text };
  if (part['sign'] !== undefined) return spoken(signOf(code, text));
  return /^["'«»“”„‘’‹›¡¿]$/.test(text) ? { kind: 'mark', text } : null;
};

/** @param token cleaned text without white space @param code of the language that signs are read in */
export const lex = (token: string, code = 'en'): Lexeme[] => {
  const result: Lexeme[] = [];
  let emojiBefore = '';
  const plural = token.replace(/\((?<=\p{L}\p{L}\()(e?s)\)/gu, '$1');
  const text = /[^\0-_a-\u007f]/.test(plural) ? plural.replace(apostrophes, "'") : plural;
  for (const match of text.matchAll(lexemes)) {
    const part: Parts = match.groups ?? {};
    // Five laughing faces in a row are spoken once.
    if (part['emoji'] !== undefined && match[0] === emojiBefore) continue;
    emojiBefore = part['emoji'] ?? '';
    const lexeme = lexemeOf(match[0], part, code);
    if (lexeme !== null) result.push(lexeme);
  }
  return result;
};
