/**
 * The store's file: SQLite in write-ahead mode, so that one process can write while others read, and what a reader
 * sees is always the last commit. Every connection, of whatever process or thread, is opened here.
 */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  statfsSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { limits } from '../limits.js';
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

const fullDisk = (path: string): StoreError =>
  new StoreError('full', `The disk of ${path} is full: make room on it`);

const sqlite = { busy: 5, readonly: 8, ioerr: 10, corrupt: 11, full: 13, cantopen: 14, notadb: 26 } as const;

/** Words an error of SQLite or of the file system; anything else is a defect and is returned as it is. */
export const wordStoreError = (dataDir: string, error: unknown): unknown => {
  if (error instanceof StoreError || !(error instanceof Error)) return error;
  const path = storePath(dataDir);
  const { code, errcode } = error as { code?: string; errcode?: number };
  const unwritable = () =>
    new StoreError(
      'unwritable',
      `The data folder ${dataDir} cannot be written (${error.message}): give this user write access to it and to ` +
        'what is in it, or set DATA_DIR to another folder',
    );
  if (code !== 'ERR_SQLITE_ERROR') return 'syscall' in error ? unwritable() : error;
  // The low byte is the kind of error, whatever the extended code adds.
  switch ((errcode ?? 0) & 0xff) {
    case sqlite.corrupt:
    case sqlite.notadb:
      return new StoreError(
        'damaged',
        `The store ${path} is damaged (${error.message}): restore it from a backup, or move it away to start with ` +
          'an empty one',
      );
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
      return error;
  }
};

const pragma = (database: DatabaseSync, name: string): number => {
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

const checkOrigin = (database: DatabaseSync, path: string): number => {
  const version = pragma(database, 'user_version');
  const application = pragma(database, 'application_id');
  const isEmpty =
    version === 0 && application === 0 && database.prepare('SELECT 1 FROM sqlite_schema').get() === undefined;
  if (application !== APPLICATION_ID && !isEmpty)
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
  return version;
};

const migrate = (database: DatabaseSync, path: string): void => {
  if (checkOrigin(database, path) === SCHEMA_VERSION) return;
  transact(database, () => {
    // Another process may have migrated while this one waited for the lock.
    const version = checkOrigin(database, path);
    for (const script of migrations.slice(version)) database.exec(script);
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

const verify = (database: DatabaseSync, path: string): void => {
  for (const table of ['accounts', 'api_keys']) {
    const [row] = database.prepare(`PRAGMA integrity_check(${table})`).all();
    const finding = String(row?.['integrity_check']);
    if (finding !== 'ok')
      throw new StoreError(
        'damaged',
        `The store ${path} is damaged (${finding.replaceAll(/\s+/g, ' ')}): restore it from a backup, or move it ` +
          'away to start with an empty one',
      );
  }
};

/**
 * Finds damage at the start rather than at some request: reads the small tables whole; the ledger is left alone.
 *
 * @throws {StoreError} when it finds any
 */
export const verifyDatabase = (dataDir: string, database: DatabaseSync): void => {
  try {
    verify(database, storePath(dataDir));
  } catch (error) {
    throw wordStoreError(dataDir, error);
  }
};

/** Like `mkdir -p`. Node's own `recursive` never returns where the kernel refuses with ENOENT, as under /proc. */
const makeFolder = (path: string): void => {
  if (existsSync(path)) return;
  if (dirname(path) !== path) makeFolder(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have been faster.
    if (!existsSync(path)) throw error;
  }
};

/** Mode 0600: only the service's user reads it. SQLite gives its side files the same. */
const makeFile = (path: string): void => {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
};

const openFile = (dataDir: string, busyMsMax: number): DatabaseSync => {
  const path = storePath(dataDir);
  accessSync(path, constants.R_OK | constants.W_OK);
  const database = new DatabaseSync(path, { timeout: busyMsMax });
  try {
    // Before the journal is touched: a file that is not ours is left as it was.
    checkOrigin(database, path);
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
    migrate(database, path);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
};

/**
 * Opens the store, making the folder (mode 0700) and the file when they are not there.
 *
 * @throws {StoreError} when it cannot be read and written
 */
export const openDatabase = (dataDir: string): DatabaseSync => {
  try {
    makeFolder(dataDir);
    accessSync(dataDir, constants.W_OK | constants.X_OK);
    makeFile(storePath(dataDir));
    return openFile(dataDir, limits.storeBusyMsMax);
  } catch (error) {
    throw wordStoreError(dataDir, error);
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
    // An empty file is one that is still being put there.
    if (!((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0)) throw missingStore(path);
    return openFile(dataDir, busyMsMax);
  } catch (error) {
    throw wordStoreError(dataDir, error);
  }
};
