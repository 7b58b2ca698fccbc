/** The words that timestamps report: the original tokens with their punctuation, as offsets into the original text. */
import { WHITE, classOf, needsDictionary } from './characters.js';

/** Half-open range of UTF-16 offsets into a text. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

const wordSegmenter = new Intl.Segmenter('en', { granularity: 'word' });
const opening = /^[\p{Ps}\p{Pi}]+$/u;

/**
 * Words of a token in writing without white space (你好。世界 gives 你好。 and 世界). Punctuation belongs to the word before
 * it, opening brackets and quotes to the word after them.
 */
const dictionaryWords = (token: string, offset: number, spans: Span[]): void => {
  let start = 0;
  let hasWord = false;
  let end = 0;
  for (const { segment, index, isWordLike } of wordSegmenter.segment(token)) {
    if (hasWord && (isWordLike === true || opening.test(segment))) {
      spans.push({ start: offset + start, end: offset + end });
      start = index;
      hasWord = false;
    }
    hasWord ||= isWordLike === true;
    end = index + segment.length;
  }
  spans.push({ start: offset + start, end: offset + end });
};

/**
 * Tokens of a text in order: maximal runs without Unicode White_Space. A run in a script without spaces (Chinese,
 * Japanese, Thai ...) is divided into its words.
 */
export const wordSpans = (text: string): Span[] => {
  const spans: Span[] = [];
  const addToken = (start: number, end: number) => {
    const token = text.slice(start, end);
    if (needsDictionary(token)) dictionaryWords(token, start, spans);
    else spans.push({ start, end });
  };
  let tokenStart = -1;
  for (let i = 0; i < text.length; i++) {
    // White space is always one UTF-16 unit, so surrogate pairs do not matter here.
    const white = (classOf(text.charCodeAt(i)) & WHITE) !== 0;
    if (white && tokenStart >= 0) {
      addToken(tokenStart, i);
      tokenStart = -1;
    } else if (!white && tokenStart < 0) tokenStart = i;
  }
  if (tokenStart >= 0) addToken(tokenStart, text.length);
  return spans;
};

/** Whether a text is only white space: there is nothing to speak. */
export const isBlank = (text: string): boolean => !/\P{White_Space}/u.test(text);
