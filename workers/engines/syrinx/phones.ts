/** Turns what espeak-ng writes (`h_ə_l_ˈoʊ`) into the numbered phones of a voice, with stress. */
import { consonantNames, englishIpa, foreignIpa, ipaLengthMax, pauseName, vowelNames } from './ipa.js';
import { type EspeakVoice, defaultVoice, isTonal } from '../g2p/languages.js';
import type { PhoneString, Phones } from '../g2p/pronunciation.js';

/** Symbols in the cache; espeak-ng has about 400 in the languages used here. */
const symbolsCachedMax = 2_048;

const stressMarks = /[ˈˌ]/g;
/** Tones of Mandarin, Thai and Burmese, where ɜ is the third tone, not a vowel. */
const toneMarks = /[0-9ɜ]/g;

/** An s of espeak-ng that everyone says as z: in husband, scissors, resistance and their like. */
const wrongS =
  /(?<=^h_[ˈˌ]?ʌ_)s(?=_b_ə_n_d)|(?<=^s_[ˈˌ]?ɪ_)s(?=_[ɚə](?:_z)?$)|(?<=^ɹ_[ᵻɪ]_)s(?=_[ˈˌ]?ɪ_s_t)/u;

export const correctedEnglish = (group: string): string => group.replace(wrongS, 'z');

export class PhoneSet implements Phones {
  readonly pause: number;
  readonly schwa: number;
  readonly #ids: ReadonlyMap<string, number>;
  readonly #vowels: ReadonlySet<number>;
  readonly #englishSymbols = new Map<string, readonly number[]>();
  readonly #foreignSymbols = new Map<string, readonly number[]>();

  /** @param names phones in id order, none of them missing (`missingPhones`) */
  constructor(names: readonly string[]) {
    this.#ids = new Map(names.map((name, id) => [name, id]));
    this.pause = this.#id(pauseName);
    this.schwa = this.#id('ax');
    this.#vowels = new Set(vowelNames.map((name) => this.#id(name)));
  }

  isVowel(id: number): boolean {
    return this.#vowels.has(id);
  }

  /**
   * Phones of one group of espeak-ng. Only vowels carry stress here; `spreadStress` gives it to their syllables.
   * Pause marks, tones and unknown signs are skipped.
   */
  read(group: string, voice: EspeakVoice): PhoneString {
    const english = voice === defaultVoice;
    const right = english ? correctedEnglish(group) : group;
    const tonal = isTonal(voice);
    const ids: number[] = [];
    const stress: number[] = [];
    for (const symbol of right.split('_')) {
      if (symbol === '') continue;
      const bare = symbol.replace(stressMarks, '');
      let stressed = bare === symbol ? 0 : 1;
      for (const id of this.#phonesOf(tonal ? bare.replace(toneMarks, '') : bare, english)) {
        const vowel = this.#vowels.has(id);
        ids.push(id);
        stress.push(vowel ? stressed : 0);
        if (vowel) stressed = 0;
      }
    }
    return { ids, stress };
  }

  spreadStress(word: PhoneString): number[] {
    return stressOfSyllables(word, this.#vowels, this.schwa);
  }

  #id(name: string): number {
    const id = this.#ids.get(name);
    if (id === undefined) throw new RangeError(`the voice has no phone "${name}"`);
    return id;
  }

  #phonesOf(symbol: string, english: boolean): readonly number[] {
    const cache = english ? this.#englishSymbols : this.#foreignSymbols;
    const known = cache.get(symbol);
    if (known !== undefined) return known;
    const ids = spell(symbol, english ? englishIpa : foreignIpa).map((name) => this.#id(name));
    if (cache.size < symbolsCachedMax) cache.set(symbol, ids);
    return ids;
  }
}

/**
 * Consonants take the stress of their syllable. Of the consonants between two vowels, the first half (rounded down)
 * ends the first syllable. A word of one syllable is stressed unless its vowel is a schwa. The voice was trained
 * this way.
 */
export const stressOfSyllables = (
  { ids, stress }: PhoneString,
  isVowel: ReadonlySet<number>,
  schwa: number,
): number[] => {
  const vowels: number[] = [];
  for (let i = 0; i < ids.length; i++) if (isVowel.has(ids[i]!)) vowels.push(i);
  const [first] = vowels;
  if (first === undefined) return ids.map(() => 0);
  const levels = [...stress];
  if (vowels.length === 1 && ids[first] !== schwa) levels[first] = 1;
  let previous = -1;
  for (const vowel of vowels) {
    const onset = previous + 1;
    const coda = previous < 0 ? 0 : (vowel - onset) >> 1;
    for (let i = onset; i < vowel; i++) levels[i] = levels[i < onset + coda ? previous : vowel]!;
    previous = vowel;
  }
  for (let i = previous + 1; i < ids.length; i++) levels[i] = levels[previous]!;
  return levels;
};

/** Splits into the longest known symbols, from left to right. A doubled sound counts once. */
const spell = (symbol: string, table: typeof englishIpa): string[] => {
  const rest = symbol.replace(/^\(.*\)$/, '').normalize('NFD');
  const names: string[] = [];
  for (let at = 0; at < rest.length;) {
    let length = Math.min(ipaLengthMax, rest.length - at);
    while (length > 0 && !table.has(rest.slice(at, at + length))) length--;
    for (const name of table.get(rest.slice(at, at + length)) ?? [])
      if (names.at(-1) !== name) names.push(name);
    at += Math.max(1, length);
  }
  return names;
};

/** Names that are missing from a voice's list of phones. */
export const missingPhones = (names: readonly string[]): string[] =>
  [pauseName, ...vowelNames, ...consonantNames].filter((name) => !names.includes(name));
