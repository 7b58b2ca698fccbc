/**
 * Puts a backup in the place of the store, while no process has that open. A kill at any point leaves the one or the
 * other there, whole, and never the log of the one beside the file of the other, which SQLite would play it into.
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
import { limits } from '../../limits.js';
import { AdministrationError } from '../../accounts/administration.js';
import { copyBackup, sideFiles, verifyBackup, wordFileError, type Contents } from './backup.js';
import {
  StoreError,
  identityOf,
  isTooLarge,
  restoringPath,
  sqlite,
  sqliteKind,
  storePath,
  wordStoreError,
} from './database.js';
import { makeFile, makeFolder, syncFile, syncFolder } from './files.js';
import { StoreHold } from './hold.js';
import { checkMark, readMark } from './mark.js';
import { findDamage } from './verification.js';

export interface Restored {
  readonly contents: Contents;
  /** Where the store is that was there before; `null` when there was none. */
  readonly kept: string | null;
}

const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/** The log is beside the file, wherever a link leads. */
const locate = (dataDir: string): string => {
  const path = storePath(dataDir);
  if (!isThere(path)) return path;
  const noFile = new AdministrationError(`${path} is no file: move it away`);
  if (!existsSync(path) || !statSync(path).isFile()) throw noFile;
  return realpathSync(path);
};

/** A second name for the same file; where a disk has none of these, a copy. */
const keepAs = (path: string, kept: string): void => {
  try {
    linkSync(path, kept);
  } catch {
    copyFileSync(path, kept);
    syncFile(kept);
  }
};

/** A name beside it that is free. */
const keptPath = (path: string, nowMs: number): string => {
  const stamp = new Date(nowMs).toISOString().slice(0, 19).replaceAll(/[-:]/g, '');
  for (let number = 1; ; number += 1) {
    const kept = `${path}.before-restore-${stamp}${number === 1 ? '' : `-${number}`}`;
    if (!['', ...sideFiles].some((suffix) => isThere(kept + suffix))) return kept;
  }
};

/** What a store that cannot be read right says to whoever reads it. @throws another error; of a busy store, `held` */
const isDamage = (path: string, error: unknown): boolean => {
  const kind = sqliteKind(error);
  if (kind === sqlite.busy)
    throw new StoreError('held', `${path} is in use: another program has it open, stop that first`);
  if (kind === sqlite.corrupt || kind === sqlite.notadb || kind === sqlite.error) return true;
  if (error instanceof StoreError || isTooLarge(error)) return true;
  throw error;
};

/** Whether nothing is wrong with the store, and nothing missing that the mark tells of. It changes neither file nor log. */
const isWhole = (dataDir: string, path: string): boolean => {
  let database: DatabaseSync | undefined;
  try {
    const mark = readMark(dataDir);
    database = new DatabaseSync(path, { readOnly: true, timeout: limits.storeBusyMsMax });
    checkMark(dataDir, mark, database);
    return findDamage(database, path).length === 0;
  } catch (error) {
    return !isDamage(path, error);
  } finally {
    database?.close();
  }
};

/**
 * Brings the log into the file, so that it is whole by itself, and removes it. SQLite does so only when nobody else has
 * it open, also nobody who knows nothing of the hold.
 */
const foldLog = (path: string): void => {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { timeout: limits.storeBusyMsMax });
    database.exec('PRAGMA synchronous = FULL; PRAGMA journal_mode = DELETE');
  } catch (error) {
    isDamage(path, error);
  } finally {
    database?.close();
  }
};

/**
 * The old store, ready for a second name. Its log is folded into it when it is whole. Else the log stays as it is: it can
 * have commits that SQLite does not find any more, or those of another store. Where no mark tells what there was, it is
 * kept besides.
 */
const settleLog = (dataDir: string, path: string, kept: string): void => {
  if (!isWhole(dataDir, path)) return;
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false });
  if (log !== undefined && log.size > 0 && readMark(dataDir) === null) keepAs(`${path}-wal`, `${kept}-wal`);
  try {
    foldLog(path);
  } catch (error) {
    rmSync(`${kept}-wal`, { force: true });
    throw error;
  }
};

/**
 *     the old one's log folded in ── a second name for the old one ── the new one renamed over its first
 *
 * Only a store that was damaged, or lacked something, still has its log then. It goes first, and a marker keeps everyone from opening
 * what is left meanwhile: it could seem whole.
 */
const takePlace = (dataDir: string, path: string, fresh: string, nowMs: number): string | null => {
  const folder = dirname(path);
  const marker = restoringPath(dataDir);
  const isLeft = (suffix: string) => existsSync(path + suffix);
  const name = keptPath(path, nowMs);
  if (isLeft('') && !isLeft('-restoring') && statSync(path).size > 0) settleLog(dataDir, path, name);
  const old = ['', ...sideFiles].filter(isLeft);
  for (const suffix of old) keepAs(path + suffix, name + suffix);
  syncFolder(folder);
  if (sideFiles.some(isLeft)) {
    makeFile(marker);
    syncFolder(dataDir);
    for (const suffix of sideFiles) rmSync(path + suffix, { force: true });
    syncFolder(folder);
  }
  renameSync(fresh, path);
  syncFolder(folder);
  if (existsSync(marker)) {
    rmSync(marker);
    syncFolder(dataDir);
  }
  return old.length > 0 ? name : null;
};

const refuseOwnFile = (dataDir: string, source: string): void => {
  if (identityOf(source) !== null && identityOf(source) === identityOf(storePath(dataDir)))
    throw new AdministrationError(`${source} is the store itself`);
};

/**
 * Verifies the backup, puts a copy of it (and of what is in its log) in the place of the store, and keeps beside it the
 * store that was there.
 *
 * @throws {AdministrationError | DamageError} the backup is not there or not good; nothing has changed
 * @throws {StoreError} the store is in use, or its folder cannot be written; nothing has changed
 */
export const restore = (dataDir: string, file: string, nowMs: number): Restored => {
  const source = resolve(file);
  refuseOwnFile(dataDir, source);
  const contents = verifyBackup(source);
  let hold: StoreHold | undefined;
  try {
    makeFolder(dataDir);
    hold = StoreHold.seize(dataDir, limits.storeBusyMsMax);
    const path = locate(dataDir);
    const fresh = `${path}.new`;
    for (const left of [fresh, `${fresh}-journal`]) rmSync(left, { force: true });
    try {
      // Made first: nobody reads it before it is as it should be.
      makeFile(fresh);
      copyBackup(source, fresh);
      syncFile(fresh);
      verifyBackup(fresh);
      const kept = takePlace(dataDir, path, fresh, nowMs);
      return { contents: { ...contents, ...verifyBackup(path) }, kept };
    } finally {
      rmSync(fresh, { force: true });
    }
  } catch (error) {
    throw wordFileError(file, wordStoreError(dataDir, error));
  } finally {
    hold?.release();
  }
};
