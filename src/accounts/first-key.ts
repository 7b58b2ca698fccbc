/** The key that a first start makes, so that a newcomer has one. */
import { closeSync, fchmodSync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { Administration } from './administration.js';

const FIRST_ACCOUNT = 'default';

export const firstKeyPath = (dataDir: string): string => join(dataDir, 'first-key');

/**
 * In a store without any key: makes the account "default", which is not metered, and one key.
 *
 * @param deliver gets the key before it is committed, the only time that it is seen; when it throws, none is made
 * @returns whether a key was made
 * @throws {StoreError} when the store cannot be written
 */
export const makeFirstKey = (dataDir: string, deliver: (key: string) => void): boolean => {
  const administration = new Administration(dataDir);
  try {
    return administration.createFirstKey(FIRST_ACCOUNT, deliver) !== null;
  } finally {
    administration.close();
  }
};

/**
 * Where there is no terminal to show it on: keeps the first key in a file that only its owner can read (mode 0600),
 * whole or not at all. @returns its path
 */
export const writeFirstKey = (dataDir: string, key: string): string => {
  const path = firstKeyPath(dataDir);
  const temporary = `${path}.${process.pid}`;
  const file = openSync(temporary, 'w', 0o600);
  try {
    // The mode of `openSync` counts for a new file only.
    fchmodSync(file, 0o600);
    writeSync(file, `${key}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
  return path;
};
