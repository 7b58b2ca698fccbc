/**
 * How long a text takes to say. An estimate: the one by which text counts, until its speech is made. It looks at classes of
 * characters, and takes 2 to 3 us for 100 of them.
 */
import { sizeOf } from './characters.js';
import type { Replacement } from './replacements.js';
import type { Span } from './words.js';

interface Spoken {
  readonly text: string;
  readonly words: readonly Span[];
  readonly spoken?: readonly Replacement[] | undefined;
}

/** Speech of about 14 letters a second. */
const MS_PER_LETTER = 70;

/** What takes longer to say than letters, and how many more letters each of its characters counts as. Measured with espeak-ng. */
const long: readonly (readonly [RegExp, number])[] = [
  // Of a long number.
  [/\p{Nd}/gu, 8],
  // Words without a vowel are spelled, and so are long runs of consonants.
  [/[bcdfghj-np-tv-xz]{5,}|\b[bcdfghj-np-tv-xz]{2,4}\b/gi, 3],
  // Signs that are read by name.
  [/[#%&@\\^]/g, 4],
  [/[\p{Sm}\p{Sc}\p{No}\p{Nl}§°]/gu, 8],
  // A word, or a phrase, in one character.
  [/[\u3300-\u33ff\ufdf0-\ufdfd]/g, 24],
];

/** In letters, of a text that is spoken as it is written. */
export const letters = (text: string): number => {
  let size = sizeOf(text);
  for (const [pattern, more] of long)
    for (const [found] of text.matchAll(pattern)) size += more * found.length;
  return size;
};

/** The same of a spoken form. */
export const lettersOf = ({ spoken, ipa = '' }: Replacement): number => letters(spoken) + ipa.length;

/** About how many letters take as long to say: numbers, dense scripts and spoken forms are longer than they are written. */
export const spokenSize = ({ text, words, spoken = [] }: Spoken): number => {
  let size = letters(text);
  for (const form of spoken)
    size += lettersOf(form) - letters(text.slice(words[form.first]?.start, words[form.last]?.end));
  return size;
};

/** @param size in letters @param speed factor of pace */
export const spokenMs = (size: number, speed = 1): number => (size * MS_PER_LETTER) / speed;
