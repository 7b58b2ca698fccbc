import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { limits } from '../../src/limits.js';
import { openExisting } from '../../src/store/sqlite/database.js';
import { prepareAppendBatch } from '../../src/store/sqlite/writer.js';
import { createKeys, operate } from '../../scripts/operator.js';
import { usageReport } from '../../scripts/usage.js';
import { memoryFolder } from '../store/support.js';
import { runner, spawnCommand } from '../support/run-command.js';

/** Two accounts. A key of the first was used two days and two hours ago, and once with a refund. */
const makeStore = async (dataDir: string, nowMs: number): Promise<string> => {
  const [key = '', , revoked = ''] = await createKeys(dataDir, [
    ['Ada & Co', 5_000],
    ['free', null],
    ['Ada & Co', null],
  ]);
  await operate(dataDir, (administration) => administration.revoke(revoked));
  const database = openExisting(dataDir, limits);
  const entry = {
    writer: 1,
    accountId: 1,
    keyId: 1,
    beginsRequest: true,
    requestId: 'r',
    voice: 'wren',
    audioMs: 40_250,
  };
  prepareAppendBatch(database)([
    { ...entry, entry: 1, kind: 'usage', amount: -700, characters: 700, atMs: nowMs - 48 * 3_600_000 },
    { ...entry, entry: 2, kind: 'usage', amount: -20, characters: 20, atMs: nowMs - 2 * 3_600_000 },
    { ...entry, entry: 3, kind: 'usage', amount: -5, characters: 5, atMs: nowMs - 60_000 },
    {
      ...entry,
      entry: 4,
      kind: 'refund',
      amount: 5,
      characters: 5,
      beginsRequest: false,
      atMs: nowMs - 59_000,
    },
  ]);
  database.close();
  return key;
};

const nowMs = Date.now();
const dataDir = memoryFolder(t);
const key = await makeStore(dataDir, nowMs);
const usage = runner(usageReport, dataDir);
const minute = (ms: number) => new Date(ms).toISOString().slice(0, 16).replace('T', ' ');

t.test('the table has each account, and below it its keys by their prefixes', async (t) => {
  const { status, stdout, stderr } = await usage();
  t.equal(status, 0, stderr);
  const rows = stdout.trimEnd().split('\n');
  t.match(
    rows[0],
    /^ACCOUNT \/ KEY +REQUESTS +CHARACTERS +CREDITS +REFUNDED +SECONDS +BALANCE +FIRST USE \(UTC\) +LAST USE/,
  );
  const times = `${minute(nowMs - 48 * 3_600_000)} +${minute(nowMs - 59_000)}`;
  t.match(rows[1], new RegExp(`^Ada & Co +3 +725 +725 +5 +120\\.8 +4280 +${times}$`));
  t.match(rows[2], new RegExp(`^  ${key.slice(0, 13)}\\.\\.\\. +3 +725 +725 +5 +120\\.8 +${times}$`));
  t.match(rows[3], /^ {2}svc_sk_\w{6}\.\.\. \(revoked\) +0 +0 +0 +0 +0\.0 +- +-$/);
  t.match(rows[4], /^free +0 +0 +0 +0 +0\.0 +not metered +- +-$/);
  t.equal(rows.length, 6);
  t.notOk(stdout.includes(key), 'never a key');
});

t.test('--since takes a duration or a date, --account a name', async (t) => {
  const requestsOf = async (...args: string[]) =>
    / (\d+) /.exec((await usage(...args)).stdout.split('\n')[1] ?? '')?.[1];
  t.equal(await requestsOf('--since', '30m'), '1');
  t.equal(await requestsOf('--since', '3h'), '2');
  t.equal(await requestsOf('--since=1w'), '3');
  t.equal(await requestsOf('--since', '2d'), '2', 'the first was a moment before');
  t.equal(await requestsOf('--since', '2020-02-29'), '3');
  t.equal(await requestsOf('--since', new Date(nowMs - 3_600_000).toISOString().slice(0, 16)), '1');
  t.equal(await requestsOf('--since', `${new Date(nowMs - 10_000_000).toISOString().slice(0, 19)}Z`), '2');
  t.equal(await requestsOf('--since', '2999-01-01 00:00'), '0');
  const one = (await usage('--account', 'free')).stdout;
  t.match(one, /^free /m);
  t.notMatch(one, 'Ada');
});

t.test('--json prints one object', async (t) => {
  const { status, stdout } = await usage('--json', '--since', '2020-01-01');
  t.equal(status, 0);
  t.match(JSON.parse(stdout), {
    since: '2020-01-01T00:00:00.000Z',
    accounts: [
      {
        account: 'Ada & Co',
        metered: true,
        balance: 4_280,
        requests: 3,
        characters: 725,
        credits: 725,
        refunded_credits: 5,
        audio_seconds: 120.75,
        first_use: new Date(nowMs - 48 * 3_600_000).toISOString(),
        last_use: new Date(nowMs - 59_000).toISOString(),
        keys: [
          { key: key.slice(0, 13), revoked: false, requests: 3 },
          { revoked: true, requests: 0 },
        ],
      },
      { account: 'free', metered: false, first_use: null, last_use: null },
    ],
  });
  t.equal((JSON.parse((await usage('--json')).stdout) as { since: unknown }).since, null);
});

t.test('a usage error shows the usage and exits 2', async (t) => {
  for (const args of [
    ['x'],
    ['--since'],
    ['--since', 'yesterday'],
    ['--since', '2026-02-30'],
    ['--since', '2026-13-01'],
    ['--since', '2026-01-01T25:00'],
    ['--since', '-1h'],
    ['--since', '5y'],
    ['--account'],
    ['--colour'],
  ]) {
    const { status, stdout, stderr } = await usage(...args);
    t.equal(status, 2, args.join(' '));
    t.match(stderr, /^usage: .+\n[^]*Usage: npm run usage/, args.join(' '));
    t.equal(stdout, '');
  }
  for (const args of [['--help'], ['-h']])
    t.match(await usage(...args), { status: 0, stdout: /^Usage/, stderr: '' });
});

t.test('an unknown account, a missing or a foreign store give one line and exit code 1', async (t) => {
  t.match(await usage('--account', 'nobody'), {
    status: 1,
    stdout: '',
    stderr: /^There is no account "nobody".*\n$/,
  });
  const nowhere = join(memoryFolder(t), 'nowhere');
  t.match(await runner(usageReport, nowhere)(), {
    status: 1,
    stdout: '',
    stderr: /^There is no store at .*\n$/,
  });
  t.notOk(existsSync(nowhere));
  const garbage = memoryFolder(t);
  writeFileSync(join(garbage, 'store.sqlite'), 'no database, whatever its name says'.repeat(10));
  t.match(await runner(usageReport, garbage)(), {
    status: 1,
    stdout: '',
    stderr: /^The store .* is damaged .*\n$/,
  });
});

t.test('the process takes DATA_DIR and sets the exit code', (t) => {
  const env = { DATA_DIR: dataDir };
  t.match(spawnCommand('usage', ['--json'], { env }), { status: 0, stdout: /"account": "free"/, stderr: '' });
  t.match(spawnCommand('usage', ['x'], { env }), { status: 2, stdout: '', stderr: /^usage: / });
  t.end();
});
