/** An operator's acts on the store, each in one transaction. */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { newWriter } from '../ledger.js';
import type { Account, StoreAdministration, StoredKey, StoreTransaction } from '../store.js';
import { prepareCommitMark } from './commit-mark.js';
import { clamped, toStoreError, type SqliteBounds } from './database.js';
import { openDatabase, type HeldDatabase } from './opening.js';
import { prepareAppend } from './writer.js';

interface AccountRow {
  readonly account_id: number;
  readonly name: string;
  readonly metered: number;
  readonly balance: number;
}

interface KeyRow extends AccountRow {
  readonly key_id: number;
  readonly prefix: string;
  readonly created_at_ms: number;
  readonly revoked_at_ms: number | null;
}

export const accountColumns = `accounts.id AS account_id, name, metered, ${clamped('balance')} AS balance`;
const selectKeys = `
  SELECT api_keys.id AS key_id, prefix, api_keys.created_at_ms, revoked_at_ms, ${accountColumns}
  FROM api_keys JOIN accounts ON accounts.id = account_id
`;

export const toAccount = (row: AccountRow): Account => ({
  accountId: row.account_id,
  name: row.name,
  metered: row.metered === 1,
  balance: row.balance,
});

class Transaction implements StoreTransaction {
  readonly #database: DatabaseSync;

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  findAccount(by: { readonly name: string } | { readonly accountId: number }): Account | null {
    const [column, value] = 'name' in by ? ['name', by.name] : ['id', by.accountId];
    const [row] = this.#all(`SELECT ${accountColumns} FROM accounts WHERE ${column} = ?`, value);
    return row === undefined ? null : toAccount(row as AccountRow);
  }

  countAccounts(): number {
    return (this.#all('SELECT count(*) AS count FROM accounts')[0] as { count: number }).count;
  }

  findKeys(by?: { readonly hash: Uint8Array } | { readonly prefix: string }): StoredKey[] {
    const where =
      by === undefined
        ? this.#all(`${selectKeys} ORDER BY api_keys.id`)
        : 'hash' in by
          ? this.#all(`${selectKeys} WHERE hash = ?`, by.hash)
          : this.#all(`${selectKeys} WHERE prefix = ? ORDER BY api_keys.id`, by.prefix);
    return (where as KeyRow[]).map((row) => ({
      keyId: row.key_id,
      prefix: row.prefix,
      createdAtMs: row.created_at_ms,
      revokedAtMs: row.revoked_at_ms,
      account: toAccount(row),
    }));
  }

  hasKeys(): boolean {
    return this.#all('SELECT 1 FROM api_keys LIMIT 1').length > 0;
  }

  addAccount(name: string, metered: boolean, atMs: number): number {
    return this.#run('INSERT INTO accounts (name, metered, created_at_ms) VALUES (?, ?, ?)', [
      name,
      metered ? 1 : 0,
      atMs,
    ]);
  }

  addKey(accountId: number, hash: Uint8Array, prefix: string, atMs: number): void {
    this.#run('INSERT INTO api_keys (account_id, hash, prefix, created_at_ms) VALUES (?, ?, ?, ?)', [
      accountId,
      hash,
      prefix,
      atMs,
    ]);
  }

  setMetered(accountId: number): void {
    this.#run('UPDATE accounts SET metered = 1 WHERE id = ?', [accountId]);
  }

  grant(accountId: number, amount: number, atMs: number): void {
    prepareAppend(this.#database)({
      writer: newWriter(),
      entry: 1,
      accountId,
      keyId: null,
      requestId: null,
      kind: 'grant',
      amount,
      characters: null,
      beginsRequest: false,
      atMs,
    });
  }

  revokeKey(keyId: number, atMs: number): void {
    this.#run('UPDATE api_keys SET revoked_at_ms = ? WHERE id = ? AND revoked_at_ms IS NULL', [atMs, keyId]);
  }

  #all(sql: string, ...parameters: SQLInputValue[]): unknown[] {
    return this.#database.prepare(sql).all(...parameters);
  }

  /** @returns the id of the inserted row */
  #run(sql: string, parameters: SQLInputValue[]): number {
    return Number(this.#database.prepare(sql).run(...parameters).lastInsertRowid);
  }
}

export class SqliteAdministration implements StoreAdministration {
  readonly #dataDir: string;
  readonly #database: DatabaseSync;
  readonly #hold: HeldDatabase['hold'];
  readonly #writeCommitMark: () => void;
  readonly #transaction: Transaction;
  /** Settles when the acts so far are done: there is one connection, and so one transaction at a time. */
  #previous: Promise<unknown> = Promise.resolve();

  /** Creates the store if there is none. @throws {StoreError} it cannot be read and written */
  constructor(dataDir: string, bounds: SqliteBounds) {
    this.#dataDir = dataDir;
    const { database, hold } = openDatabase(dataDir, bounds);
    this.#database = database;
    this.#hold = hold;
    this.#transaction = new Transaction(database);
    try {
      this.#writeCommitMark = prepareCommitMark(dataDir, database);
    } catch (error) {
      this.close();
      throw toStoreError(dataDir, error);
    }
  }

  transact<T>(work: (transaction: StoreTransaction) => Promise<T>): Promise<T> {
    return this.#inTurn(async () => {
      this.#database.exec('BEGIN IMMEDIATE');
      try {
        const result = await work(this.#transaction);
        this.#database.exec('COMMIT');
        this.#writeCommitMark();
        return result;
      } catch (error) {
        // SQLite itself rolls back after some errors.
        if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
        throw error;
      }
    });
  }

  listKeys(): Promise<StoredKey[]> {
    return this.#inTurn(() => this.#transaction.findKeys());
  }

  close(): void {
    if (this.#database.isOpen) this.#database.close();
    this.#hold.release();
  }

  #inTurn<T>(act: () => T | Promise<T>): Promise<T> {
    const done = this.#previous.then(act).catch((error: unknown) => {
      throw toStoreError(this.#dataDir, error);
    });
    this.#previous = done.catch(() => undefined);
    return done;
  }
}
