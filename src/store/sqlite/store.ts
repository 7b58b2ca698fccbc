/**
 * The store as the front thread reads it: synchronously (about 8 us a question, 5 of them to see that the file is still there) and always fresh, so that a key
 * revoked or credited by another process counts from the next request on.
 */
import type { DatabaseSync } from 'node:sqlite';
import { limits } from '../../limits.js';
import { Connection } from './connection.js';
import type { StoreHold } from './hold.js';
import { openDatabase } from './opening.js';
import { verifyAtStart } from './verification.js';

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

const prepare = (database: DatabaseSync) => ({
  findActive: database.prepare(findActive),
  isActive: database.prepare(isActive),
  accountState: database.prepare(accountState),
});

export class Store {
  readonly #connection: Connection<ReturnType<typeof prepare>>;

  readonly #hold: StoreHold | null;

  /**
   * Of a store that is there. It is opened at the first question.
   *
   * @param hold released at the close
   */
  constructor(dataDir: string, hold: StoreHold | null = null) {
    this.#hold = hold;
    // The front thread waits for nobody: what it asks is answered while others write.
    this.#connection = new Connection(dataDir, limits.storeReadBusyMsMax, prepare);
  }

  /** @throws {StoreError} when the store cannot be read now; so for the questions below */
  findActiveKey(hash: Uint8Array): ActiveKey | null {
    const row = this.#connection.use((ask) => ask.findActive.get(hash)) as
      { id: number; account_id: number } | undefined;
    return row === undefined ? null : { keyId: row.id, accountId: row.account_id };
  }

  isKeyActive(keyId: number): boolean {
    return this.#connection.use((ask) => ask.isActive.get(keyId)) !== undefined;
  }

  /**
   * @param writer whose entries the caller has pending, see `AccountState.committedEntry`
   * @returns `null` when the store has no such account (any more: another one may have taken its place)
   */
  readAccount(accountId: number, writer: number): AccountState | null {
    const row = this.#connection.use((ask) => ask.accountState.get(writer, accountId)) as
      { metered: number; balance: number; committed_entry: number | null } | undefined;
    if (row === undefined) return null;
    return { metered: row.metered === 1, balance: row.balance, committedEntry: row.committed_entry ?? 0 };
  }

  /** Asks for nothing: whether it throws is the answer. */
  probe(): void {
    this.isKeyActive(0);
  }

  /** Idempotent. */
  close(): void {
    this.#connection.close();
    this.#hold?.release();
  }
}

/**
 * Makes the store when there is none, and keeps others from putting another one in its place.
 *
 * @param wholeBytesMax of a store that is checked whole
 * @throws {StoreError} when the store cannot be read and written, is damaged, or lacks what was committed to it
 */
export const openStore = (dataDir: string, wholeBytesMax: number = limits.storeCheckBytesMax): Store => {
  const { database, hold } = openDatabase(dataDir);
  let store: Store | undefined;
  try {
    verifyAtStart(dataDir, database, wholeBytesMax);
    store = new Store(dataDir, hold);
    store.probe();
    return store;
  } catch (error) {
    store?.close();
    hold.release();
    throw error;
  } finally {
    database.close();
  }
};
