/** Acts on the store, each in one transaction. It may be open as long as the service: a store that was moved away shows. */
import type { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { Transaction, type KeyBounds } from '../sql/transaction.js';
import { StoreError, type StoreAdministration, type StoreTransaction, type StoreView } from '../store.js';
import { prepareCommitMark } from './commit-mark.js';
import { SqliteConnection } from './connection.js';
import { toStoreError, type SqliteBounds } from './database.js';
import type { StoreHold } from './hold.js';
import { openDatabase } from './opening.js';
import { Statements } from './statements.js';

/** Milliseconds between two attempts of an act to begin while another process writes. */
const RETRY_MS = 20;
/**
 * Milliseconds after which acts that follow one another pause, and of the pause. SQLite wakes no connection that waits for a
 * lock: the ledger thread tries every 100 ms in the end, and would find no gap between two acts.
 */
const ACTS_MS_MAX = 200;
const PAUSE_MS = 120;

const prepare = (dataDir: string, keys: KeyBounds) => (database: DatabaseSync) => ({
  database,
  transaction: new Transaction(new Statements(database), keys),
  writeCommitMark: prepareCommitMark(dataDir, database),
});

export class SqliteAdministration implements StoreAdministration {
  readonly #dataDir: string;
  readonly #busyMsMax: number;
  readonly #connection: SqliteConnection<ReturnType<ReturnType<typeof prepare>>>;
  readonly #hold: StoreHold;
  /** Settles when the acts so far are done. */
  #acts: Promise<unknown> = Promise.resolve();
  /** When the acts since the last pause began, and when the last of them ended. */
  #beganAtMs = -Infinity;
  #endedAtMs = -Infinity;
  /** Settles when the transactions so far are over: there is one connection, and so one at a time. */
  #previous: Promise<unknown> = Promise.resolve();

  /** Creates the store if there is none. @throws {StoreError} it cannot be read and written */
  constructor(dataDir: string, bounds: SqliteBounds) {
    this.#dataDir = dataDir;
    this.#busyMsMax = bounds.storeBusyMsMax;
    const { database, hold } = openDatabase(dataDir, bounds);
    this.#hold = hold;
    database.close();
    // A service reads them from the file.
    const keys = { keysPerAccountMax: bounds.keysPerAccountMax, storeKeysMax: Infinity };
    this.#connection = new SqliteConnection(
      dataDir,
      bounds,
      bounds.storeReadBusyMsMax,
      prepare(dataDir, keys),
    );
  }

  transact<T>(work: (transaction: StoreTransaction) => Promise<T>): Promise<T> {
    // Counted from now, so that acts behind one that waits do not wait as long again.
    const untilMs = performance.now() + this.#busyMsMax;
    const done = this.#acts.then(async () => {
      await this.#leaveTurn();
      return this.#actUntil(untilMs, work);
    });
    this.#acts = done.catch(() => undefined);
    return done;
  }

  read<T>(work: (view: StoreView) => Promise<T>): Promise<T> {
    return this.#inTurn(() => this.#run('BEGIN', work));
  }

  close(): void {
    this.#connection.close();
    this.#hold.release();
  }

  /** The ledger thread gets its turn. */
  async #leaveTurn(): Promise<void> {
    const idleMs = performance.now() - this.#endedAtMs;
    if (idleMs < PAUSE_MS) {
      if (this.#endedAtMs - this.#beganAtMs < ACTS_MS_MAX) return;
      await pause(PAUSE_MS - idleMs);
    }
    this.#beganAtMs = performance.now();
  }

  /** While another process writes it tries again, and reads are answered between its attempts. */
  async #actUntil<T>(untilMs: number, work: (transaction: StoreTransaction) => Promise<T>): Promise<T> {
    for (;;) {
      let hasBegun = false as boolean;
      try {
        return await this.#inTurn(async () => {
          const result = await this.#run('BEGIN IMMEDIATE', (transaction) => {
            hasBegun = true;
            return work(transaction);
          });
          this.#connection.use(({ writeCommitMark }) => writeCommitMark());
          return result;
        });
      } catch (error) {
        const isLocked = !hasBegun && error instanceof StoreError && error.fault === 'busy';
        if (!isLocked || performance.now() >= untilMs) throw error;
      } finally {
        if (hasBegun) this.#endedAtMs = performance.now();
      }
      await pause(RETRY_MS);
    }
  }

  /** @throws {StoreError} also if the store was moved away meanwhile: then the act is not in the store that others see */
  async #run<T>(begin: string, work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const { database, transaction } = this.#connection.use((prepared) => prepared);
    database.exec(begin);
    try {
      const result = await work(transaction);
      database.exec('COMMIT');
      this.#connection.assertInPlace();
      return result;
    } catch (error) {
      // SQLite itself rolls back after some errors.
      if (database.isTransaction) database.exec('ROLLBACK');
      throw error;
    }
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const done = this.#previous.then(act).catch((error: unknown) => {
      throw toStoreError(this.#dataDir, error);
    });
    this.#previous = done.catch(() => undefined);
    return done;
  }
}
