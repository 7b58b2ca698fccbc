import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { limits } from '../../src/limits.js';
import { SqliteAdministration } from '../../src/store/sqlite/administration.js';
import { logPath, storePath } from '../../src/store/sqlite/database.js';
import { openDatabase } from '../../src/store/sqlite/opening.js';
import { verifyStore } from '../../src/store/sqlite/backup.js';
import { openReader } from '../../src/store/sqlite/reader.js';
import { restore } from '../../src/store/sqlite/restore.js';
import { StoreError, type StoreTransaction } from '../../src/store/store.js';
import { noSpeakingDefaults } from '../../src/api/speech-settings.js';
import { createKeys, operate } from '../../scripts/operator.js';
import { store as program } from '../../scripts/store.js';
import { LeftStore } from '../../scripts/torture/store/left-store.js';
import { isNight, seedOfRun } from '../fuzz/check.js';
import { balances, memoryFolder } from '../store/support.js';
import { seededRandom } from '../../scripts/rig/random.js';
import { runner as run, spawnCommand } from '../support/run-command.js';

const compiled = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const runner = (dataDir: string) => run(program, dataDir);
const open = (dataDir: string) => openReader(dataDir, limits, 1);

/** A store in which an account has these credits. No process has it open. */
const makeStore = async (t: Test, credits: number): Promise<string> => {
  const dataDir = memoryFolder(t);
  await createKeys(dataDir, [['ada', credits]]);
  return dataDir;
};

const credit = (dataDir: string, credits: number) =>
  operate(dataDir, (administration) => administration.credit('ada', credits));

const balanceOf = (dataDir: string): number | undefined => balances(dataDir)[0]?.balance;

t.test('a backup is one good file of a store in use, and replaces a file only with --force', async (t) => {
  const dataDir = await makeStore(t, 100);
  const store = runner(dataDir);
  const held = open(dataDir);
  const writer = new DatabaseSync(storePath(dataDir));
  writer.exec('BEGIN IMMEDIATE');
  const backups = memoryFolder(t);
  const file = join(backups, 'backup');
  for (const name of ['killed', 'running']) writeFileSync(join(backups, `.syrinx-backup-${name}`), '');
  utimesSync(join(backups, '.syrinx-backup-killed'), 1, 1);
  const { status, stdout, stderr } = await store('backup', file);
  t.equal(status, 0, stderr);
  t.match(
    stdout,
    /^.*backup: 1 account, 1 key, 1 entry, \d+ bytes, newest entry \d{4}-\d\d-\d\d \d\d:\d\d UTC\n$/,
  );
  writer.exec('COMMIT');
  writer.close();
  t.equal(statSync(file).mode & 0o777, 0o600);
  const running = '.syrinx-backup-running';
  t.strictSame(readdirSync(backups).sort(), [running, 'backup'], 'only what another command writes is left');
  t.equal(balanceOf(dataDir), 100);
  await credit(dataDir, 1);
  t.match(await store('backup', file), { status: 1, stdout: '', stderr: /exists already: .* --force\n$/ });
  t.match(await store('verify', file), { status: 0, stdout: /1 entry/ }, 'it is still the first backup');
  t.match(await store('backup', file, '--force'), { status: 0, stdout: /2 entries/ });
  t.match(await store('verify', file), { status: 0, stdout: /is good: .*2 entries/ });
  held.close();
});

t.test('paths that a backup refuses', async (t) => {
  const dataDir = await makeStore(t, 100);
  const store = runner(dataDir);
  const folder = memoryFolder(t);
  const link = join(folder, 'link');
  symlinkSync(storePath(dataDir), link);
  const note = join(folder, 'note');
  writeFileSync(note, 'Buy milk.');
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const refusals: readonly (readonly [string, RegExp])[] = [
    [storePath(dataDir), /is the store itself/],
    [link, /is the store itself/],
    [logPath(dataDir), /is the store itself/],
    [note, /is no backup, so it is not replaced/],
    [pipe, /is no backup, so it is not replaced/],
  ];
  for (const [file, stderr] of refusals)
    t.match(await store('backup', file, '--force'), { status: 1, stdout: '', stderr }, file);
  t.equal(readFileSync(note, 'utf8'), 'Buy milk.');
  t.match(await store('backup', folder, '--force'), { status: 1, stderr: /is a folder/ });
  t.match(await store('backup', join(folder, 'no', 'such')), {
    status: 1,
    stderr: /^There is no folder .*\/no: make it first\n$/,
  });
  t.match(await runner(folder)('backup', join(folder, 'b')), { status: 1, stderr: /^There is no store at/ });
  t.equal(balanceOf(dataDir), 100);
});

t.test('verify reports all damage of a store in use or a backup, and exits 1', async (t) => {
  const dataDir = await makeStore(t, 100);
  const store = runner(dataDir);
  const held = open(dataDir);
  t.match(await store('verify'), { status: 0, stdout: /store\.sqlite is good: 1 account/, stderr: '' });
  const file = join(memoryFolder(t), 'backup');
  await store('backup', file);
  const changes: Record<string, [sql: string, finding: RegExp]> = {
    'a balance': [
      'UPDATE accounts SET balance = 99',
      /"ada" has a balance of 99, and the sum of its entries is 100/,
    ],
    'an entry': [
      `DROP TRIGGER ledger_is_never_changed; UPDATE ledger SET amount = 1;
       CREATE TRIGGER ledger_is_never_changed BEFORE UPDATE ON ledger BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only');
  END`,
      /has a balance of 100, and the sum of its entries is 1\n/,
    ],
    'a trigger': ['DROP TRIGGER ledger_adds_to_balance', /the trigger ledger_adds_to_balance is missing/],
    'what a trigger does': [
      `DROP TRIGGER ledger_is_never_changed;
       CREATE TRIGGER ledger_is_never_changed BEFORE UPDATE ON ledger BEGIN SELECT 1; END`,
      /the trigger ledger_is_never_changed is not ours/,
    ],
    'a trigger with a name like those of SQLite': [
      'CREATE TRIGGER sqliteodd AFTER INSERT ON ledger BEGIN UPDATE accounts SET balance = balance; END',
      /sqliteodd/,
    ],
    'an hour': [
      "INSERT INTO usage_hours VALUES (1, 7, 'wren', 1, 1, 0, 0, 0, 1, 1)",
      /use of key 1 in 1970-01-01T07 is not the sum/,
    ],
    'what a key has spent': [
      'UPDATE api_keys SET spent = 5',
      /key svc_sk_\w{6}\.\.\. has spent 5 for 0 characters, and the sum of its entries is 0 for 0\n/,
    ],
    'what a key was charged for': [
      'UPDATE api_keys SET charged_characters = 5',
      /has spent 0 for 5 characters, and the sum of its entries is 0 for 0\n/,
    ],
    'a day': [
      'INSERT INTO usage_days VALUES (1, 7, 1, 0, 1)',
      /the use of account 1 on day 7 is not the sum of its hours/,
    ],
    'a key': [
      'PRAGMA foreign_keys = OFF; UPDATE api_keys SET account_id = 9',
      /row 1 of api_keys belongs to a row of accounts that is missing/,
    ],
    'a user': [
      "PRAGMA foreign_keys = OFF; INSERT INTO users VALUES (3, 'Mia', 'mia', 'member', 9, 'p', 1, NULL)",
      /row 3 of users belongs to a row of accounts that is missing/,
    ],
  };
  for (const [what, [sql, finding]] of Object.entries(changes)) {
    const copy = `${file}-${what}`;
    copyFileSync(file, copy);
    const database = new DatabaseSync(copy);
    database.exec(sql);
    database.close();
    const { status, stderr } = await store('verify', copy);
    t.equal(status, 1, what);
    t.match(stderr, finding, what);
    t.match(stderr, /is damaged:\n[^]*make a new one: npm run store -- backup FILE\n$/);
    t.match(await store('restore', copy), { status: 1, stderr: /in use|is damaged/ });
  }
  truncateSync(file, 8_192);
  t.match(await store('verify', file), {
    status: 1,
    stderr: /is damaged:\n {2}database disk image is malformed/,
  });
  writeFileSync(file, '');
  t.match(await store('verify', file), { status: 1, stderr: /the file is empty/ });
  t.match(await store('verify', `${file}-nothing`), { status: 1, stderr: /^There is no file .*\n$/ });
  const database = new DatabaseSync(storePath(dataDir));
  database.exec('UPDATE accounts SET balance = 99');
  database.close();
  t.match(await store('verify'), {
    status: 1,
    stderr: /has a balance of 99[^]*npm run store -- restore FILE\n$/,
  });
  held.close();
});

t.test('restore replaces the store, keeps the old one, and requires a stopped service', async (t) => {
  const dataDir = await makeStore(t, 100);
  const store = runner(dataDir);
  const file = join(memoryFolder(t), 'backup');
  await store('backup', file);
  await credit(dataDir, 23);
  const impatient = { ...limits, storeBusyMsMax: 50 };
  const held = open(dataDir);
  t.throws(() => restore(dataDir, file, Date.now(), impatient), {
    constructor: StoreError,
    fault: 'held',
    message: /a service .* has it open: stop that first$/,
  });
  held.close();
  const other = new DatabaseSync(storePath(dataDir));
  other.prepare('SELECT * FROM ledger').all();
  t.match(await store('restore', file), {
    status: 1,
    stderr: /another program has it open, stop that first\n$/,
  });
  other.close();
  t.equal(balanceOf(dataDir), 123);
  t.match(await store('restore', storePath(dataDir)), { status: 1, stderr: /is the store itself/ });
  chmodSync(file, 0o644);
  const { status, stdout, stderr } = await store('restore', file);
  t.equal(status, 0, stderr);
  const [, kept = ''] = /The previous store is (.*)\n$/.exec(stdout) ?? [];
  t.match(basename(kept), /^store\.sqlite\.before-restore-\d{8}T\d{6}$/);
  t.equal(balanceOf(dataDir), 100);
  t.equal(statSync(storePath(dataDir)).mode & 0o777, 0o600);
  open(dataDir).close();
  t.match(await store('restore', kept), { status: 0 }, 'and back');
  t.equal(balanceOf(dataDir), 123);
  open(dataDir).close();

  const nowhere = join(memoryFolder(t), 'new', 'machine');
  t.match(await runner(nowhere)('restore', file), { status: 0, stdout: /^[^\n]*\n$/ });
  t.equal(balanceOf(nowhere), 100);
  mkdirSync(`${nowhere}-2/store.sqlite`, { recursive: true });
  t.match(await runner(`${nowhere}-2`)('restore', file), {
    status: 1,
    stderr: /store\.sqlite is not a file: move it away/,
  });
});

t.test('a restore brings back the properties of keys and accounts', async (t) => {
  const dataDir = await makeStore(t, 100);
  const store = runner(dataDir);
  const file = join(memoryFolder(t), 'backup');
  const [key] = await operate(dataDir, (administration) => administration.list());
  const prefix = key?.prefix ?? '';
  const speaking = { normalizeText: true, speed: 1.1, lexiconId: 'trains' };
  const properties = {
    ...{ name: 'till', expiresAtMs: Date.UTC(2100, 0, 1), creditLimit: 9, voices: ['wren'] },
    ...speaking,
  };
  await operate(dataDir, async (administration) => {
    await administration.change(prefix, properties);
    await administration.changeAccount('ada', speaking);
    await administration.suspend('ada');
  });
  t.match(await store('backup', file), { status: 0 });
  await operate(dataDir, async (administration) => {
    await administration.change(prefix, { name: '', expiresAtMs: null, creditLimit: null, voices: null });
    await administration.change(prefix, noSpeakingDefaults);
    await administration.changeAccount('ada', noSpeakingDefaults);
    await administration.resume('ada');
  });
  t.match(await store('restore', file), { status: 0 });
  const listed = await operate(dataDir, (administration) => administration.list());
  t.match(listed, [{ ...properties, account: { name: 'ada', suspendedAtMs: Number, ...speaking } }]);
});

t.test('a restore brings back users and the audit table, and ends every session and link', async (t) => {
  const dataDir = memoryFolder(t);
  const store = run(program, dataDir);
  await createKeys(dataDir, [['ada', 5]]);
  const peopleOf = async <T>(work: (transaction: StoreTransaction) => Promise<T>): Promise<T> => {
    const administration = new SqliteAdministration(dataDir, limits);
    try {
      return await administration.transact(work);
    } finally {
      administration.close();
    }
  };
  const user = { name: 'Root', handle: 'root', role: 'operator', accountId: null, password: 'p' } as const;
  await peopleOf(async (transaction) => {
    await transaction.addSession('session', await transaction.addUser(user, 1), 1);
    await transaction.addLink('link', { kind: 'invitation', accountId: 1, expiresAtMs: 1 });
  });
  const file = join(memoryFolder(t), 'backup.sqlite');
  t.match(await store('backup', file), { status: 0 });
  await peopleOf(async (transaction) => transaction.endSessions({ hash: 'session' }));
  t.match(await store('restore', file), { status: 0 });
  await peopleOf(async (transaction) => {
    t.match(await transaction.findUser({ handle: 'root' }), { name: 'Root' });
    t.equal(await transaction.findSession('session'), null);
    t.equal(await transaction.countLinks(), 0);
    t.equal((await transaction.listActs(null, 10)).length, 2);
  });
  t.match(await store('verify'), { status: 0 });
});

t.test('root restores for the owner of the folder', { skip: process.getuid?.() !== 0 }, async (t) => {
  const dataDir = await makeStore(t, 100);
  const store = runner(dataDir);
  const file = join(memoryFolder(t), 'backup');
  await store('backup', file);
  const uid = 65_534;
  for (const name of ['.', ...readdirSync(dataDir)]) chownSync(join(dataDir, name), uid, uid);
  t.match(await store('restore', file), { status: 0 });
  await credit(dataDir, 1);
  const owners = readdirSync(dataDir).map((name) => statSync(join(dataDir, name)).uid);
  t.ok(owners.length > 3 && owners.every((owner) => owner === uid), `${owners.join()} of ${uid}`);
});

/** A store after a kill: its last commits are in its log only. */
const makeCrashed = async (t: Test): Promise<string> => {
  const dataDir = await makeStore(t, 100);
  const { database, hold } = openDatabase(dataDir, limits);
  await credit(dataDir, 11);
  const crashed = memoryFolder(t);
  for (const suffix of ['', '-wal']) copyFileSync(storePath(dataDir) + suffix, storePath(crashed) + suffix);
  database.close();
  hold.release();
  return crashed;
};

const copyOf = (t: Test, dataDir: string): string => {
  const copy = memoryFolder(t);
  for (const name of readdirSync(dataDir)) copyFileSync(join(dataDir, name), join(copy, name));
  return copy;
};

/** Starts with the store. @returns the balance, or the fault of the refusal */
const startOf = (dataDir: string): number | string | undefined => {
  try {
    open(dataDir).close();
    return balanceOf(dataDir);
  } catch (error) {
    if (error instanceof StoreError) return error.fault;
    throw error;
  }
};

t.test('a backup with a log is restored with the contents of the log', async (t) => {
  const crashed = await makeCrashed(t);
  const dataDir = await makeStore(t, 7);
  const log = readFileSync(logPath(crashed));
  const { status, stdout, stderr } = await runner(dataDir)('restore', storePath(crashed));
  t.equal(status, 0, stderr);
  t.match(stdout, /: 1 account, 1 key, 2 entries/);
  t.equal(balanceOf(dataDir), 111);
  open(dataDir).close();
  t.ok(readFileSync(logPath(crashed)).equals(log), 'the backup is unchanged');
});

const keptBy = (stdout: string): string => /The previous store is (.*)\n$/.exec(stdout)?.[1] ?? '';

t.test('the log of an incomplete store is kept unchanged', async (t) => {
  const left = await LeftStore.make(join(memoryFolder(t), 'data'), 20, seededRandom(7));
  const log = Buffer.from(left.bytesOf('store.sqlite-wal'));
  // The third page: SQLite takes everything from there on for a commit that was cut off.
  log.fill(0xa5, 32 + 2 * (24 + 4_096) + 1_000, 32 + 2 * (24 + 4_096) + 1_100);
  writeFileSync(logPath(left.dataDir), log, { flag: 'r+' });
  t.equal(startOf(left.dataDir), 'short', 'a start is refused, and changes nothing');
  const file = join(memoryFolder(t), 'backup');
  await runner(await makeStore(t, 7))('backup', file);
  const store = runner(left.dataDir);
  t.match(await store('verify'), { status: 1, stderr: /lacks what had been committed/ });
  const { status, stdout, stderr } = await store('restore', file);
  t.equal(status, 0, stderr);
  const kept = keptBy(stdout);
  t.ok(readFileSync(kept).equals(left.bytesOf('store.sqlite')), 'its file');
  t.ok(readFileSync(`${kept}-wal`).equals(log), 'its log');
  t.equal(startOf(left.dataDir), 7);
});

t.test('without a commit mark a copy of the log is kept', async (t) => {
  const crashed = await makeCrashed(t);
  const log = readFileSync(logPath(crashed));
  const file = join(memoryFolder(t), 'backup');
  await runner(await makeStore(t, 7))('backup', file);
  const other = new DatabaseSync(storePath(crashed));
  other.prepare('SELECT * FROM ledger').all();
  const store = runner(crashed);
  t.match(await store('restore', file), { status: 1, stderr: /another program has it open/ });
  t.same(
    readdirSync(crashed).filter((name) => name.includes('before-restore')),
    [],
    'a refused restore keeps nothing',
  );
  const { stdout } = await runner(copyOf(t, crashed))('restore', file);
  other.close();
  const kept = keptBy(stdout);
  t.ok(readFileSync(`${kept}-wal`).equals(log));
  t.equal(balanceOf(join(kept, '..')), 7);
  const again = await makeStore(t, 1);
  t.match(await runner(again)('restore', kept), { status: 0 }, 'file and log are still one store');
  t.equal(balanceOf(again), 111);
});

t.test('a restore does not create the default folder', async (t) => {
  const file = join(memoryFolder(t), 'backup');
  await runner(await makeStore(t, 7))('backup', file);
  const cwd = memoryFolder(t);
  for (const DATA_DIR of [undefined, ' ']) {
    const env = { PATH: process.env['PATH'], ...(DATA_DIR === undefined ? {} : { DATA_DIR }) };
    const { status, stderr } = spawnCommand('store', ['restore', file], { cwd, env });
    t.equal(status, 1);
    t.match(stderr, /^There is no folder .*\/data: set DATA_DIR to the folder of the service\n$/);
  }
  t.same(readdirSync(cwd), []);
});

/** @returns false if it ended before the kill */
const restoreUntil = (dataDir: string, file: string, killAt: number): Promise<boolean> => {
  const child = spawn(
    process.execPath,
    [
      '--disable-warning=ExperimentalWarning',
      '--import',
      compiled('test/support/kill-at.js'),
      compiled('scripts/store.js'),
      'restore',
      file,
    ],
    { env: { PATH: process.env['PATH'], DATA_DIR: dataDir, KILL_AT: String(killAt) }, stdio: 'ignore' },
  );
  return new Promise((resolve, reject) => {
    child.once('close', (code, signal) => {
      if (signal === 'SIGKILL') resolve(true);
      else if (code === 0) resolve(false);
      else reject(new Error(`restore ended with ${code}`));
    });
  });
};

const CONCURRENT = 2;
/** By day one act of three, each day another. */
const step = isNight ? 1 : 3;
const offset = seedOfRun() % step;

for (const [what, damage, before] of [
  ['a crashed store', () => undefined, 111],
  [
    'a damaged one',
    (dataDir: string) => {
      const file = readFileSync(storePath(dataDir));
      file.fill(0xa5, 100, 2_000);
      writeFileSync(storePath(dataDir), file);
    },
    'damaged',
  ],
] as const)
  t.test(`a restore over ${what} that is killed at any act leaves the old or the new store`, async (t) => {
    const template = await makeCrashed(t);
    damage(template);
    const good = await makeStore(t, 7);
    const file = join(memoryFolder(t), 'backup');
    await runner(good)('backup', file);
    const seen = new Map<unknown, number>();
    let ended = false;
    const killed = async (killAt: number) => {
      const dataDir = copyOf(t, template);
      if (!(await restoreUntil(dataDir, file, killAt))) ended = true;
      const found = startOf(copyOf(t, dataDir));
      seen.set(found, (seen.get(found) ?? 0) + 1);
      if (found === 7) t.equal(verifyStore(dataDir, limits).entries, 1);
      restore(dataDir, file, Date.now(), limits);
      t.equal(startOf(dataDir), 7, `after ${killAt} acts and again`);
      t.same(
        readdirSync(dataDir).filter(
          (name) => !/^store\.(?:lock|sqlite(?:-mark|\.before-restore-.*)?)$/.test(name),
        ),
        [],
        'nothing else is left',
      );
    };
    for (let killAt = 0; !ended; killAt += CONCURRENT * step)
      await Promise.all(Array.from({ length: CONCURRENT }, (_, i) => killed(killAt + offset + i * step)));
    const allowed = [before, 7, 'held'];
    t.same(
      [...seen.keys()].filter((found) => !allowed.includes(found as never)),
      [],
      JSON.stringify([...seen]),
    );
    t.ok((seen.get(before) ?? 0) > 1 && (seen.get(7) ?? 0) > 0, JSON.stringify([...seen]));
    if (before === 111) t.notOk(seen.has('held'), 'a whole store can always be opened');
  });

t.test('a restore plays back the journal that a killed one left', async (t) => {
  const dataDir = await makeStore(t, 100);
  const file = join(memoryFolder(t), 'backup');
  await runner(dataDir)('backup', file);
  const killed = memoryFolder(t);
  using database = new DatabaseSync(storePath(dataDir));
  database.exec('PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF; BEGIN; CREATE TABLE more (id)');
  for (const suffix of ['', '-journal'])
    copyFileSync(storePath(dataDir) + suffix, storePath(killed) + suffix);
  const store = runner(killed);
  t.match(await store('restore', file), { status: 0, stderr: '' });
  t.match(await store('verify'), { status: 0 });
});

t.test('a usage error shows the usage and exits 2', async (t) => {
  const dataDir = join(memoryFolder(t), 'none');
  const store = runner(dataDir);
  for (const args of [
    [],
    ['frob'],
    ['backup'],
    ['restore'],
    ['backup', 'a', 'b'],
    ['backup', ''],
    ['verify', 'a', 'b'],
    ['verify', '--force'],
    ['restore', 'a', '--force'],
    ['backup', 'a', '--colour'],
  ]) {
    const { status, stdout, stderr } = await store(...args);
    t.equal(status, 2, args.join(' '));
    t.match(stderr, /^store: .+\n[^]*Usage: npm run store/, args.join(' '));
    t.equal(stdout, '');
  }
  for (const args of [['--help'], ['help'], ['-h']])
    t.match(await store(...args), { status: 0, stdout: /^Usage/, stderr: '' });
  t.match(await store('verify'), { status: 1, stderr: /^There is no store at .*\n$/ });
  t.notOk(existsSync(dataDir));
});
