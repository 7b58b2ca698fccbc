/**
 * A process that appends to a ledger until it is killed, and reports each acknowledgement:
 *
 *   node ledger-process.js DATA_DIR
 */
import { writeSync } from 'node:fs';
import { limits } from '../../src/limits.js';
import { createLog } from '../../src/log.js';
import { Ledger, newWriter } from '../../src/store/ledger.js';
import { WriterThread } from '../../src/store/sqlite/writer.js';

const [dataDir = ''] = process.argv.slice(2);
const writer = newWriter();
const ledger = new Ledger({
  writer,
  startWriter: () => new WriterThread(dataDir, limits),
  // Small batches: the kill falls between, before and inside commits.
  bounds: { ...limits, ledgerBatchMax: 7 },
  log: createLog('silent', limits),
});
let reported = 0;

const tick = (): void => {
  for (let count = 0; count < 5 && !ledger.full; count += 1)
    ledger.append({
      accountId: 1,
      keyId: 1,
      requestId: 'r',
      kind: 'usage',
      amount: -1 - (count % 3),
      characters: 1 + (count % 3),
      voice: 'wren',
      audioMs: 60,
      beginsRequest: true,
      atMs: Date.now(),
    });
  // Synchronous: an acknowledgement is reported even if the kill comes next.
  if (ledger.acknowledged > reported) writeSync(1, `${writer} ${ledger.acknowledged}\n`);
  reported = ledger.acknowledged;
  setImmediate(tick);
};
tick();
