/** What differs between the models that have the same graph. */
import type { Sex } from '../../../src/threads/voices.js';
import {
  type Speller,
  type Vocabulary,
  kittenVocabulary,
  kokoroVocabulary,
  spellForKitten,
  spellForKokoro,
} from './symbols.js';

export type FamilyName = 'kokoro' | 'kitten';

export interface Family {
  /** For people. */
  readonly title: string;
  /** For models that have none. */
  readonly vocabulary: Vocabulary;
  readonly spell: Speller;
  /** Follows a text without a mark at its end. */
  readonly closing: string;
  /** The row of a voice's table for a piece. */
  readonly rowOf: (ids: number, textUnits: number) => number;
  /** Samples at the end of every run that do not belong to the speech. */
  readonly trimmedSamples: number;
  /** Rows that a table may have. */
  readonly rows: { readonly min: number; readonly max: number };
  /** The language of all voices; `null`: the first letter of a voice's name stands for it. */
  readonly language: string | null;
}

export const families: Readonly<Record<FamilyName, Family>> = {
  kokoro: {
    title: 'Kokoro',
    vocabulary: kokoroVocabulary,
    spell: spellForKokoro,
    closing: '',
    rowOf: (ids) => ids,
    trimmedSamples: 0,
    // 511 is version 0.19.
    rows: { min: 510, max: 511 },
    language: null,
  },
  kitten: {
    title: 'KittenTTS',
    vocabulary: kittenVocabulary,
    spell: spellForKitten,
    closing: ' ,',
    rowOf: (_, textUnits) => textUnits,
    trimmedSamples: 5_000,
    rows: { min: 1, max: 509 },
    language: 'en-US',
  },
};

/** Languages by the first letter of a Kokoro voice. */
const prefixes: Readonly<Record<string, string>> = {
  a: 'en-US',
  b: 'en-GB',
  e: 'es-ES',
  f: 'fr-FR',
  h: 'hi-IN',
  i: 'it-IT',
  j: 'ja-JP',
  p: 'pt-BR',
  z: 'cmn-CN',
};

/** Languages whose voices were trained on sounds that espeak-ng does not make. */
export const unspoken: ReadonlySet<string> = new Set(['ja-JP', 'cmn-CN']);

/** The sex in a name such as `af_heart`, `af` or `expr-voice-2-f`; `null` for other names */
export const sexOfName = (name: string): Sex | null => {
  const [, prefixed, suffixed] = /^[a-z]([fm])(?:_|$)|-([fm])$/.exec(name) ?? [];
  const letter = prefixed ?? suffixed;
  return letter === undefined ? null : letter === 'f' ? 'female' : 'male';
};

/** The language of a name such as `af_heart` or `af`: a letter for it, then f or m. `null` for other names */
export const languageOfName = (name: string): string | null => {
  const [, prefix] = /^([a-z])[fm](?:_|$)/.exec(name) ?? [];
  return prefix === undefined ? null : (prefixes[prefix] ?? null);
};
