/** The writer thread of a SQLite store: its death, its store, and the death of its process. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { queryObjects } from 'node:v8';
import type { Worker } from 'node:worker_threads';
import t, { type Test } from 'tap';
import { limits } from '../../src/limits.js';
import { createLog } from '../../src/log.js';
import { Ledger, newWriter, type LedgerBounds } from '../../src/store/ledger.js';
import { SqliteAdministration } from '../../src/store/sqlite/administration.js';
import { readCommitMark } from '../../src/store/sqlite/commit-mark.js';
import { storePath } from '../../src/store/sqlite/database.js';
import { SqliteWriter, WriterThread } from '../../src/store/sqlite/writer.js';
import { createKeys } from '../../scripts/operator.js';
import { eventually } from '../support/waiting.js';
import { usageOf } from './usage.js';
import { balances, memoryFolder } from './support.js';

const log = createLog('silent', limits);

const makeStore = async (t: Test): Promise<string> => {
  const dataDir = memoryFolder(t);
  await createKeys(dataDir, [['payer', 1_000_000]]);
  return dataDir;
};

/** Opens a ledger that is closed with the test, and shows the threads that it starts. */
const openLedger = (t: Test, dataDir: string, changed: Partial<LedgerBounds> = {}) => {
  const threads: Worker[] = [];
  const seen = (worker: Worker) => void threads.push(worker);
  process.on('worker', seen);
  const writer = newWriter();
  const ledger = new Ledger({
    writer,
    startWriter: () => new WriterThread(dataDir, { ...limits, storeBusyMsMax: 150 }),
    bounds: { ...limits, ...changed },
    log,
  });
  t.teardown(async () => {
    await ledger.close();
    process.off('worker', seen);
  });
  return { ledger, writer, threads };
};

const entriesOf = (dataDir: string, writer: number): number[] => {
  const database = new DatabaseSync(storePath(dataDir));
  const rows = database.prepare('SELECT entry FROM ledger WHERE writer = ? ORDER BY id').all(writer);
  database.close();
  return rows.map((row) => Number(row['entry']));
};

const upTo = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1);

t.test('a commit to a file that is removed meanwhile is not acknowledged', async (t) => {
  const dataDir = await makeStore(t);
  const writer = new SqliteWriter(dataDir, limits);
  const entry = { ...usageOf(1), writer: newWriter(), entry: 1 };
  t.match(writer.commit([entry]), { ok: true });
  const removing = {
    ...{ ...entry, entry: 2 },
    get atMs() {
      rmSync(storePath(dataDir));
      return 1;
    },
  };
  t.match(writer.commit([removing]), { ok: false, fault: 'missing' });
});

t.test('the commit mark counts the entries of the last commit', async (t) => {
  const dataDir = await makeStore(t);
  const writer = new SqliteWriter(dataDir, limits);
  const before = readCommitMark(dataDir)?.entries ?? 0;
  t.match(writer.commit([{ ...usageOf(1), writer: newWriter(), entry: 1 }]), { ok: true });
  t.equal(readCommitMark(dataDir)?.entries, before + 1);
});

t.test('acts that follow one another without an end let the ledger thread write', async (t) => {
  const dataDir = await makeStore(t);
  const store = new SqliteAdministration(dataDir, limits);
  t.teardown(() => store.close());
  const writer = new WriterThread(dataDir, { ...limits, storeBusyMsMax: 10_000 });
  t.teardown(() => writer.end());
  t.match(await writer.commit([]), { ok: true });
  let isOver = false as boolean;
  let acts = 0;
  const act = async (): Promise<void> => {
    const endMs = performance.now() + 30;
    while (performance.now() < endMs);
    acts++;
  };
  const callers = Array.from({ length: 8 }, async () => {
    while (!isOver) {
      await store.transact(act);
      await turn();
    }
  });
  const entry = { ...usageOf(1), writer: newWriter() };
  for (const number of [1, 2, 3, 4]) {
    const before = acts;
    await eventually(() => acts > before);
    t.match(await writer.commit([{ ...entry, entry: number }]), { ok: true }, `commit ${number}`);
  }
  isOver = true;
  const whileWaiting = acts;
  await Promise.all(callers);
  t.ok(whileWaiting < 80, `${whileWaiting} acts`);
});

t.test('while commits fail nothing is accepted, and it recovers by itself', async (t) => {
  const dataDir = await makeStore(t);
  const { ledger, writer, threads } = openLedger(t, dataDir, { ledgerRetryMs: 10 });
  const saboteur = new DatabaseSync(storePath(dataDir), { timeout: 10_000 });
  saboteur.exec(`CREATE TRIGGER refuse BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'no'); END`);
  ledger.append(usageOf(1));
  await eventually(() => !ledger.accepting);
  ledger.append(usageOf(1));
  t.equal(ledger.queued, 2);
  saboteur.exec('DROP TRIGGER refuse');
  saboteur.close();
  await ledger.drain();
  t.ok(ledger.accepting);
  t.equal(threads.length, 1, 'a thread that answers is kept');
  t.strictSame(entriesOf(dataDir, writer), upTo(2));
});

t.test('a dead thread is replaced, and its batch is neither lost nor doubled', async (t) => {
  const dataDir = await makeStore(t);
  const { ledger, writer, threads } = openLedger(t, dataDir, { ledgerRetryMs: 10, ledgerBatchMax: 3 });
  await eventually(() => threads.length === 1);
  for (let round = 1; round <= 5; round += 1) {
    for (let count = 0; count < 20; count += 1) ledger.append(usageOf(1));
    // Ends the thread before its first commit, between commits or inside one.
    if (round > 1) await eventually(() => ledger.acknowledged >= (round - 1) * 21 + round * 2);
    await threads.at(-1)?.terminate();
    // Gives its successor something to commit in any case.
    ledger.append(usageOf(1));
    await ledger.drain();
  }
  t.equal(threads.length, 6);
  t.strictSame(entriesOf(dataDir, writer), upTo(105));
  t.strictSame(balances(dataDir), [{ name: 'payer', balance: 999_895, sum: 999_895 }]);
});

t.test('an idle thread that died is replaced by the next entry', async (t) => {
  const dataDir = await makeStore(t);
  // No probe replaces it before.
  const { ledger, writer, threads } = openLedger(t, dataDir, { ledgerProbeMs: 60_000 });
  ledger.append(usageOf(1));
  await ledger.drain();
  await threads[0]?.terminate();
  t.ok(ledger.accepting);
  ledger.append(usageOf(1));
  await ledger.drain();
  t.equal(threads.length, 2);
  t.strictSame(entriesOf(dataDir, writer), upTo(2));
});

t.test('closing while the store is locked ends the thread, and no other is started', async (t) => {
  const dataDir = await makeStore(t);
  const { ledger, threads } = openLedger(t, dataDir, { ledgerRetryMs: 1, ledgerCloseMsMax: 50 });
  const holder = new DatabaseSync(storePath(dataDir), { timeout: 10_000 });
  holder.exec('BEGIN IMMEDIATE');
  // The thread waits for the lock inside the commit when the time to close is over.
  ledger.append(usageOf(1));
  await ledger.close();
  holder.exec('ROLLBACK');
  holder.close();
  await delay(20);
  t.equal(threads.length, 1);
  t.equal(ledger.queued, 1);
});

t.test('a commit to a file that was moved away is not acknowledged', async (t) => {
  const dataDir = await makeStore(t);
  const { ledger, writer } = openLedger(t, dataDir, { ledgerRetryMs: 5 });
  ledger.append(usageOf(1));
  await ledger.drain();
  const away = join(dataDir, 'away');
  renameSync(storePath(dataDir), away);
  ledger.append(usageOf(2));
  await eventually(() => ledger.fault !== null);
  t.equal(ledger.fault, 'missing');
  t.equal(ledger.acknowledged, 1);
  renameSync(away, storePath(dataDir));
  await ledger.drain();
  t.strictSame(entriesOf(dataDir, writer), upTo(2));
});

const writerProgram = fileURLToPath(new URL('ledger-process.js', import.meta.url));

/** Kills the process after some acknowledgements. @returns its writer, and the last entry that it reported */
const killInMidWrite = async (dataDir: string, acknowledgements: number) => {
  const child = spawn(process.execPath, [...process.execArgv, writerProgram, dataDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  let reported = { writer: 0, acknowledged: 0 };
  let lines = 0;
  for await (const line of createInterface(child.stdout)) {
    const [writer = 0, acknowledged = 0] = line.split(' ').map(Number);
    reported = { writer, acknowledged };
    lines += 1;
    if (lines === acknowledgements) child.kill('SIGKILL');
  }
  const [, signal] = (await exited) as [number | null, string | null];
  if (signal !== 'SIGKILL') throw new Error('the process ended by itself');
  return reported;
};

t.test('kill -9 in mid-write loses nothing that was acknowledged and doubles nothing', async (t) => {
  const dataDir = await makeStore(t);
  for (const acknowledgements of [1, 10]) {
    const { writer, acknowledged } = await killInMidWrite(dataDir, acknowledgements);
    const entries = entriesOf(dataDir, writer);
    t.ok(entries.length >= acknowledged && acknowledged > 0, `${entries.length} of ${acknowledged}`);
    t.strictSame(entries, upTo(entries.length));
    const [account] = balances(dataDir);
    t.equal(account?.balance, account?.sum);
  }
});

t.test('a finished commit leaves nothing in memory', async (t) => {
  const { ledger } = openLedger(t, await makeStore(t));
  const commits = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) {
      ledger.append(usageOf(1));
      await eventually(() => ledger.queued === 0);
    }
  };
  await commits(20);
  const before = queryObjects(Promise, { format: 'count' });
  await commits(100);
  const more = queryObjects(Promise, { format: 'count' }) - before;
  t.ok(more < 50, `${more} promises more`);
});
