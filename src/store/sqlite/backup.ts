/** Backups: one file with a consistent state of the store, complete without a write-ahead log, made while the service runs. */
import { closeSync, existsSync, lstatSync, openSync, readSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { READ_FLAGS } from '../../regular-file.js';
import { AdministrationError, StoreError } from '../store.js';
import { checkCommitMark, commitMarkPath, readCommitMark } from './commit-mark.js';
import {
  checkOrigin,
  identityOf,
  missingStore,
  sqlite,
  sqliteKind,
  storePath,
  toStoreError,
  type SqliteBounds,
} from './database.js';
import { makeFile, removeLeft, syncFile, syncFolder } from './files.js';
import { findDamage } from './verification.js';

/** Contents of a store or a backup. */
export interface Contents {
  readonly accounts: number;
  readonly keys: number;
  /** Entries of the ledger. */
  readonly entries: number;
  readonly bytes: number;
  /** Time of the newest entry, in milliseconds since 1970; `null` if there is none. */
  readonly newestAtMs: number | null;
}

/** A store or a backup is damaged. The message has one line for each finding. */
class DamageError extends AdministrationError {
  override readonly name = 'DamageError';
}

export const sideFiles = ['-wal', '-shm'] as const;

const openToRead = (path: string, bounds: SqliteBounds): DatabaseSync =>
  new DatabaseSync(path, { readOnly: true, timeout: bounds.storeBusyMsMax });

const readContents = (database: DatabaseSync, path: string): Contents => {
  const row = database
    .prepare(
      `SELECT (SELECT count(*) FROM accounts) AS accounts, (SELECT count(*) FROM api_keys) AS keys,
         (SELECT count(*) FROM ledger) AS entries, (SELECT max(at_ms) FROM ledger) AS newestAtMs`,
    )
    .get() as unknown as Omit<Contents, 'bytes'>;
  return { ...row, bytes: statSync(path).size };
};

const damage = (path: string, findings: readonly string[], remedy: string): DamageError =>
  new DamageError([`${path} is damaged:`, ...findings.map((finding) => `  ${finding}`), remedy].join('\n'));

const restoreRemedy =
  'Keep this file and its -wal, stop the service, and restore the newest good backup: npm run store -- restore FILE';

const otherBackup = 'Take another backup, or make a new one: npm run store -- backup FILE';

/** Turns an error of SQLite or of the file system about a backup into one for the operator. */
export const toFileError = (path: string, error: unknown): unknown => {
  if (error instanceof StoreError || error instanceof AdministrationError) return error;
  if (sqliteKind(error) === null && !('syscall' in (error as object))) return error;
  return new AdministrationError(`${path} cannot be used (${(error as Error).message})`);
};

/** @throws {AdministrationError} there is no file, it is not a store of ours, or it is damaged */
const verifyFile = (path: string, remedy: string, bounds: SqliteBounds): Contents => {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) throw new AdministrationError(`There is no file ${path}`);
  if (!stats.isFile()) throw new AdministrationError(`${path} is not a file`);
  try {
    using database = openToRead(path, bounds);
    const findings = stats.size === 0 ? ['the file is empty'] : findDamage(database, path);
    if (findings.length > 0) throw damage(path, findings, remedy);
    return readContents(database, path);
  } catch (error) {
    throw toFileError(path, error);
  }
};

/** @throws {AdministrationError} there is no file, it is not a store of ours, or it is damaged */
export const verifyBackup = (file: string, bounds: SqliteBounds): Contents =>
  verifyFile(resolve(file), otherBackup, bounds);

/**
 * Reads the whole store, which services may use meanwhile.
 *
 * @throws {AdministrationError} the store is damaged
 * @throws {StoreError} there is no store, or it cannot be read
 */
export const verifyStore = (dataDir: string, bounds: SqliteBounds): Contents => {
  const path = storePath(dataDir);
  if (!existsSync(path)) throw missingStore(path);
  const mark = readCommitMark(dataDir, true);
  const contents = verifyFile(path, restoreRemedy, bounds);
  using database = openToRead(path, bounds);
  try {
    checkCommitMark(dataDir, mark, database);
    return contents;
  } catch (error) {
    throw toStoreError(dataDir, error);
  }
};

/** Copies one snapshot, with the contents of the log, however much is written meanwhile. */
const snapshot = (database: DatabaseSync, target: string): void => {
  database.prepare('VACUUM INTO ?').run(target);
};

/**
 * Copies a backup, with its log if it has one, into one file.
 *
 * @param target an empty file
 * @throws {AdministrationError} the backup cannot be read
 * @throws an error of SQLite if the disk of the target is full
 */
export const copyBackup = (source: string, target: string, bounds: SqliteBounds): void => {
  using database = openToRead(source, bounds);
  try {
    snapshot(database, target);
  } catch (error) {
    throw sqliteKind(error) === sqlite.full ? error : toFileError(source, error);
  }
};

/** Of a backup that is not complete. */
const temporaryPrefix = '.syrinx-backup-';

/** A mistyped path must not cost another file. */
const isDatabase = (path: string): boolean => {
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) return false;
  const file = openSync(path, READ_FLAGS);
  try {
    const magic = Buffer.alloc(16);
    readSync(file, magic);
    return magic.toString('latin1') === 'SQLite format 3\0';
  } finally {
    closeSync(file);
  }
};

const copyStore = (dataDir: string, temporary: string, bounds: SqliteBounds): void => {
  const mark = readCommitMark(dataDir);
  using database = openToRead(storePath(dataDir), bounds);
  try {
    checkOrigin(database, storePath(dataDir));
    checkCommitMark(dataDir, mark, database);
    snapshot(database, temporary);
  } catch (error) {
    if (sqliteKind(error) === sqlite.full)
      throw new AdministrationError(`The disk of ${temporary} is full: make room on it`);
    throw toStoreError(dataDir, error);
  }
};

/**
 * Copies the store, which services may use meanwhile, into one file of mode 0600, and verifies the copy. The file
 * appears when it is complete.
 *
 * @param force replaces an earlier backup, and no other file
 * @throws {AdministrationError | StoreError} there is no store, the file exists, or the copy is damaged
 */
export const backUp = (dataDir: string, file: string, force: boolean, bounds: SqliteBounds): Contents => {
  const path = resolve(file);
  const store = storePath(dataDir);
  if (!existsSync(store)) throw missingStore(store);
  const there = lstatSync(path, { throwIfNoEntry: false });
  const ours = [store, ...sideFiles.map((suffix) => store + suffix), commitMarkPath(dataDir)];
  if (ours.some((own) => own === path || (there !== undefined && identityOf(own) === identityOf(path))))
    throw new AdministrationError(`${path} is the store itself: give the backup another name`);
  if (there?.isDirectory() === true) throw new AdministrationError(`${path} is a folder: name a file in it`);
  if (there !== undefined && !force)
    throw new AdministrationError(`${path} exists already: give another name, or --force`);
  if (there !== undefined && !isDatabase(path))
    throw new AdministrationError(`${path} is no backup, so it is not replaced: give another name`);
  if (!existsSync(dirname(path)))
    throw new AdministrationError(`There is no folder ${dirname(path)}: make it first`);
  const temporary = join(dirname(path), `${temporaryPrefix}${process.pid}`);
  try {
    removeLeft(dirname(path), temporaryPrefix);
    rmSync(temporary, { force: true });
    makeFile(temporary);
    copyStore(dataDir, temporary, bounds);
    syncFile(temporary);
    const contents = verifyFile(temporary, restoreRemedy, bounds);
    renameSync(temporary, path);
    syncFolder(dirname(path));
    return contents;
  } catch (error) {
    throw toFileError(path, error);
  } finally {
    rmSync(temporary, { force: true });
  }
};
