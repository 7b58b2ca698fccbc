import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { queryObjects } from 'node:v8';
import type { Worker } from 'node:worker_threads';
import t, { type Test } from 'tap';
import { Administration } from '../../src/accounts/administration.js';
import { storePath } from '../../src/store/sqlite/database.js';
import { Ledger, type LedgerLimits, type NewEntry } from '../../src/store/sqlite/ledger.js';
import { limits } from '../../src/limits.js';
import { createLog } from '../../src/log.js';
import { balances, temporaryFolder } from './support.js';

const log = createLog('silent', limits);

const usage = (amount: number): NewEntry => ({
  accountId: 1,
  keyId: 1,
  requestId: 'r',
  kind: 'usage',
  amount: -amount,
  characters: amount,
  beginsRequest: true,
  atMs: 1_000,
});

const makeStore = (t: Parameters<typeof temporaryFolder>[0]): string => {
  const dataDir = temporaryFolder(t);
  const administration = new Administration(dataDir);
  administration.createKey('payer', 1_000_000);
  administration.close();
  return dataDir;
};

/** Opens a ledger that is closed with the test, and shows the threads it starts. */
const openLedger = (t: Test, dataDir: string, changed: Partial<LedgerLimits> = {}) => {
  const threads: Worker[] = [];
  const seen = (worker: Worker) => void threads.push(worker);
  process.on('worker', seen);
  const ledger = new Ledger({ dataDir, limits: { ...limits, ...changed }, log });
  t.teardown(async () => {
    await ledger.close();
    process.off('worker', seen);
  });
  return { ledger, threads };
};

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await delay(5);
};

const entriesOf = (dataDir: string, writer: number): number[] => {
  const database = new DatabaseSync(storePath(dataDir));
  const rows = database.prepare('SELECT entry FROM ledger WHERE writer = ? ORDER BY id').all(writer);
  database.close();
  return rows.map((row) => Number(row['entry']));
};

const upTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1);

t.test('what is appended is durable after a drain, in order, in batches', async (t) => {
  const dataDir = makeStore(t);
  const { ledger } = openLedger(t, dataDir, { ledgerBatchMax: 100 });
  await ledger.drain();
  for (let count = 1; count <= 1_000; count += 1) t.equal(ledger.append(usage(2)), count);
  t.equal(ledger.acknowledged, 0);
  await ledger.drain();
  t.equal(ledger.acknowledged, 1_000);
  t.equal(ledger.queued, 0);
  t.strictSame(entriesOf(dataDir, ledger.writer), upTo(1_000));
  t.strictSame(balances(dataDir), [{ name: 'payer', balance: 998_000, sum: 998_000 }]);
});

t.test('closing makes durable what is queued; it may be asked for twice', async (t) => {
  const dataDir = makeStore(t);
  const { ledger } = openLedger(t, dataDir);
  for (let count = 0; count < 50; count += 1) ledger.append(usage(1));
  await Promise.all([ledger.close(), ledger.close()]);
  t.notOk(ledger.accepting);
  t.strictSame(entriesOf(dataDir, ledger.writer), upTo(50));
});

t.test('the queue is full at its bound, and has room again when the disk has caught up', async (t) => {
  const dataDir = makeStore(t);
  const { ledger } = openLedger(t, dataDir, { ledgerQueueMax: 10 });
  for (let count = 0; count < 9; count += 1) ledger.append(usage(1));
  t.ok(ledger.accepting);
  ledger.append(usage(1));
  t.ok(ledger.full);
  t.notOk(ledger.accepting);
  ledger.append(usage(1));
  await ledger.drain();
  t.ok(ledger.accepting);
  t.strictSame(entriesOf(dataDir, ledger.writer), upTo(11));
});

t.test('while commits fail nothing is accepted, and it recovers by itself', async (t) => {
  const dataDir = makeStore(t);
  const { ledger, threads } = openLedger(t, dataDir, { ledgerRetryMs: 10 });
  const saboteur = new DatabaseSync(storePath(dataDir));
  saboteur.exec(`CREATE TRIGGER refuse BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'no'); END`);
  ledger.append(usage(1));
  await until(() => !ledger.accepting);
  ledger.append(usage(1));
  t.equal(ledger.queued, 2);
  saboteur.exec('DROP TRIGGER refuse');
  saboteur.close();
  await ledger.drain();
  t.ok(ledger.accepting);
  t.equal(threads.length, 1, 'a thread that answers is kept');
  t.strictSame(entriesOf(dataDir, ledger.writer), upTo(2));
});

t.test('a dead thread is replaced, and its batch is neither lost nor doubled', async (t) => {
  const dataDir = makeStore(t);
  const { ledger, threads } = openLedger(t, dataDir, { ledgerRetryMs: 10, ledgerBatchMax: 3 });
  await until(() => threads.length === 1);
  for (let round = 1; round <= 5; round += 1) {
    for (let count = 0; count < 20; count += 1) ledger.append(usage(1));
    // Ends it before its first commit, between commits or inside one, as it happens.
    if (round > 1) await until(() => ledger.acknowledged >= (round - 1) * 21 + round * 2);
    await threads.at(-1)?.terminate();
    // Whatever it had committed, here is something for its successor.
    ledger.append(usage(1));
    await ledger.drain();
  }
  t.equal(threads.length, 6);
  t.strictSame(entriesOf(dataDir, ledger.writer), upTo(105));
  t.strictSame(balances(dataDir), [{ name: 'payer', balance: 999_895, sum: 999_895 }]);
});

t.test('an idle thread that died is replaced by the next entry', async (t) => {
  const dataDir = makeStore(t);
  // Not by a probe before it.
  const { ledger, threads } = openLedger(t, dataDir, { ledgerProbeMs: 60_000 });
  ledger.append(usage(1));
  await ledger.drain();
  await threads[0]?.terminate();
  t.ok(ledger.accepting);
  ledger.append(usage(1));
  await ledger.drain();
  t.equal(threads.length, 2);
  t.strictSame(entriesOf(dataDir, ledger.writer), upTo(2));
});

t.test('closing does not wait for ever for a store that takes no writes', async (t) => {
  const dataDir = makeStore(t);
  const { ledger } = openLedger(t, dataDir, { ledgerRetryMs: 10, ledgerCloseMsMax: 50 });
  const saboteur = new DatabaseSync(storePath(dataDir));
  saboteur.exec(`CREATE TRIGGER refuse BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'no'); END`);
  saboteur.close();
  ledger.append(usage(1));
  await ledger.close();
  t.equal(ledger.queued, 1);
});

t.test('closing while the store is locked ends the thread, and no other is started', async (t) => {
  const dataDir = makeStore(t);
  const { ledger, threads } = openLedger(t, dataDir, { ledgerRetryMs: 1, ledgerCloseMsMax: 50 });
  const holder = new DatabaseSync(storePath(dataDir));
  holder.exec('BEGIN IMMEDIATE');
  // The thread waits for the lock, inside the commit, when the time to close is over.
  ledger.append(usage(1));
  await ledger.close();
  holder.exec('ROLLBACK');
  holder.close();
  await delay(20);
  t.equal(threads.length, 1);
  t.equal(ledger.queued, 1);
});

t.test('a commit that does not come back is a fault of its own, and is waited for', async (t) => {
  const dataDir = makeStore(t);
  const { ledger, threads } = openLedger(t, dataDir, { ledgerStallMsMax: 20 });
  const holder = new DatabaseSync(storePath(dataDir));
  holder.exec('BEGIN IMMEDIATE');
  ledger.append(usage(3));
  await until(() => ledger.fault !== null);
  t.equal(ledger.fault, 'stalled');
  ledger.append(usage(4));
  holder.exec('ROLLBACK');
  holder.close();
  await ledger.drain();
  t.equal(ledger.fault, null);
  t.equal(threads.length, 1);
  t.strictSame(balances(dataDir), [{ name: 'payer', balance: 999_993, sum: 999_993 }]);
});

t.test('entries of an account that the store has not are given up; the others are written', async (t) => {
  const dataDir = makeStore(t);
  const { ledger } = openLedger(t, dataDir);
  ledger.append(usage(1));
  ledger.append({ ...usage(10), accountId: 99 });
  ledger.append({ ...usage(10), keyId: 99 });
  ledger.append(usage(2));
  await ledger.drain();
  t.ok(ledger.accepting);
  t.equal(ledger.acknowledged, 4);
  t.strictSame(entriesOf(dataDir, ledger.writer), [1, 4]);
  t.strictSame(balances(dataDir), [{ name: 'payer', balance: 999_997, sum: 999_997 }]);
});

t.test('what was committed to a file that was taken away is not acknowledged', async (t) => {
  const dataDir = makeStore(t);
  const { ledger } = openLedger(t, dataDir, { ledgerRetryMs: 5 });
  ledger.append(usage(1));
  await ledger.drain();
  const away = join(dataDir, 'away');
  renameSync(storePath(dataDir), away);
  ledger.append(usage(2));
  await until(() => ledger.fault !== null);
  t.equal(ledger.fault, 'missing');
  t.equal(ledger.acknowledged, 1);
  renameSync(away, storePath(dataDir));
  await ledger.drain();
  t.strictSame(entriesOf(dataDir, ledger.writer), upTo(2));
});

const writerProgram = fileURLToPath(new URL('ledger-writer.js', import.meta.url));

/** @returns the writer and the last entry whose acknowledgement it told of, when killed after `acknowledgements` */
const killInMidWrite = async (dataDir: string, acknowledgements: number) => {
  const child = spawn(process.execPath, [...process.execArgv, writerProgram, dataDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  let told = { writer: 0, acknowledged: 0 };
  let lines = 0;
  for await (const line of createInterface(child.stdout)) {
    const [writer = 0, acknowledged = 0] = line.split(' ').map(Number);
    told = { writer, acknowledged };
    lines += 1;
    if (lines === acknowledgements) child.kill('SIGKILL');
  }
  const [, signal] = (await exited) as [number | null, string | null];
  if (signal !== 'SIGKILL') throw new Error('the writer ended by itself');
  return told;
};

t.test('kill -9 in mid-write loses nothing that was acknowledged and doubles nothing', async (t) => {
  const dataDir = makeStore(t);
  for (const acknowledgements of [1, 2, 10, 25]) {
    const { writer, acknowledged } = await killInMidWrite(dataDir, acknowledgements);
    const entries = entriesOf(dataDir, writer);
    t.ok(entries.length >= acknowledged && acknowledged > 0, `${entries.length} of ${acknowledged}`);
    t.strictSame(entries, upTo(entries.length));
    const [account] = balances(dataDir);
    t.equal(account?.balance, account?.sum);
  }
});

t.test('nothing is kept of a commit that is over', async (t) => {
  const { ledger } = openLedger(t, makeStore(t));
  const commits = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) {
      ledger.append(usage(1));
      await until(() => ledger.queued === 0);
    }
  };
  await commits(20);
  const before = queryObjects(Promise, { format: 'count' });
  await commits(100);
  const more = queryObjects(Promise, { format: 'count' }) - before;
  t.ok(more < 50, `${more} promises more`);
});
