/**
 * Backups of the store: one file, complete without a write-ahead log, of one moment, made while the service runs.
 */
import { existsSync, lstatSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { limits } from '../../limits.js';
import { AdministrationError } from '../../accounts/administration.js';
import {
  StoreError,
  checkOrigin,
  identityOf,
  missingStore,
  sqlite,
  sqliteKind,
  storePath,
  wordStoreError,
} from './database.js';
import { makeFile, syncFile, syncFolder } from './files.js';
import { checkMark, markPath, readMark } from './mark.js';
import { findDamage } from './verification.js';

/** What a store or a backup of it holds. */
export interface Contents {
  readonly accounts: number;
  readonly keys: number;
  /** Of the ledger. */
  readonly entries: number;
  readonly bytes: number;
  /** Milliseconds since 1970 of its newest entry; `null` when there is none. */
  readonly newestAtMs: number | null;
}

/** What is wrong with a store or a backup, one finding a line. */
export class DamageError extends Error {
  override readonly name = 'DamageError';
}

export const sideFiles = ['-wal', '-shm'] as const;

const openToRead = (path: string): DatabaseSync =>
  new DatabaseSync(path, { readOnly: true, timeout: limits.storeBusyMsMax });

const readContents = (database: DatabaseSync, path: string): Contents => {
  const row = database
    .prepare(
      `SELECT (SELECT count(*) FROM accounts) AS accounts, (SELECT count(*) FROM api_keys) AS keys,
         (SELECT count(*) FROM ledger) AS entries, (SELECT max(at_ms) FROM ledger) AS newestAtMs`,
    )
    .get() as unknown as Omit<Contents, 'bytes'>;
  return { ...row, bytes: statSync(path).size };
};

/** The remedy of what is found, in a line of its own. */
const damage = (path: string, findings: readonly string[], remedy: string): DamageError =>
  new DamageError([`${path} is damaged:`, ...findings.map((finding) => `  ${finding}`), remedy].join('\n'));

const restoreRemedy =
  'Keep this file and its -wal, stop the service, and restore the newest good backup: npm run store -- restore FILE';

const otherBackup = 'Take another backup, or make a new one: npm run store -- backup FILE';

/** Words what SQLite or the file system say of a backup, which is not the store. */
export const wordFileError = (path: string, error: unknown): unknown => {
  if (error instanceof StoreError || error instanceof DamageError || error instanceof AdministrationError)
    return error;
  if (sqliteKind(error) === null && !('syscall' in (error as object))) return error;
  return new AdministrationError(`${path} cannot be used (${(error as Error).message})`);
};

/** @throws {AdministrationError | DamageError} it is not there, is none of ours, or is damaged */
const verifyFile = (path: string, remedy: string): Contents => {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) throw new AdministrationError(`There is no file ${path}`);
  if (!stats.isFile()) throw new AdministrationError(`${path} is no file`);
  try {
    const database = openToRead(path);
    try {
      const findings = stats.size === 0 ? ['the file is empty'] : findDamage(database, path);
      if (findings.length > 0) throw damage(path, findings, remedy);
      return readContents(database, path);
    } finally {
      database.close();
    }
  } catch (error) {
    throw wordFileError(path, error);
  }
};

/** @throws {AdministrationError | DamageError} see `verifyFile` */
export const verifyBackup = (file: string): Contents => verifyFile(resolve(file), otherBackup);

/**
 * Reads the whole store, which may be in use, and disturbs nobody.
 *
 * @throws {DamageError} with all that is wrong
 * @throws {StoreError} there is no store, or it cannot be read
 */
export const verifyStore = (dataDir: string): Contents => {
  const path = storePath(dataDir);
  if (!existsSync(path)) throw missingStore(path);
  const mark = readMark(dataDir);
  const contents = verifyFile(path, restoreRemedy);
  const database = openToRead(path);
  try {
    checkMark(dataDir, mark, database);
    return contents;
  } catch (error) {
    throw wordStoreError(dataDir, error);
  } finally {
    database.close();
  }
};

/** One snapshot, however much is written meanwhile, with what is in the log; the copy has none. */
const snapshot = (database: DatabaseSync, target: string): void => {
  database.prepare('VACUUM INTO ?').run(target);
};

/**
 * Copies a backup, with its log where it has one, into one file.
 *
 * @param target an empty file
 * @throws {AdministrationError} the backup cannot be read
 * @throws of SQLite, when the target's disk is full
 */
export const copyBackup = (source: string, target: string): void => {
  const database = openToRead(source);
  try {
    snapshot(database, target);
  } catch (error) {
    throw sqliteKind(error) === sqlite.full ? error : wordFileError(source, error);
  } finally {
    database.close();
  }
};

const copyTo = (dataDir: string, temporary: string): void => {
  const mark = readMark(dataDir);
  const database = openToRead(storePath(dataDir));
  try {
    checkOrigin(database, storePath(dataDir));
    checkMark(dataDir, mark, database);
    snapshot(database, temporary);
  } catch (error) {
    if (sqliteKind(error) === sqlite.full)
      throw new AdministrationError(`The disk of ${temporary} is full: make room on it`);
    throw wordStoreError(dataDir, error);
  } finally {
    database.close();
  }
};

/**
 * Copies the store, which may be in use, into one file of mode 0600, and reads that back. The file is there whole or
 * not at all.
 *
 * @param force takes the place of a file that is there
 * @throws {AdministrationError | DamageError | StoreError} there is no store, the file is there, or is not good
 */
export const backUp = (dataDir: string, file: string, force: boolean): Contents => {
  const path = resolve(file);
  const store = storePath(dataDir);
  if (!existsSync(store)) throw missingStore(store);
  const there = lstatSync(path, { throwIfNoEntry: false });
  const ours = [store, ...sideFiles.map((suffix) => store + suffix), markPath(dataDir)];
  if (ours.some((own) => own === path || (there !== undefined && identityOf(own) === identityOf(path))))
    throw new AdministrationError(`${path} is the store itself: give the backup another name`);
  if (there?.isDirectory() === true) throw new AdministrationError(`${path} is a folder: give a file in it`);
  if (there !== undefined && !force)
    throw new AdministrationError(`${path} is there already: give another name, or --force`);
  const temporary = join(dirname(path), `.${basename(path)}.${process.pid}`);
  try {
    rmSync(temporary, { force: true });
    makeFile(temporary);
    copyTo(dataDir, temporary);
    syncFile(temporary);
    const contents = verifyFile(temporary, restoreRemedy);
    renameSync(temporary, path);
    syncFolder(dirname(path));
    return contents;
  } catch (error) {
    throw wordFileError(path, error);
  } finally {
    rmSync(temporary, { force: true });
  }
};
