/**
 * The store's file: SQLite in write-ahead mode, so that one process can write while others read, and what a reader
 * sees is always the last commit. Every connection, of whatever process or thread, is opened here.
 */
import { accessSync, closeSync, constants, existsSync, mkdirSync, openSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { limits } from '../limits.js';

export type StoreFault = 'unwritable' | 'damaged' | 'foreign' | 'newer' | 'busy' | 'full';

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

/** "Syrx": tells a store of ours from any other SQLite file. */
const APPLICATION_ID = 0x53797278;

/**
 * Schema n is made from schema n - 1 by `migrations[n - 1]`; `user_version` holds n. Released ones are never edited.
 *
 * An account's balance is the sum of its ledger: the triggers keep the two together, whoever writes.
 */
const migrations = [
  `
  CREATE TABLE accounts (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    metered INTEGER NOT NULL CHECK (metered IN (0, 1)),
    balance INTEGER NOT NULL DEFAULT 0,
    created_at_ms INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE api_keys (
    id INTEGER PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    hash BLOB NOT NULL UNIQUE,
    prefix TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    revoked_at_ms INTEGER
  ) STRICT;

  CREATE TABLE ledger (
    id INTEGER PRIMARY KEY,
    writer INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    key_id INTEGER REFERENCES api_keys (id),
    request_id TEXT,
    kind TEXT NOT NULL CHECK (kind IN ('grant', 'usage', 'refund')),
    amount INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    UNIQUE (writer, entry)
  ) STRICT;

  CREATE TRIGGER ledger_adds_to_balance AFTER INSERT ON ledger BEGIN
    UPDATE accounts SET balance = balance + NEW.amount WHERE id = NEW.account_id;
  END;
  CREATE TRIGGER ledger_is_never_changed BEFORE UPDATE ON ledger BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only');
  END;
  CREATE TRIGGER ledger_is_never_cut BEFORE DELETE ON ledger BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only');
  END;
  `,
] as const;

export const SCHEMA_VERSION = migrations.length;

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
      return new StoreError('full', `The disk of ${path} is full: make room on it`);
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

const open = (dataDir: string): DatabaseSync => {
  const path = storePath(dataDir);
  makeFolder(dataDir);
  accessSync(dataDir, constants.W_OK | constants.X_OK);
  makeFile(path);
  accessSync(path, constants.R_OK | constants.W_OK);
  const database = new DatabaseSync(path, { timeout: limits.storeBusyMsMax });
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
    return open(dataDir);
  } catch (error) {
    throw wordStoreError(dataDir, error);
  }
};
