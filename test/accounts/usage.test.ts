import { DatabaseSync } from 'node:sqlite';
import t from 'tap';
import { Administration } from '../../src/accounts/administration.js';
import { StoreError, openExisting, storePath } from '../../src/store/sqlite/database.js';
import { prepareAppendBatch, type LedgerEntry } from '../../src/store/sqlite/entries.js';
import { APPLICATION_ID, migrations } from '../../src/store/sqlite/schema.js';
import { readUsage, type AccountUse, type UsagePeriod } from '../../src/accounts/usage.js';
import { seededRandom } from '../support/random.js';
import { balances, temporaryFolder } from '../store/support.js';

const HOUR_MS = 3_600_000;
const all: UsagePeriod = { account: null, sinceMs: null };

const makeAccounts = (dataDir: string): void => {
  const administration = new Administration(dataDir);
  administration.createKey('ada', 1_000_000);
  administration.createKey('bell', null);
  administration.createKey('ada', null);
  administration.close();
};

const unused = { requests: 0, characters: 0, credits: 0, refunded: 0, firstAtMs: null, lastAtMs: null };

t.test('accounts and keys that were not used are there with nothing', (t) => {
  const dataDir = temporaryFolder(t);
  makeAccounts(dataDir);
  const found = readUsage(dataDir, all);
  t.match(found, [
    {
      account: 'ada',
      metered: true,
      balance: 1_000_000,
      ...unused,
      keys: [{ ...unused, revoked: false }, unused],
    },
    { account: 'bell', metered: false, balance: 0, ...unused, keys: [unused] },
  ]);
  t.equal(found.length, 2);
  t.match(readUsage(dataDir, { account: 'bell', sinceMs: null }), [{ account: 'bell' }]);
  t.throws(() => readUsage(dataDir, { account: 'bel', sinceMs: null }), /no account "bel"/);
  t.end();
});

t.test('a report makes no store', (t) => {
  const dataDir = temporaryFolder(t);
  t.throws(() => readUsage(dataDir, all), StoreError);
  t.throws(() => readUsage(dataDir, all), /There is no store at .*store\.sqlite: put it back/);
  t.end();
});

/** The same sums, entry by entry. */
const sumUp = (entries: readonly LedgerEntry[], keyId: number, sinceMs: number) => {
  const mine = entries.filter(
    (entry) => entry.keyId === keyId && entry.atMs >= sinceMs && entry.kind !== 'grant',
  );
  const times = mine.map(({ atMs }) => atMs);
  const sumOf = (kind: string, value: (entry: LedgerEntry) => number) =>
    mine.reduce((sum, entry) => sum + (entry.kind === kind ? value(entry) : 0), 0);
  return {
    requests: mine.filter(({ beginsRequest }) => beginsRequest).length,
    characters: sumOf('usage', ({ characters }) => characters ?? 0),
    credits: sumOf('usage', ({ amount }) => -amount),
    refunded: sumOf('refund', ({ amount }) => amount),
    firstAtMs: times.length === 0 ? null : Math.min(...times),
    lastAtMs: times.length === 0 ? null : Math.max(...times),
  };
};

t.test('over any entries and any period, a report is the sum of the ledger', (t) => {
  const dataDir = temporaryFolder(t);
  makeAccounts(dataDir);
  const random = seededRandom(77);
  const startMs = 1_760_000_000_000;
  const entries = Array.from({ length: 3_000 }, (_, index): LedgerEntry => {
    const keyId = 1 + Math.floor(random() * 3);
    const characters = 1 + Math.floor(random() * 900);
    const refunds = random() < 0.1;
    const onTheHour = random() < 0.1;
    const atMs = startMs + Math.floor(random() * 40 * HOUR_MS);
    return {
      writer: 1,
      entry: index + 1,
      accountId: keyId === 2 ? 2 : 1,
      keyId,
      requestId: `r-${index}`,
      kind: refunds ? 'refund' : 'usage',
      amount: refunds ? 3 * characters : -3 * characters,
      characters,
      beginsRequest: !refunds && random() < 0.7,
      atMs: onTheHour ? atMs - (atMs % HOUR_MS) : atMs,
    };
  });
  const database = openExisting(dataDir);
  prepareAppendBatch(database)(entries);
  // What is passed over is not summed up again.
  prepareAppendBatch(database)(entries.slice(100, 200));
  database.close();
  const hour = Math.ceil(startMs / HOUR_MS) * HOUR_MS;
  const periods = [0, startMs, hour, hour + 1, hour - 1, hour + 10.5 * HOUR_MS, startMs + 50 * HOUR_MS];
  for (const { atMs } of entries.slice(0, 20)) periods.push(atMs, atMs + 1);
  for (const sinceMs of periods) {
    const expected = [1, 3, 2].map((keyId) => sumUp(entries, keyId, sinceMs));
    const found = readUsage(dataDir, { account: null, sinceMs });
    t.match(
      found.flatMap(({ keys }) => keys),
      expected,
    );
    const [first, second] = expected;
    t.equal(found[0]?.characters, (first?.characters ?? 0) + (second?.characters ?? 0));
    t.strictSame(readUsage(dataDir, { account: 'ada', sinceMs }), found.slice(0, 1));
  }
  t.end();
});

/** A store as the first version made it, with entries. */
const makeFirstStore = (dataDir: string): void => {
  const database = new DatabaseSync(storePath(dataDir));
  database.exec(migrations[0]);
  database.exec(`
    PRAGMA application_id = ${APPLICATION_ID};
    PRAGMA user_version = 1;
    INSERT INTO accounts VALUES (1, 'ada', 1, 0, 0);
    INSERT INTO api_keys VALUES (1, 1, x'01', 'svc_sk_old', 0, NULL);
    INSERT INTO ledger (writer, entry, account_id, key_id, request_id, kind, amount, at_ms) VALUES
      (1, 1, 1, NULL, NULL, 'grant', 500, 1000), (2, 1, 1, 1, 'a', 'usage', -20, 2000),
      (2, 2, 1, 1, 'a', 'usage', -30, 3000), (2, 3, 1, 1, 'b', 'usage', -5, 7200000),
      (2, 4, 1, 1, 'b', 'refund', 5, 7200001);
  `);
  database.close();
};

t.test('a store of the first version keeps its balances, and its use is summed up', (t) => {
  const dataDir = temporaryFolder(t);
  makeFirstStore(dataDir);
  const expected: AccountUse = {
    account: 'ada',
    metered: true,
    balance: 450,
    requests: 2,
    // It was not on record.
    characters: 0,
    credits: 55,
    refunded: 5,
    firstAtMs: 2_000,
    lastAtMs: 7_200_001,
    keys: [],
  };
  t.match(readUsage(dataDir, all), [{ ...expected, keys: [{ prefix: 'svc_sk_old', requests: 2 }] }]);
  t.match(readUsage(dataDir, { account: null, sinceMs: 2_500 }), [{ requests: 1, credits: 35 }]);
  t.strictSame(balances(dataDir), [{ name: 'ada', balance: 450, sum: 450 }]);
  const database = openExisting(dataDir);
  t.throws(() => database.exec('UPDATE ledger SET amount = 0'), /append-only/);
  database.close();
  t.end();
});

t.test('a million entries are reported from their sums', (t) => {
  const dataDir = temporaryFolder(t);
  makeAccounts(dataDir);
  const database = openExisting(dataDir);
  const startMs = 480_000 * HOUR_MS;
  // One entry every 30 s; in bulk, without the triggers, which would do the same in four times the time.
  database.exec(`
    PRAGMA synchronous = OFF;
    DROP TRIGGER ledger_adds_to_usage;
    DROP TRIGGER ledger_adds_to_balance;
    INSERT INTO ledger
      (writer, entry, account_id, key_id, request_id, kind, amount, characters, begins_request, at_ms)
    WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 999999)
    SELECT 7, n + 1, 1, 1 + 2 * (n % 2), 'r-' || n, 'usage', -100, 50, 1, ${startMs} + n * 30000 FROM numbers;
    INSERT INTO usage_hours
    SELECT key_id, at_ms / ${HOUR_MS}, count(*), 50 * count(*), 100 * count(*), 0, min(at_ms), max(at_ms)
    FROM ledger WHERE kind = 'usage' GROUP BY 1, 2;
  `);
  database.close();
  const began = performance.now();
  const whole = readUsage(dataDir, all);
  const middle = readUsage(dataDir, { account: 'ada', sinceMs: startMs + 500_001 * 30_000 });
  t.comment(`two reports in ${(performance.now() - began).toFixed(0)} ms`);
  const half = { requests: 500_000, characters: 25_000_000, credits: 50_000_000, refunded: 0 };
  t.match(whole[0], { requests: 1_000_000, keys: [half, half] });
  t.match(middle, [{ requests: 499_999, firstAtMs: startMs + 500_001 * 30_000 }]);
  t.end();
});
