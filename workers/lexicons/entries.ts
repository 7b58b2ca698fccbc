/** Entries of lexicons and the check of their phonemes, for all forms of files; and the plain form. */
import { ipaOf } from '../../src/text/ipa.js';
import { phraseWordsMax, type CaseRule, type LexiconEntry } from '../../src/text/lexicon.js';
import type { Bounds } from '../../src/limits.js';
import { lettersOf } from '../../src/text/spoken-size.js';

/** A fault in a file. The rest of the file is used. */
export interface LineFinding {
  readonly line: number;
  readonly fault: string;
}

export interface ParsedFile {
  readonly entries: readonly LexiconEntry[];
  readonly findings: Findings;
}

/** The first findings, and how many more there are: a file of a megabyte may have a million. */
export class Findings<Finding = LineFinding> {
  readonly kept: Finding[] = [];
  left = 0;
  readonly #keptMax: number;

  constructor(keptMax: number) {
    this.#keptMax = keptMax;
  }

  add(finding: Finding): void {
    if (this.kept.length < this.#keptMax) this.kept.push(finding);
    else this.left++;
  }
}

/** A file that cannot be used at all. */
export class LexiconFileError extends Error {
  override readonly name = 'LexiconFileError';
  readonly line: number;

  constructor(line: number, fault: string) {
    super(fault);
    this.line = line;
  }
}

/** In the folder of an account: what its users add in the console. */
export const CONSOLE_FILE = 'console.txt';

export type EntryBounds = Pick<Bounds, 'lexiconTextMax' | 'spokenLettersMax' | 'lexiconFindingsMax'>;

export interface WrittenEntry {
  readonly written: string;
  readonly spoken: string;
  readonly isIpa: boolean;
  readonly caseRule: CaseRule;
  readonly language: string | null;
}

/** Checks an entry. @returns the entry, or what is wrong with it */
export const entryOf = (
  { written, spoken, isIpa, caseRule, language }: WrittenEntry,
  { lexiconTextMax, spokenLettersMax }: Omit<EntryBounds, 'lexiconFindingsMax'>,
): LexiconEntry | string => {
  const [wide, wideSound] = [written, spoken].map((text) => text.trim().replace(/\s+/g, ' '));
  const tooLong = `"${wide!.slice(0, 20)}..." or its spoken form is longer than ${lexiconTextMax} characters`;
  // A run of marks takes time by the square of its length to normalise, and no more than four units become one.
  if (Math.max(wide!.length, wideSound!.length) > 4 * lexiconTextMax) return tooLong;
  const [phrase, sound] = [wide!.normalize('NFC'), wideSound!.normalize('NFC')];
  if (phrase === '') return 'the word is empty';
  if (sound === '') return `"${phrase}" has no spoken form`;
  if (Math.max(phrase.length, sound.length) > lexiconTextMax) return tooLong;
  if (/[\p{Cc}\p{Cs}\p{Co}\ufffc]/u.test(phrase + sound)) return `"${phrase}" has a control character`;
  if (phrase.split(' ').length > phraseWordsMax) return `"${phrase}" has more than ${phraseWordsMax} words`;
  if (lettersOf(isIpa ? { spoken: '', ipa: sound } : { spoken: sound }) > spokenLettersMax)
    return `the spoken form of "${phrase.slice(0, 20)}" takes longer to say than ${spokenLettersMax} letters: shorten it, or write its numbers and signs as words`;
  if (!isIpa) return { written: phrase, caseRule, language, form: { spelling: sound } };
  const phonemes = ipaOf(sound);
  if ('sign' in phonemes)
    return `"${phonemes.sign}" in the phonemes of "${phrase}" is not a sign of the IPA that voices know`;
  return { written: phrase, caseRule, language, form: { ipa: phonemes.ipa } };
};

/** A BCP 47 tag, by its form. */
export const isLanguageTag = (text: string): boolean =>
  /^[a-zA-Z]{2,3}(?:-[a-zA-Z0-9]{2,8}){0,3}$/.test(text);

/*
 * The plain form: a word and its spoken form in each line, with a tab or ` = ` between them. Phonemes are between slashes.
 * `#` begins a comment. `@language` and `@case` apply to the lines after them.
 */

const caseRules: ReadonlySet<string> = new Set(['smart', 'exact', 'any'] satisfies CaseRule[]);

export const parsePlain = (text: string, bounds: EntryBounds): ParsedFile => {
  const entries: LexiconEntry[] = [];
  const findings = new Findings(bounds.lexiconFindingsMax);
  let language: string | null = null;
  let caseRule: CaseRule = 'smart';
  for (const [index, raw] of text
    .replace(/^\ufeff/, '')
    .split(/\r\n|\n|\r/)
    .entries()) {
    const line = index + 1;
    const find = (fault: string) => findings.add({ line, fault });
    const content = raw.trim();
    if (content === '' || content.startsWith('#')) continue;
    const [, directive, value = ''] = /^@(\w+)\s+(\S+)$/.exec(content) ?? [];
    if (directive === 'language') {
      if (value === 'any') language = null;
      else if (isLanguageTag(value)) language = value;
      else find(`"${value.slice(0, 20)}" is not a language tag such as en-US`);
      continue;
    }
    if (directive === 'case') {
      if (caseRules.has(value)) caseRule = value as CaseRule;
      else find('the case rule must be smart, exact or any');
      continue;
    }
    const parts = raw.includes('\t') ? raw.split(/\t+/) : raw.split(/(?<!\s)\s+=\s+/);
    const [written = '', spoken = '', ...more] = parts
      .map((part) => part.trim())
      .filter((part) => part !== '');
    if (spoken === '' || more.length > 0) {
      find('the line must have two columns: a word, then a tab or " = ", then its spoken form');
      continue;
    }
    const phonemes = /^\/(.+)\/$/.exec(spoken)?.[1];
    const isIpa = phonemes !== undefined;
    const entry = entryOf({ written, spoken: phonemes ?? spoken, isIpa, caseRule, language }, bounds);
    if (typeof entry === 'string') find(entry);
    else entries.push(entry);
  }
  return { entries, findings };
};
