/** The journal on a real disk: what a process leaves, however it ends, and how damage shows. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { limits } from '../../src/limits.js';
import { createLog } from '../../src/log.js';
import { Journal, leftJournals, toLine } from '../../src/store/journal.js';
import { StoreHold } from '../../src/store/sqlite/hold.js';
import type { LedgerEntry } from '../../src/store/store.js';
import { eventually } from '../support/waiting.js';
import { memoryFolder } from './support.js';
import { usageOf } from './usage.js';

const log = createLog('silent', limits);
const WRITER = 7;
/** Ten entries fill a file. */
const FILE_ENTRIES = 10;
const bounds = { ...limits, journalFileBytes: 1_500, journalSyncMs: 1, ledgerRetryMs: 5 };

const entryOf = (entry: number): LedgerEntry => ({ ...usageOf(3), writer: WRITER, entry });
const folderOf = (dataDir: string): string => join(dataDir, 'journal', String(WRITER));
const logsIn = (dataDir: string): string[] =>
  readdirSync(folderOf(dataDir))
    .filter((name) => name.endsWith('.log'))
    .sort();

const numbersLeft = (dataDir: string): number[] => {
  const [journal] = leftJournals(dataDir);
  journal?.release();
  return journal?.entries.map(({ entry }) => entry) ?? [];
};

/** Appends entries, and waits where a file is full. */
const fill = async (dataDir: string, journal: Journal, entries: number): Promise<void> => {
  for (let entry = 1; entry <= entries; entry += 1) {
    journal.append(entryOf(entry));
    if (entry % FILE_ENTRIES === 0)
      await eventually(
        () => logsIn(dataDir).length >= entry / FILE_ENTRIES && isWritten(dataDir, entry),
        20_000,
      );
  }
};

const isWritten = (dataDir: string, entry: number): boolean => {
  const files = logsIn(dataDir).map((name) => readFileSync(join(folderOf(dataDir), name), 'utf8'));
  return files.some((text) => text.includes(`"entry":${entry}}`));
};

const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);

t.test('what is not in the database is left, in its order; the rest is removed', async (t) => {
  const dataDir = memoryFolder(t);
  const journal = Journal.create(dataDir, { writer: WRITER, storeId: 'one' }, bounds, log);
  await fill(dataDir, journal, 45);
  t.strictSame(leftJournals(dataDir), [], 'its process lives');
  await eventually(() => logsIn(dataDir).length === 5, 20_000);
  journal.settled(35);
  journal.append(entryOf(46));
  await eventually(() => logsIn(dataDir).length <= 2, 20_000);
  await journal.close('left');
  t.strictSame(numbersLeft(dataDir), range(31, 46));
  const [left] = leftJournals(dataDir);
  left?.release();
  t.strictSame(left?.entries.at(-1), entryOf(46));
});

t.test('a journal whose entries are all in the database is removed when its writer has ended', async (t) => {
  const dataDir = memoryFolder(t);
  const journal = Journal.create(dataDir, { writer: WRITER, storeId: 'one' }, bounds, log);
  journal.append(entryOf(1));
  await eventually(() => logsIn(dataDir).length > 0, 20_000);
  journal.settled(1);
  await journal.close('ended');
  await journal.close('ended');
  t.notOk(existsSync(folderOf(dataDir)));
  t.strictSame(leftJournals(dataDir), []);
});

t.test('no other start finds a journal before its process holds it, or after it let go of it', async (t) => {
  const dataDir = memoryFolder(t);
  const found: number[] = [];
  let isLooking = false;
  const look = (): void => {
    if (isLooking) return;
    isLooking = true;
    found.push(leftJournals(dataDir).length);
    isLooking = false;
  };
  const seize = StoreHold.seize.bind(StoreHold);
  t.intercept(StoreHold, 'seize', {
    value: (...parameters: Parameters<typeof seize>) => {
      look();
      return seize(...parameters);
    },
  });
  const release: (this: StoreHold) => void = Reflect.get(StoreHold.prototype, 'release');
  t.intercept(StoreHold.prototype, 'release', {
    value(this: StoreHold) {
      release.call(this);
      look();
    },
  });
  const create = () => Journal.create(dataDir, { writer: WRITER, storeId: 'one' }, bounds, log);
  await create().close('ended');
  await create().close('refused');
  t.strictSame(found, [0, 0, 0, 0]);
  t.strictSame(readdirSync(join(dataDir, 'journal')), [`${WRITER}.refused`]);
});

t.test(
  'what the disk does not synchronise is written again into another file, and fills no disk',
  async (t) => {
    const dataDir = memoryFolder(t);
    const probe = await open(join(dataDir, 'probe'), 'w');
    const handles = Object.getPrototypeOf(probe) as FileHandle;
    await probe.close();
    const datasync: (this: FileHandle) => Promise<void> = Reflect.get(handles, 'datasync');
    let syncs = 0;
    let failuresLeft = 0;
    let filesMax = 0;
    t.intercept(handles, 'datasync', {
      value(this: FileHandle) {
        filesMax = Math.max(filesMax, logsIn(dataDir).length);
        if (failuresLeft === 0)
          return datasync.call(this).then(() => {
            syncs += 1;
          });
        failuresLeft -= 1;
        return Promise.reject(new Error('EIO'));
      },
    });
    const journal = Journal.create(dataDir, { writer: WRITER, storeId: 'one' }, bounds, log);
    journal.append(entryOf(1));
    await eventually(() => syncs > 0, 20_000);
    failuresLeft = 6;
    journal.append(entryOf(2));
    await eventually(() => failuresLeft === 0 && journal.fault === null, 20_000);
    await journal.close('left');
    t.equal(filesMax, 2, 'the synchronised part of one file, and another one');
    t.match(readFileSync(join(folderOf(dataDir), '1.log'), 'utf8'), /^\w+ .*"entry":1}\n$/);
    t.strictSame(numbersLeft(dataDir), [1, 2]);
  },
);

t.test('a disk that does not answer is a fault until it does; a close does not wait for it', async (t) => {
  const dataDir = memoryFolder(t);
  const probe = await open(join(dataDir, 'probe'), 'w');
  const handles = Object.getPrototypeOf(probe) as FileHandle;
  await probe.close();
  const datasync: (this: FileHandle) => Promise<void> = Reflect.get(handles, 'datasync');
  const { promise: answered, resolve: answers } = Promise.withResolvers<null>();
  t.intercept(handles, 'datasync', {
    async value(this: FileHandle) {
      await answered;
      return datasync.call(this);
    },
  });
  const watched = { ...bounds, ledgerStallMsMax: 20, ledgerCloseMsMax: 20_000 };
  const hung = Journal.create(dataDir, { writer: WRITER, storeId: 'one' }, watched, log);
  const hurried = { ...watched, ledgerCloseMsMax: 20 };
  const other = Journal.create(dataDir, { writer: WRITER + 1, storeId: 'one' }, hurried, log);
  for (const journal of [hung, other]) journal.append(entryOf(1));
  await eventually(() => hung.fault === 'stalled' && other.fault === 'stalled');
  t.equal(await other.close('left'), false);
  answers(null);
  await eventually(() => hung.fault === null);
  t.equal(await hung.close('left'), true);
  t.strictSame(numbersLeft(dataDir), [1]);
});

/** A journal of 25 entries in three files. */
const leave = async (dataDir: string): Promise<string> => {
  const journal = Journal.create(dataDir, { writer: WRITER, storeId: 'one' }, bounds, log);
  await fill(dataDir, journal, 25);
  await journal.close('left');
  return join(folderOf(dataDir), logsIn(dataDir).at(-1) ?? '');
};

t.test('a torn last record is ignored, wherever it is torn', async (t) => {
  const dataDir = memoryFolder(t);
  const last = await leave(dataDir);
  t.strictSame(numbersLeft(dataDir), range(1, 25));
  const whole = readFileSync(last);
  const record = toLine(entryOf(26));
  for (const bytes of [1, 8, 9, 60, record.length - 1]) {
    writeFileSync(last, whole);
    appendFileSync(last, record.slice(0, bytes));
    t.strictSame(numbersLeft(dataDir), range(1, 25), `${bytes} bytes of it`);
  }
  writeFileSync(last, whole);
  truncateSync(last, whole.length - 5);
  t.strictSame(numbersLeft(dataDir), range(1, 24));
});

t.test('other damage is reported with the name of the file', async (t) => {
  const dataDir = memoryFolder(t);
  const last = await leave(dataDir);
  const first = join(folderOf(dataDir), '1.log');
  for (const path of [first, last]) {
    const whole = readFileSync(path);
    const changed = Buffer.from(whole);
    changed[20] = (changed[20] ?? 0) ^ 1;
    writeFileSync(path, changed);
    t.throws(() => leftJournals(dataDir), { message: `The journal ${path} is damaged in line 1:` });
    writeFileSync(path, whole);
  }
  truncateSync(first, readFileSync(first).length - 5);
  t.throws(
    () => leftJournals(dataDir),
    { message: /1\.log is damaged in line/ },
    'only the last file may be torn',
  );
});

t.test('a kill while the database is away loses no entry', async (t) => {
  const dataDir = memoryFolder(t);
  const program = fileURLToPath(new URL('journal-process.js', import.meta.url));
  for (let run = 0; run < 2; run += 1) {
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program, dataDir], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    let output = '';
    child.stdout.on('data', (bytes: Buffer) => (output += bytes.toString()));
    await eventually(() => output.split('\n').length > 20 + 10 * run, 20_000);
    child.kill('SIGKILL');
    await once(child, 'close');
    const reported = Number(output.trimEnd().split('\n').at(-1));
    const [journal] = leftJournals(dataDir);
    t.equal(journal?.writer, child.pid);
    const numbers = journal?.entries.map(({ entry }) => entry) ?? [];
    t.strictSame(numbers, range(1, numbers.length));
    t.ok(numbers.length >= reported, `${numbers.length} entries, ${reported} reported`);
    journal?.remove();
    t.strictSame(leftJournals(dataDir), []);
  }
});
