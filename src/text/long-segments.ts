/** Segments that take long to say, divided between their words. */
import { clauseAfter, clauseBefore } from './neighbours.js';
import type { Replacement } from './replacements.js';
import type { Segment } from './segments.js';
import { letters, lettersOf, spokenSize } from './spoken-size.js';

/** A segment, and the forms that are spoken in place of some of its words. */
export interface SpokenSegment {
  readonly segment: Segment;
  readonly spoken: readonly Replacement[];
}

/** A part of a segment, and how long it takes to say, in letters. */
export interface SpokenPart extends SpokenSegment {
  readonly size: number;
}

const sizeOf = ({ segment: { text, words }, spoken }: SpokenSegment): number =>
  words.length === 0 ? 0 : spokenSize({ text, words, spoken });

/** The first word of each part. A form is in one part, and so is a word. */
const partStarts = ({ segment: { text, words }, spoken }: SpokenSegment, sizeMax: number): number[] => {
  const starts = [0];
  let size = 0;
  for (let first = 0, used = 0; first < words.length;) {
    const form = spoken[used]?.first === first ? spoken[used++] : undefined;
    const last = form?.last ?? first;
    const more =
      form === undefined ? letters(text.slice(words[first]!.start, words[first]!.end)) : lettersOf(form);
    if (size > 0 && size + more > sizeMax) {
      starts.push(first);
      size = 0;
    }
    size += more + 1;
    first = last + 1;
  }
  return starts;
};

/**
 * Parts of a segment, each of which takes no longer to say than `sizeMax` letters, unless it is one word.
 *
 * @param code primary subtag of the language: `de`
 */
export const partsOf = (whole: SpokenSegment, sizeMax: number, code: string): readonly SpokenPart[] => {
  const { segment, spoken } = whole;
  const { text, words } = segment;
  const size = sizeOf(whole);
  if (words.length < 2 || size <= sizeMax) return [{ ...whole, size }];
  const starts = partStarts(whole, sizeMax);
  const parts: SpokenPart[] = [];
  let { before, beforeIsWhole = false } = segment;
  for (const [place, first] of starts.entries()) {
    const isLast = place === starts.length - 1;
    const end = isLast ? words.length : starts[place + 1]!;
    const from = place === 0 ? 0 : words[first]!.start;
    const to = isLast ? text.length : words[end]!.start;
    const own = text.slice(from, to);
    const after = isLast ? segment.after : clauseAfter(own, end - first === 1, text.slice(to), true, code);
    const part: SpokenSegment = {
      segment: {
        text: own,
        words: words.slice(first, end).map((word) => ({ start: word.start - from, end: word.end - from })),
        tokenContinues: isLast && segment.tokenContinues,
        ...{ before, beforeIsWhole, after, speak: true },
      },
      spoken: spoken
        .filter((form) => form.first >= first && form.first < end)
        .map((form) => ({ ...form, first: form.first - first, last: form.last - first })),
    };
    parts.push({ ...part, size: sizeOf(part) });
    const known = before + own;
    const isWhole = before === '' || beforeIsWhole;
    before = after === '' ? '' : clauseBefore(known);
    beforeIsWhole = before !== '' && isWhole && before === known;
  }
  return parts;
};
