/**
 * A connection to the store for as long as the service runs, which sees when the file is taken away or another one is
 * in its place. SQLite does not: it would go on with a file that has no name any more, and all of it would be lost.
 *
 *   open --file gone--> missing --put back--> open
 *                               --another file--> opened anew
 */
import type { DatabaseSync } from 'node:sqlite';
import {
  StoreError,
  identityOf,
  logPath,
  missingStore,
  openExisting,
  storePath,
  wordStoreError,
} from './database.js';

interface Opened<T> {
  readonly database: DatabaseSync;
  readonly prepared: T;
  readonly file: string;
  readonly log: string | null;
}

export class Connection<T> {
  readonly #dataDir: string;
  readonly #busyMsMax: number;
  readonly #prepare: (database: DatabaseSync) => T;
  #opened: Opened<T> | null = null;

  /**
   * Opens nothing yet.
   *
   * @param busyMsMax how long a statement waits for another process's write
   * @param prepare makes what `use` hands out, anew for each file
   */
  constructor(dataDir: string, busyMsMax: number, prepare: (database: DatabaseSync) => T) {
    this.#dataDir = dataDir;
    this.#busyMsMax = busyMsMax;
    this.#prepare = prepare;
  }

  /** @throws {StoreError} the store cannot be used now; what SQLite throws in `work` is worded so too */
  use<R>(work: (prepared: T) => R): R {
    return this.#worded(() => work(this.#current().prepared));
  }

  /**
   * What was committed since it was opened is in the file that everyone else finds.
   *
   * @throws {StoreError} when it is not
   */
  assertInPlace(): void {
    this.#worded(() => {
      if (this.#opened === null || !this.#isInPlace(this.#opened))
        throw missingStore(storePath(this.#dataDir));
    });
  }

  /** Idempotent. */
  close(): void {
    this.#opened?.database.close();
    this.#opened = null;
  }

  #current(): Opened<T> {
    const opened = this.#opened;
    if (opened !== null) {
      if (this.#isInPlace(opened)) return opened;
      this.#refuseLeftLog(opened);
      this.close();
    }
    return (this.#opened = this.#open());
  }

  #isInPlace({ file, log }: Opened<T>): boolean {
    const found = identityOf(storePath(this.#dataDir));
    if (found === null) throw missingStore(storePath(this.#dataDir));
    if (found !== file) return false;
    if (identityOf(logPath(this.#dataDir)) === log) return true;
    throw missingStore(logPath(this.#dataDir));
  }

  /** A log is played into whatever file is beside it: into another file's pages it must not be. */
  #refuseLeftLog({ log }: Opened<T>): void {
    if (log === null || identityOf(logPath(this.#dataDir)) !== log) return;
    const path = storePath(this.#dataDir);
    throw new StoreError(
      'replaced',
      `${path} is another file than before, and ${path}-wal belongs to the one that was there: put that one back, ` +
        `or move ${path}-wal and ${path}-shm away`,
    );
  }

  #open(): Opened<T> {
    const database = openExisting(this.#dataDir, this.#busyMsMax);
    try {
      const prepared = this.#prepare(database);
      const file = identityOf(storePath(this.#dataDir));
      if (file === null) throw missingStore(storePath(this.#dataDir));
      return { database, prepared, file, log: identityOf(logPath(this.#dataDir)) };
    } catch (error) {
      database.close();
      throw error;
    }
  }

  #worded<R>(work: () => R): R {
    try {
      return work();
    } catch (error) {
      throw wordStoreError(this.#dataDir, error);
    }
  }
}
