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
  for (let at = 0; at < text.length; at++) {
    const start = at;
    let bits = 0;
    for (; at < text.length; at++) {
      const unit = text.charCodeAt(at);
      // White space is always one UTF-16 unit, so surrogate pairs do not matter here.
      if (classOf(unit) & WHITE) break;
      bits |= unit;
    }
    const token = bits > 0x7f ? text.slice(start, at) : null;
    if (token !== null && needsDictionary(token)) dictionaryWords(token, start, spans);
    else if (at > start) spans.push({ start, end: at });
  }
  return spans;
};

/** Whether a text is only white space: there is nothing to speak. */
export const isBlank = (text: string): boolean => !/\P{White_Space}/u.test(text);
