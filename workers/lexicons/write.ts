/** Adds a word to the lexicon that the users of an account keep in the console: a file of its folder. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AccountWord } from '../../src/accounts/console-calls.js';
import { writeSecret } from '../../src/accounts/secret-file.js';
import type { Bounds } from '../../src/limits.js';
import { AdministrationError } from '../../src/store/store.js';
import { parsePlain } from './entries.js';

type WriteBounds = Pick<Bounds, 'lexiconTextMax' | 'consoleWordsMax'>;

const fileName = 'console.txt';

/** @returns the lines of the file; none if there is no file yet */
const linesOf = (path: string): string[] => {
  try {
    return readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => line !== '');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
};

/**
 * The file is replaced whole or not at all. A word that it has already gets the new form.
 *
 * @param folder of all lexicons
 * @throws {AdministrationError} names the field that is wrong
 */
export const addWord = (folder: string, account: string, entry: AccountWord, bounds: WriteBounds): void => {
  const refuse = (message: string, field: string) => new AdministrationError(message, 'badRequest', field);
  if (/[/\\]|^\.{1,2}$/.test(account))
    throw refuse('The name of this account cannot be that of a folder, so it can have no lexicon', 'word');
  const line = `${entry.word}\t${entry.spoken}`;
  const { entries, findings } = parsePlain(line, bounds);
  if (/\p{Cc}/u.test(entry.word + entry.spoken)) throw refuse('An entry is one line without tabs', 'spoken');
  if (entries.length !== 1)
    throw refuse(`This cannot be an entry: ${findings[0]?.fault ?? 'the word begins with # or @'}`, 'spoken');
  const path = join(folder, 'accounts', account, fileName);
  const others = linesOf(path).filter((known) => known.split('\t')[0] !== entry.word);
  if (others.length >= bounds.consoleWordsMax)
    throw new AdministrationError(
      `The lexicon has ${bounds.consoleWordsMax} words: no more fit`,
      'conflict',
      'word',
    );
  writeSecret(path, [...others, line].join('\n'));
};
