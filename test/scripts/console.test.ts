import t from 'tap';
import { Access } from '../../src/accounts/access.js';
import { Passwords } from '../../src/accounts/passwords.js';
import { Sessions } from '../../src/accounts/sessions.js';
import { limits } from '../../src/limits.js';
import { SqliteAdministration } from '../../src/store/sqlite/administration.js';
import { consoleProgram } from '../../scripts/console.js';
import { keys } from '../../scripts/keys.js';
import { createKeys } from '../../scripts/operator.js';
import { memoryFolder } from '../store/support.js';
import { runner } from '../support/run-command.js';

t.test('link prints a link on standard output that works once', async (t) => {
  const dataDir = memoryFolder(t);
  await createKeys(dataDir, [['ada', 5]]);
  const { status, stdout, stderr } = await runner(consoleProgram, dataDir)('link');
  t.equal(status, 0, stderr);
  t.match(stdout, /^http:\/\/127\.0\.0\.1:8081\/claim#[\w-]{43}\n$/);
  t.match(stderr, /^It works once, until \d{4}-\d\d-\d\d \d\d:\d\d UTC\./);
  const store = new SqliteAdministration(dataDir, limits);
  t.teardown(() => store.close());
  const sessions = new Sessions(store, limits);
  const access = new Access({ store, sessions, passwords: new Passwords(1), bounds: limits });
  const claim = () =>
    access.claim({ token: stdout.trim().split('#')[1] ?? '', name: 'root', password: 'a long one' }, '::1');
  t.match(await claim(), { user: { name: 'root', role: 'operator' } });
  await t.rejects(claim(), /This link was used/);
});

t.test('without a store, or with the console off, there is one line', async (t) => {
  const nowhere = `${memoryFolder(t)}/nowhere`;
  t.match(await runner(consoleProgram, nowhere)('link'), {
    status: 1,
    stdout: '',
    stderr: /^There is no store at .*\n$/,
  });
  for (const [port, message] of [
    ['off', /^The console is off: .*\n$/],
    ['0', /^CONSOLE_PORT is 0, .*\n$/],
  ] as const)
    t.match(await runner(consoleProgram, nowhere, { CONSOLE_PORT: port })('link'), {
      status: 1,
      stdout: '',
      stderr: message,
    });
  for (const args of [[], ['claim'], ['link', 'x']])
    t.match(await runner(consoleProgram, nowhere)(...args), { status: 2, stderr: /^console: / });
});

t.test('acts of the command line are in the audit table', async (t) => {
  const dataDir = memoryFolder(t);
  const run = runner(keys, dataDir);
  const key = (await run('create', '--account', 'ada', '--credits', '5', '--name', 'till')).stdout.trim();
  await run('credit', 'ada', '7');
  await run('set', key, '--limit', '3');
  await run('suspend', 'ada');
  await run('suspend', 'ada');
  await run('resume', 'ada');
  await run('revoke', key);
  await run('revoke', key);
  await run('credit', 'nobody', '7');
  const store = new SqliteAdministration(dataDir, limits);
  t.teardown(() => store.close());
  const acts = await store.read(async (view) => view.listActs(null, 100));
  const prefix = key.slice(0, 13);
  t.strictSame(
    acts.map(({ actor, action, subject, details }) => [actor, action, subject, details]).reverse(),
    [
      ['account.create', 'ada', '5 credits'],
      ['key.create', prefix, 'account "ada"; name "till"'],
      ['account.credit', 'ada', '7 credits'],
      ['key.change', prefix, 'account "ada"; limit 3'],
      ['account.suspend', 'ada', ''],
      ['account.resume', 'ada', ''],
      ['key.revoke', prefix, 'account "ada"'],
    ].map((act) => ['command line', ...act]),
  );
});
