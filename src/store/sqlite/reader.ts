/**
 * The front thread's view of the store. It asks SQLite directly: about 8 us a question, of which 5 us check that the
 * file is still in its place. A key that another process revokes or credits counts from the next request on.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { AccountState, ActiveKey, StoreReader } from '../store.js';
import { Connection } from './connection.js';
import { clamped, type SqliteBounds } from './database.js';
import type { StoreHold } from './hold.js';
import { openDatabase } from './opening.js';
import { verifyAtStart } from './verification.js';

const findActive = 'SELECT id, account_id FROM api_keys WHERE hash = ? AND revoked_at_ms IS NULL';
const isActive = 'SELECT 1 FROM api_keys WHERE id = ? AND revoked_at_ms IS NULL';
// One statement reads one snapshot, so the balance and the last entry that it includes belong together.
const accountState = `
  SELECT metered, ${clamped('balance')} AS balance,
    (SELECT max(entry) FROM ledger WHERE writer = ?) AS committed_entry
  FROM accounts WHERE id = ?
`;

const prepare = (database: DatabaseSync) => ({
  findActive: database.prepare(findActive),
  isActive: database.prepare(isActive),
  accountState: database.prepare(accountState),
});

export class SqliteReader implements StoreReader {
  readonly #connection: Connection<ReturnType<typeof prepare>>;
  readonly #writer: number;
  readonly #hold: StoreHold | null;

  /**
   * Opens an existing store at the first question.
   *
   * @param writer see `StoreDriver.openReader`
   * @param hold released at the close
   */
  constructor(dataDir: string, bounds: SqliteBounds, writer: number, hold: StoreHold | null = null) {
    this.#writer = writer;
    this.#hold = hold;
    // A read hardly ever waits: in write-ahead mode it is answered while others write.
    this.#connection = new Connection(dataDir, bounds, bounds.storeReadBusyMsMax, prepare);
  }

  findActiveKey(hash: Uint8Array): ActiveKey | null {
    const row = this.#connection.use((ask) => ask.findActive.get(hash)) as
      { id: number; account_id: number } | undefined;
    return row === undefined ? null : { keyId: row.id, accountId: row.account_id };
  }

  isKeyActive(keyId: number): boolean {
    return this.#connection.use((ask) => ask.isActive.get(keyId)) !== undefined;
  }

  readAccount(accountId: number): AccountState | null {
    const row = this.#connection.use((ask) => ask.accountState.get(this.#writer, accountId)) as
      { metered: number; balance: number; committed_entry: number | null } | undefined;
    if (row === undefined) return null;
    return { metered: row.metered === 1, balance: row.balance, committedEntry: row.committed_entry ?? 0 };
  }

  probe(): void {
    this.isKeyActive(0);
  }

  close(): void {
    this.#connection.close();
    this.#hold?.release();
  }
}

/** See `StoreDriver.openReader`. */
export const openReader = (dataDir: string, bounds: SqliteBounds, writer: number): SqliteReader => {
  const { database, hold } = openDatabase(dataDir, bounds);
  let reader: SqliteReader | undefined;
  try {
    verifyAtStart(dataDir, database, bounds.storeCheckBytesMax);
    reader = new SqliteReader(dataDir, bounds, writer, hold);
    reader.probe();
    return reader;
  } catch (error) {
    reader?.close();
    hold.release();
    throw error;
  } finally {
    database.close();
  }
};
