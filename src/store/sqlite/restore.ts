/**
 * Puts a backup in the place of the store, while no process has the store open. A kill at any point leaves either the
 * old or the new store, complete, and never the log of one beside the file of the other: SQLite would play that log
 * into the wrong file.
 */
import {
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { AdministrationError, StoreError } from '../store.js';
import { copyBackup, sideFiles, toFileError, verifyBackup, type Contents } from './backup.js';
import { checkCommitMark, commitMarkPath, readCommitMark } from './commit-mark.js';
import {
  identityOf,
  isTooLarge,
  pragma,
  restoringPath,
  sqlite,
  sqliteKind,
  storePath,
  toStoreError,
  type SqliteBounds,
} from './database.js';
import { makeFile, makeFolder, syncFile, syncFolder } from './files.js';
import { StoreHold } from './hold.js';
import { findDamage } from './verification.js';

export interface Restored {
  readonly contents: Contents;
  /** Path of the previous store; `null` if there was none. */
  readonly kept: string | null;
}

const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/** Follows a link: the log is beside the file itself. */
const locate = (dataDir: string): string => {
  const path = storePath(dataDir);
  if (!isThere(path)) return path;
  if (!existsSync(path) || !statSync(path).isFile())
    throw new AdministrationError(`${path} is not a file: move it away`);
  return realpathSync(path);
};

/** Gives the file a second name; copies it if the file system has no hard links. */
const keepAs = (path: string, kept: string): void => {
  try {
    linkSync(path, kept);
  } catch {
    copyFileSync(path, kept);
    syncFile(kept);
  }
};

/** A free name beside the store. */
const keptPath = (path: string, nowMs: number): string => {
  const stamp = new Date(nowMs).toISOString().slice(0, 19).replaceAll(/[-:]/g, '');
  for (let number = 1; ; number += 1) {
    const kept = `${path}.before-restore-${stamp}${number === 1 ? '' : `-${number}`}`;
    if (!['', ...sideFiles].some((suffix) => isThere(kept + suffix))) return kept;
  }
};

/** @returns whether the error shows damage. @throws any other error; for a busy store, a `StoreError` (`held`) */
const isDamage = (path: string, error: unknown): boolean => {
  const kind = sqliteKind(error);
  if (kind === sqlite.busy)
    throw new StoreError('held', `${path} is in use: another program has it open, stop that first`);
  if (kind === sqlite.corrupt || kind === sqlite.notadb || kind === sqlite.error) return true;
  if (error instanceof StoreError || isTooLarge(error)) return true;
  throw error;
};

/** Whether the store is undamaged and lacks nothing that the commit mark counts. Changes neither file nor log. */
const isWhole = (dataDir: string, path: string, bounds: SqliteBounds): boolean => {
  try {
    const mark = readCommitMark(dataDir);
    using database = new DatabaseSync(path, { readOnly: true, timeout: bounds.storeBusyMsMax });
    checkCommitMark(dataDir, mark, database);
    return findDamage(database, path).length === 0;
  } catch (error) {
    return !isDamage(path, error);
  }
};

/** Ends what a killed restore began: SQLite plays its journal back when it opens the file to write. */
const playBack = (path: string, bounds: SqliteBounds): void => {
  if (!existsSync(`${path}-journal`)) return;
  try {
    using database = new DatabaseSync(path, { timeout: bounds.storeBusyMsMax });
    pragma(database, 'user_version');
  } catch (error) {
    isDamage(path, error);
  }
};

/**
 * Moves the contents of the log into the file and removes the log. SQLite refuses while another program has the file
 * open, even one that ignores the hold.
 */
const foldLog = (path: string, bounds: SqliteBounds): void => {
  try {
    using database = new DatabaseSync(path, { timeout: bounds.storeBusyMsMax });
    database.exec('PRAGMA synchronous = FULL; PRAGMA journal_mode = DELETE');
  } catch (error) {
    isDamage(path, error);
  }
};

/**
 * Prepares the old store for its second name. The log of a whole store is folded into it. Otherwise the log stays as it
 * is: it can have commits that SQLite does not find any more, or commits of another store. Without a commit mark, a
 * copy of the log is kept in any case.
 */
const settleLog = (dataDir: string, path: string, kept: string, bounds: SqliteBounds): void => {
  if (!isWhole(dataDir, path, bounds)) return;
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false });
  if (log !== undefined && log.size > 0 && readCommitMark(dataDir) === null)
    keepAs(`${path}-wal`, `${kept}-wal`);
  try {
    foldLog(path, bounds);
  } catch (error) {
    rmSync(`${kept}-wal`, { force: true });
    throw error;
  }
};

/**
 *     fold the log of the old store ── give the old store a second name ── rename the new store to the first name
 *
 * Only a damaged or incomplete old store still has its log then. Its log is removed before the rename; until the rename
 * a marker file keeps every process from opening the file without its log, which could seem complete.
 *
 * @returns the path of the old store
 */
const replaceStore = (
  dataDir: string,
  path: string,
  fresh: string,
  nowMs: number,
  bounds: SqliteBounds,
): string | null => {
  const folder = dirname(path);
  const marker = restoringPath(dataDir);
  const isLeft = (suffix: string) => existsSync(path + suffix);
  const name = keptPath(path, nowMs);
  if (isLeft('') && !isLeft('-restoring') && statSync(path).size > 0) settleLog(dataDir, path, name, bounds);
  const old = ['', ...sideFiles].filter(isLeft);
  for (const suffix of old) keepAs(path + suffix, name + suffix);
  syncFolder(folder);
  if (sideFiles.some(isLeft)) {
    makeFile(marker);
    syncFolder(dataDir);
    for (const suffix of sideFiles) rmSync(path + suffix, { force: true });
    syncFolder(folder);
  }
  // It is of the old store, which may have had more. Left beside the new one, it would say that entries are missing.
  rmSync(commitMarkPath(dataDir), { force: true });
  renameSync(fresh, path);
  syncFolder(folder);
  if (existsSync(marker)) {
    rmSync(marker);
    syncFolder(dataDir);
  }
  return old.length > 0 ? name : null;
};

/** A session or a link that ended since the backup must not come back. */
const endSessions = (path: string): void => {
  using database = new DatabaseSync(path);
  if (pragma(database, 'user_version') >= 5) database.exec('DELETE FROM sessions; DELETE FROM links');
};

const refuseOwnFile = (dataDir: string, source: string): void => {
  if (identityOf(source) !== null && identityOf(source) === identityOf(storePath(dataDir)))
    throw new AdministrationError(`${source} is the store itself`);
};

/**
 * Verifies the backup, puts a copy of it (with the contents of its log) in the place of the store, and keeps the
 * previous store beside it. Everyone is signed out.
 *
 * @throws {AdministrationError} there is no backup, or it is damaged; nothing has changed
 * @throws {StoreError} the store is in use, or its folder cannot be written; nothing has changed
 */
export const restore = (dataDir: string, file: string, nowMs: number, bounds: SqliteBounds): Restored => {
  const source = resolve(file);
  refuseOwnFile(dataDir, source);
  const contents = verifyBackup(source, bounds);
  try {
    makeFolder(dataDir);
    using _hold = StoreHold.seize(dataDir, bounds.storeBusyMsMax);
    const path = locate(dataDir);
    playBack(path, bounds);
    const fresh = `${path}.new`;
    for (const left of [fresh, `${fresh}-journal`]) rmSync(left, { force: true });
    try {
      // Created first, so that it has mode 0600 before it has contents.
      makeFile(fresh);
      copyBackup(source, fresh, bounds);
      endSessions(fresh);
      syncFile(fresh);
      verifyBackup(fresh, bounds);
      const kept = replaceStore(dataDir, path, fresh, nowMs, bounds);
      return { contents: { ...contents, ...verifyBackup(path, bounds) }, kept };
    } finally {
      rmSync(fresh, { force: true });
    }
  } catch (error) {
    throw toFileError(file, toStoreError(dataDir, error));
  }
};
