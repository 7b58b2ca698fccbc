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
