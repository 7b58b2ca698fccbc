/**
 * A store as a kill leaves it, with its last commits only in the write-ahead log, or as an orderly end leaves it, without a
 * log. After each damage it can be restored, into the same file: a store in another file would be another store.
 */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { Administration } from '../../../src/accounts/administration.js';
import { limits } from '../../../src/limits.js';
import { newWriter } from '../../../src/store/ledger.js';
import { SqliteAdministration } from '../../../src/store/sqlite/administration.js';
import { commitMarkPath, prepareCommitMark } from '../../../src/store/sqlite/commit-mark.js';
import { logPath, openExisting, storePath } from '../../../src/store/sqlite/database.js';
import { prepareAppendBatch } from '../../../src/store/sqlite/writer.js';
import type { LedgerEntry } from '../../../src/store/store.js';

/** The service must serve these unchanged, or refuse to start. */
export interface Balances {
  readonly accounts: readonly Readonly<Record<string, unknown>>[];
  readonly keys: readonly Readonly<Record<string, unknown>>[];
}

const ACCOUNTS = 5;
const START_MS = Date.UTC(2026, 0, 1);
/** Of every other key. */
const restrictions = {
  name: 'restricted',
  expiresAtMs: Date.UTC(2100, 0, 1),
  creditLimit: 1_000_000,
  voices: ['wren', 'lark'],
};
/** Entries of each commit that is only in the log. */
const COMMIT_ENTRIES = 6;
const LOGGED_COMMITS = 8;

const readBalances = (database: DatabaseSync): Balances => ({
  accounts: database.prepare('SELECT * FROM accounts ORDER BY id').all(),
  keys: database.prepare('SELECT * FROM api_keys ORDER BY id').all(),
});

/** As the service would read them. @throws when reading fails */
export const balancesOf = (dataDir: string): Balances => {
  using database = openExisting(dataDir, limits);
  return readBalances(database);
};

const usage = (
  writer: number,
  entry: number,
  accountId: number,
  credits: number,
  atMs: number,
): LedgerEntry => ({
  writer,
  entry,
  accountId,
  // Every account has two keys, made in turn.
  keyId: accountId + (entry % 2) * ACCOUNTS,
  requestId: `request-${writer}-${entry}`,
  kind: entry % 11 === 0 ? 'refund' : 'usage',
  amount: entry % 11 === 0 ? credits : -credits,
  characters: credits,
  voice: 'wren',
  audioMs: 60 * credits,
  beginsRequest: entry % 11 !== 0,
  atMs,
});

/** How the service before ended. */
export type End = 'killed' | 'closed';

export class LeftStore {
  readonly dataDir: string;
  /** Of the first account. */
  readonly key: string;
  readonly balances: Balances;
  /** The store's file, some commits before the log begins. */
  readonly olderFile: Buffer;
  readonly #files: Readonly<Record<End, ReadonlyMap<string, Buffer>>>;
  #end: End = 'killed';

  private constructor(
    dataDir: string,
    key: string,
    balances: Balances,
    olderFile: Buffer,
    files: Readonly<Record<End, ReadonlyMap<string, Buffer>>>,
  ) {
    this.dataDir = dataDir;
    this.key = key;
    this.balances = balances;
    this.olderFile = olderFile;
    this.#files = files;
  }

  /**
   * @param dataDir a new folder
   * @param entries of its ledger, approximately
   */
  static async make(dataDir: string, entries: number, random: () => number): Promise<LeftStore> {
    const opened = new SqliteAdministration(dataDir, limits);
    const administration = new Administration(opened);
    const keys: string[] = [];
    for (let i = 0; i < ACCOUNTS * 2; i += 1)
      keys.push(
        (
          await administration.createKey(
            `account ${i % ACCOUNTS}`,
            i < ACCOUNTS - 1 ? 1_000_000_000 : null,
            i % 2 === 0 ? { name: `key ${i}` } : restrictions,
          )
        ).key,
      );
    await administration.revoke(keys[3] ?? '');
    const database = openExisting(dataDir, limits);
    const append = prepareAppendBatch(database);
    const writer = newWriter();
    let last = 0;
    const commit = (count: number): void => {
      append(
        Array.from({ length: count }, () => {
          last += 1;
          const credits = 1 + Math.floor(random() * 900);
          return usage(writer, last, 1 + Math.floor(random() * ACCOUNTS), credits, START_MS + last * 60_000);
        }),
      );
    };
    const checkpoint = () => database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    commit(Math.ceil(entries / 2));
    checkpoint();
    const olderFile = readFileSync(storePath(dataDir));
    commit(Math.ceil(entries / 2));
    checkpoint();
    for (let i = 0; i < LOGGED_COMMITS; i += 1) commit(COMMIT_ENTRIES);
    await administration.revoke(keys[7] ?? '');
    await administration.credit('account 1', 500);
    // The last commits are in the log only, and no entry follows them.
    await administration.suspend('account 2');
    await administration.change(keys[6] ?? '', { name: 'renamed', creditLimit: 1 });
    prepareCommitMark(dataDir, database)();
    const balances = readBalances(database);
    const paths = [
      storePath(dataDir),
      logPath(dataDir),
      `${storePath(dataDir)}-shm`,
      commitMarkPath(dataDir),
    ];
    const read = () =>
      new Map(
        paths.filter((path) => existsSync(path)).map((path) => [basename(path), readFileSync(path)] as const),
      );
    const killed = read();
    opened.close();
    database.close();
    const store = new LeftStore(dataDir, keys[0] ?? '', balances, olderFile, { killed, closed: read() });
    store.putBack('killed');
    return store;
  }

  pathOf(name: string): string {
    return join(this.dataDir, name);
  }

  /** Before any damage. */
  bytesOf(name: string, end: End = this.#end): Buffer {
    const bytes = this.#files[end].get(name);
    if (bytes === undefined) throw new Error(`there is no ${name}`);
    return bytes;
  }

  /** Moves a file away if it is there, so that it can be put back as the same file. */
  setAside(name: string): void {
    try {
      renameSync(this.pathOf(name), `${this.dataDir}-${name}`);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }

  /** Undoes any damage, and what a service did afterwards. */
  putBack(end: End): void {
    this.#end = end;
    mkdirSync(this.dataDir, { recursive: true });
    const main = basename(storePath(this.dataDir));
    for (const name of readdirSync(this.dataDir))
      if (name !== main || !lstatSync(this.pathOf(name)).isFile())
        rmSync(this.pathOf(name), { recursive: true });
    const aside = `${this.dataDir}-${main}`;
    if (existsSync(aside)) renameSync(aside, this.pathOf(main));
    for (const [name, bytes] of this.#files[end]) writeFileSync(this.pathOf(name), bytes, { mode: 0o600 });
  }
}
