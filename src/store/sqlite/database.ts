/**
 * The store's file: SQLite in write-ahead mode, so that one process can write while others read, and what a reader
 * sees is always the last commit. Every connection, of whatever process or thread, is opened here.
 */
import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { limits } from '../../limits.js';
import { APPLICATION_ID, SCHEMA_VERSION, migrations } from './schema.js';

export type StoreFault =
  | 'unwritable'
  | 'damaged'
  | 'foreign'
  | 'newer'
  | 'busy'
  | 'full'
  /** The file, or its write-ahead log, is not where it was. */
  | 'missing'
  /** Another file is in its place, beside the log of the one that was there. */
  | 'replaced'
  /** It lacks what had been committed to it. */
  | 'short'
  /** Another process is putting a store in its place, or must not be disturbed by that. */
  | 'held'
  /** Anything else that SQLite says. */
  | 'unusable';

/** The store cannot be used. The message is one line that names the path and what to do. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly fault: StoreFault;
  constructor(fault: StoreFault, message: string) {
    super(message);
    this.fault = fault;
  }
}

export const storePath = (dataDir: string): string => join(dataDir, 'store.sqlite');
/** Its write-ahead log. */
export const logPath = (dataDir: string): string => `${storePath(dataDir)}-wal`;

/** While it is there nobody opens the store: a restore is under way, or was cut off. */
export const restoringPath = (dataDir: string): string => `${storePath(dataDir)}-restoring`;

/** @throws {StoreError} when a restore was cut off */
export const checkNotRestoring = (dataDir: string): void => {
  if (existsSync(restoringPath(dataDir)))
    throw new StoreError(
      'held',
      `A restore of the store ${storePath(dataDir)} was cut off: run it again (npm run store -- restore FILE)`,
    );
};

/** Tells one file from another that takes its place; `null` when there is none. */
export const identityOf = (path: string): string | null => {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? null : `${stats.dev}:${stats.ino}`;
};

export const missingStore = (path: string): StoreError =>
  new StoreError(
    'missing',
    `There is no store at ${path}: put it back where it was, or set DATA_DIR to the folder that has it`,
  );

/** SQLite tells all that it finds, in as many lines. */
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

/** The kind of an error of SQLite: the low byte, whatever the extended code adds. `null` for any other error. */
export const sqliteKind = (error: unknown): number | null => {
  const { code, errcode } = error as { code?: string; errcode?: number };
  return code === 'ERR_SQLITE_ERROR' ? (errcode ?? 0) & 0xff : null;
};

/** An integer that we never write. */
export const isTooLarge = (error: unknown): boolean =>
  (error as { code?: string }).code === 'ERR_OUT_OF_RANGE';

/** Words an error of SQLite or of the file system; anything else is a defect and is returned as it is. */
export const wordStoreError = (dataDir: string, error: unknown): unknown => {
  if (error instanceof StoreError || !(error instanceof Error)) return error;
  const path = storePath(dataDir);
  const kind = sqliteKind(error);
  const unwritable = () =>
    new StoreError(
      'unwritable',
      `The data folder ${dataDir} cannot be written (${error.message}): give this user write access to it and to ` +
        'what is in it, or set DATA_DIR to another folder',
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
    case sqlite.readonly:
    case sqlite.ioerr:
    case sqlite.cantopen:
      return unwritable();
    default:
      return new StoreError('unusable', `The store ${path} cannot be used (${error.message})`);
  }
};

export const pragma = (database: DatabaseSync, name: string): number => {
  const row = database.prepare(`PRAGMA ${name}`).get();
  return Number(row?.[name]);
};

/** Runs `work` as one transaction that no other writer can come between. */
export const transact = <T>(database: DatabaseSync, work: () => T): T => {
  database.exec('BEGIN IMMEDIATE');
  try {
    const result = work();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    // Some errors have rolled back already.
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
};

/**
 * Tells a store of ours, and which schema it has.
 *
 * @throws {StoreError} it is none, or newer than this program
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
  if (version < 1) throw damagedStore(path, `it says that it has schema ${version}`);
  return version;
};

/** Brings it to the schema of this program, from nothing or from an older one. */
export const migrate = (database: DatabaseSync, versionOf: () => number): void => {
  if (versionOf() === SCHEMA_VERSION) return;
  transact(database, () => {
    // Another process may have migrated while this one waited for the lock.
    for (const script of migrations.slice(versionOf())) database.exec(script);
    database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}`);
  });
};

/**
 * Finds a full disk before a commit does. A system that tells no size is believed to have room.
 *
 * @throws {StoreError} when there is none
 */
export const checkRoom = (dataDir: string): void => {
  const { blocks, bfree, bavail, bsize } = statfsSync(dataDir);
  // Some of what is free is kept for root.
  const free = process.getuid?.() === 0 ? bfree : bavail;
  if (blocks > 0 && free * bsize < limits.storeFreeBytesMin) throw fullDisk(storePath(dataDir));
};

const openFile = (dataDir: string, busyMsMax: number): DatabaseSync => {
  const path = storePath(dataDir);
  accessSync(path, constants.R_OK | constants.W_OK);
  const database = new DatabaseSync(path, { timeout: busyMsMax });
  try {
    // Before the journal is touched: a file that is not ours is left as it was.
    checkOrigin(database, path);
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
    // SQLite counts in KiB where the figure is negative.
    database.exec(`PRAGMA cache_size = ${String(-limits.storeCacheBytesMax / 1024)}`);
    migrate(database, () => checkOrigin(database, path));
    return database;
  } catch (error) {
    database.close();
    // Our own statements: what they cannot be run on is not the schema that it says.
    if (sqliteKind(error) === sqlite.error) throw damagedStore(path, (error as Error).message);
    throw error;
  }
};

/**
 * Opens the store that is there, and makes none: one that someone took away must not come back empty.
 *
 * @param busyMsMax how long a statement waits for another process's write
 * @throws {StoreError} when there is none, or it cannot be read and written
 */
export const openExisting = (dataDir: string, busyMsMax: number = limits.storeBusyMsMax): DatabaseSync => {
  try {
    const path = storePath(dataDir);
    checkNotRestoring(dataDir);
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined) throw missingStore(path);
    if (!stats.isFile())
      throw new StoreError('unwritable', `${path} is no file: move it away, and put the store there`);
    // A new store takes its place whole: SQLite would make an empty file a store without accounts.
    if (stats.size === 0) throw damagedStore(path, 'the file is empty');
    return openFile(dataDir, busyMsMax);
  } catch (error) {
    throw wordStoreError(dataDir, error);
  }
};
