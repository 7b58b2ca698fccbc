/** A pronunciation lexicon: words and phrases with the form that is spoken in their place. */
import { codePointCount } from './code-points.js';
import { isWithin } from './language.js';
import { addressesIn } from './normalise/normalise.js';
import {
  ipaPlace,
  mergeReplacements,
  type Origins,
  type Replacement,
  type SpokenForm,
} from './replacements.js';
import type { Span } from './words.js';

/** How an entry is compared: `smart` ignores case if the entry has no capital. */
export type CaseRule = 'smart' | 'exact' | 'any';

export interface LexiconEntry {
  /** Words with one space between them. */
  readonly written: string;
  readonly caseRule: CaseRule;
  /** BCP 47; `null` for voices of all languages. */
  readonly language: string | null;
  readonly form: SpokenForm;
}

/** A spoken form that callers and users of an account give may be as much longer than its words, which are what is charged. */
const formTimesMax = 16;
/** The most characters of such a form: code points, as they are charged. */
export const formCharactersMax = (words: string): number => formTimesMax * codePointCount(words);
export const fitsWords = (form: SpokenForm, words: string): boolean =>
  codePointCount('ipa' in form ? form.ipa : form.spelling) <= formCharactersMax(words);
/** The most words of a phrase. */
export const phraseWordsMax = 5;
/** The most entries that differ only in case or language. */
export const variantsMax = 16;
/** The most UTF-16 units of a token that is looked up. */
const tokenUnitsMax = 128;

/** In one Unicode form, with straight apostrophes. */
const plain = (text: string): string => text.normalize('NFC').replaceAll('’', "'");
/** What entries have in common that differ only in case. */
export const foldOf = (text: string): string => plain(text).toLowerCase();

const opening = /^[([{"'‘’“«‹„¿¡*_]+/;
const closing = /(?<![.,;:!?…)\]}"'’”»›*_。，！？।])[.,;:!?…)\]}"'’”»›*_。，！？।]+$/;

const textOf = ({ form }: LexiconEntry): string => ('ipa' in form ? form.ipa : form.spelling);
const unitsOf = (entry: LexiconEntry): number => entry.written.length + textOf(entry).length;

export class Lexicon {
  /** What it holds for: `service`, `voice NAME` or `account NAME`. */
  readonly scope: string;
  /** By the folded phrase. */
  readonly #entries = new Map<string, LexiconEntry[]>();
  /** By its first word, how many phrases have each number of words. */
  readonly #lengths = new Map<string, number[]>();
  /** The entry that each replaced: it holds again if the new one is removed. */
  readonly #replaced = new Map<LexiconEntry, LexiconEntry>();
  #size = 0;
  #units = 0;

  constructor(scope = 'service') {
    this.scope = scope;
  }

  get size(): number {
    return this.#size;
  }

  /** UTF-16 units of the words and their spoken forms. */
  get units(): number {
    return this.#units;
  }

  /** All, in no order. */
  *entries(): Generator<LexiconEntry> {
    for (const variants of this.#entries.values()) yield* variants;
  }

  /**
   * A later entry for the same word, case and language replaces an earlier one.
   *
   * @param isChange the earlier one is gone from its file
   * @returns false if there is no room
   */
  add(entry: LexiconEntry, isChange = false): boolean {
    const key = foldOf(entry.written);
    const variants = this.#entries.get(key) ?? [];
    const same = variants.findIndex((known) => isSame(known, entry));
    if (same < 0 && variants.length >= variantsMax) return false;
    const [earlier] = same < 0 ? [] : variants.splice(same, 1);
    // A reading may have found the entry already.
    const isGone = isChange || (earlier !== undefined && textOf(earlier) === textOf(entry));
    let below = earlier;
    if (earlier === undefined) this.#size++;
    else if (isGone) {
      below = this.#replaced.get(earlier);
      this.#replaced.delete(earlier);
      this.#units -= unitsOf(earlier);
    }
    if (below !== undefined) this.#replaced.set(entry, below);
    this.#units += unitsOf(entry);
    if (variants.length === 0) this.#count(key, 1);
    variants.unshift(entry);
    this.#entries.set(key, variants);
    return true;
  }

  /** Takes an entry out; the one that it replaced holds again. @returns false if it is not there */
  remove(entry: LexiconEntry): boolean {
    const key = foldOf(entry.written);
    const variants = this.#entries.get(key) ?? [];
    const at = variants.findIndex((known) => isSame(known, entry) && textOf(known) === textOf(entry));
    const found = variants[at];
    if (found === undefined) return false;
    const below = this.#replaced.get(found);
    this.#replaced.delete(found);
    variants.splice(at, 1, ...(below === undefined ? [] : [below]));
    if (below === undefined) this.#size--;
    this.#units -= unitsOf(found);
    if (variants.length === 0) {
      this.#entries.delete(key);
      this.#count(key, -1);
    }
    return true;
  }

  /** @param change of the phrases with this key */
  #count(key: string, change: 1 | -1): void {
    const words = key.split(' ');
    const counts = this.#lengths.get(words[0]!) ?? new Array<number>(words.length).fill(0);
    counts[words.length] = (counts[words.length] ?? 0) + change;
    while (counts.length > 0 && !counts.at(-1)) counts.pop();
    if (counts.length === 0) this.#lengths.delete(words[0]!);
    else this.#lengths.set(words[0]!, counts);
  }

  /** The most words of a phrase that begins with this one, folded; 0 if there is none. */
  wordsFrom(first: string): number {
    return (this.#lengths.get(first)?.length ?? 1) - 1;
  }

  /** @param language of the voice */
  find(phrase: string, language: string): LexiconEntry | null {
    const variants = this.#entries.get(foldOf(phrase));
    if (variants === undefined) return null;
    const exact = plain(phrase);
    const fits = (entry: LexiconEntry) => entry.language === null || isWithin(language, entry.language);
    return (
      variants.find((entry) => fits(entry) && plain(entry.written) === exact) ??
      variants.find((entry) => fits(entry) && ignoresCase(entry)) ??
      null
    );
  }
}

/** Whether one replaces the other. */
const isSame = (one: LexiconEntry, other: LexiconEntry): boolean =>
  one.language === other.language &&
  one.caseRule === other.caseRule &&
  (other.caseRule === 'any' || one.written === other.written);

const ignoresCase = ({ caseRule, written: text }: LexiconEntry): boolean =>
  caseRule === 'any' || (caseRule === 'smart' && !/\p{Lu}/u.test(text));

/** The sound of "'s" after phonemes. */
const ownerSound = (ipa: string): string => (/[szʃʒ]$/.test(ipa) ? 'ᵻz' : /[ptkfθ]$/.test(ipa) ? 's' : 'z');

/** @param lead, owner, tail what stands around the words: marks, and "'s" */
export const formOf = (
  form: SpokenForm,
  lead: string,
  owner: string,
  tail: string,
): Omit<Replacement, 'first' | 'last'> =>
  'spelling' in form
    ? { spoken: `${lead}${form.spelling}${owner}${tail}` }
    : {
        spoken: `${lead}${ipaPlace}${tail}`,
        ipa: owner === '' ? form.ipa : form.ipa + ownerSound(form.ipa),
      };

/** The phrase of some tokens without the punctuation around it, first with a full stop that may belong to it. */
const readings = (tokens: readonly string[]) => {
  const text = tokens.join(' ');
  const lead = opening.exec(text)?.[0] ?? '';
  const bare = text.slice(lead.length);
  const tail = closing.exec(bare)?.[0] ?? '';
  const inner = bare.slice(0, bare.length - tail.length);
  const found = [
    { lead: '', phrase: text, owner: '', tail: '' },
    { lead, phrase: inner, owner: '', tail },
  ];
  // "e.g.," has a full stop of its own.
  if (tail.startsWith('.') && tail.length > 1)
    found.push({ lead, phrase: `${inner}.`, owner: '', tail: tail.slice(1) });
  const owned = /^(.+)['’][sS]$/.exec(inner)?.[1];
  if (owned !== undefined) found.push({ lead, phrase: owned, owner: "'s", tail });
  return found;
};

/**
 * The words of a text that are not spoken as they are written, whether or not numbers are normalised: those in lexicons,
 * and addresses. The longest phrase wins, then the first lexicon. Time is proportional to the length of the text, however
 * large the lexicons are.
 *
 * @param language of the voice
 * @param origins gets the entry of each replacement
 * @param startsInToken the text begins with the rest of a token
 */
export const pronounced = (
  lexicons: readonly Lexicon[],
  text: string,
  words: readonly Span[],
  language: string,
  origins?: Origins,
  startsInToken = false,
): readonly Replacement[] =>
  mergeReplacements(
    lexicons.length === 0 ? [] : entriesIn(lexicons, text, words, language, origins),
    addressesIn(text, words, language, origins, startsInToken),
  );

const entriesIn = (
  lexicons: readonly Lexicon[],
  text: string,
  words: readonly Span[],
  language: string,
  origins?: Origins,
): Replacement[] => {
  const found: Replacement[] = [];
  const tokenOf = (at: number) => text.slice(words[at]!.start, words[at]!.end);
  for (let first = 0; first < words.length;) {
    const match = longestAt(lexicons, tokenOf, first, words.length, language, origins);
    if (match !== null) found.push(match);
    first = match === null ? first + 1 : match.last + 1;
  }
  return found;
};

const longestAt = (
  lexicons: readonly Lexicon[],
  tokenOf: (at: number) => string,
  first: number,
  end: number,
  language: string,
  origins?: Origins,
): Replacement | null => {
  const token = tokenOf(first);
  if (token.length > tokenUnitsMax) return null;
  const folded = foldOf(token);
  const starts = new Set([folded, ...readings([folded]).map(({ phrase }) => phrase)]);
  starts.add(folded.replace(opening, ''));
  let longest = 0;
  for (const lexicon of lexicons)
    for (const start of starts) longest = Math.max(longest, lexicon.wordsFrom(start));
  if (longest === 0) return null;
  const tokens = [token];
  while (tokens.length < Math.min(longest, end - first)) {
    const next = tokenOf(first + tokens.length);
    if (next.length > tokenUnitsMax) break;
    tokens.push(next);
  }
  for (; tokens.length > 0; tokens.pop())
    for (const lexicon of lexicons)
      for (const { lead, phrase, owner, tail } of readings(tokens)) {
        const entry = phrase === '' ? null : lexicon.find(phrase, language);
        if (entry === null) continue;
        const match = { first, last: first + tokens.length - 1, ...formOf(entry.form, lead, owner, tail) };
        origins?.set(match, `lexicon (${lexicon.scope}): ${entry.written}`);
        return match;
      }
  return null;
};
