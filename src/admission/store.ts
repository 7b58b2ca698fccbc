/**
 * The store as the front thread reads it: synchronously (about 3 us a question) and always fresh, so that a key
 * revoked or credited by another process counts from the next request on.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { openDatabase, verifyDatabase, wordStoreError } from './database.js';

/** A key that exists and is not revoked. */
export interface ActiveKey {
  readonly keyId: number;
  readonly accountId: number;
}

export interface AccountState {
  /** An account that is not metered is never out of credit. */
  readonly metered: boolean;
  readonly balance: number;
  /** The last entry of the asking writer that this balance includes; 0 when none. */
  readonly committedEntry: number;
}

const findActive = 'SELECT id, account_id FROM api_keys WHERE hash = ? AND revoked_at_ms IS NULL';
const isActive = 'SELECT 1 FROM api_keys WHERE id = ? AND revoked_at_ms IS NULL';
// One statement is one snapshot: the balance and what it includes cannot be from different moments. It is clamped to
// the integers that a number holds.
const accountState = `
  SELECT metered, max(min(balance, 9007199254740991), -9007199254740991) AS balance,
    (SELECT max(entry) FROM ledger WHERE writer = ?) AS committed_entry
  FROM accounts WHERE id = ?
`;

export class Store {
  readonly #dataDir: string;
  readonly #database: DatabaseSync;
  readonly #findActive: StatementSync;
  readonly #isActive: StatementSync;
  readonly #accountState: StatementSync;

  constructor(dataDir: string, database: DatabaseSync) {
    this.#dataDir = dataDir;
    this.#database = database;
    this.#findActive = database.prepare(findActive);
    this.#isActive = database.prepare(isActive);
    this.#accountState = database.prepare(accountState);
  }

  /** @throws {StoreError} when the store can no longer be read; so for the questions below */
  findActiveKey(hash: Uint8Array): ActiveKey | null {
    const row = this.#ask(() => this.#findActive.get(hash)) as { id: number; account_id: number } | undefined;
    return row === undefined ? null : { keyId: row.id, accountId: row.account_id };
  }

  isKeyActive(keyId: number): boolean {
    return this.#ask(() => this.#isActive.get(keyId)) !== undefined;
  }

  /** @param writer whose entries the caller has pending, see `AccountState.committedEntry` */
  readAccount(accountId: number, writer: number): AccountState {
    const row = this.#ask(() => this.#accountState.get(writer, accountId)) as
      { metered: number; balance: number; committed_entry: number | null } | undefined;
    if (row === undefined) throw new Error(`account ${accountId} is not in the store`);
    return { metered: row.metered === 1, balance: row.balance, committedEntry: row.committed_entry ?? 0 };
  }

  /** Idempotent. */
  close(): void {
    if (this.#database.isOpen) this.#database.close();
  }

  #ask<T>(question: () => T): T {
    try {
      return question();
    } catch (error) {
      throw wordStoreError(this.#dataDir, error);
    }
  }
}

/** @throws {StoreError} when the store cannot be read and written, or is damaged */
export const openStore = (dataDir: string): Store => {
  const database = openDatabase(dataDir);
  try {
    verifyDatabase(dataDir, database);
    return new Store(dataDir, database);
  } catch (error) {
    database.close();
    throw wordStoreError(dataDir, error);
  }
};
