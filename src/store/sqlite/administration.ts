/** Acts on the store, each in one transaction. It may be open as long as the service: a store that was moved away shows. */
import type { DatabaseSync } from 'node:sqlite';
import { Transaction } from '../sql/transaction.js';
import type { StoreAdministration, StoreTransaction, StoreView } from '../store.js';
import { prepareCommitMark } from './commit-mark.js';
import { Connection } from './connection.js';
import { toStoreError, type SqliteBounds } from './database.js';
import type { StoreHold } from './hold.js';
import { openDatabase } from './opening.js';
import { Statements } from './statements.js';

const prepare = (dataDir: string) => (database: DatabaseSync) => ({
  database,
  transaction: new Transaction(new Statements(database)),
  writeCommitMark: prepareCommitMark(dataDir, database),
});

export class SqliteAdministration implements StoreAdministration {
  readonly #dataDir: string;
  readonly #connection: Connection<ReturnType<ReturnType<typeof prepare>>>;
  readonly #hold: StoreHold;
  /** Settles when the acts so far are done: there is one connection, and so one transaction at a time. */
  #previous: Promise<unknown> = Promise.resolve();

  /** Creates the store if there is none. @throws {StoreError} it cannot be read and written */
  constructor(dataDir: string, bounds: SqliteBounds) {
    this.#dataDir = dataDir;
    const { database, hold } = openDatabase(dataDir, bounds);
    this.#hold = hold;
    database.close();
    this.#connection = new Connection(dataDir, bounds, bounds.storeBusyMsMax, prepare(dataDir));
  }

  transact<T>(work: (transaction: StoreTransaction) => Promise<T>): Promise<T> {
    return this.#inTurn(async () => {
      const result = await this.#run('BEGIN IMMEDIATE', work);
      this.#connection.use(({ writeCommitMark }) => writeCommitMark());
      return result;
    });
  }

  read<T>(work: (view: StoreView) => Promise<T>): Promise<T> {
    return this.#inTurn(() => this.#run('BEGIN', work));
  }

  close(): void {
    this.#connection.close();
    this.#hold.release();
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
