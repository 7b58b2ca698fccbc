/**
 * Cuts a segment into pieces, each for one run of the model. Where it is cut depends on the text alone: so equal requests
 * have equal pieces on every thread.
 */
import type { Span } from '../../../src/threads/messages.js';
import { earlyPlace, earlyWordsMin } from '../../../src/text/early-place.js';
import type { PhonemicWord } from '../g2p/speech.js';
import { type Speller, type Vocabulary, idsOf } from './symbols.js';

/** A word as ids, with the space before it and the punctuation around it. */
export interface Token {
  /** Index in the words of the request; `null` if it belongs to none. */
  readonly word: number | null;
  readonly before: readonly number[];
  readonly sounds: readonly number[];
  readonly after: readonly number[];
  /** How a pause after it is marked. */
  readonly pause: Pause | null;
}

export type Pause = 'clause' | 'sentence';

export interface Piece {
  readonly tokens: readonly Token[];
  readonly pause: Pause | null;
  /** UTF-16 units of the text from its first to its last word. */
  readonly textUnits: number;
}

/**
 * The most ids of the first pieces, then of all others. The first is about three seconds of speech: first audio waits for
 * a run of it. The next ones can be longer, because a model that makes a second of speech in half a second gains time.
 */
const firstIdsMax: readonly number[] = [48, 80];
export const pieceIdsMax = 150;
/** The most ids of the marks at either side of a word. A word with more than a piece holds could not be divided. */
const marksMax = 16;
/** A piece ends at its last mark, if that is beyond this share of the piece. */
const markShareMin = 0.4;

const pauseOf = (marks: string): Pause | null => {
  if (/[.!?…]/.test(marks)) return 'sentence';
  return /[,;:—]/.test(marks) ? 'clause' : null;
};

const sizeOf = ({ before, sounds, after }: Token): number => 1 + before.length + sounds.length + after.length;

/** Words of more ids than a piece has are divided. */
const divided = (token: Token): Token[] => {
  const parts: Token[] = [];
  const room = pieceIdsMax - token.before.length - token.after.length - 1;
  for (let at = 0; at < token.sounds.length || at === 0; at += room) {
    const isLast = at + room >= token.sounds.length;
    parts.push({
      word: token.word,
      before: at === 0 ? token.before : [],
      sounds: token.sounds.slice(at, at + room),
      after: isLast ? token.after : [],
      pause: isLast ? token.pause : null,
    });
  }
  return parts;
};

export const tokensOf = (
  words: readonly PhonemicWord[],
  language: string,
  spell: Speller,
  vocabulary: Vocabulary,
): Token[] =>
  words.flatMap((word) => {
    const { before, sounds, after } = spell(word, language);
    return divided({
      word: word.word,
      before: idsOf(before, vocabulary).slice(-marksMax),
      sounds: idsOf(sounds, vocabulary),
      after: idsOf(after, vocabulary).slice(0, marksMax),
      pause: pauseOf(word.after),
    });
  });

/** The text that the tokens are of. */
export interface TokenText {
  /** Primary subtag: `de`. */
  readonly code: string;
  readonly text: string;
  readonly words: readonly Span[];
}

/** @returns the number of tokens of the piece that begins with the first of these */
const cutAt = (
  tokens: readonly Token[],
  idsMax: number,
  isEarly: boolean,
  { code, text, words }: TokenText,
): number => {
  let count = 0;
  for (let ids = 0; count < tokens.length; count++) {
    ids += sizeOf(tokens[count]!);
    if (ids > idsMax && count > 0) break;
  }
  if (count === tokens.length) return count;
  const known = tokens.slice(0, count);
  const isMark = ({ pause }: Token) => pause !== null;
  if (isEarly) {
    const mark = known.findIndex((token, place) => isMark(token) && place >= earlyWordsMin - 1);
    if (mark >= 0) return mark + 1;
    const last = known.findLast(({ word }) => word !== null)?.word ?? null;
    const place = last === null ? null : earlyPlace(text.slice(0, words[last]!.end), code);
    const next =
      place === null ? -1 : known.findIndex(({ word }) => word !== null && words[word]!.start >= place);
    return next > 0 ? next : count;
  }
  const mark = known.findLastIndex(({ pause }) => pause === 'sentence');
  if (mark + 1 >= count * markShareMin) return mark + 1;
  const weaker = known.findLastIndex(isMark);
  return weaker + 1 >= count * markShareMin ? weaker + 1 : count;
};

const unitsOf = (tokens: readonly Token[], { words }: TokenText): number => {
  const inText = tokens.flatMap(({ word }) => word ?? []);
  return inText.length === 0 ? 0 : words[inText.at(-1)!]!.end - words[inText[0]!]!.start;
};

/** @param isFirst first audio waits for it: the first pieces are short */
export const piecesOf = (tokens: readonly Token[], isFirst: boolean, text: TokenText): Piece[] => {
  const pieces: Piece[] = [];
  for (let at = 0; at < tokens.length;) {
    const early = isFirst ? firstIdsMax[pieces.length] : undefined;
    const count = cutAt(
      tokens.slice(at),
      early ?? pieceIdsMax,
      pieces.length === 0 && early !== undefined,
      text,
    );
    const part = tokens.slice(at, at + count);
    pieces.push({ tokens: part, pause: part.at(-1)!.pause, textUnits: unitsOf(part, text) });
    at += count;
  }
  return pieces;
};

/** The ids of a piece, and the token that each one is a sound of; -1 for punctuation and spaces. */
export interface PieceIds {
  readonly ids: readonly number[];
  readonly tokenOf: readonly number[];
}

/** @param closing follows a piece that ends without a mark */
export const idsOfPiece = ({ tokens, pause }: Piece, vocabulary: Vocabulary, closing: string): PieceIds => {
  const ids: number[] = [];
  const tokenOf: number[] = [];
  const add = (more: readonly number[], token: number) => {
    ids.push(...more);
    for (let i = 0; i < more.length; i++) tokenOf.push(token);
  };
  const space = idsOf(' ', vocabulary);
  for (const [place, { before, sounds, after }] of tokens.entries()) {
    if (place > 0) add(space, -1);
    add(before, -1);
    add(sounds, place);
    add(after, -1);
  }
  if (pause === null) add(idsOf(closing, vocabulary), -1);
  return { ids, tokenOf };
};
