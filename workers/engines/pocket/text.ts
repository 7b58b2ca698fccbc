/** The text of a segment as Pocket TTS needs it: in pieces with few tokens, each with the words that it speaks. */
import { silentForm, spellingsOf, spokenUnits } from '../../../src/text/replacements.js';
import type { SegmentRequest } from '../../../src/threads/messages.js';
import type { PocketConfig } from './models.js';

/** What the exports say about preparing a text. */
type TextRules = Pick<
  PocketConfig,
  'max_tokens_per_chunk' | 'pad_with_spaces_for_short_inputs' | 'remove_semicolons'
>;

/** A word of the segment within a text. */
interface PlacedWord {
  readonly word: number;
  readonly start: number;
  readonly end: number;
}

export interface Piece {
  /** Prepared for the tokeniser. */
  readonly text: string;
  /** Its words: index, and its weight in time, which is its length. */
  readonly words: readonly { readonly word: number; readonly weight: number }[];
  /** Frames after the model's end of speech that still belong to it, by the length of the text. */
  readonly framesAfterEnd: number;
}

/** The most words of a short text, and its treatment, are those of the reference. */
const shortWordsMax = 4;
const padding = ' '.repeat(8);
const letter = /[\p{L}\p{N}]/u;

/** Joins words, in their spoken forms. */
const placeWords = ({ text, words, spoken }: SegmentRequest): { text: string; words: PlacedWord[] } => {
  let joined = '';
  const placed: PlacedWord[] = [];
  for (const { first, form, ...written } of spokenUnits(words, spellingsOf(spoken))) {
    if (first > 0 && words[first - 1]!.end < written.start) joined += ' ';
    const start = joined.length;
    joined += form?.spoken.replaceAll(silentForm, '') ?? text.slice(written.start, written.end);
    const last = form?.last ?? first;
    for (let word = first; word <= last; word++) placed.push({ word, start, end: joined.length });
  }
  return { text: joined, words: placed };
};

const prepare = (text: string, rules: TextRules): { text: string; framesAfterEnd: number } => {
  let prepared = text.trim().replaceAll(/\s+/g, ' ');
  if (rules.remove_semicolons) prepared = prepared.replaceAll(';', ',');
  const words = prepared.split(' ').length;
  prepared = prepared.charAt(0).toUpperCase() + prepared.slice(1);
  if (/[\p{L}\p{N}]$/u.test(prepared)) prepared += '.';
  if (rules.pad_with_spaces_for_short_inputs && words <= shortWordsMax) prepared = padding + prepared;
  return { text: prepared, framesAfterEnd: (words <= shortWordsMax ? 3 : 1) + 2 };
};

/** Cuts a text after these marks and their white space. */
const cutAfter = (text: string, marks: RegExp): string[] => text.split(marks).filter((part) => part !== '');
const sentenceEnds = /(?=\S)(?<=[.!?…]["'”’)\]]*\s+)/u;
const clauseEnds = /(?=\S)(?<=[,;:]["'”’)\]]*\s+)/u;
const spaces = /(?<=\s)(?=\S)/u;

/**
 * Parts of at most `tokensMax` tokens, as far as the text can be cut: at sentences, else at clauses, else at spaces. Then
 * parts are joined while they fit, as in the reference, also across the ends of sentences.
 */
const partsOf = (text: string, tokensMax: number, countOf: (text: string) => number): string[] => {
  const cut = (whole: string, [marks, ...finer]: readonly RegExp[]): string[] =>
    marks === undefined || countOf(whole.trimEnd()) <= tokensMax
      ? [whole]
      : cutAfter(whole, marks).flatMap((part) => cut(part, finer));
  const joined: string[] = [];
  for (const part of cut(text, [sentenceEnds, clauseEnds, spaces])) {
    const before = joined.at(-1);
    if (before !== undefined && countOf((before + part).trimEnd()) <= tokensMax)
      joined[joined.length - 1] = before + part;
    else joined.push(part);
  }
  return joined;
};

/** @returns none if there is nothing to speak */
export const piecesOf = (
  request: SegmentRequest,
  rules: TextRules,
  countOf: (text: string) => number,
): Piece[] => {
  const { text, words } = placeWords(request);
  let from = 0;
  const pieces: Piece[] = [];
  for (const part of partsOf(text, rules.max_tokens_per_chunk, countOf)) {
    const to = from + part.length;
    const inside = words
      .filter(({ start }) => start >= from && start < to)
      .map(({ word, start, end }) => ({ word, weight: Math.max(1, end - start) }));
    from = to;
    if (letter.test(part)) pieces.push({ ...prepare(part, rules), words: inside });
    else if (pieces.length > 0) {
      const last = pieces.at(-1)!;
      pieces[pieces.length - 1] = { ...last, words: [...last.words, ...inside] };
    }
  }
  return pieces;
};
