/** Opens the store for as long as the caller needs it, and creates it if there is none. */
import { accessSync, constants, existsSync, lstatSync, renameSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { StoreError } from '../store.js';
import { checkCommitMark, commitMarkPath, readCommitMark } from './commit-mark.js';
import {
  checkNotRestoring,
  checkOrigin,
  logPath,
  migrate,
  openExisting,
  pragma,
  sqlite,
  sqliteKind,
  storePath,
  toStoreError,
  type SqliteBounds,
} from './database.js';
import { makeFile, makeFolder, syncFolder } from './files.js';
import { StoreHold } from './hold.js';

const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/** The new store is renamed into place when it is complete: an empty or half-made file is never a store. */
const create = (dataDir: string): void => {
  const path = storePath(dataDir);
  checkNotRestoring(dataDir);
  // The files beside a store show that there was one.
  const left = [logPath(dataDir), commitMarkPath(dataDir)].find((name) => existsSync(name));
  if (left !== undefined)
    throw new StoreError(
      'missing',
      `There is no store at ${path}, but there was one, which left ${left}: put it back, or restore a backup ` +
        `(npm run store -- restore FILE), or move ${path}* away to start with an empty one`,
    );
  const temporary = `${path}.new`;
  for (const halfMade of [temporary, `${temporary}-journal`]) rmSync(halfMade, { force: true });
  makeFile(temporary);
  const database = new DatabaseSync(temporary);
  try {
    database.exec('PRAGMA synchronous = FULL');
    migrate(database, () => pragma(database, 'user_version'));
  } finally {
    database.close();
  }
  renameSync(temporary, path);
  syncFolder(dataDir);
};

const createUnlessThere = (dataDir: string, bounds: SqliteBounds): void => {
  const path = storePath(dataDir);
  if (isThere(path)) return;
  try {
    using _hold = StoreHold.seize(dataDir, bounds.storeBusyMsMax);
    if (!isThere(path)) create(dataDir);
  } catch (error) {
    const isHeld = error instanceof StoreError && error.fault === 'held';
    // Another process was faster, and has it open.
    if (!isHeld || !isThere(path)) throw error;
  }
};

/**
 * Uses a read-only connection. A writable one folds the log into the file when it is closed, and drops the part of the
 * log that SQLite does not recognise any more.
 *
 * @throws {StoreError} the store lacks entries that were committed, or a restore was cut off
 */
const checkReached = (dataDir: string, bounds: SqliteBounds): void => {
  const mark = readCommitMark(dataDir);
  if (mark === null) return;
  checkNotRestoring(dataDir);
  using database = new DatabaseSync(storePath(dataDir), { readOnly: true, timeout: bounds.storeBusyMsMax });
  try {
    checkOrigin(database, storePath(dataDir));
    checkCommitMark(dataDir, mark, database);
  } catch (error) {
    // The schema is not the one that the file claims: `openExisting` reports that.
    if (sqliteKind(error) !== sqlite.error) throw error;
  }
};

/** A connection to the store, which stays in its place until the hold is released. */
export interface HeldDatabase {
  readonly database: DatabaseSync;
  readonly hold: StoreHold;
}

/**
 * Opens the store. Creates the folder (mode 0700) and the file (0600) if they do not exist.
 *
 * @throws {StoreError} it cannot be read and written, or lacks entries that were committed
 */
export const openDatabase = (dataDir: string, bounds: SqliteBounds): HeldDatabase => {
  let hold: StoreHold | undefined;
  let database: DatabaseSync | undefined;
  try {
    makeFolder(dataDir);
    accessSync(dataDir, constants.W_OK | constants.X_OK);
    createUnlessThere(dataDir, bounds);
    hold = StoreHold.share(dataDir, bounds.storeBusyMsMax);
    checkReached(dataDir, bounds);
    database = openExisting(dataDir, bounds);
    return { database, hold };
  } catch (error) {
    database?.close();
    hold?.release();
    throw toStoreError(dataDir, error);
  }
};
