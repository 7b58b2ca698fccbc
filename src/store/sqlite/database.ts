/**
 * The file of the store: SQLite in write-ahead mode. One process can write while others read, and a reader always sees
 * the last commit. Every connection of every process and thread is opened here.
 */
import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { freeBytesOf } from '../disk.js';
import type { Bounds } from '../../limits.js';
import { StoreError } from '../store.js';
import { APPLICATION_ID, SCHEMA_VERSION, migrations } from './schema.js';

export type SqliteBounds = Pick<
  Bounds,
  | 'keysPerAccountMax'
  | 'storeBusyMsMax'
  | 'storeReadBusyMsMax'
  | 'storeFreeBytesMin'
  | 'storeCheckBytesMax'
  | 'storeCacheBytesMax'
>;

export const storePath = (dataDir: string): string => join(dataDir, 'store.sqlite');
/** Its write-ahead log. */
export const logPath = (dataDir: string): string => `${storePath(dataDir)}-wal`;

/** SQLite's memory of locks and of what the log has. Processes that do not share it neither wait for one another nor see all commits. */
export const sharedPath = (dataDir: string): string => `${storePath(dataDir)}-shm`;

/** While this file exists no process opens the store: a restore is running, or was cut off. */
export const restoringPath = (dataDir: string): string => `${storePath(dataDir)}-restoring`;

/** @throws {StoreError} when a restore was cut off */
export const checkNotRestoring = (dataDir: string): void => {
  if (existsSync(restoringPath(dataDir)))
    throw new StoreError(
      'held',
      `A restore of the store ${storePath(dataDir)} was cut off: run it again (npm run store -- restore FILE)`,
    );
};

/** Distinguishes a file from another one that takes its place; `null` if there is none. */
export const identityOf = (path: string): string | null => {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? null : `${stats.dev}:${stats.ino}`;
};

export const missingStore = (path: string): StoreError =>
  new StoreError(
    'missing',
    `There is no store at ${path}: put it back where it was, or set DATA_DIR to the folder that has it`,
  );

/** SQLite reports each finding in a line of its own. */
const FINDING_LENGTH_MAX = 200;

const shorten = (finding: string): string => {
  const line = finding.replaceAll(/\s+/g, ' ');
  return line.length > FINDING_LENGTH_MAX ? `${line.slice(0, FINDING_LENGTH_MAX)}...` : line;
};

export const damagedStore = (path: string, finding: string): StoreError =>
  new StoreError(
    'damaged',
    `The store ${path} is damaged (${shorten(finding)}): restore a backup ` +
      `(npm run store -- restore FILE), or move ${path}* away to start with an empty one`,
  );

/** The smallest index of a WAL. */
const INDEX_BYTES = 32_768;

const fullDisk = (path: string): StoreError =>
  new StoreError('full', `The disk of ${path} is full: make room on it`);

export const sqlite = {
  error: 1,
  busy: 5,
  readonly: 8,
  ioerr: 10,
  corrupt: 11,
  full: 13,
  cantopen: 14,
  notadb: 26,
} as const;

/** The kind of an error of SQLite: the low byte of its extended code. `null` for any other error. */
export const sqliteKind = (error: unknown): number | null => {
  const { code, errcode } = error as { code?: string; errcode?: number };
  return code === 'ERR_SQLITE_ERROR' ? (errcode ?? 0) & 0xff : null;
};

/** SQLite read an integer that a number does not hold, and that we never write. */
export const isTooLarge = (error: unknown): boolean =>
  (error as { code?: string }).code === 'ERR_OUT_OF_RANGE';

/** Turns an error of SQLite or of the file system into a `StoreError`. Any other error is a defect and stays as it is. */
export const toStoreError = (dataDir: string, error: unknown): unknown => {
  if (error instanceof StoreError || !(error instanceof Error)) return error;
  const path = storePath(dataDir);
  const kind = sqliteKind(error);
  const unwritable = () =>
    new StoreError(
      'unwritable',
      `The data folder ${dataDir} cannot be written (${error.message}): give this user write access to it and to ` +
        'its files, or set DATA_DIR to another folder',
    );
  if (isTooLarge(error)) return damagedStore(path, error.message);
  if (kind === null) return 'syscall' in error ? unwritable() : error;
  switch (kind) {
    case sqlite.corrupt:
    case sqlite.notadb:
      return damagedStore(path, error.message);
    case sqlite.busy:
      return new StoreError(
        'busy',
        `The store ${path} is locked by another process: end that process, or try again when it is done`,
      );
    case sqlite.full:
      return fullDisk(path);
    case sqlite.ioerr:
    case sqlite.cantopen:
      // Also if there is no room for its index of the WAL.
      return existsSync(dataDir) && freeBytesOf(statfsSync(dataDir)) < INDEX_BYTES
        ? fullDisk(path)
        : unwritable();
    case sqlite.readonly:
      return unwritable();
    default:
      return new StoreError('unusable', `The store ${path} cannot be used (${error.message})`);
  }
};

export const pragma = (database: DatabaseSync, name: string): number => {
  const row = database.prepare(`PRAGMA ${name}`).get();
  return Number(row?.[name]);
};

/** Runs `work` as one transaction, which no other writer can interrupt. */
export const transact = <T>(database: DatabaseSync, work: () => T): T => {
  database.exec('BEGIN IMMEDIATE');
  try {
    const result = work();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    // SQLite itself rolls back after some errors.
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
};

/**
 * @returns the version of the schema
 * @throws {StoreError} it is not a store of ours, or is newer than this program
 */
export const checkOrigin = (database: DatabaseSync, path: string): number => {
  const version = pragma(database, 'user_version');
  if (pragma(database, 'application_id') !== APPLICATION_ID)
    throw new StoreError(
      'foreign',
      `${path} is a database of another program: move it away, or set DATA_DIR to another folder`,
    );
  if (version > SCHEMA_VERSION)
    throw new StoreError(
      'newer',
      `The store ${path} was written by a newer syrinx (schema ${version}; this one knows ${SCHEMA_VERSION}): ` +
        'run that version, or set DATA_DIR to another folder',
    );
  if (version < 1) throw damagedStore(path, `it claims to have schema ${version}`);
  return version;
};

/** Brings a new or older store to the schema of this program. */
export const migrate = (database: DatabaseSync, versionOf: () => number): void => {
  if (versionOf() === SCHEMA_VERSION) return;
  transact(database, () => {
    // Another process may have migrated it while this one waited for the lock.
    for (const script of migrations.slice(versionOf())) database.exec(script);
    database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}`);
  });
};

/**
 * Finds a full disk before a commit does. A file system that reports no size counts as having room.
 *
 * @throws {StoreError} the disk is full
 */
export const checkRoom = (dataDir: string, bounds: SqliteBounds): void => {
  if (freeBytesOf(statfsSync(dataDir)) < bounds.storeFreeBytesMin) throw fullDisk(storePath(dataDir));
};

const openFile = (dataDir: string, bounds: SqliteBounds, busyMsMax: number): DatabaseSync => {
  const path = storePath(dataDir);
  accessSync(path, constants.R_OK | constants.W_OK);
  const database = new DatabaseSync(path, { timeout: busyMsMax });
  try {
    // Before the journal is touched: a file that is not ours stays as it is.
    checkOrigin(database, path);
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
    // A negative figure counts KiB.
    database.exec(`PRAGMA cache_size = ${String(-bounds.storeCacheBytesMax / 1024)}`);
    migrate(database, () => checkOrigin(database, path));
    return database;
  } catch (error) {
    database.close();
    // Our own statements fail only if the file does not have the schema that it claims.
    if (sqliteKind(error) === sqlite.error) throw damagedStore(path, (error as Error).message);
    throw error;
  }
};

/**
 * Opens the store, and never creates it: a store that was moved away must not come back empty.
 *
 * @param busyMsMax how long a statement waits for the write of another process
 * @throws {StoreError} there is no store, or it cannot be read and written
 */
export const openExisting = (
  dataDir: string,
  bounds: SqliteBounds,
  busyMsMax: number = bounds.storeBusyMsMax,
): DatabaseSync => {
  try {
    const path = storePath(dataDir);
    checkNotRestoring(dataDir);
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined) throw missingStore(path);
    if (!stats.isFile())
      throw new StoreError('unwritable', `${path} is not a file: move it away, and put the store there`);
    // A new store is renamed into place when it is complete: SQLite would turn an empty file into an empty store.
    if (stats.size === 0) throw damagedStore(path, 'the file is empty');
    return openFile(dataDir, bounds, busyMsMax);
  } catch (error) {
    throw toStoreError(dataDir, error);
  }
};
