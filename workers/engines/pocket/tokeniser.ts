/**
 * SentencePiece's unigram tokeniser: the pieces whose scores have the largest sum. Its file is small and its rule is short;
 * the packages that have it need a compiler or bring megabytes of WebAssembly.
 */
import { VoicePackError } from '../../../src/threads/voices.js';
import { type Field, bufferSource, fieldsOf, textOf } from '../graph/wire.js';

/** Types of pieces, by the numbers of SentencePiece. */
const types = { normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 } as const;

interface Piece {
  readonly text: string;
  readonly score: number;
  readonly type: number;
}

/** Can be cloned to threads. */
export interface Vocabulary {
  readonly pieces: readonly Piece[];
  /** Compatible characters count as one: full-width letters, ligatures. */
  readonly isCompatible: boolean;
  /** A text begins as if a space were before it. */
  readonly addsSpace: boolean;
  /** Spaces in a row count as one, and those at the ends are dropped. */
  readonly joinsSpaces: boolean;
}

const space = '▁';
/** Subtracted from the score of the rarest piece: an unknown character is the last choice. */
const unknownPenalty = 10;
const unigram = 1;

const pieceOf = (bytes: Buffer): Piece => {
  const source = bufferSource(bytes);
  let piece: Piece = { text: '', score: 0, type: types.normal };
  for (const field of fieldsOf(source)) {
    if (field.number === 1) piece = { ...piece, text: textOf(source, field) };
    else if (field.number === 2) piece = { ...piece, score: bytes.readFloatLE(field.from) };
    else if (field.number === 3) piece = { ...piece, type: field.value };
  }
  return piece;
};

/** UTF-16 units of a piece that is looked for. SentencePiece makes pieces of 16 by default. */
const pieceUnitsMax = 64;
/** Real vocabularies have some thousands. Each thread gets a copy, and the front thread makes it. */
const piecesMax = 100_000;

const tooLarge = (path: string): VoicePackError =>
  new VoicePackError(
    `${path}: it has more than ${piecesMax} pieces: this is not the tokeniser of Pocket TTS`,
  );

/** @param path for messages. @throws {VoicePackError} */
export const parseSentencePiece = (path: string, bytes: Buffer): Vocabulary => {
  const source = bufferSource(bytes);
  const pieces: Piece[] = [];
  let model: number = unigram;
  let rules = { isCompatible: true, addsSpace: true, joinsSpaces: true };
  const inner = ({ from, to }: Field) => bytes.subarray(from, to);
  try {
    for (const field of fieldsOf(source)) {
      if (pieces.length > piecesMax) break;
      if (field.number === 1) pieces.push(pieceOf(inner(field)));
      else if (field.number === 2) {
        for (const { number, value } of fieldsOf(bufferSource(inner(field)))) if (number === 3) model = value;
      } else if (field.number === 3) {
        const normaliser = bufferSource(inner(field));
        for (const part of fieldsOf(normaliser))
          if (part.number === 1)
            rules = { ...rules, isCompatible: textOf(normaliser, part).includes('nfkc') };
          else if (part.number === 3) rules = { ...rules, addsSpace: part.value !== 0 };
          else if (part.number === 4) rules = { ...rules, joinsSpaces: part.value !== 0 };
      }
    }
  } catch {
    throw new VoicePackError(`${path}: not a SentencePiece model, or a part of one: download it again`);
  }
  if (model !== unigram)
    throw new VoicePackError(
      `${path}: a SentencePiece model of type ${model}: only unigram (1) is supported`,
    );
  if (pieces.length > piecesMax) throw tooLarge(path);
  if (pieces.length === 0) throw new VoicePackError(`${path}: not a SentencePiece model: it has no pieces`);
  return { pieces, ...rules };
};

/**
 * The form without SentencePiece: ids by piece, and scores by piece or in the order of the ids.
 *
 * @param path for messages. @throws {VoicePackError}
 */
export const parseVocabulary = (path: string, vocabulary: unknown, scores: unknown): Vocabulary => {
  const isTable = (value: unknown): value is Readonly<Record<string, number>> =>
    typeof value === 'object' &&
    value !== null &&
    Object.values(value).every((entry) => typeof entry === 'number');
  if (!isTable(vocabulary) || !isTable(scores))
    throw new VoicePackError(`${path}: it must map each piece to its number`);
  const entries = Object.entries(vocabulary);
  if (entries.length > piecesMax) throw tooLarge(path);
  const pieces: Piece[] = [];
  for (const [text, id] of entries) {
    const isByte = /^<0x[0-9A-F]{2}>$/.test(text);
    const type = text === '<unk>' ? types.unknown : isByte ? types.byte : types.normal;
    const isControl = /^<(?:s|\/s|pad)>$/.test(text);
    pieces[id] = { text, score: scores[text] ?? scores[id] ?? 0, type: isControl ? types.control : type };
  }
  if (pieces.length !== entries.length || pieces.includes(undefined as never))
    throw new VoicePackError(`${path}: its numbers must be 0, 1, 2 ... without a gap`);
  return { pieces, isCompatible: true, addsSpace: true, joinsSpaces: false };
};

export class Tokeniser {
  readonly #vocabulary: Vocabulary;
  readonly #ids = new Map<string, number>();
  readonly #scores: readonly number[];
  readonly #bytes: (number | undefined)[] = [];
  readonly #unknown: number;
  readonly #unknownScore: number;
  readonly #unitsMax: number;

  constructor(vocabulary: Vocabulary) {
    const { pieces } = vocabulary;
    this.#vocabulary = vocabulary;
    const normal = pieces.filter(({ type }) => type === types.normal).map(({ score }) => score);
    const highest = normal.reduce((a, b) => Math.max(a, b), -Infinity);
    this.#unknownScore = normal.reduce((a, b) => Math.min(a, b), 0) - unknownPenalty;
    this.#unknown = Math.max(
      0,
      pieces.findIndex(({ type }) => type === types.unknown),
    );
    this.#scores = pieces.map(({ type, text, score }) =>
      // User-defined pieces always win.
      type === types.userDefined ? text.length * highest - 0.1 : score,
    );
    let unitsMax = 1;
    for (const [id, { text, type }] of pieces.entries()) {
      if (type === types.byte) this.#bytes[Number.parseInt(text.slice(3, 5), 16)] = id;
      else if (type === types.normal || type === types.userDefined) {
        this.#ids.set(text, id);
        unitsMax = Math.max(unitsMax, text.length);
      }
    }
    this.#unitsMax = Math.min(unitsMax, pieceUnitsMax);
  }

  encode(text: string): number[] {
    const normal = this.#normalise(text);
    /** For each offset: the best division of the text up to it. */
    const best: ({ readonly score: number; readonly from: number; readonly id: number } | undefined)[] = [
      { score: 0, from: 0, id: -1 },
    ];
    const offer = (from: number, to: number, id: number, score: number): void => {
      const sum = best[from]!.score + score;
      if (best[to] === undefined || sum > best[to].score) best[to] = { score: sum, from, id };
    };
    for (let from = 0; from < normal.length; from += sizeAt(normal, from)) {
      if (best[from] === undefined) continue;
      const next = from + sizeAt(normal, from);
      let hasSingle = false;
      for (let to = next; to <= Math.min(normal.length, from + this.#unitsMax); to++) {
        const id = this.#ids.get(normal.slice(from, to));
        if (id === undefined) continue;
        hasSingle ||= to === next;
        offer(from, to, id, this.#scores[id]!);
      }
      if (!hasSingle) offer(from, next, this.#unknown, this.#unknownScore);
    }
    const ids: number[] = [];
    for (let to = normal.length; to > 0; to = best[to]!.from) {
      const { from, id } = best[to]!;
      if (id !== this.#unknown) ids.push(id);
      else ids.push(...this.#unknownIds(normal.slice(from, to), ids.at(-1)).reverse());
    }
    return ids.reverse();
  }

  /** The bytes of an unknown character, if the vocabulary has them. Otherwise unknown characters in a row are one. */
  #unknownIds(character: string, after: number | undefined): number[] {
    const ids = [...Buffer.from(character, 'utf8')].map((byte) => this.#bytes[byte]);
    if (ids.every((id) => id !== undefined)) return ids;
    return after === this.#unknown ? [] : [this.#unknown];
  }

  #normalise(text: string): string {
    const { isCompatible, addsSpace, joinsSpaces } = this.#vocabulary;
    let normal = isCompatible ? text.normalize('NFKC').replaceAll(/\s/g, ' ') : text;
    if (joinsSpaces) normal = normal.replaceAll(/ +/g, ' ').replaceAll(/^ | $/g, '');
    if (addsSpace && normal !== '') normal = ` ${normal}`;
    return normal.replaceAll(' ', space);
  }
}

const sizeAt = (text: string, at: number): number => (text.codePointAt(at)! > 0xffff ? 2 : 1);
