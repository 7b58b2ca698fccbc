/**
 * A process whose database never answers, until it is killed. It reports entries that were appended a while ago:
 *
 *   node journal-process.js DATA_DIR
 */
import { writeSync } from 'node:fs';
import { limits } from '../../src/limits.js';
import { createLog } from '../../src/log.js';
import { Journal } from '../../src/store/journal.js';
import { Ledger } from '../../src/store/ledger.js';
import { usageOf } from './usage.js';

/** Time for the write of an entry, on a busy machine. */
const WRITTEN_MS = 1_000;
const TICK_MS = 2;

const [dataDir = ''] = process.argv.slice(2);
const log = createLog('silent', limits);
const ledger = new Ledger({
  writer: process.pid,
  startWriter: () => ({
    hasEnded: false,
    commit: () => new Promise(() => undefined),
    end: () => Promise.resolve(),
  }),
  bounds: limits,
  log,
  journal: Journal.create(
    dataDir,
    { writer: process.pid, storeId: 'one' },
    { ...limits, journalFileBytes: 2_000 },
    log,
  ),
});

setInterval(() => {
  const last = ledger.append(usageOf(5));
  setTimeout(() => writeSync(1, `${last}\n`), WRITTEN_MS);
}, TICK_MS);
