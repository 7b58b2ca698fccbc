/**
 * Who has the store: each process that may write it shares the hold, and one that puts another file in its place has
 * it alone. It is a lock of the operating system (SQLite's, on an empty file beside the store), so it ends with its
 * process, however that ends: nothing has to be cleaned up after a crash.
 */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StoreError, sqlite, sqliteKind, wordStoreError } from './database.js';
import { makeFile } from './files.js';

export const holdPath = (dataDir: string): string => join(dataDir, 'store.lock');

export class StoreHold {
  readonly #database: DatabaseSync;

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /**
   * With others that share it.
   *
   * @param waitMsMax for a process that has it alone
   * @throws {StoreError} `held` when it still has
   */
  static share(dataDir: string, waitMsMax: number): StoreHold {
    return StoreHold.#take(
      dataDir,
      waitMsMax,
      // The lock comes with the first question and stays until the transaction ends.
      'BEGIN; SELECT 1 FROM sqlite_schema',
      'another process is putting a store in its place: try again when it is done',
    );
  }

  /**
   * Alone: no other process has the store open.
   *
   * @throws {StoreError} `held` when one has
   */
  static seize(dataDir: string, waitMsMax: number): StoreHold {
    return StoreHold.#take(
      dataDir,
      waitMsMax,
      'BEGIN EXCLUSIVE',
      'a service or another command has it open: stop that first',
    );
  }

  static #take(dataDir: string, waitMsMax: number, statement: string, why: string): StoreHold {
    const path = holdPath(dataDir);
    let database: DatabaseSync | undefined;
    try {
      makeFile(path);
      database = new DatabaseSync(path, { timeout: waitMsMax });
      // Nothing is ever written: without this, a journal would be made for nothing.
      database.exec('PRAGMA journal_mode = OFF');
      database.exec(statement);
      return new StoreHold(database);
    } catch (error) {
      database?.close();
      const kind = sqliteKind(error);
      if (kind === sqlite.busy) throw new StoreError('held', `The store in ${dataDir} is in use: ${why}`);
      if (kind === sqlite.notadb || kind === sqlite.corrupt)
        throw new StoreError('foreign', `${path} is to be an empty file, and is not: remove it`);
      throw wordStoreError(dataDir, error);
    }
  }

  /** Idempotent. */
  release(): void {
    if (this.#database.isOpen) this.#database.close();
  }
}
