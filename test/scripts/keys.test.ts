import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { hashKey } from '../../src/accounts/keys.js';
import { openStore } from '../../src/store/sqlite/store.js';
import { temporaryFolder } from '../store/support.js';

const program = fileURLToPath(new URL('../../scripts/keys.js', import.meta.url));

const runner =
  (dataDir: string) =>
  (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', program, ...args],
      { env: { ...process.env, DATA_DIR: dataDir }, encoding: 'utf8' },
    );
    return { status, stdout, stderr };
  };

const keyLine = /^svc_sk_[0-9A-Za-z]{43}\n$/;

t.test('create prints the key and nothing else on standard output, and the key is good', (t) => {
  const dataDir = join(temporaryFolder(t), 'new');
  const keys = runner(dataDir);
  const made = keys('create');
  t.match(made, { status: 0, stdout: keyLine, stderr: /"account-1" is never out of credit/ });
  const store = openStore(dataDir);
  t.ok(store.findActiveKey(hashKey(made.stdout.trim())));
  store.close();
  t.match(keys('create', '--credits', '0').stderr, /"account-2" has 0 credits/);
  t.match(keys('create', '--account', 'Ada & Co', '--credits', '1').stderr, /"Ada & Co" has 1 credit\./);
  t.match(keys('create', '--account', 'Ada & Co').stderr, /"Ada & Co" has 1 credit\./, 'a second key of it');
  t.match(keys('create', '--account=Ada & Co', '--credits=9').stderr, /"Ada & Co" has 10 credits/);
  t.end();
});

t.test('credit takes a key, a prefix or an account, and says when an account becomes metered', (t) => {
  const keys = runner(temporaryFolder(t));
  const key = keys('create', '--account', 'payer', '--credits', '5').stdout.trim();
  t.match(keys('credit', key, '1'), { status: 0, stdout: 'Account "payer" has 6 credits.\n' });
  t.match(keys('credit', key.slice(0, 13), '1'), { status: 0, stdout: /has 7 credits/ });
  t.match(keys('credit', 'payer', '1'), { status: 0, stdout: /has 8 credits/ });
  keys('create', '--account', 'free');
  t.match(keys('credit', 'free', '3'), { status: 0, stdout: /has 3 credits.*\nIt was never out of credit/ });
  t.match(keys('credit', 'nobody', '3'), { status: 1, stderr: /no account "nobody"/ });
  t.match(keys('credit', 'payer', '0'), { status: 1, stderr: /whole number from 1/ });
  t.match(keys('credit', 'payer', '1000000000000'), { status: 1, stderr: /at most/ });
  t.match(keys('credit', 'payer', '1.5'), { status: 2, stderr: /not "1.5"/ });
  t.end();
});

t.test('asked about a store that is not there, it makes none', (t) => {
  const dataDir = join(temporaryFolder(t), 'mistyped');
  const keys = runner(dataDir);
  for (const args of [['list'], ['revoke', 'svc_sk_abcdef'], ['credit', 'payer', '3']])
    t.match(keys(...args), { status: 1, stderr: `There is no store in ${dataDir}: set DATA_DIR` });
  t.notOk(existsSync(dataDir));
  t.end();
});

t.test('revoke takes a key or its prefix; list shows prefixes, never a key', (t) => {
  const keys = runner(temporaryFolder(t));
  const [one, other] = [
    keys('create').stdout.trim(),
    keys('create', '--credits', '4').stdout.trim(),
  ] as const;
  t.match(keys('revoke', one), {
    status: 0,
    stdout: `Key ${one.slice(0, 13)}... of account "account-1" is revoked.`,
  });
  t.match(keys('revoke', one), { status: 0, stdout: /was revoked before/ });
  t.match(keys('revoke', other.slice(0, 12)), { status: 1, stderr: /no key/ });
  t.match(keys('revoke', other.slice(0, 13)), { status: 0 });
  const mistyped = `${other.slice(0, -1)}-`;
  const refusal = keys('revoke', mistyped);
  t.equal(refusal.status, 1);
  t.notOk(refusal.stderr.includes(mistyped.slice(14, 30)), 'a mistyped key is not repeated');
  const { status, stdout } = keys('list');
  t.equal(status, 0);
  const rows = stdout.split('\n');
  t.match(rows[0], /^KEY +ACCOUNT +CREDITS +CREATED \(UTC\) +STATE$/);
  t.match(rows[1], /^svc_sk_\w{6}\.\.\. +account-1 +not metered +\d{4}-\d\d-\d\d \d\d:\d\d +revoked$/);
  t.match(rows[2], /^svc_sk_\w{6}\.\.\. +account-2 +4 /);
  t.notOk(stdout.includes(one) || stdout.includes(other));
  t.end();
});

t.test('what is not understood is answered with the usage, exit 2, and touches nothing', (t) => {
  const dataDir = join(temporaryFolder(t), 'untouched');
  const keys = runner(dataDir);
  for (const args of [
    [],
    ['constructor'],
    ['make'],
    ['create', 'x'],
    ['create', '--credits', 'many'],
    ['create', '--credits', '-1'],
    ['create', '--colour', 'red'],
    ['credit', 'payer'],
    ['revoke'],
    ['revoke', 'a', 'b'],
    ['list', '--credits', '3'],
  ]) {
    const { status, stdout, stderr } = keys(...args);
    t.equal(status, 2, args.join(' '));
    t.match(stderr, /^keys: .+\n[^]*Usage: npm run keys/, args.join(' '));
    t.equal(stdout, '');
  }
  for (const args of [['--help'], ['-h'], ['help'], ['create', '--help']])
    t.match(keys(...args), { status: 0, stdout: /^Usage/, stderr: '' }, args.join(' '));
  t.notOk(existsSync(dataDir));
  t.end();
});

t.test('an account name that could be taken for a key or garble a terminal is refused', (t) => {
  const keys = runner(temporaryFolder(t));
  for (const name of ['', ' a', 'a ', 'a\nb', '\u001b[31m', 'svc_sk_x', 'a'.repeat(65)])
    t.match(keys('create', '--account', name), { status: 1, stdout: '', stderr: /name has 1 to 64/ }, name);
  t.end();
});

t.test('a data folder that cannot be used is one line and exit 1', (t) => {
  const file = join(temporaryFolder(t), 'file');
  writeFileSync(file, '');
  const { status, stdout, stderr } = runner(file)('create');
  t.equal(status, 1);
  t.equal(stdout, '');
  t.match(stderr, /^The data folder .+ cannot be written .+\n$/);
  t.end();
});
