/** The words of a segment as phonemes in the language of a voice, for models that were trained on espeak-ng's IPA. */
import { ipaPlace, mergeReplacements, type Replacement } from '../../../src/text/replacements.js';
import type { Bounds } from '../../../src/limits.js';
import type { SegmentRequest, Span } from '../../../src/threads/messages.js';
import { clausesOf } from './clauses.js';
import { Espeak } from './espeak.js';
import { ipaVoice, spokenLanguage } from './languages.js';
import { type Phones, type PhoneString, Pronouncer, piecesOf } from './pronunciation.js';

/** A word of a segment as espeak-ng pronounces it in the language of the voice. */
export interface PhonemicWord {
  /** Index in `request.words`; `null` if it belongs to none of them. A number can be read as several words. */
  readonly word: number | null;
  /** IPA with stress and length marks, as espeak-ng writes it: `həlˈoʊ`. Never empty. */
  readonly ipa: string;
  /** The punctuation before and after it, mostly one character or none: of `;:,.!?¡¿—…"()«»“”`. */
  readonly before: string;
  readonly after: string;
  /** espeak-ng says it and the word before as one ("for the"). */
  readonly joins: boolean;
  /** `ipa` was given: raw phonemes of the text, or an entry of a lexicon. */
  readonly isRaw: boolean;
}

/** espeak-ng's symbols, numbered as they come. It has a few thousand in all languages together. */
class Symbols implements Phones {
  readonly #corrected: (group: string) => string;
  readonly #ids = new Map<string, number>();
  readonly #symbols: string[] = [];
  readonly #vowels: boolean[] = [];

  constructor(corrected: (group: string) => string) {
    this.#corrected = corrected;
  }

  isVowel(id: number): boolean {
    return this.#vowels[id] === true;
  }

  read(group: string): PhoneString {
    const ids = this.#corrected(group)
      .replace(/\([a-z-]*\)/g, '')
      .split('_')
      .filter((symbol) => symbol !== '')
      .map((symbol) => this.#idOf(symbol));
    return { ids, stress: ids.map(() => 0) };
  }

  /** The symbols carry their own stress. */
  spreadStress({ stress }: PhoneString): number[] {
    return stress;
  }

  ipaOf(ids: readonly number[]): string {
    return ids.map((id) => this.#symbols[id]!).join('');
  }

  #idOf(symbol: string): number {
    const known = this.#ids.get(symbol);
    if (known !== undefined) return known;
    const id = this.#symbols.push(symbol) - 1;
    this.#vowels.push(/^[ˈˌ]?[aeiouyæøœɶɑɒɐəɚɛɜɝɞɘɨɪɔɵʉʊʌɯɤᵻᵊ]/.test(symbol.normalize('NFD')));
    this.#ids.set(symbol, id);
    return id;
  }
}

type PhonemiserBounds = Pick<Bounds, 'phonemeTextMax' | 'pronunciationsKeptMs' | 'pronunciationsCachedMax'>;

/** What `phonemicWords` needs. Each engine has its own. */
export interface Phonemiser {
  readonly pronouncer: Pronouncer;
  readonly symbols: Symbols;
  readonly phonemeTextMax: number;
}

/** @param corrected what a voice says in the place of a group of espeak-ng */
export const createPhonemiser = async (
  bounds: PhonemiserBounds,
  corrected = (group: string): string => group,
): Promise<Phonemiser> => {
  const symbols = new Symbols(corrected);
  return {
    pronouncer: new Pronouncer(await Espeak.load(bounds), symbols, bounds),
    symbols,
    phonemeTextMax: bounds.phonemeTextMax,
  };
};

/** Marks that mean the same to a model. */
const sameMarks: Readonly<Record<string, string>> = {
  ...{ '。': '.', '｡': '.', '।': '.', '॥': '.', '۔': '.', '։': '.', '።': '.' },
  ...{ '؟': '?', '？': '?', '፧': '?', '‽': '?', '！': '!', '،': ',', '、': ',', '，': ',', '፣': ',' },
  ...{ '؛': ';', '；': ';', '：': ':', '·': ';' },
  ...{ '-': '—', '–': '—', '―': '—', '[': '(', '{': '(', ']': ')', '}': ')' },
  ...{ '„': '“', '‟': '“', '‘': '', '’': '', "'": '', '‹': '«', '›': '»' },
};

/** The punctuation that models know. */
const modelMarks = (text: string): string =>
  text
    .replace(/\.{2,}/g, '…')
    .replace(/[^\s\w]/gu, (mark) => sameMarks[mark] ?? (/[;:,.!?¡¿—…"()«»“”]/.test(mark) ? mark : ''))
    .replace(/(.)\1+/gu, '$1');

const rawForm = /(?:\[\[[^[\]]*\]\]\s*)+/g;

/** `[[...]]` as replacements of the words that it covers. */
const rawReplacements = (text: string, words: readonly Span[]): Replacement[] => {
  const found: Replacement[] = [];
  let next = 0;
  for (const { 0: match, index } of text.matchAll(rawForm)) {
    const end = index + match.trimEnd().length;
    while (next < words.length && words[next]!.end <= index) next++;
    const first = next;
    while (next < words.length && words[next]!.start < end) next++;
    const last = next - 1;
    if (last < first) continue;
    const lead = text.slice(words[first]!.start, Math.max(index, words[first]!.start));
    const tail = text.slice(end, Math.max(end, words[last]!.end));
    const ipa = match.replace(/\[\[|\]\]/g, ' ').trim();
    found.push({ first, last, spoken: `${lead}${ipaPlace}${tail}`, ipa });
  }
  return found;
};

/**
 * Pronounces a segment. Where it begins or ends within a clause, only its own part is pronounced.
 *
 * @param language BCP 47 of the voice: `de-DE`
 * @param rawPhonemes `[[...]]` in a text encloses phonemes
 */
export const phonemicWords = (
  { pronouncer, symbols, phonemeTextMax }: Phonemiser,
  { text, words, spoken = [] }: Pick<SegmentRequest, 'text' | 'words' | 'spoken'>,
  language: string,
  rawPhonemes = false,
): PhonemicWord[] => {
  const raw = rawPhonemes ? rawReplacements(text, words) : [];
  const forms = mergeReplacements(raw, spoken);
  const found: PhonemicWord[] = [];
  /** Punctuation of signs without a sound, for the next word. */
  let pending = '';
  const add = (
    word: number,
    ipas: readonly string[],
    before: string,
    after: string,
    { joins = false, isRaw = false },
  ) => {
    const last = ipas.length - 1;
    const lead = modelMarks(before);
    const tail = modelMarks(after);
    if (last < 0) {
      const previous = found.at(-1);
      if (previous === undefined) pending += lead + tail;
      else found[found.length - 1] = { ...previous, after: modelMarks(previous.after + lead + tail) };
    }
    for (const [place, ipa] of ipas.entries()) {
      found.push({
        word: word < 0 ? null : word,
        ipa,
        before: place === 0 ? modelMarks(pending + lead) : '',
        after: place === last ? tail : '',
        joins: joins && place === 0,
        isRaw,
      });
      pending = '';
    }
  };
  const pieces = piecesOf(
    clausesOf(text, words, forms, undefined, spokenLanguage(language)),
    phonemeTextMax,
  ).flat();
  for (const piece of pieces) {
    const isRaw = piece[0]!.voice === ipaVoice;
    const spokenAtoms = isRaw ? [] : pronouncer.pronounce(piece, pieces);
    for (const [place, { word, spoken: ipa, before, after }] of piece.entries()) {
      if (isRaw) {
        const ipas = ipa.split(/\s+/).filter((part) => part !== '');
        add(word, ipas, before, after, { isRaw });
        continue;
      }
      const { ids, wordStart, joins } = spokenAtoms[place]!;
      const starts = wordStart.flatMap((isStart, i) => (isStart === 1 || i === 0 ? [i] : []));
      const ipas = starts.map((start, i) => symbols.ipaOf(ids.slice(start, starts[i + 1])));
      add(word, ipas, before, after, { joins });
    }
  }
  return found;
};
