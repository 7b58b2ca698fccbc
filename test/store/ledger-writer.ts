/**
 * A process that appends to a ledger until it is killed, and reports each acknowledgement. Run by ledger.test.ts:
 *
 *   node ledger-writer.js DATA_DIR
 */
import { writeSync } from 'node:fs';
import { Ledger } from '../../src/store/sqlite/ledger.js';
import { limits } from '../../src/limits.js';
import { createLog } from '../../src/log.js';

const [dataDir = ''] = process.argv.slice(2);
// Small batches: the kill falls between, before and inside commits.
const ledger = new Ledger({
  dataDir,
  limits: { ...limits, ledgerBatchMax: 7 },
  log: createLog('silent', limits),
});
let reported = 0;

const turn = (): void => {
  for (let count = 0; count < 5 && !ledger.full; count += 1)
    ledger.append({
      accountId: 1,
      keyId: 1,
      requestId: 'r',
      kind: 'usage',
      amount: -1 - (count % 3),
      characters: 1 + (count % 3),
      beginsRequest: true,
      atMs: Date.now(),
    });
  // Synchronous: what was acknowledged is told even if the kill is next.
  if (ledger.acknowledged > reported) writeSync(1, `${ledger.writer} ${ledger.acknowledged}\n`);
  reported = ledger.acknowledged;
  setImmediate(turn);
};
turn();
