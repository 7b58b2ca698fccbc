import { performance } from 'node:perf_hooks';
import t from 'tap';
import { readUsage } from '../../src/accounts/usage.js';
import { limits } from '../../src/limits.js';
import { openExisting } from '../../src/store/sqlite/database.js';
import { sqliteStore } from '../../src/store/sqlite/driver.js';
import { createKeys } from '../../scripts/operator.js';
import { temporaryFolder } from './support.js';

const HOUR_MS = 3_600_000;

t.test('a million entries are reported from their sums', async (t) => {
  const dataDir = temporaryFolder(t);
  await createKeys(dataDir, [
    ['ada', 1_000_000],
    ['bell', null],
    ['ada', null],
  ]);
  const database = openExisting(dataDir, limits);
  const startMs = 480_000 * HOUR_MS;
  // One entry every 30 s; in bulk, without the triggers, which would do the same in four times the time.
  database.exec(`
    PRAGMA synchronous = OFF;
    DROP TRIGGER ledger_adds_to_usage;
    DROP TRIGGER ledger_adds_to_balance;
    INSERT INTO ledger
      (writer, entry, account_id, key_id, request_id, kind, amount, characters, voice, audio_ms, begins_request, at_ms)
    WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 999999)
    SELECT 7, n + 1, 1, 1 + 2 * (n % 2), 'r-' || n, 'usage', -100, 50, 'wren', 3000, 1, ${startMs} + n * 30000 FROM numbers;
    INSERT INTO usage_hours
    SELECT key_id, at_ms / ${HOUR_MS}, voice, count(*), 50 * count(*), 100 * count(*), 0, sum(audio_ms), min(at_ms), max(at_ms)
    FROM ledger WHERE kind = 'usage' GROUP BY 1, 2, 3;
  `);
  database.close();
  const began = performance.now();
  const whole = await readUsage(sqliteStore(dataDir, limits), { account: null, sinceMs: null });
  const middle = await readUsage(sqliteStore(dataDir, limits), {
    account: 'ada',
    sinceMs: startMs + 500_001 * 30_000,
  });
  t.comment(`two reports in ${(performance.now() - began).toFixed(0)} ms`);
  const half = {
    requests: 500_000,
    characters: 25_000_000,
    credits: 50_000_000,
    refunded: 0,
    audioMs: 1_500_000_000,
  };
  t.match(whole[0], { requests: 1_000_000, keys: [half, half] });
  t.match(middle, [{ requests: 499_999, firstAtMs: startMs + 500_001 * 30_000 }]);
});
