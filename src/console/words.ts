/** The words of an account for the page: those in use, of all files, and which of them the console keeps. */
import type { Bounds } from '../limits.js';
import type { LexiconEntry } from '../text/lexicon.js';
import type { WordsView, WordView } from './contract.js';

export type WordBounds = Pick<Bounds, 'consoleWordsMax' | 'consoleWordsShownMax'>;

const spokenOf = ({ form }: LexiconEntry): string => ('ipa' in form ? `/${form.ipa}/` : form.spelling);
const keyOf = (entry: LexiconEntry): string =>
  JSON.stringify([entry.written, entry.language, spokenOf(entry)]);

/**
 * @param inUse of all files of the account
 * @param kept those of the console
 */
export const wordsView = (
  inUse: Iterable<LexiconEntry>,
  kept: readonly LexiconEntry[],
  search: string,
  { consoleWordsMax, consoleWordsShownMax }: WordBounds,
): WordsView => {
  const own = new Set(kept.map(keyOf));
  const wanted = search.toLowerCase();
  const found: WordView[] = [];
  for (const entry of inUse) {
    const spoken = spokenOf(entry);
    if (!`${entry.written}\n${spoken}`.toLowerCase().includes(wanted)) continue;
    found.push({ word: entry.written, spoken, language: entry.language, isOwn: own.has(keyOf(entry)) });
  }
  // Comparing by the rules of a language takes much longer.
  const keyOfView = ({ word }: WordView): string => word.toLowerCase();
  found.sort((one, other) => (keyOfView(one) < keyOfView(other) ? -1 : 1));
  const words = found.slice(0, consoleWordsShownMax);
  return { words, found: found.length, own: kept.length, ownMax: consoleWordsMax };
};
