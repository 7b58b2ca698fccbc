/**
 * Spoken forms of some words of a text. The text and its words do not change, since timestamps report them: replacements
 * stand beside them.
 */

import type { Span } from './words.js';

/** Words `first` to `last` (inclusive) are spoken as this text, which includes their punctuation. */
export interface Replacement {
  readonly first: number;
  readonly last: number;
  /** Never blank. */
  readonly spoken: string;
  /** Phonemes, for the first `ipaPlace` in `spoken`. */
  readonly ipa?: string;
}

/** A written word, or several words that are spoken as one form. */
interface SpokenUnit extends Span {
  /** The place of its first word. */
  readonly first: number;
  readonly form: Replacement | undefined;
}

/** All words of a text in order. Words with a common form are one unit. */
export function* spokenUnits(
  words: readonly Span[],
  spoken: readonly Replacement[] = [],
): Generator<SpokenUnit> {
  for (let first = 0, used = 0; first < words.length;) {
    const form = spoken[used]?.first === first ? spoken[used++] : undefined;
    const last = form?.last ?? first;
    yield { first, start: words[first]!.start, end: words[last]!.end, form };
    first = last + 1;
  }
}

/** What is spoken in the place of written words: another spelling, or phonemes. */
export type SpokenForm = { readonly spelling: string } | { readonly ipa: string };

/** What a client's markup says of a piece of text: a pause before it, and a form that is spoken in its place. */
export interface Markup {
  readonly pauseMs?: number;
  readonly form?: SpokenForm;
}

/** A piece of a text, and its markup. */
export interface MarkedText extends Markup {
  readonly text: string;
}

/** The entry of a lexicon, or the rule, that each replacement came from: for people who look. */
export type Origins = Map<Replacement, string>;

/** Stands for phonemes in a spoken form; the rest of it is punctuation. */
export const ipaPlace = '\ufffc';

/** Stands for a word that is not spoken. Voices drop it, as all characters without a glyph. */
export const silentForm = '\u2060';

/** Forms for a model that reads letters, and no phonemes. */
export const spellingsOf = (forms: readonly Replacement[] = []): readonly Replacement[] =>
  forms.filter(({ ipa }) => ipa === undefined);

/** Merges two lists in order. Where they overlap, the forms of `stronger` stay. */
export const mergeReplacements = (
  stronger: readonly Replacement[],
  weaker: readonly Replacement[],
): readonly Replacement[] => {
  if (stronger.length === 0) return weaker;
  if (weaker.length === 0) return stronger;
  const merged: Replacement[] = [];
  let at = 0;
  for (const form of weaker) {
    while (at < stronger.length && stronger[at]!.last < form.first) merged.push(stronger[at++]!);
    if (at === stronger.length || stronger[at]!.first > form.last) merged.push(form);
  }
  return [...merged, ...stronger.slice(at)];
};
