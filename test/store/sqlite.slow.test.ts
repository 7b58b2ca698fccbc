import { execFileSync } from 'node:child_process';
import {
  closeSync,
  cpSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t from 'tap';
import { hashKey } from '../../src/accounts/keys.js';
import { Administration } from '../../src/accounts/administration.js';
import { readUsage, type AccountUse } from '../../src/accounts/usage.js';
import { limits } from '../../src/limits.js';
import type { Sql } from '../../src/store/sql/sql.js';
import { Transaction } from '../../src/store/sql/transaction.js';
import { SqliteAdministration } from '../../src/store/sqlite/administration.js';
import { verifyStore } from '../../src/store/sqlite/backup.js';
import { checkCommitMark, commitMarkPath, readCommitMark } from '../../src/store/sqlite/commit-mark.js';
import { openExisting, storePath } from '../../src/store/sqlite/database.js';
import { sqliteStore } from '../../src/store/sqlite/driver.js';
import { StoreHold } from '../../src/store/sqlite/hold.js';
import { type HeldDatabase, openDatabase } from '../../src/store/sqlite/opening.js';
import { openReader } from '../../src/store/sqlite/reader.js';
import { APPLICATION_ID, SCHEMA_VERSION, migrations } from '../../src/store/sqlite/schema.js';
import { Statements } from '../../src/store/sqlite/statements.js';
import { findDamage } from '../../src/store/sqlite/verification.js';
import { StoreError, type UsagePeriod } from '../../src/store/store.js';
import { createKeys } from '../../scripts/operator.js';
import { eventually } from '../support/waiting.js';
import { storeSuite } from './suite.js';
import { balances, memoryFolder } from './support.js';

storeSuite('SQLite', (t) => ({ driver: sqliteStore(join(memoryFolder(t), 'data'), limits) }));

const open = (dataDir: string) => openReader(dataDir, limits, 1);

const createKey = async (dataDir: string, credits: number | null = null): Promise<string> =>
  (await createKeys(dataDir, [[null, credits]]))[0] ?? '';

const faultOf = (work: () => unknown): StoreError => {
  try {
    work();
  } catch (error) {
    if (error instanceof StoreError) return error;
    throw error;
  }
  throw new Error('the store opened');
};

t.test('a reader notices within a moment that the file is gone, without a probe', async (t) => {
  const dataDir = join(memoryFolder(t), 'data');
  const key = await createKey(dataDir);
  const reader = open(dataDir);
  t.teardown(() => reader.close());
  const isFound = () => reader.findActiveKey({ hash: hashKey(key) }) !== null;
  t.ok(isFound());
  renameSync(storePath(dataDir), `${storePath(dataDir)}-away`);
  await eventually(() => {
    try {
      isFound();
      return false;
    } catch (error) {
      return (error as StoreError).fault === 'missing';
    }
  });
  renameSync(`${storePath(dataDir)}-away`, storePath(dataDir));
  t.ok(isFound(), 'and at once that it is back');
});

t.test('a first start that another one overtakes uses the store of that', (t) => {
  const dataDir = memoryFolder(t);
  const seize = StoreHold.seize.bind(StoreHold);
  const opened: HeldDatabase[] = [];
  let isFirst = true;
  t.intercept(StoreHold, 'seize', {
    value: (...parameters: Parameters<typeof seize>) => {
      const overtakes = isFirst;
      isFirst = false;
      if (overtakes) opened.push(openDatabase(dataDir, limits));
      return seize(...parameters);
    },
  });
  opened.push(openDatabase(dataDir, { ...limits, storeBusyMsMax: 50 }));
  t.equal(opened.length, 2);
  for (const { database, hold } of opened) {
    database.close();
    hold.release();
  }
  t.end();
});

t.test('the store has the hash of a key, never the key, and only its user can read it', async (t) => {
  const dataDir = join(memoryFolder(t), 'made', 'here');
  const key = await createKey(dataDir);
  const bytes = readFileSync(storePath(dataDir));
  t.notOk(bytes.includes(key.slice(13)));
  t.ok(bytes.includes(Buffer.from(hashKey(key))));
  t.equal(statSync(dataDir).mode & 0o777, 0o700);
  t.equal(statSync(storePath(dataDir)).mode & 0o777, 0o600);
});

t.test('the error for an unwritable data folder names it and the remedy', (t) => {
  const dataDir = memoryFolder(t);
  const file = join(dataDir, 'a-file');
  writeFileSync(file, '');
  for (const unusable of [file, join(file, 'below'), '/proc/no-such-folder']) {
    const error = faultOf(() => open(unusable));
    t.equal(error.fault, 'unwritable');
    t.ok(error.message.includes(unusable) && error.message.includes('DATA_DIR'), error.message);
    t.notOk(error.message.includes('\n'));
  }
  mkdirSync(storePath(dataDir));
  t.equal(faultOf(() => open(dataDir)).fault, 'unwritable');
  t.end();
});

t.test('a file that is not a database, or has garbage pages, is reported as damaged', async (t) => {
  const noDatabase = memoryFolder(t);
  writeFileSync(storePath(noDatabase), 'this is not a database, whatever its name says'.repeat(10));
  const error = faultOf(() => open(noDatabase));
  t.equal(error.fault, 'damaged');
  t.ok(error.message.includes(storePath(noDatabase)) && error.message.includes('backup'), error.message);

  const garbage = memoryFolder(t);
  await createKey(garbage);
  // The first page, with the schema, stays as it is: only reading the tables shows the damage.
  const file = openSync(storePath(garbage), 'r+');
  const { size } = statSync(storePath(garbage));
  writeSync(file, Buffer.alloc(size - 4096, 0xa5), 0, size - 4096, 4096);
  closeSync(file);
  const found = faultOf(() => open(garbage));
  t.equal(found.fault, 'damaged');
  t.notOk(found.message.includes('\n'), found.message);
  t.equal(faultOf(() => open(garbage)).fault, 'damaged');
});

t.test('a newer store and a database of another program stay unchanged', async (t) => {
  const newer = memoryFolder(t);
  await createKey(newer);
  const database = new DatabaseSync(storePath(newer));
  database.exec(`PRAGMA user_version = ${SCHEMA_VERSION + 1}`);
  database.close();
  const error = faultOf(() => open(newer));
  t.equal(error.fault, 'newer');
  t.match(error.message, new RegExp(`schema ${SCHEMA_VERSION + 1}; this one knows ${SCHEMA_VERSION}`));

  const foreign = memoryFolder(t);
  const other = new DatabaseSync(storePath(foreign));
  other.exec('CREATE TABLE theirs (a INTEGER)');
  other.close();
  const before = readFileSync(storePath(foreign));
  t.equal(faultOf(() => open(foreign)).fault, 'foreign');
  t.ok(readFileSync(storePath(foreign)).equals(before));
});

t.test('an empty file is not a new store: it may be a store that lost its contents', (t) => {
  const dataDir = memoryFolder(t);
  writeFileSync(storePath(dataDir), '');
  t.equal(faultOf(() => open(dataDir)).fault, 'damaged');
  t.equal(statSync(storePath(dataDir)).size, 0);
  t.end();
});

t.test('opening a store again changes nothing', async (t) => {
  const dataDir = memoryFolder(t);
  const key = await createKey(dataDir);
  for (let round = 0; round < 3; round += 1) {
    const store = open(dataDir);
    t.ok(store.findActiveKey({ hash: hashKey(key) }));
    store.close();
  }
});

t.test('the triggers keep the balance the sum of the ledger, and the ledger append-only', async (t) => {
  const dataDir = memoryFolder(t);
  await createKey(dataDir, 84);
  const database = openExisting(dataDir, limits);
  t.throws(() => database.exec('UPDATE ledger SET amount = 0'), /append-only/);
  t.throws(() => database.exec('DELETE FROM ledger'), /append-only/);
  database.close();
  t.strictSame(balances(dataDir), [{ name: 'account-1', balance: 84, sum: 84 }]);
});

const always: UsagePeriod = { account: null, sinceMs: null };

/** A store of the first version, with entries. */
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

t.test('a store of the first version keeps its balances, and its use is summed up', async (t) => {
  const dataDir = memoryFolder(t);
  makeFirstStore(dataDir);
  const expected: AccountUse = {
    account: 'ada',
    metered: true,
    balance: 450,
    requests: 2,
    // The first version did not record it.
    characters: 0,
    credits: 55,
    refunded: 5,
    audioMs: 0,
    firstAtMs: 2_000,
    lastAtMs: 7_200_001,
    keys: [],
  };
  t.match(await readUsage(sqliteStore(dataDir, limits), always), [
    { ...expected, keys: [{ prefix: 'svc_sk_old', requests: 2 }] },
  ]);
  t.match(await readUsage(sqliteStore(dataDir, limits), { account: null, sinceMs: 2_500 }), [
    { requests: 1, credits: 35 },
  ]);
  t.strictSame(balances(dataDir), [{ name: 'ada', balance: 450, sum: 450 }]);
  const database = openExisting(dataDir, limits);
  t.throws(() => database.exec('UPDATE ledger SET amount = 0'), /append-only/);
  database.close();
});

t.test('what keys of an older store have spent is summed up, and they have no restrictions', async (t) => {
  const first = memoryFolder(t);
  makeFirstStore(first);
  const third = memoryFolder(t);
  makeFirstStore(third);
  const database = new DatabaseSync(storePath(third));
  database.exec(`${migrations.slice(1, 3).join('')} PRAGMA user_version = 3`);
  database.exec(`
    INSERT INTO ledger (writer, entry, account_id, key_id, kind, amount, characters, at_ms)
    VALUES (3, 1, 1, 1, 'usage', -7, 7, 8000000)
  `);
  t.strictSame(findDamage(database, third), [], 'a backup of that version verifies');
  database.close();
  for (const [dataDir, spent] of [
    [first, 50],
    [third, 57],
  ] as const) {
    const reader = open(dataDir);
    t.match(reader.findActiveKey({ keyId: 1 }), {
      ...{ accountId: 1, expiresAtMs: null, voices: null },
      speaking: { normalizeText: null, speed: null, lexiconId: null },
    });
    t.match(reader.readCredit(1), { creditLimit: null, spent, balance: 500 - spent });
    reader.close();
    const migrated = openExisting(dataDir, limits);
    t.strictSame(findDamage(migrated, dataDir), []);
    migrated.exec('UPDATE api_keys SET spent = spent + 1');
    t.match(findDamage(migrated, dataDir), [
      `key svc_sk_old... has spent ${spent + 1} for ${spent - 50} characters, and the sum of its entries is ${spent} for ${spent - 50}`,
    ]);
    migrated.close();
  }
});

t.test(
  'use of a store of the fourth version is kept, without voices, and backups of it verify',
  async (t) => {
    const dataDir = memoryFolder(t);
    makeFirstStore(dataDir);
    const database = new DatabaseSync(storePath(dataDir));
    database.exec(`${migrations.slice(1, 4).join('')} PRAGMA user_version = 4`);
    database.exec(`
    INSERT INTO ledger (writer, entry, account_id, key_id, kind, amount, characters, begins_request, at_ms)
    VALUES (3, 1, 1, 1, 'usage', -7, 7, 1, 8000000)
  `);
    t.strictSame(findDamage(database, dataDir), [], 'a backup of that version verifies');
    database.close();
    const store = new SqliteAdministration(dataDir, limits);
    t.teardown(() => store.close());
    const question = { accountId: null, fromMs: 0, toMs: 9_000_000, step: 'hour' } as const;
    const row = { keyId: 1, key: 'svc_sk_old', voice: '', audioMs: 0 };
    t.match(await store.read(async (view) => view.readUsageRows(question, 10)), [
      { ...row, atMs: 0, requests: 1, characters: 0, credits: 50 },
      { ...row, atMs: 7_200_000, requests: 2, characters: 7, credits: 12, refunded: 5 },
    ]);
    const migrated = openExisting(dataDir, limits);
    t.teardown(() => migrated.close());
    t.strictSame(findDamage(migrated, dataDir), []);
    // A writer of the version before, during an upgrade.
    migrated.exec(`
    INSERT INTO ledger (writer, entry, account_id, key_id, kind, amount, characters, begins_request, at_ms)
    VALUES (3, 2, 1, 1, 'usage', -3, 3, 1, 8000001)
  `);
    t.match(await store.read(async (view) => view.readUsageRows(question, 10)), [{}, { characters: 10 }]);
    t.strictSame(findDamage(migrated, dataDir), []);
    t.match(await store.read(async (view) => view.readBalanceChanges(1, 10)), [
      { atMs: 8_000_001, kind: 'spent', amount: -60 },
    ]);
    t.match(await store.read(async (view) => view.listKeys({ keyId: 1 })), [{ characters: 10, spent: 60 }]);
    migrated.exec('UPDATE usage_days SET amount = amount + 1');
    t.match(findDamage(migrated, dataDir), ['the use of account 1 on day 0 is not the sum of its hours']);
    migrated.exec('UPDATE usage_days SET amount = amount - 1');
    migrated.exec('UPDATE usage_hours SET audio_ms = 5 WHERE hour = 2');
    t.match(findDamage(migrated, dataDir), [
      'the use of key 1 in 1970-01-01T02 is not the sum of its entries',
    ]);
  },
);

t.test('what is read of one key or one account needs no other rows', async (t) => {
  const tables = /^SCAN (?:accounts|api_keys|audit|usage_hours|ledger)\b/;
  const dataDir = memoryFolder(t);
  await createKeys(dataDir, [['ada', 500]]);
  const database = openExisting(dataDir, limits);
  t.teardown(() => database.close());
  const statements = new Statements(database);
  const scans: string[] = [];
  const ofHours: string[] = [];
  const explain = <Row>(rows: Row[], plan: { readonly detail: string }[]): Row[] => {
    const steps = plan.map(({ detail }) => detail);
    scans.push(...steps.filter((step) => tables.test(step)));
    ofHours.push(...steps.flatMap((step) => /usage_hours .*(\(.*)$/.exec(step)?.[1] ?? []));
    return rows;
  };
  const plan = (text: string) => `EXPLAIN QUERY PLAN ${text}`;
  const sql: Sql = {
    now: statements.now,
    all: (text, ...values) => explain(statements.all(text, ...values), statements.all(plan(text), ...values)),
    named: (text, values) => explain(statements.named(text, values), statements.named(plan(text), values)),
  };
  const view = new Transaction(sql, { keysPerAccountMax: 10, storeKeysMax: Infinity });
  const ofAccount = { accountId: 1 };
  const period = { fromMs: 1_800_000, toMs: 9_000_000 };
  const questions = {
    key: () => view.listKeys({ keyId: 1 }),
    keys: () => view.listKeys(ofAccount),
    account: () => view.listAccounts(1, 0),
    expiring: () => view.findKeys({ ...ofAccount, expiresFromMs: 1, expiresToMs: 2 }),
    firstUse: () => view.findUse(1, 0),
    usage: () => view.readUsageRows({ ...ofAccount, ...period, step: 'day' }, 10),
    balance: () => view.readBalanceChanges(1, 10),
    acts: () => view.trimActs({ nowMs: 1, msMax: 1 }),
  };
  const range = '(key_id=? AND hour>? AND hour<?)';
  // How much of its history is read: keys read their newest hour, and an account the part of a day.
  const hours: Partial<Record<string, string[]>> = {
    ...{ key: ['(key_id=?)'], keys: ['(key_id=?)'], account: [range] },
    ...{ firstUse: ['(key_id=? AND hour>?)'], usage: [range] },
  };
  for (const [name, ask] of Object.entries(questions)) {
    await ask();
    t.strictSame(scans.splice(0), [], name);
    t.strictSame(ofHours.splice(0), hours[name] ?? [], `${name}: hours`);
  }
  await view.listKeys(null);
  t.strictSame(scans, ['SCAN api_keys'], 'a list of all does');
});

t.test('acts wait for a lock together, and hold up no read', async (t) => {
  const dataDir = memoryFolder(t);
  const storeBusyMsMax = 400;
  const store = new SqliteAdministration(dataDir, { ...limits, storeBusyMsMax });
  t.teardown(() => store.close());
  const administration = new Administration(store);
  await administration.createKey('ada', 5);
  const patientStore = new SqliteAdministration(dataDir, { ...limits, storeBusyMsMax: 30_000 });
  t.teardown(() => patientStore.close());
  const patient = new Administration(patientStore);
  const lock = new DatabaseSync(storePath(dataDir));
  t.teardown(() => lock.close());
  lock.exec('BEGIN IMMEDIATE');
  const order: string[] = [];
  const startMs = performance.now();
  const acts = Array.from({ length: 30 }, async () => {
    const { fault } = (await administration.credit('ada', 5).catch((error: unknown) => error)) as StoreError;
    order.push(fault);
  });
  const read = administration.list().then(() => order.push('read'));
  await Promise.all([...acts, read]);
  t.strictSame(order, ['read', ...acts.map(() => 'busy')]);
  const waitedMs = performance.now() - startMs;
  t.ok(waitedMs < 10_000, `all wait as long as one: ${waitedMs} ms, and not ${30 * storeBusyMsMax} ms`);
  const waiting = [1, 2].map((credits) => patient.credit('ada', credits));
  await patient.list();
  lock.exec('ROLLBACK');
  t.match(await Promise.all(waiting), [{ balance: 6 }, { balance: 8 }], 'in their order');
});

t.test('a property that was lost with the end of the log shows at the start', async (t) => {
  const dataDir = memoryFolder(t);
  const store = new SqliteAdministration(dataDir, limits);
  t.teardown(() => store.close());
  const administration = new Administration(store);
  const { key } = await administration.createKey('ada', null);
  const acts: Record<string, () => Promise<unknown>> = {
    name: () => administration.change(key, { name: 'till' }),
    limit: () => administration.change(key, { creditLimit: 5 }),
    speed: () => administration.change(key, { speed: 1.1 }),
    defaults: () => administration.changeAccount('ada', { normalizeText: true }),
    suspension: () => administration.suspend('ada'),
    resumption: () => administration.resume('ada'),
    user: () =>
      store.transact(async (transaction) => {
        const user = { name: 'R', handle: 'r', role: 'operator', accountId: null, password: 'p' } as const;
        await transaction.addUser(user, 1);
        await transaction.record({
          ...{ atMs: 1, actor: 'r', accountId: null },
          ...{ action: 'console.claim', subject: 'r', details: '' },
        });
      }),
  };
  for (const [what, act] of Object.entries(acts)) {
    const before = readFileSync(`${storePath(dataDir)}-wal`);
    await act();
    const left = memoryFolder(t);
    cpSync(dataDir, left, { recursive: true });
    writeFileSync(`${storePath(left)}-wal`, before);
    // The copy is another file, and the commit mark is of the first one.
    const mark = readCommitMark(dataDir);
    const database = new DatabaseSync(storePath(left), { readOnly: true });
    t.throws(() => checkCommitMark(left, mark, database), { fault: 'short', message: /changes of/ }, what);
    database.close();
    t.throws(() => verifyStore(left, limits), { fault: 'short', message: /changes of/ }, `${what}: verify`);
  }
});

t.test(
  'verify misses what was not copied with a folder, and takes no pipe for the commit mark',
  async (t) => {
    const dataDir = memoryFolder(t);
    const store = new SqliteAdministration(dataDir, limits);
    t.teardown(() => store.close());
    await new Administration(store).createKey('ada', null);
    const whole = memoryFolder(t);
    cpSync(dataDir, whole, { recursive: true });
    t.match(verifyStore(whole, limits), { accounts: 1 }, 'a whole copy is good');
    await new Administration(store).createKey('ben', null);
    cpSync(commitMarkPath(dataDir), commitMarkPath(whole));
    t.throws(() => verifyStore(whole, limits), { fault: 'short', message: /1 accounts of 2/ });
    rmSync(commitMarkPath(whole));
    execFileSync('mkfifo', [commitMarkPath(whole)]);
    t.match(verifyStore(whole, limits), { accounts: 1 });
  },
);
