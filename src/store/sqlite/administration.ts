/** An operator's acts on the store, each in one transaction. */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { newWriter } from '../ledger.js';
import type {
  Account,
  KeyProperties,
  ListedKey,
  StoreAdministration,
  StoredKey,
  StoreTransaction,
} from '../store.js';
import { prepareCommitMark } from './commit-mark.js';
import { clamped, toStoreError, type SqliteBounds } from './database.js';
import { openDatabase, type HeldDatabase } from './opening.js';
import { prepareAppend } from './writer.js';

export interface AccountRow {
  readonly account_id: number;
  readonly account: string;
  readonly metered: number;
  readonly balance: number;
  readonly suspended_at_ms: number | null;
}

interface KeyRow extends AccountRow {
  readonly key_id: number;
  readonly prefix: string;
  readonly created_at_ms: number;
  readonly revoked_at_ms: number | null;
  readonly name: string;
  readonly expires_at_ms: number | null;
  readonly credit_limit: number | null;
  readonly voices: string | null;
  readonly spent: number;
}

interface ListedRow extends KeyRow {
  readonly characters: number;
  readonly last_used_at_ms: number | null;
}

export const accountColumns = `
  accounts.id AS account_id, accounts.name AS account, metered, ${clamped('balance')} AS balance, suspended_at_ms
`;
const keyColumns = `
  api_keys.id AS key_id, prefix, api_keys.created_at_ms, revoked_at_ms, api_keys.name, expires_at_ms, credit_limit,
  voices, ${clamped('spent')} AS spent, ${accountColumns}
`;
const selectKeys = `SELECT ${keyColumns} FROM api_keys JOIN accounts ON accounts.id = account_id`;
const listKeys = `
  SELECT ${keyColumns}, ${clamped('coalesce(characters, 0)')} AS characters, last_used_at_ms
  FROM api_keys JOIN accounts ON accounts.id = account_id LEFT JOIN (
    SELECT key_id, sum(characters) AS characters, max(last_at_ms) AS last_used_at_ms
    FROM usage_hours GROUP BY key_id
  ) AS used ON used.key_id = api_keys.id
  ORDER BY api_keys.id
`;

/** Ids have no commas. */
export const toVoices = (column: string | null): readonly string[] | null => column?.split(',') ?? null;

export const toAccount = (row: AccountRow): Account => ({
  accountId: row.account_id,
  name: row.account,
  metered: row.metered === 1,
  balance: row.balance,
  suspendedAtMs: row.suspended_at_ms,
});

const toKey = (row: KeyRow): StoredKey => ({
  keyId: row.key_id,
  prefix: row.prefix,
  createdAtMs: row.created_at_ms,
  revokedAtMs: row.revoked_at_ms,
  name: row.name,
  expiresAtMs: row.expires_at_ms,
  creditLimit: row.credit_limit,
  voices: toVoices(row.voices),
  spent: row.spent,
  account: toAccount(row),
});

const propertyValues = ({ name, expiresAtMs, creditLimit, voices }: KeyProperties): SQLInputValue[] => [
  name,
  expiresAtMs,
  creditLimit,
  voices?.join(',') ?? null,
];

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

  findKeys(by: { readonly hash: Uint8Array } | { readonly prefix: string }): StoredKey[] {
    const [column, value] = 'hash' in by ? ['hash', by.hash] : ['prefix', by.prefix];
    return (this.#all(`${selectKeys} WHERE ${column} = ? ORDER BY api_keys.id`, value) as KeyRow[]).map(
      toKey,
    );
  }

  listKeys(): ListedKey[] {
    return (this.#all(listKeys) as ListedRow[]).map((row) => ({
      ...toKey(row),
      characters: row.characters,
      lastUsedAtMs: row.last_used_at_ms,
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

  addKey(accountId: number, hash: Uint8Array, prefix: string, properties: KeyProperties, atMs: number): void {
    this.#run(
      `INSERT INTO api_keys (account_id, hash, prefix, created_at_ms, name, expires_at_ms, credit_limit, voices)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      [accountId, hash, prefix, atMs, ...propertyValues(properties)],
    );
  }

  setKey(keyId: number, properties: KeyProperties): void {
    this.#run('UPDATE api_keys SET name = ?, expires_at_ms = ?, credit_limit = ?, voices = ? WHERE id = ?', [
      ...propertyValues(properties),
      keyId,
    ]);
  }

  setMetered(accountId: number): void {
    this.#run('UPDATE accounts SET metered = 1 WHERE id = ?', [accountId]);
  }

  setSuspended(accountId: number, atMs: number | null): void {
    this.#run('UPDATE accounts SET suspended_at_ms = ? WHERE id = ?', [atMs, accountId]);
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

  listKeys(): Promise<ListedKey[]> {
    return this.#inTurn(() => this.#transaction.listKeys());
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
