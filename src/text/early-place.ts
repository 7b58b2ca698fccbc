/** Where a segment may end before its sentence or clause does. */
import { needsDictionary } from './characters.js';
import { wordSpans } from './words.js';

/** Words before such a place at least. */
export const earlyWordsMin = 3;
/** UTF-16 units known after such a place: about two words, as far as the sound before it depends on what follows. */
const lookAhead = 6;

const words = (list: string): ReadonlySet<string> => new Set(list.split(' '));

/** Words of more than three letters that lean on the next one. */
const leaning = words(
  'with from that this these those there your their into onto over under about between than then when while where which ' +
    'because since until though although unless whose what every each some many more most very such just also only ' +
    'will would could should might must have been were they them does upon without within through during per both ' +
    "before after against among around along near either neither i'll i'm i've it's that's you'll you're we'll we're we've they're don't can't won't isn't",
);

const edges = /^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu;
const plainWord = /^[\p{Ps}\p{Pi}"'*_]*[\p{L}\p{M}'’-]{4,}[\p{Pe}\p{Pf}"'*_]*$/u;
const startsPlainly = /^[\p{Ps}\p{Pi}"'*_]*\p{L}[^\p{N}\p{Sc}]*$/u;
const capital = /^\p{Lu}/u;

/** Whether two words in a row may be spoken by two segments. Numbers and names stay whole; short words lean on the next. */
const mayPart = (word: string, next: string): boolean => {
  if (needsDictionary(word)) return needsDictionary(next);
  if (!plainWord.test(word) || !startsPlainly.test(next)) return false;
  const bare = word.replace(edges, '');
  if (capital.test(bare) && capital.test(next.replace(edges, ''))) return false;
  return !leaning.has(bare.toLowerCase().replace('’', "'"));
};

/**
 * The last good place of a text, some words before its end.
 *
 * @param text whole words
 * @returns the UTF-16 offset of the word after the place; `null` if there is none yet
 */
export const earlyPlace = (text: string): number | null => {
  const spans = wordSpans(text);
  const wordAt = (index: number) => text.slice(spans[index]!.start, spans[index]!.end);
  for (let next = spans.length - 1; next >= earlyWordsMin; next--) {
    const { start } = spans[next]!;
    if (spans.at(-1)!.end - start >= lookAhead && mayPart(wordAt(next - 1), wordAt(next))) return start;
  }
  return null;
};

/** Whether a clause that ends with this text is long enough to speak, and its last word is not part of a date or a list of numbers. */
export const isEarlyClause = (text: string): boolean => {
  const spans = wordSpans(text);
  const last = spans.at(-1);
  if (last === undefined || /\p{Nd}/u.test(text.slice(last.start, last.end))) return false;
  // In scripts without white space words are short and not well defined, so characters count.
  return spans.length >= earlyWordsMin || (needsDictionary(text) && text.trim().length > earlyWordsMin + 1);
};
