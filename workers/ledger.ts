/**
 * Entry of the ledger's thread: the process's only writer. It commits whole batches with `synchronous=FULL`: what it
 * acknowledges survives a power cut.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { expose } from 'comlink';
import { nodeEndpoint } from '../src/comlink-node.js';
import { openDatabase, wordStoreError } from '../src/admission/database.js';
import { prepareAppendBatch, type LedgerEntry } from '../src/admission/entries.js';

export interface LedgerWriter {
  /** All of the batch is durable, or nothing of it. Entries that were committed before are passed over. */
  commit(
    entries: readonly LedgerEntry[],
  ): { readonly ok: true } | { readonly ok: false; readonly message: string };
}

const { dataDir } = workerData as { dataDir: string };
const appendBatch = prepareAppendBatch(openDatabase(dataDir));

const writer: LedgerWriter = {
  commit: (entries) => {
    try {
      appendBatch(entries);
      return { ok: true };
    } catch (error) {
      const worded = wordStoreError(dataDir, error);
      return { ok: false, message: worded instanceof Error ? worded.message : String(worded) };
    }
  },
};

if (parentPort === null) throw new Error('workers/ledger.js runs as a worker thread');
expose(writer, nodeEndpoint(parentPort));
