/** What a service does besides reading and writing where others share its database: its journal, and the search for dead processes. */
import { performance } from 'node:perf_hooks';
import type { Bounds } from '../../limits.js';
import type { Log } from '../../log.js';
import { within } from '../../within.js';
import { Journal, leftJournals, type JournalBounds, type LeftJournal } from '../journal.js';
import { StoreError, type LedgerEntry, type Sharing } from '../store.js';
import { PostgresConnection, SERVICE_NAME, type PostgresBounds } from './connection.js';
import { commitEntries, declareSilentText } from './writer.js';

export type SharingBounds = PostgresBounds &
  JournalBounds &
  Pick<Bounds, 'ledgerBatchMax' | 'ledgerCloseMsMax' | 'writerSilentMsMax'>;

/** Milliseconds between two searches for dead processes. */
const SEARCH_MS = 10_000;
/** A process that gets no answer for so long cannot judge the silence of others: it observes them from the start again. */
const AWAY_MS = 10_000;

const storeIdOf = async (connection: PostgresConnection): Promise<string> => {
  const [row] = await (await connection.session()).query<{ id: string }>('SELECT id FROM store');
  if (row === undefined)
    throw new StoreError('damaged', 'The table "store" is empty: restore a backup of the database');
  return row.id;
};

interface Sent {
  /** The writer was declared dead before these came. */
  readonly refused: readonly LedgerEntry[];
  /** Entries of accounts or keys that the store does not have. */
  readonly givenUp: number;
}

/** Sends what a process left. */
const send = async (
  connection: PostgresConnection,
  { writer, entries }: LeftJournal,
  batchMax: number,
): Promise<Sent> => {
  const session = await connection.session();
  const ended = await session.query('SELECT 1 FROM writers WHERE id = $1 AND ended_at IS NOT NULL', [writer]);
  // Its entries are there: only the answer to its end was lost.
  if (ended.length > 0) return { refused: [], givenUp: 0 };
  let givenUp = 0;
  for (let from = 0; from < entries.length; from += batchMax) {
    const result = await commitEntries(connection, writer, null, entries.slice(from, from + batchMax), []);
    if (!result.ok) {
      const { lastEntry = 0 } = result;
      return { refused: entries.filter(({ entry }) => entry > lastEntry), givenUp };
    }
    givenUp += result.givenUp;
  }
  await session.query('SELECT end_writer($1)', [writer]);
  return { refused: [], givenUp };
};

/** @throws {StoreError} a journal is damaged or of another store, or the database cannot be used */
const sendLeft = async (
  connection: PostgresConnection,
  dataDir: string,
  storeId: string,
  bounds: SharingBounds,
  log: Log,
): Promise<number> => {
  let entriesRefused = 0;
  const journals = leftJournals(dataDir);
  try {
    for (const journal of journals) {
      const { entries, folder, writer } = journal;
      if (journal.storeId !== '' && journal.storeId !== storeId) {
        if (entries.length === 0) continue;
        throw new StoreError(
          'replaced',
          `The journal ${folder} has entries for another database: start once with the STORE_URL of that one, or move the ` +
            'folder away to start without them',
        );
      }
      const { refused, givenUp } = await send(connection, journal, bounds.ledgerBatchMax);
      if (refused.length === 0 && givenUp === 0) {
        journal.remove();
        log.info({ writer, entries: entries.length }, 'the journal of an earlier process was sent');
        continue;
      }
      const kept = journal.keepRefused();
      if (givenUp > 0)
        log.error(
          { writer, entries: givenUp, journal: kept },
          'ledger entries were given up: the store does not have their accounts; see the journal, then remove it',
        );
      if (refused.length === 0) continue;
      entriesRefused += refused.length;
      const credits = refused.reduce((sum, { amount }) => sum - amount, 0);
      log.error(
        { writer, entries: refused.length, firstEntry: refused[0]?.entry, credits, journal: kept },
        'ledger entries were refused: their process was declared dead; charge them by hand, from the first one on, then remove the journal',
      );
    }
  } finally {
    for (const journal of journals) journal.release();
  }
  return entriesRefused;
};

interface LastSign {
  /** By the clock of the database, which may jump: only whether it changes counts. */
  readonly seenAt: string;
  /** By the monotonic clock of this process. */
  readonly sinceMs: number;
}

export class PostgresSharing implements Sharing {
  readonly journal: Journal;
  readonly entriesRefused: number;
  readonly #writer: number;
  readonly #connection: PostgresConnection;
  readonly #bounds: SharingBounds;
  readonly #log: Log;
  #answeredAtMs = performance.now();
  /** The last sign of life of each other process, and how long that has been the last one. */
  #lastSigns = new Map<number, LastSign>();
  readonly #timer: NodeJS.Timeout;

  private constructor(
    writer: number,
    parts: Pick<PostgresSharing, 'journal' | 'entriesRefused'> & { readonly connection: PostgresConnection },
    bounds: SharingBounds,
    log: Log,
  ) {
    this.journal = parts.journal;
    this.entriesRefused = parts.entriesRefused;
    this.#writer = writer;
    this.#connection = parts.connection;
    this.#bounds = bounds;
    this.#log = log;
    this.#timer = setInterval(() => void this.#search(), Math.min(SEARCH_MS, bounds.writerSilentMsMax));
  }

  /** @throws {StoreError} */
  static async open(
    url: string,
    dataDir: string,
    writer: number,
    bounds: SharingBounds,
    log: Log,
  ): Promise<PostgresSharing> {
    const connection = new PostgresConnection(url, { bounds, name: SERVICE_NAME });
    try {
      const storeId = await storeIdOf(connection);
      const entriesRefused = await sendLeft(connection, dataDir, storeId, bounds, log);
      // Registers this writer: only then may it take credit.
      await commitEntries(connection, writer, null, [], []);
      const journal = Journal.create(dataDir, { writer, storeId }, bounds, log);
      return new PostgresSharing(writer, { journal, entriesRefused, connection }, bounds, log);
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  answered(): void {
    const nowMs = performance.now();
    if (nowMs - this.#answeredAtMs > AWAY_MS) this.#lastSigns.clear();
    this.#answeredAtMs = nowMs;
  }

  async close(end: 'durable' | 'left' | 'refused'): Promise<boolean> {
    clearInterval(this.#timer);
    // The journal stays until the writer has ended: the next start ends a writer that has a journal.
    const left = end !== 'durable' ? end : (await this.#end()) ? 'ended' : 'left';
    const canExit = await this.journal.close(left);
    await this.#connection.close();
    return canExit;
  }

  /**
   * Its reservations end. Without that, the next start of this service ends them.
   *
   * @returns whether the database said so in time
   */
  async #end(): Promise<boolean> {
    const ended = this.#query('SELECT end_writer($1)', [this.#writer]);
    return (await within(this.#bounds.ledgerCloseMsMax, ended)) && (await ended).length > 0;
  }

  /** Declares processes dead that gave no sign of life for long, unless this one was away itself. */
  async #search(): Promise<void> {
    if (performance.now() - this.#answeredAtMs > AWAY_MS) return;
    const living = await this.#query<{ id: number; seenAt: string }>(
      `SELECT id, seen_at::text AS "seenAt" FROM writers WHERE dead_at IS NULL AND ended_at IS NULL AND id <> $1`,
      [this.#writer],
    );
    const nowMs = performance.now();
    const before = this.#lastSigns;
    this.#lastSigns = new Map(
      living.map(({ id, seenAt }) => {
        const known = before.get(id);
        return [id, known?.seenAt === seenAt ? known : { seenAt, sinceMs: nowMs }];
      }),
    );
    for (const [id, { seenAt, sinceMs }] of this.#lastSigns)
      if (nowMs - sinceMs >= this.#bounds.writerSilentMsMax) await this.#declareDead(id, seenAt);
    await this.#query(`DELETE FROM writers WHERE ended_at < clock_timestamp() - INTERVAL '1 day'`, []);
  }

  async #declareDead(writer: number, seenAt: string): Promise<void> {
    const [found] = await this.#query<{ host: string; held: number }>(declareSilentText, [writer, seenAt]);
    if (found === undefined) return;
    const { host, held } = found;
    this.#log.warn({ writer, host, credits: held }, 'a silent process was declared dead');
  }

  async #query<Row>(text: string, parameters: readonly unknown[]): Promise<Row[]> {
    try {
      return await (await this.#connection.session()).query<Row>(text, parameters);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      return [];
    }
  }
}
