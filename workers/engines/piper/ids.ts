/** Turns words into the ids that a Piper voice was trained on. */
import type { SegmentRequest } from '../../../src/threads/messages.js';
import { spokenUnits } from '../../../src/text/replacements.js';
import type { PhonemicWord } from '../g2p/speech.js';
import type { PiperConfig } from './config.js';

const begin = '^';
const end = '$';
const pad = '_';

/** Piper's marks. espeak-ng pauses at other marks as at a semicolon, or not at all. */
const marks: Readonly<Record<string, string>> = {
  ...{ ',': ',', ':': ':', ';': ';', '.': '.', '?': '?', '!': '!' },
  ...{ '…': ';', '—': ';' },
};
const sentenceEnds = new Set(['.', '?', '!']);
/**
 * Symbols of a run of the model, if each has one id; the rest of a longer sentence is another run. The memory and time of the
 * encoder grow with the square: a text of letters whose names are spoken has 1,200 in a segment, which took 400 MiB.
 */
export const symbolsMax = 512;
/** About the length of a short sentence. */
const sampleLettersMax = 40;

/** One run of the model: a sentence, or the part of one that a segment has. */
export interface Sentence {
  readonly ids: readonly number[];
  /** For each id the word that it belongs to; -1 for none. */
  readonly words: readonly number[];
}

interface Symbol {
  readonly text: string;
  readonly word: number;
}

/** Symbols of a cluster. The diphthongs of published voices have two or three. */
const clusterSymbolsMax = 16;

/** Merges neighbours that the voice has one symbol for: the longest that match. */
const merged = (symbols: readonly Symbol[], clusters: ReadonlySet<string>, longest: number): Symbol[] => {
  const result: Symbol[] = [];
  for (let at = 0; at < symbols.length;) {
    let count = Math.min(longest, symbols.length - at);
    const textOf = () =>
      symbols
        .slice(at, at + count)
        .map(({ text }) => text)
        .join('');
    while (count > 1 && !clusters.has(textOf())) count--;
    result.push({ text: textOf(), word: symbols[at]!.word });
    at += count;
  }
  return result;
};

export class IdMaker {
  readonly #map: ReadonlyMap<string, readonly number[]>;
  readonly #clusters: ReadonlySet<string>;
  readonly #longestCluster: number;
  /** Of a run: fewer if a symbol has several ids. */
  readonly #symbolsMax: number;

  constructor({ phoneme_id_map: map, vowel_clusters: clusters }: PiperConfig) {
    this.#map = new Map(Object.entries(map).map(([symbol, ids]) => [symbol, [ids].flat()]));
    const mostIds = [...this.#map.values()].reduce((most, { length }) => Math.max(most, length), 1);
    const padIds = this.#map.get(pad)?.length ?? 0;
    this.#symbolsMax = Math.floor((2 * symbolsMax) / Math.max(2, mostIds + padIds));
    const known = (clusters ?? []).filter((cluster) => this.#map.has(cluster.join('')));
    this.#clusters = new Set(known.map((cluster) => cluster.join('')));
    const longest = known.reduce((most, cluster) => Math.max(most, cluster.length), 1);
    this.#longestCluster = Math.min(longest, clusterSymbolsMax);
  }

  /** Sentences of words as espeak-ng pronounces them. */
  ofPhonemes(words: readonly PhonemicWord[]): Sentence[] {
    const sentences: Sentence[] = [];
    let symbols: Symbol[] = [];
    const endSentence = () => {
      sentences.push(...this.#runs(symbols));
      symbols = [];
    };
    for (const [place, { word, ipa, after }] of words.entries()) {
      const own = symbolsOf(ipa, word ?? -1);
      if (symbols.length + own.length >= this.#symbolsMax) endSentence();
      symbols.push(...own);
      const mark = Array.from(after, (sign) => marks[sign]).find((found) => found !== undefined);
      if (mark !== undefined) symbols.push({ text: mark, word: -1 });
      if (mark !== undefined && sentenceEnds.has(mark)) endSentence();
      else if (mark !== undefined || (place < words.length - 1 && !words[place + 1]!.joins))
        symbols.push({ text: ' ', word: -1 });
    }
    endSentence();
    return sentences;
  }

  /** The one sentence of a voice that was trained on characters. @param spoken forms without phonemes */
  ofText({ text, words, spoken = [] }: Pick<SegmentRequest, 'text' | 'words' | 'spoken'>): Sentence[] {
    const symbols: Symbol[] = [];
    const add = (part: string, word: number) => symbols.push(...symbolsOf(this.#known(part), word));
    let end = 0;
    for (const { first, start, end: wordEnd, form } of spokenUnits(words, spoken)) {
      add(text.slice(end, start), -1);
      add(form?.spoken ?? text.slice(start, wordEnd), first);
      end = wordEnd;
    }
    add(text.slice(end), -1);
    const runs = this.#runs(symbols);
    return runs.some((run) => run.words.some((word) => word >= 0)) ? runs : [];
  }

  /** A text for a voice of characters: the sentence if it knows its letters, else the letters that it knows. */
  sampleOf(sentence: string): string {
    const isKnown = Array.from(this.#known(sentence)).every(
      (character) => !/\p{L}/u.test(character) || this.#map.has(character),
    );
    if (isKnown) return sentence;
    const letters = [...this.#map.keys()].filter((symbol) => /^\p{L}$/u.test(symbol));
    return letters.slice(0, sampleLettersMax).join('');
  }

  /** Decomposed, and in small letters where the voice has no capitals. */
  #known(text: string): string {
    return Array.from(text.normalize('NFD'), (character) =>
      this.#map.has(character) ? character : character.toLowerCase(),
    ).join('');
  }

  #runs(symbols: readonly Symbol[]): Sentence[] {
    const starts = Array.from(
      { length: Math.ceil(symbols.length / this.#symbolsMax) },
      (_, run) => run * this.#symbolsMax,
    );
    return starts.map((start) => this.#sentence(symbols.slice(start, start + this.#symbolsMax)));
  }

  #sentence(symbols: readonly Symbol[]): Sentence {
    const ids: number[] = [];
    const words: number[] = [];
    const add = (text: string, word: number): boolean => {
      const found = this.#map.get(text);
      for (const id of found ?? []) {
        ids.push(id);
        words.push(word);
      }
      return found !== undefined;
    };
    add(begin, -1);
    add(pad, -1);
    for (const { text, word } of merged(symbols, this.#clusters, this.#longestCluster))
      // Symbols that the voice does not know are left out.
      if (add(text, word)) add(pad, word);
    add(end, -1);
    return { ids, words };
  }
}

const symbolsOf = (text: string, word: number): Symbol[] =>
  Array.from(text.normalize('NFD'), (character) => ({ text: character, word }));
