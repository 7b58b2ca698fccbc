/** Turns atoms of text into phones, and finds the words of the text in what espeak-ng makes of them. */
import { forgetLastMatch } from '../../../src/last-match.js';
import { Latest } from '../../../src/latest.js';
import type { Bounds } from '../../../src/limits.js';
import type { Atom, Clause } from './clauses.js';
import type { Espeak } from './espeak.js';
import { type EspeakVoice, ipaVoice } from './languages.js';

/**
 * Finds which phones belong to which word where espeak-ng joined words ("was a"), split them ("1984") or both.
 *
 * The pronunciation of each word alone is aligned with the phones of the whole, by edit distance: sounds change between
 * neighbours, vowels above all, and a word prefers to start where a group of espeak-ng does.
 */

/** Costs of the edit distance; a deletion or an insertion costs 1. */
const vowelForVowel = 0.3;
const consonantForConsonant = 0.6;
const vowelForConsonant = 1.4;
/** Cost of a word that starts within a group. */
const insideGroup = 0.8;

/**
 * @param words phones of each word alone; a word may have none
 * @param spoken phones of the whole
 * @param startsGroup for each phone of `spoken`, whether a group begins there
 * @param isVowel whether a phone's id is that of a vowel
 * @returns for each word, where its phones begin in `spoken`; each ends where the next begins, the last at the end
 */
export const alignWords = (
  words: readonly (readonly number[])[],
  spoken: readonly number[],
  startsGroup: readonly boolean[],
  isVowel: (id: number) => boolean,
): number[] => {
  const width = spoken.length + 1;
  const boundary = (at: number) =>
    at === 0 || at === spoken.length || startsGroup[at] === true ? 0 : insideGroup;
  const exchange = (a: number, b: number) => {
    if (a === b) return 0;
    const vowel = isVowel(a);
    if (vowel !== isVowel(b)) return vowelForConsonant;
    return vowel ? vowelForVowel : consonantForConsonant;
  };

  // Row by row: the least cost of aligning the words so far with the first `at` phones.
  let costs = new Float64Array(width).fill(Number.POSITIVE_INFINITY);
  costs[0] = 0;
  const starts: Int32Array[] = [];
  for (const word of words) {
    let row = new Float64Array(width);
    let from = new Int32Array(width);
    // A word may take phones before its own first: what stands between two words goes to the later one.
    for (let at = 0; at < width; at++) {
      const enter = costs[at]! + boundary(at);
      const stretched = at > 0 ? row[at - 1]! + 1 : Number.POSITIVE_INFINITY;
      const entered = enter <= stretched;
      row[at] = entered ? enter : stretched;
      from[at] = entered ? at : from[at - 1]!;
    }
    for (const phone of word) {
      const next = new Float64Array(width);
      const nextFrom = new Int32Array(width);
      next[0] = row[0]! + 1;
      nextFrom[0] = from[0]!;
      for (let at = 1; at < width; at++) {
        const exchanged = row[at - 1]! + exchange(phone, spoken[at - 1]!);
        const left = row[at]! + 1;
        const put = next[at - 1]! + 1;
        if (exchanged <= left && exchanged <= put) {
          next[at] = exchanged;
          nextFrom[at] = from[at - 1]!;
        } else if (left <= put) {
          next[at] = left;
          nextFrom[at] = from[at]!;
        } else {
          next[at] = put;
          nextFrom[at] = nextFrom[at - 1]!;
        }
      }
      row = next;
      from = nextFrom;
    }
    costs = row;
    starts.push(from);
  }

  const result = new Array<number>(words.length);
  let end = spoken.length;
  for (let i = words.length - 1; i >= 0; i--) {
    end = starts[i]![end]!;
    result[i] = end;
  }
  if (result.length > 0) result[0] = 0;
  return result;
};

/** Phones in parallel arrays. Stress is 0 or 1. */
export interface PhoneString {
  readonly ids: number[];
  readonly stress: number[];
}

/** The numbered phones of a voice. */
export interface Phones {
  isVowel(id: number): boolean;
  /** The phones of one group of espeak-ng. */
  read(group: string, voice: EspeakVoice): PhoneString;
  /** Derives the stress of all phones of a word from that of its vowels. */
  spreadStress(word: PhoneString): number[];
}

/** Phones of one atom: ids, stress and word starts (0 or 1), in parallel arrays. */
export interface SpokenAtom {
  readonly ids: readonly number[];
  readonly stress: readonly number[];
  readonly wordStart: readonly number[];
  /** It continues the group of the atom before: espeak-ng says both as one ("for the"). */
  readonly joins: boolean;
}

/** A word that espeak-ng always reads as one group: no digits, no inner capitals, no signs. */
const plainWord = /^\p{Lu}?\p{Ll}+(?:'\p{Ll}+)?$/u;

/** Groups in a row, and where each begins. */
interface Sequence extends PhoneString {
  readonly startsGroup: boolean[];
}

/** UTF-16 units of a short word, whose sound depends on the next one ("a", "the"). */
const shortWordMax = 3;
/** The most short words at the end of a piece that are left for the next one. */
const shortWordsMax = 3;

/** The next atoms to pronounce at once: of one voice and within the bound. They do not end after a short word. */
const pieceOf = (atoms: readonly Atom[], from: number, lengthMax: number): Atom[] => {
  const first = atoms[from]!;
  const piece = [first];
  let length = first.spoken.length;
  for (let at = from + 1; at < atoms.length; at++) {
    const atom = atoms[at]!;
    if (atom.voice !== first.voice) return piece;
    length += atom.spoken.length + (atom.glued ? 0 : 1);
    if (length > lengthMax) {
      for (let back = 0; back < shortWordsMax && piece.length > 1; back++) {
        if (piece.at(-1)!.spoken.length > shortWordMax) break;
        piece.pop();
      }
      return piece;
    }
    piece.push(atom);
  }
  return piece;
};

/** What is pronounced at once in some clauses: the pieces of each. @param firstMax the bound of the first piece */
export const piecesOf = (
  clauses: readonly Pick<Clause, 'atoms'>[],
  lengthMax: number,
  firstMax = lengthMax,
): Atom[][][] => {
  let max = firstMax;
  return clauses.map(({ atoms }) => {
    const pieces: Atom[][] = [];
    for (let at = 0; at < atoms.length; at += pieces.at(-1)!.length) {
      pieces.push(pieceOf(atoms, at, max));
      max = lengthMax;
    }
    return pieces;
  });
};

/** UTF-16 units of a short text, whose pronunciation is kept. */
const shortTextMax = 48;

type PronunciationBounds = Pick<Bounds, 'pronunciationsKeptMs' | 'pronunciationsCachedMax'>;

export class Pronouncer {
  readonly #phones: Phones;
  readonly #espeak: Espeak;
  readonly #bounds: PronunciationBounds;
  /**
   * What espeak-ng made of short texts, the least recently used first. They are words of callers, so they are kept only
   * while one is spoken.
   */
  readonly #known: Latest<string, string[]>;
  #forgetting: NodeJS.Timeout | undefined;

  constructor(espeak: Espeak, phones: Phones, bounds: PronunciationBounds) {
    this.#espeak = espeak;
    this.#phones = phones;
    this.#bounds = bounds;
    this.#known = new Latest(bounds.pronunciationsCachedMax);
  }

  /**
   * @param atoms of one voice, without a pause between them, at most `bounds.phonemeTextMax` UTF-16 units in all
   * @param segment pieces that are to come. If some are in another voice, the short ones in this voice are pronounced as well,
   *   and kept: to change the voice of espeak-ng again and again takes longer than to pronounce a word
   */
  pronounce(atoms: readonly Atom[], segment: readonly (readonly Atom[])[] = []): SpokenAtom[] {
    const [first] = atoms;
    if (first === undefined) return [];
    this.#forgetting ??= setTimeout(() => this.#forget(), this.#bounds.pronunciationsKeptMs).unref();
    this.#forgetting.refresh();
    const text = textOf(atoms);
    const isOther = (piece: readonly Atom[]) => piece[0]?.voice !== first.voice;
    if (this.#known.get(keyOf(text, first.voice)) === undefined && segment.some(isOther))
      for (const piece of segment) {
        const later = textOf(piece);
        if (!isOther(piece) && later.length <= shortTextMax) this.#groups(later, first.voice);
      }
    if (atoms.length === 1) return [this.#spell(this.#pronounceAlone(first))];
    const groups = this.#groups(text, first.voice);
    if (groups.length === atoms.length && atoms.every(({ spoken }) => plainWord.test(spoken)))
      return groups.map((group) => this.#spell(this.#sequence([group], first.voice)));
    const sequence = this.#sequence(groups, first.voice);
    const alone = atoms.map((atom) => this.#pronounceAlone(atom).ids);
    const starts = alignWords(alone, sequence.ids, sequence.startsGroup, (id) => this.#phones.isVowel(id));
    return starts.map((start, place) =>
      this.#spell(sequence, start, starts[place + 1] ?? sequence.ids.length),
    );
  }

  #groups(text: string, voice: EspeakVoice): string[] {
    // A stress mark begins a symbol of its own, as in what espeak-ng writes.
    if (voice === ipaVoice) return text.split(/\s+/).map((group) => group.replace(/(?<!^)(?=[ˈˌ])/g, '_'));
    const key = keyOf(text, voice);
    const make = () => this.#espeak.groups(text, voice);
    return text.length > shortTextMax ? make() : this.#known.use(key, make);
  }

  #sequence(groups: readonly string[], voice: EspeakVoice): Sequence {
    const ids: number[] = [];
    const stress: number[] = [];
    const startsGroup: boolean[] = [];
    for (const group of groups) {
      const phones = this.#phones.read(group, voice);
      for (let i = 0; i < phones.ids.length; i++) {
        ids.push(phones.ids[i]!);
        stress.push(phones.stress[i]!);
        startsGroup.push(i === 0);
      }
    }
    return { ids, stress, startsGroup };
  }

  /**
   * The part of a sequence that belongs to one atom. Each group in it, or part of a group, is a word with its own
   * stress.
   */
  #spell({ ids, stress, startsGroup }: Sequence, start = 0, end = ids.length): SpokenAtom {
    const spoken = {
      ids: ids.slice(start, end),
      stress: [] as number[],
      wordStart: [] as number[],
      joins: start > 0 && start < end && startsGroup[start] === false,
    };
    for (let from = start; from < end;) {
      let to = from + 1;
      while (to < end && !startsGroup[to]) to++;
      const levels = this.#phones.spreadStress({ ids: ids.slice(from, to), stress: stress.slice(from, to) });
      spoken.stress.push(...levels);
      for (let i = from; i < to; i++) spoken.wordStart.push(i === from ? 1 : 0);
      from = to;
    }
    return spoken;
  }

  #forget(): void {
    this.#known.clear();
    forgetLastMatch();
  }

  #pronounceAlone({ spoken, voice }: Atom): Sequence {
    return this.#sequence(this.#groups(spoken, voice), voice);
  }
}

const keyOf = (text: string, voice: EspeakVoice): string => `${voice} ${text}`;

/** The text of several atoms for espeak-ng. */
const textOf = (atoms: readonly Atom[]): string => {
  let text = '';
  for (const { spoken, glued } of atoms) text += text === '' || glued ? spoken : ` ${spoken}`;
  return text;
};
