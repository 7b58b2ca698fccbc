/** Opens the store for as long as its holder needs it, and makes it when there is none. */
import { accessSync, constants, existsSync, lstatSync, renameSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { limits } from '../../limits.js';
import {
  StoreError,
  checkNotRestoring,
  checkOrigin,
  logPath,
  migrate,
  openExisting,
  pragma,
  sqlite,
  sqliteKind,
  storePath,
  wordStoreError,
} from './database.js';
import { makeFile, makeFolder, syncFolder } from './files.js';
import { StoreHold } from './hold.js';
import { checkMark, markPath, readMark } from './mark.js';

const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/** It takes its place whole: a file that is empty or half made is never a store. */
const make = (dataDir: string): void => {
  const path = storePath(dataDir);
  const temporary = `${path}.new`;
  for (const left of [temporary, `${temporary}-journal`]) rmSync(left, { force: true });
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

const makeUnlessThere = (dataDir: string): void => {
  const path = storePath(dataDir);
  if (isThere(path)) return;
  const hold = StoreHold.seize(dataDir, limits.storeBusyMsMax);
  try {
    // Another process may have been faster.
    if (isThere(path)) return;
    checkNotRestoring(dataDir);
    // What a store leaves beside it tells that there was one.
    const left = [logPath(dataDir), markPath(dataDir)].find((name) => existsSync(name));
    if (left !== undefined)
      throw new StoreError(
        'missing',
        `There is no store at ${path}, but there was one, which left ${left}: put it back, or restore a backup ` +
          `(npm run store -- restore FILE), or move ${path}* away to start with an empty one`,
      );
    make(dataDir);
  } finally {
    hold.release();
  }
};

/**
 * By a connection that changes nothing: one that may write folds the log when it is closed, and with it goes what SQLite
 * does not find in it any more.
 *
 * @throws {StoreError} the store lacks what was committed to it, or a restore was cut off
 */
const checkReached = (dataDir: string): void => {
  // Read first: what others commit in between only makes the store more.
  const mark = readMark(dataDir);
  if (mark === null) return;
  checkNotRestoring(dataDir);
  const database = new DatabaseSync(storePath(dataDir), { readOnly: true, timeout: limits.storeBusyMsMax });
  try {
    checkOrigin(database, storePath(dataDir));
    checkMark(dataDir, mark, database);
  } catch (error) {
    // Another schema than it says: worded where the store is opened.
    if (sqliteKind(error) !== sqlite.error) throw error;
  } finally {
    database.close();
  }
};

/** A connection to the store, which stays in its place until the hold is released. */
export interface HeldDatabase {
  readonly database: DatabaseSync;
  readonly hold: StoreHold;
}

/**
 * Opens the store, making the folder (mode 0700) and the file (0600) when they are not there.
 *
 * @throws {StoreError} when it cannot be read and written, or lacks what was committed to it
 */
export const openDatabase = (dataDir: string): HeldDatabase => {
  let hold: StoreHold | undefined;
  let database: DatabaseSync | undefined;
  try {
    makeFolder(dataDir);
    accessSync(dataDir, constants.W_OK | constants.X_OK);
    makeUnlessThere(dataDir);
    hold = StoreHold.share(dataDir, limits.storeBusyMsMax);
    checkReached(dataDir);
    database = openExisting(dataDir);
    return { database, hold };
  } catch (error) {
    database?.close();
    hold?.release();
    throw wordStoreError(dataDir, error);
  }
};
