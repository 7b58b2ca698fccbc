/** Boundaries of the Unicode rules within a text, as far as its next code point decides them. */

const boundaryOf = (granularity: 'grapheme' | 'word') => {
  const segmenter = new Intl.Segmenter('en', { granularity });
  return (text: string, from: number, at: number): number => {
    const next = text.codePointAt(at);
    const known = text.slice(from, at) + (next === undefined ? '' : String.fromCodePoint(next));
    return from + segmenter.segment(known).containing(at - from)!.index;
  };
};

/** The last boundary between user-perceived characters from `from` to `at`, as UTF-16 offsets. */
export const lastGraphemeBoundary = boundaryOf('grapheme');
/** The last boundary between words, or after their punctuation. */
export const lastWordBoundary = boundaryOf('word');
