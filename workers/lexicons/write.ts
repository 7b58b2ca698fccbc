/** Adds words to the lexicon that the users of an account keep in the console: a file of its folder. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { AccountWord, AccountWords, Addition } from '../../src/accounts/console-calls.js';
import { writeSecret } from '../../src/accounts/secret-file.js';
import type { Bounds } from '../../src/limits.js';
import { readRegular } from '../../src/regular-file.js';
import { conflict, invalid } from '../../src/store/store.js';
import {
  fitsWords,
  foldOf,
  formCharactersMax,
  type LexiconEntry,
  variantsMax,
} from '../../src/text/lexicon.js';
import { CONSOLE_FILE, type EntryBounds, parsePlain } from './entries.js';

type WriteBounds = EntryBounds & Pick<Bounds, 'consoleWordsMax' | 'consoleLexiconUnitsMax'>;

/** @returns the lines of the file; none if there is no file yet. Parsing them would hold up the other calls of the console. */
const linesOf = (path: string): string[] => {
  try {
    return readRegular(path)
      .toString()
      .split('\n')
      .filter((line) => line !== '');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
};

/** @returns `null` if the name cannot be that of a folder */
const pathOf = (folder: string, account: string): string | null =>
  /[/\\]|^\.{1,2}$/.test(account) ? null : join(folder, 'accounts', account, CONSOLE_FILE);

/**
 * Checks a word. A word that the file has already gets the new form.
 *
 * @param folder of all lexicons
 * @returns replaces the file, whole or not at all; `null` if it has this entry already
 * @throws {AdministrationError} names the field that is wrong
 */
const addition = (
  folder: string,
  account: string,
  { word, spoken }: AccountWord,
  bounds: WriteBounds,
): Addition | null => {
  const path = pathOf(folder, account);
  if (path === null)
    throw invalid('word', 'The name of this account cannot be that of a folder, so it can have no lexicon');
  const { entries, findings } = parsePlain(`${word}\t${spoken}`, bounds);
  if (/\p{Cc}/u.test(word + spoken)) throw invalid('spoken', 'An entry is one line without tabs');
  if (/[\p{Bidi_Control}\u200b\ufeff]/u.test(word + spoken))
    throw invalid('spoken', 'An entry has no invisible characters that turn the direction of a text');
  const [entry] = entries;
  if (entry === undefined)
    throw invalid(
      'spoken',
      `This cannot be an entry: ${findings.kept[0]?.fault ?? 'the word begins with # or @'}`,
    );
  const { written, form } = entry;
  let isChange = false;
  if (!fitsWords(form, written))
    throw invalid(
      'spoken',
      `The spoken form of "${written}" may have ${formCharactersMax(written)} characters: ${formCharactersMax('a')} for each of the word`,
    );
  const line = `${written}\t${spoken.trim()}`;
  /** @returns all lines, with the new one; `null` if it is there */
  const lines = (): string[] | null => {
    const known = linesOf(path);
    if (known.includes(line)) return null;
    // One that is written in another way stays, and the later line wins.
    const others = known.filter((other) => !other.startsWith(`${written}\t`));
    isChange = others.length < known.length;
    const added = [...others, line];
    const { consoleWordsMax, consoleLexiconUnitsMax } = bounds;
    if (added.length > consoleWordsMax || added.join('\n').length >= consoleLexiconUnitsMax)
      throw conflict(
        `The lexicon may have ${consoleWordsMax} words and ${consoleLexiconUnitsMax} characters: no more fit`,
        'word',
      );
    const fold = foldOf(written);
    const forms = others.filter((other) => foldOf(other.split('\t', 1)[0]!) === fold);
    if (forms.length >= variantsMax)
      throw conflict(
        `The lexicon may have ${variantsMax} forms of a word that differ in case: no more fit`,
        'word',
      );
    return added;
  };
  if (lines() === null) return null;
  const write = (): void => {
    // Read again: another word may have come in between.
    const added = lines();
    if (added !== null) writeSecret(path, added.join('\n'));
  };
  return { entry, isChange, write };
};

/** A line of the file; `null` if it has no entry. */
const entryIn = (line: string, bounds: WriteBounds): LexiconEntry | null =>
  parsePlain(line, bounds).entries[0] ?? null;

/** @param folder of all lexicons */
export const accountWords = (folder: string, bounds: WriteBounds): AccountWords => ({
  addition: (account, entry) => addition(folder, account, entry, bounds),
  list: (account) => {
    const path = pathOf(folder, account);
    return (path === null ? [] : linesOf(path)).flatMap((line) => {
      const entry = entryIn(line, bounds);
      return entry === null ? [] : [entry];
    });
  },
  removal: (account, word) => {
    const path = pathOf(folder, account);
    const lines = path === null ? [] : linesOf(path);
    const found = lines.filter((line) => entryIn(line, bounds)?.written === word);
    const entry = entryIn(found.at(-1) ?? '', bounds);
    if (path === null || entry === null) return null;
    const write = (): void => {
      const rest = linesOf(path).filter((line) => entryIn(line, bounds)?.written !== word);
      writeSecret(path, rest.join('\n'));
    };
    return { entry, isWhole: found.length === 1, write };
  },
  remove: (account) => {
    const path = pathOf(folder, account);
    if (path !== null) rmSync(path, { force: true });
  },
});
