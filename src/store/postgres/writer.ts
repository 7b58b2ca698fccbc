/**
 * Writes the ledger and reserves credit: one statement for each batch. An empty one is a sign of life. An operator sees the processes that
 * write, and may declare one dead.
 */
import { hostname } from 'node:os';
import { appendValues } from '../sql/rows.js';
import type { Claim, Grant } from '../reservations.js';
import { notFound, StoreError, type CommitResult, type LedgerEntry, type LedgerWriter } from '../store.js';
import { PostgresConnection, SERVICE_NAME, type PostgresBounds, type Session } from './connection.js';

/** For operators. */
export const HOST = `${hostname()}:${process.pid}`;

/** As in `appendValues`. */
const COLUMNS = 12;

const commit = `SELECT commit_entries(${Array.from({ length: COLUMNS + 8 }, (_, index) => `$${index + 1}`).join(', ')}) AS committed`;

/** Of commits of this process: a writer is one run of one process. */
let turns = 0;

interface Committed {
  readonly givenUp: number;
  readonly grants: readonly Grant[];
}

const barred = {
  ok: false,
  fault: 'barred',
  message: 'this process was declared dead, and its entries are refused: restart it',
} as const;

/**
 * @param turn the database ignores a commit that comes after a later one. `null`: there is no other
 * @throws {StoreError}
 */
export const commitEntries = async (
  connection: PostgresConnection,
  writer: number,
  turn: number | null,
  entries: readonly LedgerEntry[],
  claims: readonly Claim[],
): Promise<CommitResult> => {
  const rows = entries.map(appendValues);
  const arrays = Array.from({ length: COLUMNS }, (_, column) => rows.map((row) => row[column]));
  const session = await connection.session();
  const requests = claims.flatMap(({ accountId, requests }) =>
    requests.map(({ amount }) => ({ accountId, amount })),
  );
  const [row] = await session.query<{ committed: Committed | null }>(commit, [
    ...[writer, HOST, turn, ...arrays],
    ...(['accountId', 'kept', 'ahead'] as const).map((name) => claims.map((claim) => claim[name])),
    ...(['accountId', 'amount'] as const).map((name) => requests.map((request) => request[name])),
  ]);
  const committed = row?.committed ?? null;
  if (committed !== null) return { ok: true, ...committed };
  // A batch whose acknowledgement was lost may be there.
  const [last] = await session.query<{ entry: number }>(
    'SELECT coalesce(max(entry), 0) AS entry FROM ledger WHERE writer = $1',
    [writer],
  );
  return { ...barred, lastEntry: last?.entry ?? 0 };
};

export class PostgresWriter implements LedgerWriter {
  readonly #connection: PostgresConnection;
  readonly #writer: number;
  #hasEnded = false;

  constructor(url: string, bounds: PostgresBounds, writer: number) {
    this.#connection = new PostgresConnection(url, { bounds, name: SERVICE_NAME });
    this.#writer = writer;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  async commit(entries: readonly LedgerEntry[], claims: readonly Claim[] = []): Promise<CommitResult> {
    if (this.#hasEnded) return { ok: false, fault: 'restarting', message: 'the writer ended' };
    try {
      return await commitEntries(this.#connection, this.#writer, ++turns, entries, claims);
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

/** A process that shares the database. */
export interface LiveWriter {
  readonly writer: number;
  /** Name of its machine, and number of its process. */
  readonly host: string;
  readonly startedAtMs: number;
  /** When it last wrote, or showed that it could. */
  readonly seenMsAgo: number;
  /** Credits that it has reserved. */
  readonly credits: number;
}

/** Those that have neither ended nor been declared dead. */
export const liveWriters = (session: Session): Promise<LiveWriter[]> =>
  session.query<LiveWriter>(`SELECT id AS writer, host, (extract(epoch FROM started_at) * 1000)::bigint AS "startedAtMs",
       (extract(epoch FROM clock_timestamp() - seen_at) * 1000)::bigint AS "seenMsAgo",
       coalesce((SELECT sum(reserved) FROM reservations WHERE reservations.writer = writers.id), 0) AS credits
     FROM writers WHERE dead_at IS NULL AND ended_at IS NULL ORDER BY started_at`);

/**
 * Ends the reservations of a process and bars its number, in one transaction.
 *
 * @returns the credits that it held
 * @throws {AdministrationError} there is no such process
 */
export const declareDead = async (session: Session, writer: number): Promise<number> => {
  const [row] = await session.query<{ held: number | null }>('SELECT declare_dead($1) AS held', [writer]);
  const held = row?.held ?? null;
  if (held === null)
    throw notFound(`There is no writer ${writer} that lives: see \`npm run store -- writers\``);
  return held;
};

/** Declares a process dead, unless it has shown a sign of life since `seen_at` was read. Then there is no row. */
export const declareSilentText = `
  WITH silent AS (
    SELECT id, host FROM writers
    WHERE id = $1 AND seen_at::text = $2 AND dead_at IS NULL AND ended_at IS NULL FOR UPDATE
  )
  SELECT host, declare_dead(id) AS held FROM silent`;
