/** Writes the ledger: one statement for each batch. */
import { appendValues } from '../sql/rows.js';
import { StoreError, type CommitResult, type LedgerEntry, type LedgerWriter } from '../store.js';
import { Connection, SERVICE_NAME, type PostgresBounds } from './connection.js';

/** In the order of `appendValues`. */
const columns = [
  'writer bigint',
  'entry bigint',
  'account_id bigint',
  'key_id bigint',
  'request_id text',
  'kind text',
  'amount bigint',
  'characters bigint',
  'voice text',
  'audio_ms bigint',
  'begins_request bigint',
  'at_ms bigint',
].map((column) => column.split(' ') as [name: string, type: string]);

const names = columns.map(([name]) => name).join(', ');

// Skips entries that the ledger has already. Counts those of accounts and keys that the store does not have.
const append = `
  WITH given AS (
    SELECT * FROM unnest(${columns.map(([, type], index) => `$${index + 1}::${type}[]`).join(', ')})
      AS entries (${names})
  ), known AS (
    SELECT * FROM given
    WHERE EXISTS (SELECT 1 FROM accounts WHERE id = account_id)
      AND (key_id IS NULL OR EXISTS (SELECT 1 FROM api_keys WHERE id = key_id))
  ), added AS (
    INSERT INTO ledger (${names}) SELECT ${names} FROM known ORDER BY entry
    ON CONFLICT (writer, entry) DO NOTHING
  )
  SELECT (SELECT count(*) FROM given) - (SELECT count(*) FROM known) AS given_up
`;

export class PostgresWriter implements LedgerWriter {
  readonly #connection: Connection;
  #hasEnded = false;

  constructor(url: string, bounds: PostgresBounds) {
    this.#connection = new Connection(url, { bounds, name: SERVICE_NAME });
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  async commit(entries: readonly LedgerEntry[]): Promise<CommitResult> {
    if (this.#hasEnded) return { ok: false, fault: 'restarting', message: 'the writer ended' };
    try {
      const rows = entries.map(appendValues);
      const arrays = columns.map((_, column) => rows.map((row) => row[column]));
      const session = await this.#connection.session();
      const [result] = await session.query<{ given_up: number }>(append, arrays);
      return { ok: true, givenUp: result?.given_up ?? 0 };
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      return { ok: false, fault: error.fault, message: error.message };
    }
  }

  async end(): Promise<void> {
    this.#hasEnded = true;
    await this.#connection.close();
  }
}
