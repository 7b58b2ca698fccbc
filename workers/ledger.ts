/**
 * Entry of the ledger's thread: the process's only writer. It commits whole batches with `synchronous=FULL`: what it
 * acknowledges survives a power cut.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { expose } from 'comlink';
import { nodeEndpoint } from '../src/comlink-node.js';
import { Connection } from '../src/store/sqlite/connection.js';
import { StoreError, checkRoom, type StoreFault } from '../src/store/sqlite/database.js';
import { prepareAppendBatch, type LedgerEntry } from '../src/store/sqlite/entries.js';
import { prepareMark } from '../src/store/sqlite/mark.js';
import { limits } from '../src/limits.js';
import { nameThread } from '../src/thread-name.js';

export type CommitResult =
  /** `givenUp`: entries of accounts that the store has not. */
  | { readonly ok: true; readonly givenUp: number }
  | { readonly ok: false; readonly fault: StoreFault; readonly message: string };

export interface LedgerWriter {
  /**
   * All of the batch is durable, or nothing of it. Entries that were committed before are passed over. An empty batch
   * asks whether one could be written.
   */
  commit(entries: readonly LedgerEntry[]): CommitResult;
}

nameThread('ledger');
const { dataDir } = workerData as { dataDir: string };
const connection = new Connection(dataDir, limits.storeBusyMsMax, (database) => ({
  appendBatch: prepareAppendBatch(database),
  mark: prepareMark(dataDir, database),
}));

const writer: LedgerWriter = {
  commit: (entries) => {
    try {
      const givenUp = connection.use(({ appendBatch, mark }) => {
        checkRoom(dataDir);
        const givenUpNow = appendBatch(entries);
        // When idle too: the first one is the mark of what others wrote before this thread was there.
        mark();
        return givenUpNow;
      });
      connection.assertInPlace();
      return { ok: true, givenUp };
    } catch (error) {
      const fault = error instanceof StoreError ? error.fault : 'unusable';
      return { ok: false, fault, message: error instanceof Error ? error.message : String(error) };
    }
  },
};

if (parentPort === null) throw new Error('workers/ledger.js runs as a worker thread');
expose(writer, nodeEndpoint(parentPort));
