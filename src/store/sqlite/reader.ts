/**
 * The front thread's view of the store. It asks SQLite directly: about 3 us a question, and 5 us more every 50 ms to
 * check that the file is still in its place. What another process writes to it counts from the next request on.
 */
import type { DatabaseSync } from 'node:sqlite';
import { toSpeaking, toVoices, type RowOf, type SpeakingRow } from '../sql/rows.js';
import { clamped, columnsOf } from '../sql/sql.js';
import type { ActiveKey, CreditState, StoreReader } from '../store.js';
import { SqliteConnection } from './connection.js';
import type { SqliteBounds } from './database.js';
import type { StoreHold } from './hold.js';
import { openDatabase } from './opening.js';
import { verifyAtStart } from './verification.js';

const activeColumns = columnsOf([
  ...['api_keys.id AS keyId', 'account_id', 'accounts.name AS account', 'expires_at_ms', 'voices'],
  'coalesce(api_keys.normalize_text, accounts.normalize_text) AS normalizeText',
  'coalesce(api_keys.speed, accounts.speed) AS speed',
  'coalesce(api_keys.lexicon, accounts.lexicon) AS lexiconId',
]);
const findActive = (column: string) => `
  SELECT ${activeColumns}
  FROM api_keys JOIN accounts ON accounts.id = account_id
  WHERE api_keys.${column} = ? AND revoked_at_ms IS NULL AND suspended_at_ms IS NULL
`;
// One statement reads one snapshot, so the sums and the last entry that they include belong together.
const creditState = `
  SELECT metered, ${clamped('balance')} AS balance, credit_limit AS "creditLimit", ${clamped('spent')} AS spent,
    coalesce((SELECT max(entry) FROM ledger WHERE writer = ?), 0) AS "committedEntry"
  FROM api_keys JOIN accounts ON accounts.id = account_id WHERE api_keys.id = ?
`;

type ActiveRow = Omit<ActiveKey, 'speaking' | 'voices'> & SpeakingRow & { readonly voices: string | null };

const prepare = (database: DatabaseSync) => ({
  findByHash: database.prepare(findActive('hash')),
  findById: database.prepare(findActive('id')),
  creditState: database.prepare(creditState),
});

/** A request asks twice. To look for three files each time would be a tenth of the front thread's work for it. */
const TRUST_MS = 50;

export class SqliteReader implements StoreReader {
  readonly #connection: SqliteConnection<ReturnType<typeof prepare>>;
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
    this.#connection = new SqliteConnection(dataDir, bounds, bounds.storeReadBusyMsMax, prepare, TRUST_MS);
  }

  findActiveKey(by: { readonly hash: Uint8Array } | { readonly keyId: number }): ActiveKey | null {
    const row = this.#connection.use((ask) =>
      'hash' in by ? ask.findByHash.get(by.hash) : ask.findById.get(by.keyId),
    ) as ActiveRow | undefined;
    if (row === undefined) return null;
    const { voices, normalizeText, speed, lexiconId, ...key } = row;
    return { ...key, voices: toVoices(voices), speaking: toSpeaking({ normalizeText, speed, lexiconId }) };
  }

  settledEntry(acknowledged: number): number {
    return acknowledged;
  }

  readCredit(keyId: number): CreditState | null {
    const row = this.#connection.use((ask) => ask.creditState.get(this.#writer, keyId)) as
      | RowOf<CreditState>
      | undefined;
    return row === undefined ? null : { ...row, metered: row.metered === 1 };
  }

  probe(): void {
    this.#connection.recheck();
    this.findActiveKey({ keyId: 0 });
  }

  close(): void {
    this.#connection.close();
    this.#hold?.release();
  }
}

/** See `StoreDriver.openReader`. */
export const openReader = (dataDir: string, bounds: SqliteBounds, writer: number): SqliteReader => {
  const { database: opened, hold } = openDatabase(dataDir, bounds);
  using database = opened;
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
  }
};
