import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { hashKey } from '../../src/accounts/keys.js';
import { limits } from '../../src/limits.js';
import { openReader } from '../../src/store/sqlite/reader.js';
import { keys as program } from '../../scripts/keys.js';
import { createKeys } from '../../scripts/operator.js';
import { memoryFolder } from '../store/support.js';
import { runner, spawnCommand } from '../support/run-command.js';

const keyLine = /^svc_sk_[0-9A-Za-z]{43}\n$/;

t.test('create prints only the key on standard output, and the key works', async (t) => {
  const dataDir = join(memoryFolder(t), 'new');
  const keys = runner(program, dataDir);
  const made = await keys('create');
  t.match(made, { status: 0, stdout: keyLine, stderr: /"account-1" is not metered/ });
  const reader = openReader(dataDir, limits, 1);
  t.ok(reader.findActiveKey({ hash: hashKey(made.stdout.trim()) }));
  reader.close();
  t.match((await keys('create', '--credits', '0')).stderr, /"account-2" has 0 credits/);
  t.match(
    (await keys('create', '--account', 'Ada & Co', '--credits', '1')).stderr,
    /"Ada & Co" has 1 credit\./,
  );
  t.match(
    (await keys('create', '--account', 'Ada & Co')).stderr,
    /"Ada & Co" has 1 credit\./,
    'a second key of it',
  );
  t.match((await keys('create', '--account=Ada & Co', '--credits=9')).stderr, /"Ada & Co" has 10 credits/);
});

t.test('credit takes a key, a prefix or an account', async (t) => {
  const keys = runner(program, memoryFolder(t));
  const key = (await keys('create', '--account', 'payer', '--credits', '5')).stdout.trim();
  t.match(await keys('credit', key, '1'), { status: 0, stdout: 'Account "payer" has 6 credits.\n' });
  t.match(await keys('credit', key.slice(0, 13), '1'), { status: 0, stdout: /has 7 credits/ });
  t.match(await keys('credit', 'payer', '1'), { status: 0, stdout: /has 8 credits/ });
  t.match(await keys('credit', 'nobody', '3'), { status: 1, stderr: /no account "nobody"/ });
  t.match(await keys('credit', 'payer', '0'), { status: 1, stderr: /whole number from 1/ });
  t.match(await keys('credit', 'payer', '1000000000000'), { status: 1, stderr: /at most/ });
  t.match(await keys('credit', 'payer', '1.5'), { status: 2, stderr: /not "1.5"/ });
});

t.test('credit never meters an account: meter does, and undoes it', async (t) => {
  const keys = runner(program, memoryFolder(t));
  await keys('create', '--account', 'free');
  const refusal = { status: 1, stdout: '', stderr: /npm run keys -- meter "free" on --credits 5\n$/ };
  t.match(await keys('credit', 'free', '5'), refusal);
  t.match(await keys('create', '--account', 'free', '--credits', '5'), refusal);
  t.match((await keys('list')).stdout, /^svc_sk_\S+ +free +not metered /m, 'it is as it was');
  const left = (credits: string) => ({
    status: 0,
    stdout: `Account "free" has ${credits}, and is refused beyond.\n`,
  });
  t.match(await keys('meter', 'free', 'on', '--credits', '5'), left('5 credits'));
  t.match(await keys('meter', 'free', 'on', '--credits', '5'), { status: 1, stderr: /is metered already/ });
  t.match(await keys('credit', 'free', '3'), { status: 0, stdout: /has 8 credits/ });
  const endless = { status: 0, stdout: 'Account "free" is not metered.\n' };
  t.match(await keys('meter', 'free', 'off'), endless);
  t.match(await keys('meter', 'free', 'off'), { status: 1, stderr: /is not metered already/ });
  t.match(await keys('meter', 'free', 'on'), left('8 credits'), 'what was left stays');
  t.match(await keys('meter', 'nobody', 'on'), { status: 1, stderr: /no account "nobody"/ });
});

t.test(
  'a key is found by what list shows of it, dots included, and by less where that is unique',
  async (t) => {
    const dataDir = memoryFolder(t);
    const keys = runner(program, dataDir);
    const made = (await keys('create', '--account', 'ada')).stdout.trim();
    const rename = (target: string) => keys('rename', target, 'till');
    const found = { status: 0, stdout: `Key ${made.slice(0, 13)}... is named "till".\n` };
    for (const target of [
      `${made.slice(0, 13)}...`,
      `${made.slice(0, 13)}…`,
      made.slice(0, 9),
      `${made.slice(0, 11)}...`,
    ])
      t.match(await rename(target), found, target);
    for (const target of ['svc_sk_', 'svc_sk_...', `${made.slice(0, 20)}...`])
      t.match(await rename(target), { status: 1, stderr: /There is no key "svc_sk_/ }, target);
    // More than there are characters.
    await createKeys(
      dataDir,
      Array.from({ length: 63 }, () => ['ada', null] as const),
    );
    const firsts = (await keys('list')).stdout.match(/^svc_sk_./gm)!;
    const shared = firsts.find((first, index) => firsts.indexOf(first) !== index)!;
    t.match(await rename(shared), {
      status: 1,
      stderr: `Several keys begin with "${shared}": give more of it`,
    });
  },
);

t.test('no command but create creates a store', async (t) => {
  const dataDir = join(memoryFolder(t), 'mistyped');
  const keys = runner(program, dataDir);
  for (const args of [['list'], ['revoke', 'svc_sk_abcdef'], ['credit', 'payer', '3']])
    t.match(await keys(...args), {
      status: 1,
      stderr: `There is no store at ${join(dataDir, 'store.sqlite')}: put it back`,
    });
  t.notOk(existsSync(dataDir));
});

t.test('revoke takes a key or its prefix; list shows prefixes, never a key', async (t) => {
  const keys = runner(program, memoryFolder(t));
  const [one, other] = [
    (await keys('create')).stdout.trim(),
    (await keys('create', '--credits', '4')).stdout.trim(),
  ] as const;
  t.match(await keys('revoke', one), {
    status: 0,
    stdout: `Key ${one.slice(0, 13)}... of account "account-1" is revoked.`,
  });
  t.match(await keys('revoke', one), { status: 0, stdout: /was revoked before/ });
  t.match(await keys('revoke', other.slice(0, 13)), { status: 0 });
  const mistyped = `${other.slice(0, -1)}-`;
  const refusal = await keys('revoke', mistyped);
  t.equal(refusal.status, 1);
  t.notOk(refusal.stderr.includes(mistyped.slice(14, 30)), 'a mistyped key is not repeated');
  const { status, stdout } = await keys('list');
  t.equal(status, 0);
  const rows = stdout.split('\n');
  t.match(rows[0], /^KEY +ACCOUNT +CREDITS +CREATED \(UTC\) +LAST USED \(UTC\) +CHARACTERS +STATE$/);
  t.match(rows[1], /^svc_sk_\w{6}\.\.\. +account-1 +not metered +\d{4}-\d\d-\d\d \d\d:\d\d +- +0 +revoked$/);
  t.match(rows[2], /^svc_sk_\w{6}\.\.\. +account-2 +4 /);
  t.notOk(stdout.includes(one) || stdout.includes(other));
  const listed = await keys('list', '--json');
  t.match(JSON.parse(listed.stdout), {
    keys: [
      { key: one.slice(0, 13), account: 'account-1', state: 'revoked', balance: null, last_used: null },
      { key: other.slice(0, 13), account: 'account-2', state: 'revoked', balance: 4, created: /T.*Z$/ },
    ],
  });
  t.notOk(listed.stdout.includes(one) || listed.stdout.includes(other));
});

t.test('speaking defaults are set for keys and accounts, and listed with their source', async (t) => {
  const dataDir = memoryFolder(t);
  mkdirSync(join(dataDir, 'lexicons/named/trains'), { recursive: true });
  const keys = runner(program, dataDir);
  const key = (await keys('create', '--account', 'ada', '--speed', '0.9')).stdout.trim();
  await keys('create', '--account', 'ada');
  await keys('create', '--account', 'bell');
  const rows = async () =>
    (await keys('list')).stdout.split('\n').map((row) => row.split(/ {2,}/).slice(6).join('|'));
  t.strictSame((await rows()).slice(0, 3), ['SPEED|STATE', '0.9|active', 'active']);
  t.match(await keys('set', key, '--normalize', 'on', '--lexicon', 'trains'), {
    status: 0,
    stdout: / knows all voices, normalizes text, speaks at speed 0\.9, uses the lexicon "trains"\.\n$/,
  });
  t.match(await keys('set', 'ada', '--normalize', 'off', '--speed', '1.1'), {
    status: 0,
    stdout: 'Account "ada" does not normalize text, speaks at speed 1.1.\n',
  });
  t.strictSame((await rows()).slice(0, 4), [
    'NORMALIZE|SPEED|LEXICON|STATE',
    'on|0.9|trains|active',
    'off (account)|1.1 (account)|active',
    'active',
  ]);
  t.match(await keys('set', key.slice(0, 13), '--normalize', 'default', '--speed', 'default'), {
    status: 0,
    stdout: / knows all voices, uses the lexicon "trains"\.\n$/,
  });
  t.match(await keys('set', 'ada', '--normalize', 'default', '--speed', 'default'), {
    stdout: 'Account "ada" sets nothing for its keys.\n',
  });
  t.match(await keys('set', key, '--lexicon', 'default'), { stdout: / knows all voices\.\n$/ });

  t.match(await keys('set', key, '--lexicon', 'planes'), {
    status: 1,
    stderr: 'There is no lexicon "planes": choose from trains\n',
  });
  t.match(await keys('set', 'ada', '--lexicon', '../named'), { status: 1, stderr: /without a path/ });
  t.match(await keys('create', '--lexicon', 'planes'), { status: 1, stderr: /choose from trains/ });
  t.match(await keys('set', key, '--speed', '3'), { status: 1, stderr: /from 0\.5 to 2/ });
  for (const args of [
    ['set', key, '--normalize', 'yes'],
    ['set', key, '--speed', 'fast'],
    ['set', 'ada', '--speed', '1', '--limit', '5'],
    ['set', 'ada'],
  ])
    t.match(await keys(...args), { status: 2 }, args.join(' '));
  t.match(await keys('set', 'nobody', '--speed', '1'), { status: 1, stderr: /no account "nobody"/ });
  const empty = runner(program, memoryFolder(t));
  const other = (await empty('create')).stdout.trim();
  t.match(await empty('set', other, '--lexicon', 'trains'), {
    status: 1,
    stderr: /make its folder in lexicons\/named/,
  });
});

t.test('properties are set, changed, removed and listed', async (t) => {
  const keys = runner(program, memoryFolder(t));
  const options = ['--name', 'front desk', '--expires', '30d', '--limit', '500', '--voices', 'wren,lark'];
  const key = (await keys('create', '--account', 'ada', ...options)).stdout.trim();
  const prefix = key.slice(0, 13);
  await keys('create', '--account', 'bell');
  const rows = async () => (await keys('list')).stdout.split('\n').map((row) => row.split(/ {2,}/));
  const date = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
  const [heading, ada, bell] = await rows();
  t.strictSame(heading, [
    'KEY',
    'NAME',
    'ACCOUNT',
    'CREDITS',
    'CREATED (UTC)',
    'LAST USED (UTC)',
    'CHARACTERS',
    'LIMIT',
    'EXPIRES (UTC)',
    'VOICES',
    'STATE',
  ]);
  t.match(ada, [`${prefix}...`, 'front desk', 'ada', 'not metered', date(0), '-', '0', '0 of 500', date(30)]);
  t.strictSame(ada?.slice(-2), ['wren,lark', 'active']);
  t.equal(bell?.at(-1), 'active');
  t.match(await keys('rename', prefix, 'till'), { status: 0, stdout: `Key ${prefix}... is named "till".\n` });
  t.match(await keys('set', key, '--limit', '7', '--expires', '2099-07-01'), {
    status: 0,
    stdout: `Key ${prefix}... expires at 2099-07-01 00:00 UTC, has spent 0 of 7 credits, knows wren, lark.\n`,
  });
  t.match(await keys('set', key, '--limit', 'none', '--voices', 'all', '--expires', 'never'), {
    status: 0,
    stdout: `Key ${prefix}... does not expire, has no limit of its own, knows all voices.\n`,
  });
  t.match((await rows())[1], [`${prefix}...`, 'till', 'ada']);
  t.equal((await rows())[0]?.length, 8, 'columns that no key needs are left out');
  t.match(await keys('suspend', 'ada'), { status: 0, stdout: 'Account "ada" is suspended.\n' });
  t.match(await keys('suspend', 'ada'), { status: 0, stdout: 'Account "ada" was suspended before.\n' });
  t.equal((await rows())[1]?.at(-1), 'suspended');
  t.match(await keys('create', '--account', 'ada'), { stderr: /is not metered and is suspended/ });
  t.match(await keys('resume', 'ada'), { status: 0, stdout: 'Account "ada" is resumed.\n' });
  t.match(await keys('resume', 'ada'), { status: 0, stdout: 'Account "ada" was not suspended.\n' });
  t.match(await keys('suspend', 'nobody'), { status: 1, stderr: /no account "nobody"/ });
  t.match(await keys('set', key, '--expires', '2020-01-01'), { status: 1, stderr: /in the future/ });
  t.match(await keys('set', key, '--voices', 'wren,,lark'), { status: 1, stderr: /by their ids/ });
  for (const args of [['create'], ['set', key]])
    t.match(await keys(...args, '--voices', 'wren,nobody'), {
      status: 1,
      stderr: /^No voice nobody is installed: choose from wren, .*lark/,
    });
  await keys('revoke', key);
  t.match(await keys('set', key, '--limit', '1'), { status: 1, stderr: /was revoked, and stays so/ });
});

t.test('a usage error shows the usage, exits 2 and touches nothing', async (t) => {
  const dataDir = join(memoryFolder(t), 'untouched');
  const keys = runner(program, dataDir);
  for (const args of [
    [],
    ['constructor'],
    ['make'],
    ['create', 'x'],
    ['create', '--credits', 'many'],
    ['create', '--credits', '-1'],
    ['create', '--colour', 'red'],
    ['credit', 'payer'],
    ['meter', 'payer', 'yes'],
    ['meter', 'payer', 'off', '--credits', '5'],
    ['revoke'],
    ['revoke', 'a', 'b'],
    ['list', '--credits', '3'],
    ['create', '--expires', 'soon'],
    ['create', '--limit', '-1'],
    ['rename', 'svc_sk_abcdef'],
    ['set', 'svc_sk_abcdef'],
    ['set', 'svc_sk_abcdef', '--expires', '2027-02-30'],
    ['set', 'svc_sk_abcdef', '--name', 'x'],
    ['suspend'],
    ['resume', 'a', 'b'],
  ]) {
    const { status, stdout, stderr } = await keys(...args);
    t.equal(status, 2, args.join(' '));
    t.match(stderr, /^keys: .+\n[^]*Usage: npm run keys/, args.join(' '));
    t.equal(stdout, '');
  }
  for (const args of [['--help'], ['-h'], ['help'], ['create', '--help']])
    t.match(await keys(...args), { status: 0, stdout: /^Usage/, stderr: '' }, args.join(' '));
  t.notOk(existsSync(dataDir));
});

t.test('an account name that could be taken for a key or garble a terminal is refused', async (t) => {
  const keys = runner(program, memoryFolder(t));
  for (const name of ['', ' a', 'a ', 'a\nb', '\u001b[31m', 'svc_sk_x', 'a'.repeat(65)])
    t.match(
      await keys('create', '--account', name),
      { status: 1, stdout: '', stderr: /name of an account has 1 to 64/ },
      name,
    );
});

t.test('a data folder that cannot be used gives one line and exit code 1', async (t) => {
  const file = join(memoryFolder(t), 'file');
  writeFileSync(file, '');
  const { status, stdout, stderr } = await runner(program, file)('create');
  t.equal(status, 1);
  t.equal(stdout, '');
  t.match(stderr, /^The data folder .+ cannot be written .+\n$/);
});

t.test('the process takes DATA_DIR, writes to both outputs and sets the exit code', (t) => {
  const env = { DATA_DIR: memoryFolder(t) };
  t.match(spawnCommand('keys', ['create'], { env }), { status: 0, stdout: keyLine, stderr: /"account-1"/ });
  t.match(spawnCommand('keys', ['create', 'x'], { env }), { status: 2, stdout: '', stderr: /^keys: / });
  t.end();
});
