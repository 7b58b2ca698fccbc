/** Secrets that a start without a terminal leaves in the data folder: the first key, and the console's link. */
import { closeSync, fchmodSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { makeFolder } from '../store/sqlite/files.js';

export const firstKeyPath = (dataDir: string): string => join(dataDir, 'first-key');

/**
 * Keeps a line in a file that only its owner can read (mode 0600). The file appears when it is complete.
 *
 * @returns its path
 */
export const writeSecret = (path: string, line: string): string => {
  // With a store elsewhere, nothing has made the folder yet.
  makeFolder(dirname(path));
  const temporary = `${path}.${process.pid}`;
  const file = openSync(temporary, 'w', 0o600);
  try {
    // `openSync` sets the mode of a new file only.
    fchmodSync(file, 0o600);
    // Writes all of it or throws: a nearly full disk takes a part.
    writeFileSync(file, `${line}\n`);
    fsyncSync(file);
    renameSync(temporary, path);
  } finally {
    closeSync(file);
    rmSync(temporary, { force: true });
  }
  return path;
};

export const writeFirstKey = (dataDir: string, key: string): string =>
  writeSecret(firstKeyPath(dataDir), key);
