/**
 * What the segmenter asks Unicode: the classes of a code point, as bits, each looked up once; and the boundaries between
 * characters and words.
 */

export const WHITE = 1;
/** Breaks a line. */
export const NEWLINE = 2;
/** Ends a sentence: . ! ? … and their counterparts in other scripts. */
export const TERMINATOR = 4;
/** Ends a clause: , ; : – and their counterparts. */
export const CLAUSE = 8;
/** A quote, bracket or emphasis mark that may follow a terminator and belongs to it. */
export const CLOSER = 16;
/** A terminator or clause mark of a script that puts no white space after it. */
export const SPACELESS = 32;
/** One character takes about as long to say as three letters. */
export const DENSE = 64;
/** All characters that were looked up; alone, of letters, digits and signs that end nothing. */
export const KNOWN = 128;

/** Scripts without white space between words. */
const dictionaryScripts =
  '\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\u30fc\\p{Script=Thai}\\p{Script=Lao}' +
  '\\p{Script=Khmer}\\p{Script=Myanmar}';
const spacelessMarks = '。｡！？、､，；：';

const patterns: readonly (readonly [RegExp, number])[] = [
  [/\p{White_Space}/u, WHITE],
  [/[\n\r\v\f\u0085\u2028\u2029]/u, NEWLINE],
  [/[\p{Sentence_Terminal}\u2026]/u, TERMINATOR],
  [/[\p{Terminal_Punctuation}\u2013\u2014]/u, CLAUSE],
  [/[\p{Pe}\p{Pf}"'*_`]/u, CLOSER],
  [new RegExp(`[${spacelessMarks}]`, 'u'), SPACELESS],
  [/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u, DENSE],
];

const remembered = new Uint8Array(0x11_00_00);

const classify = (codePoint: number): number => {
  const character = String.fromCodePoint(codePoint);
  let bits = KNOWN;
  for (const [pattern, bit] of patterns) if (pattern.test(character)) bits |= bit;
  // In Unicode, sentence ends are terminal punctuation too; here a mark is one or the other.
  if (bits & TERMINATOR) bits &= ~CLAUSE;
  remembered[codePoint] = bits;
  return bits;
};

/** The bits of a code point; lone surrogates are allowed. */
export const classOf = (codePoint: number): number => remembered[codePoint] || classify(codePoint);

/** A Han character or Hangul syllable takes about as long to say as three Latin letters. */
export const weightOf = (bits: number): number => (bits & DENSE ? 3 : 1);

/** In code points, weighted. */
export const sizeOf = (text: string): number => {
  let size = 0;
  for (const character of text) size += weightOf(classOf(character.codePointAt(0)!));
  return size;
};

/** Whether a token must be divided into words: it holds writing without white space, or its punctuation. */
export const needsDictionary = (token: string): boolean => dictionary.test(token);

const dictionary = new RegExp(`[${dictionaryScripts}${spacelessMarks}]`, 'u');

const boundaryOf = (granularity: 'grapheme' | 'word') => {
  const segmenter = new Intl.Segmenter('en', { granularity });
  return (text: string, from: number, at: number): number => {
    const next = text.codePointAt(at);
    const known = text.slice(from, at) + (next === undefined ? '' : String.fromCodePoint(next));
    return from + segmenter.segment(known).containing(at - from)!.index;
  };
};

/**
 * The last boundary between user-perceived characters from `from` to `at`, as UTF-16 offsets. The code point at `at` counts:
 * it can belong to the character before it.
 */
export const lastGraphemeBoundary = boundaryOf('grapheme');
/** The same between words, or after their punctuation. */
export const lastWordBoundary = boundaryOf('word');
