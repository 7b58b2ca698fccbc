/**
 * A connection for as long as the service runs. It notices when the file is moved away or replaced. SQLite does not: it
 * would go on with a file that has no name any more, and everything written to it would be lost.
 *
 *   open --file gone--> missing --put back--> open
 *                               --another file--> opened again
 */
import type { DatabaseSync } from 'node:sqlite';
import { monotonicMs } from '../../monotonic.js';
import { StoreError } from '../store.js';
import {
  identityOf,
  logPath,
  missingStore,
  openExisting,
  sharedPath,
  storePath,
  toStoreError,
  type SqliteBounds,
} from './database.js';

interface Opened<T> {
  readonly database: DatabaseSync;
  readonly prepared: T;
  readonly file: string;
  readonly log: string | null;
  readonly shared: string | null;
}

export class SqliteConnection<T> {
  readonly #dataDir: string;
  readonly #bounds: SqliteBounds;
  readonly #busyMsMax: number;
  readonly #trustMs: number;
  readonly #prepare: (database: DatabaseSync) => T;
  #opened: Opened<T> | null = null;
  /** When a use last found the file in its place. */
  #foundMs = Number.NEGATIVE_INFINITY;

  /**
   * Opens nothing yet.
   *
   * @param busyMsMax how long a statement waits for the write of another process
   * @param prepare makes the argument of the work, once for each file that is opened
   * @param trustMs for so long a use does not look for the file again
   */
  constructor(
    dataDir: string,
    bounds: SqliteBounds,
    busyMsMax: number,
    prepare: (database: DatabaseSync) => T,
    trustMs = 0,
  ) {
    this.#dataDir = dataDir;
    this.#bounds = bounds;
    this.#busyMsMax = busyMsMax;
    this.#trustMs = trustMs;
    this.#prepare = prepare;
  }

  /** @throws {StoreError} the store cannot be used now; errors of SQLite in `work` become one too */
  use<R>(work: (prepared: T) => R): R {
    return this.#withStoreErrors(() => work(this.#current().prepared));
  }

  /**
   * Call it after a commit.
   *
   * @throws {StoreError} the commit went to a file that other processes do not find any more
   */
  assertInPlace(): void {
    this.#withStoreErrors(() => {
      if (this.#opened === null || !this.#isInPlace(this.#opened))
        throw missingStore(storePath(this.#dataDir));
    });
  }

  /** The next use looks for the file at once. */
  recheck(): void {
    this.#foundMs = Number.NEGATIVE_INFINITY;
  }

  /** Idempotent. */
  close(): void {
    this.#opened?.database.close();
    this.#opened = null;
  }

  #current(): Opened<T> {
    const opened = this.#opened;
    const nowMs = monotonicMs();
    if (opened !== null) {
      if (nowMs - this.#foundMs < this.#trustMs) return opened;
      if (!this.#isInPlace(opened)) {
        this.#refuseLeftLog(opened);
        this.close();
      }
    }
    this.#opened ??= this.#open();
    this.#foundMs = nowMs;
    return this.#opened;
  }

  #isInPlace({ file, log, shared }: Opened<T>): boolean {
    const found = identityOf(storePath(this.#dataDir));
    if (found === null) throw missingStore(storePath(this.#dataDir));
    if (found !== file) return false;
    if (identityOf(logPath(this.#dataDir)) !== log) throw missingStore(logPath(this.#dataDir));
    if (identityOf(sharedPath(this.#dataDir)) !== shared) throw missingStore(sharedPath(this.#dataDir));
    return true;
  }

  /** SQLite plays a log into any file beside it, which would damage the pages of another file. */
  #refuseLeftLog({ log }: Opened<T>): void {
    if (log === null || identityOf(logPath(this.#dataDir)) !== log) return;
    const path = storePath(this.#dataDir);
    throw new StoreError(
      'replaced',
      `${path} is another file than before, and ${path}-wal belongs to the previous one: put that one back, ` +
        `or move ${path}-wal and ${path}-shm away`,
    );
  }

  #open(): Opened<T> {
    const database = openExisting(this.#dataDir, this.#bounds, this.#busyMsMax);
    try {
      const prepared = this.#prepare(database);
      const file = identityOf(storePath(this.#dataDir));
      if (file === null) throw missingStore(storePath(this.#dataDir));
      const log = identityOf(logPath(this.#dataDir));
      return { database, prepared, file, log, shared: identityOf(sharedPath(this.#dataDir)) };
    } catch (error) {
      database.close();
      throw error;
    }
  }

  #withStoreErrors<R>(work: () => R): R {
    try {
      return work();
    } catch (error) {
      throw toStoreError(this.#dataDir, error);
    }
  }
}
