/**
 * The hold on the store: processes that may write to the store share it; a process that replaces the file needs it
 * alone. It is a lock of the operating system (SQLite's, on an empty file beside the store). It ends with its process,
 * so a crash leaves nothing to clean up.
 */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StoreError } from '../store.js';
import { sqlite, sqliteKind, toStoreError } from './database.js';
import { makeFile } from './files.js';

export const holdPath = (dataDir: string): string => join(dataDir, 'store.lock');

export class StoreHold {
  readonly #database: DatabaseSync;

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /**
   * Shares the hold.
   *
   * @param waitMsMax how long to wait for a process that has it alone
   * @throws {StoreError} `held` if that process still has it
   */
  static share(dataDir: string, waitMsMax: number): StoreHold {
    return StoreHold.#take(
      dataDir,
      waitMsMax,
      // The first statement takes the lock, which stays until the transaction ends.
      'BEGIN; SELECT 1 FROM sqlite_schema',
      'another process is replacing it: try again when that is done',
    );
  }

  /**
   * Takes the hold alone: no other process has the store open.
   *
   * @throws {StoreError} `held` if another process has it open
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
      // Nothing is ever written, so no journal is needed.
      database.exec('PRAGMA journal_mode = OFF');
      database.exec(statement);
      return new StoreHold(database);
    } catch (error) {
      database?.close();
      const kind = sqliteKind(error);
      if (kind === sqlite.busy) throw new StoreError('held', `The store in ${dataDir} is in use: ${why}`);
      if (kind === sqlite.notadb || kind === sqlite.corrupt)
        throw new StoreError('foreign', `${path} must be an empty file, and is not: remove it`);
      throw toStoreError(dataDir, error);
    }
  }

  /** Idempotent. */
  release(): void {
    if (this.#database.isOpen) this.#database.close();
  }

  [Symbol.dispose](): void {
    this.release();
  }
}
