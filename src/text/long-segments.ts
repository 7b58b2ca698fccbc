/** Segments that take long to say, divided between their words, and within a word that takes long itself. */
import { lastGraphemeBoundary } from './characters.js';
import { clauseAfter, clauseBefore } from './neighbours.js';
import { type Replacement, spokenUnits } from './replacements.js';
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

/** The places at which to cut a word, from `start` to `end`. */
const cutsWithin = (text: string, start: number, end: number, sizeMax: number): number[] => {
  const size = letters(text.slice(start, end));
  if (size <= sizeMax || end - start < 2) return [];
  const middle = lastGraphemeBoundary(text, start, Math.ceil((start + end) / 2));
  if (middle <= start) return [];
  return [...cutsWithin(text, start, middle, sizeMax), middle, ...cutsWithin(text, middle, end, sizeMax)];
};

/** Where each part starts but the first. A form is in one part. */
const cutsOf = ({ segment: { text, words }, spoken }: SpokenSegment, sizeMax: number): number[] => {
  const cuts: number[] = [];
  let size = 0;
  for (const { start, end, form } of spokenUnits(words, spoken)) {
    const more = form === undefined ? letters(text.slice(start, end)) : lettersOf(form);
    if (size > 0 && size + more > sizeMax) {
      cuts.push(start);
      size = 0;
    }
    const within = form === undefined ? cutsWithin(text, start, end, sizeMax) : [];
    cuts.push(...within);
    size += 1 + (within.length === 0 ? more : letters(text.slice(within.at(-1), end)));
  }
  return cuts;
};

/**
 * Parts of a segment, each of which takes no longer to say than `sizeMax` letters, unless a spoken form takes longer.
 *
 * @param code primary subtag of the language: `de`
 */
export const partsOf = (whole: SpokenSegment, sizeMax: number, code: string): readonly SpokenPart[] => {
  const { segment, spoken } = whole;
  const { text, words } = segment;
  const size = sizeOf(whole);
  const cuts = size <= sizeMax ? [] : cutsOf(whole, sizeMax);
  if (cuts.length === 0) return [{ ...whole, size }];
  const parts: SpokenPart[] = [];
  let { before, beforeIsWhole = false } = segment;
  for (const [place, from] of [0, ...cuts].entries()) {
    const isLast = place === cuts.length;
    const to = isLast ? text.length : cuts[place]!;
    const own = text.slice(from, to);
    const first = words.findIndex(({ end }) => end > from);
    const end = words.findLastIndex(({ start }) => start < to) + 1;
    const isWithin = !isLast && words[end - 1]!.end > to;
    const after = isLast ? segment.after : clauseAfter(own, end - first === 1, text.slice(to), true, code);
    const part: SpokenSegment = {
      segment: {
        text: own,
        words: words.slice(first, end).map((word) => ({
          start: Math.max(word.start - from, 0),
          end: Math.min(word.end - from, own.length),
        })),
        tokenContinues: isWithin || (isLast && segment.tokenContinues),
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
