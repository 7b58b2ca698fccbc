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
import { limits } from '../limits.js';
import { AdministrationError } from './administration.js';
import { sideFiles, verifyBackup, wordFileError, type Contents } from './backup.js';
import {
  StoreError,
  identityOf,
  restoringPath,
  sqlite,
  sqliteKind,
  storePath,
  wordStoreError,
} from './database.js';
import { makeFile, makeFolder, makeOwn, syncFile, syncFolder } from './files.js';
import { StoreHold } from './hold.js';

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

/**
 * Brings the log into the file, so that it is whole by itself. SQLite does so only when nobody else has it open, also
 * nobody who knows nothing of the hold. A store that is too damaged keeps its log.
 */
const foldLog = (path: string): void => {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { timeout: limits.storeBusyMsMax });
    database.exec('PRAGMA synchronous = FULL; PRAGMA journal_mode = DELETE');
  } catch (error) {
    const kind = sqliteKind(error);
    if (kind === sqlite.busy)
      throw new StoreError('held', `${path} is in use: another program has it open, stop that first`);
    if (kind !== sqlite.corrupt && kind !== sqlite.notadb) throw error;
  } finally {
    database?.close();
  }
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
    if (!isThere(kept)) return kept;
  }
};

/**
 *     the old one's log folded in ── a second name for the old one ── the new one renamed over its first
 *
 * Only a store that was too damaged still has its log then. It goes first, and a marker keeps everyone from opening
 * what is left meanwhile: it could seem whole.
 */
const takePlace = (dataDir: string, path: string, fresh: string, nowMs: number): string | null => {
  const folder = dirname(path);
  const marker = restoringPath(dataDir);
  const isLeft = (suffix: string) => existsSync(path + suffix);
  if (isLeft('') && !isLeft('-restoring') && statSync(path).size > 0) foldLog(path);
  const old = ['', ...sideFiles].filter(isLeft);
  const kept = old.length > 0 ? keptPath(path, nowMs) : null;
  for (const suffix of old) keepAs(path + suffix, `${kept}${suffix}`);
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
  return kept;
};

const refuseOwnFile = (dataDir: string, source: string): void => {
  if (identityOf(source) !== null && identityOf(source) === identityOf(storePath(dataDir)))
    throw new AdministrationError(`${source} is the store itself`);
};

/**
 * Verifies the backup, puts a copy of it in the place of the store, and keeps beside it the store that was there.
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
      copyFileSync(source, fresh);
      makeOwn(fresh);
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
