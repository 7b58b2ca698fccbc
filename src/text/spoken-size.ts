/** How long a text takes to say. */
import { sizeOf } from './characters.js';
import type { Replacement } from './replacements.js';
import type { Span } from './words.js';

interface Spoken {
  readonly text: string;
  readonly words: readonly Span[];
  readonly spoken?: readonly Replacement[];
}

/** A digit of a long number takes about as long to say as so many letters. */
const DIGIT_LETTERS = 9;

const letters = (text: string): number =>
  sizeOf(text) + (DIGIT_LETTERS - 1) * (text.match(/\p{Nd}/gu)?.length ?? 0);

/** About how many letters take as long to say: numbers, dense scripts and spoken forms are longer than they are written. */
export const spokenSize = ({ text, words, spoken = [] }: Spoken): number => {
  let size = letters(text);
  for (const { first, last, spoken: form, ipa = '' } of spoken)
    size += letters(form + ipa) - letters(text.slice(words[first]?.start, words[last]?.end));
  return size;
};
