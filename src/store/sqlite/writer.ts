/** Writes the ledger: a thread of its own, because `synchronous=FULL` makes each commit wait for the disk. */
import { Worker } from 'node:worker_threads';
import type { DatabaseSync } from 'node:sqlite';
import { wrap, type Remote } from 'comlink';
import { nodeEndpoint } from '../../comlink-node.js';
import { appendSql, appendValues } from '../sql/rows.js';
import { StoreError, type CommitResult, type LedgerEntry, type LedgerWriter } from '../store.js';
import { prepareCommitMark } from './commit-mark.js';
import { SqliteConnection } from './connection.js';
import { checkRoom, transact, type SqliteBounds } from './database.js';

const FOREIGN_KEY_VIOLATED = 787;

const isForeignKeyViolated = (error: unknown): boolean =>
  (error as { errcode?: number } | null)?.errcode === FOREIGN_KEY_VIOLATED;

/**
 * @returns a function that commits a batch whole, or throws and writes nothing. It gives up, and counts, the entries of
 * accounts and keys that the store does not have: they can never be written, and must not hold up the others.
 */
export const prepareAppendBatch = (database: DatabaseSync): ((entries: readonly LedgerEntry[]) => number) => {
  const append = database.prepare(appendSql);
  return (entries) =>
    transact(database, () => {
      let givenUp = 0;
      for (const entry of entries)
        try {
          append.run(...appendValues(entry));
        } catch (error) {
          if (!isForeignKeyViolated(error)) throw error;
          givenUp += 1;
        }
      return givenUp;
    });
};

const prepare = (dataDir: string) => (database: DatabaseSync) => ({
  appendBatch: prepareAppendBatch(database),
  writeCommitMark: prepareCommitMark(dataDir, database),
});

/** Runs on the thread. */
export class SqliteWriter {
  readonly #dataDir: string;
  readonly #bounds: SqliteBounds;
  readonly #connection: SqliteConnection<ReturnType<ReturnType<typeof prepare>>>;

  constructor(dataDir: string, bounds: SqliteBounds) {
    this.#dataDir = dataDir;
    this.#bounds = bounds;
    this.#connection = new SqliteConnection(dataDir, bounds, bounds.storeBusyMsMax, prepare(dataDir));
  }

  /** See `LedgerWriter.commit`. */
  commit(entries: readonly LedgerEntry[]): CommitResult {
    try {
      const givenUp = this.#connection.use(({ appendBatch, writeCommitMark }) => {
        checkRoom(this.#dataDir, this.#bounds);
        const count = appendBatch(entries);
        // An empty commit writes it too: the first one covers what others wrote before this thread started.
        writeCommitMark();
        return count;
      });
      this.#connection.assertInPlace();
      return { ok: true, givenUp };
    } catch (error) {
      const fault = error instanceof StoreError ? error.fault : 'unusable';
      return { ok: false, fault, message: error instanceof Error ? error.message : String(error) };
    }
  }
}

const restarting = (message: string): CommitResult => ({ ok: false, fault: 'restarting', message });

/** The thread as the ledger sees it. A comlink call never settles if the thread dies: its exit settles the commit. */
export class WriterThread implements LedgerWriter {
  readonly #worker: Worker;
  readonly #remote: Remote<SqliteWriter>;
  /** The result of every commit after the thread has ended. */
  #end: CommitResult | null = null;
  #giveUp: (end: CommitResult) => void = () => undefined;

  constructor(dataDir: string, bounds: SqliteBounds) {
    this.#worker = new Worker(new URL('../../../workers/ledger.js', import.meta.url), {
      name: 'ledger',
      workerData: { dataDir, bounds },
    });
    let message = 'the writer thread ended';
    // An 'error' without a listener would end the process; 'exit' follows it.
    this.#worker.on('error', (error: Error) => (message = error.message));
    this.#worker.once('exit', () => {
      this.#end = restarting(message);
      this.#giveUp(this.#end);
    });
    this.#remote = wrap<SqliteWriter>(nodeEndpoint(this.#worker));
  }

  get hasEnded(): boolean {
    return this.#end !== null;
  }

  commit(batch: readonly LedgerEntry[]): Promise<CommitResult> {
    if (this.#end !== null) return Promise.resolve(this.#end);
    // A race with a promise of the exit would keep a part of every commit for as long as the thread lives.
    return new Promise((resolve) => {
      this.#giveUp = resolve;
      this.#remote.commit(batch).then(resolve, (error: unknown) => resolve(restarting(String(error))));
    });
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }
}
