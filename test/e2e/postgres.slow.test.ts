/** Commands, copies and the service on a PostgreSQL store. */
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { limits } from '../../src/limits.js';
import { openExisting } from '../../src/store/sqlite/database.js';
import { sqliteStore } from '../../src/store/sqlite/driver.js';
import { prepareAppendBatch } from '../../src/store/sqlite/writer.js';
import { consoleProgram } from '../../scripts/console.js';
import { keys as keysProgram } from '../../scripts/keys.js';
import { createKeys } from '../../scripts/operator.js';
import { seededRandom } from '../../scripts/rig/random.js';
import { store as storeProgram } from '../../scripts/store.js';
import { usageReport } from '../../scripts/usage.js';
import { HOUR_MS, randomEntries } from '../store/random-entries.js';
import { memoryFolder } from '../store/support.js';
import { hasPostgres, startPostgres } from '../support/postgres.js';
import { ConsoleClient } from '../support/console-client.js';
import { runner } from '../support/run-command.js';
import { SCRIPTED, startService, until } from '../support/service.js';
import { openNative } from '../support/socket-client.js';
import { listen, proseOf } from '../support/speech-oracle.js';

/** A SQLite store with three keys, users, a link, acts, and entries of 40 hours. */
const fillStore = async (dataDir: string): Promise<void> => {
  await createKeys(dataDir, [
    ['ada', 1_000_000],
    ['bell', null],
    ['ada', null],
  ]);
  const database = openExisting(dataDir, limits);
  const startMs = 1_760_000_000_000;
  prepareAppendBatch(database)(
    randomEntries({ random: seededRandom(5), count: 2_500, writer: 7, startMs, spanMs: 40 * HOUR_MS }),
  );
  database.close();
  const store = await sqliteStore(dataDir, limits).administer(false);
  await store.transact(async (transaction) => {
    const user = { name: 'Root', handle: 'root', role: 'operator', accountId: null, password: 'p' } as const;
    const userId = await transaction.addUser(user, 1_000);
    const member = { name: 'Mia', handle: 'mia', role: 'member', accountId: 1, password: 'q' } as const;
    await transaction.removeUser(await transaction.addUser(member, 2_000));
    await transaction.addSession('session', userId, 3_000);
    await transaction.addLink('link', { kind: 'invitation', accountId: 2, expiresAtMs: 4_000 });
    await transaction.revokeKey(3, 5_000);
    await transaction.setSuspended(2, 6_000);
    const speaking = { normalizeText: false, speed: 1.1, lexiconId: 'trains' };
    await transaction.setSpeaking(1, speaking);
    const plain = { name: 'till', expiresAtMs: null, creditLimit: 5, voices: null };
    await transaction.setKey(1, {
      ...{ ...plain, ...speaking, normalizeText: true },
      byOperator: ['creditLimit'],
    });
  });
  await store.close();
};

if (hasPostgres()) {
  const server = await startPostgres();
  t.teardown(() => server.stop());

  t.test('keys, usage and console work on the database of STORE_URL', async (t) => {
    const { url } = await server.database();
    const env = { STORE_URL: url };
    const nowhere = join(memoryFolder(t), 'unused');
    const keys = runner(keysProgram, nowhere, env);
    t.match(await keys('list'), { status: 1, stderr: /^There is no store in postgres:.*\n$/ });
    const made = await keys('create', '--account', 'ada', '--credits', '500');
    t.match(made, { status: 0, stdout: /^svc_sk_/ });
    t.match(await keys('credit', made.stdout.trim(), '5'), { status: 0, stdout: /has 505 credits/ });
    t.match(await keys('list'), { status: 0, stdout: /ada/ });
    t.match(await runner(usageReport, nowhere, env)('--json'), { status: 0, stdout: /"balance": 505/ });
    t.match(await runner(consoleProgram, nowhere, env)('link'), { status: 0, stdout: /\/claim#/ });
    const store = runner(storeProgram, nowhere, env);
    t.match(await store('verify'), { status: 0, stdout: /^postgres:.* is good\n$/ });
    for (const command of ['backup', 'restore'])
      t.match(await store(command, 'file'), { status: 1, stderr: /pg_dump/ });
  });

  const usageOf = async (dataDir: string, env: NodeJS.ProcessEnv = {}): Promise<string> =>
    (await runner(usageReport, dataDir, env)('--json')).stdout;

  t.test('a store is copied to PostgreSQL and back, with each row, and goes on there', async (t) => {
    const folder = memoryFolder(t);
    const [from, back] = [join(folder, 'from'), join(folder, 'back')];
    await fillStore(from);
    const { name, url } = await server.database();
    const store = runner(storeProgram, folder);
    const counts = '2 accounts, 3 keys, 2501 entries, each row compared';
    t.match(await store('copy', from, url), {
      status: 0,
      stdout: new RegExp(`is a copy of .*: ${counts}\n`),
    });
    t.match(await store('copy', url, back), {
      status: 0,
      stdout: new RegExp(`is a copy of .*: ${counts}\n`),
    });
    t.equal(await usageOf(back), await usageOf(from));
    t.equal(await usageOf(folder, { STORE_URL: url }), await usageOf(from));
    for (const place of [url, back])
      t.match(await store('copy', from, place), { status: 1, stderr: /is not empty: copy into a new store/ });
    for (const env of [{ STORE_URL: url }, {}]) {
      const made = await runner(keysProgram, back, env)('create', '--account', 'new');
      t.match(made, { status: 0 }, 'new rows have ids of their own');
    }
    t.match(
      await server.execute(name, `SELECT nextval('syrinx.users_id_seq')::int AS next`),
      [{ next: 3 }],
      'no user gets the id of a user who was removed',
    );
  });

  t.test('a damaged store, and one in use, are not copied', async (t) => {
    const folder = memoryFolder(t);
    const from = join(folder, 'from');
    await fillStore(from);
    const store = runner(storeProgram, folder);
    const { url } = await server.database();
    const reader = await sqliteStore(from, limits).openReader(1);
    t.match(await store('copy', from, url), { status: 1, stderr: /is in use: a service or another command/ });
    await reader.close();
    const damaged = join(folder, 'damaged');
    cpSync(from, damaged, { recursive: true });
    const database = openExisting(damaged, limits);
    database.exec('UPDATE accounts SET balance = 3 WHERE id = 1');
    database.close();
    t.match(await store('copy', damaged, url), { status: 1, stderr: /is damaged .*nothing was copied/ });
    t.match(await store('copy', join(folder, 'none'), url), { status: 1, stderr: /There is no store at/ });
  });

  t.test('a service', async (t) => {
    const { url } = await server.database();
    const service = await startService(t, { STORE_URL: url, CONSOLE_PORT: '0' }, SCRIPTED);
    const keys = runner(keysProgram, service.dataDir, { STORE_URL: url });

    const statusOf = async (key: string): Promise<number> =>
      (await service.get('/v1/tts/speakers', { 'x-api-key': key })).status;

    await t.test(
      'a key that the console has made speaks at once, and so does the playground of a new account',
      async (t) => {
        const olga = await ConsoleClient.claim(service);
        for (let index = 0; index < 5; index++) {
          const { accountId } = await olga.call('createAccount', { name: `account ${index}`, credits: 100 });
          const first = await olga.post(`/api/v1/tts?accountId=${accountId}`, { text: 'a', voice: 'wren' });
          t.equal(first.status, 200);
          const { key } = await olga.call('createKey', { accountId, properties: {} });
          t.equal(await statusOf(key), 200);
        }
      },
    );

    await t.test('the service speaks, charges, and closes the socket of a revoked key', async (t) => {
      const key = (await keys('create', '--account', 'ada', '--credits', '100')).stdout.trim();
      t.ok(await until(async () => (await statusOf(key)) === 200));
      const text = 'a'.repeat(60);
      const heard = await listen(service.port, { path: '/v1/tts', key, text });
      t.match(heard, { status: 200, complete: true, letters: 60 });
      const refused = await listen(service.port, { path: '/v1/tts', key, text: text.slice(0, 41) });
      t.equal(refused.status, 402, 'what was spent counts at once');
      const store = runner(storeProgram, service.dataDir, { STORE_URL: url });
      t.match(await store('copy', url, join(service.dataDir, 'copy')), {
        status: 1,
        stderr: /a service has it open/,
      });
      const socket = await openNative(service.port, key);
      await keys('revoke', key);
      const revokedAtMs = performance.now();
      t.match(await socket.closing(), { code: 1008 });
      const closedMs = performance.now() - revokedAtMs;
      t.ok(closedMs < 10_000, `closed after ${Math.round(closedMs)} ms`);
      t.equal(await statusOf(key), 401);
      const report = () => usageOf(service.dataDir, { STORE_URL: url });
      t.ok(await until(async () => /"credits": 60/.test(await report())));
    });

    await t.test(
      'while the database is away speech goes on, new speech gets 503, and nothing is lost',
      async (t) => {
        const key = (await keys('create', '--account', 'bell', '--credits', '5000')).stdout.trim();
        t.ok(await until(async () => (await statusOf(key)) === 200));
        const text = proseOf(1_500);
        const speaking = listen(service.port, { path: '/v1/tts/stream', key, text });
        t.ok(await until(async () => (await service.openContexts()) > 0), 'it speaks');
        await server.signal('SIGKILL');
        t.ok(await until(async () => (await statusOf(key)) === 503));
        t.match(await speaking, { status: 200, complete: true, letters: text.length });
        await server.run();
        t.ok(await until(async () => (await statusOf(key)) === 200));
        t.equal((await service.stop()).code, 0);
        t.match(
          await usageOf(service.dataDir, { STORE_URL: url }),
          new RegExp(`"balance": ${5_000 - text.length}`),
        );
      },
    );
  });
}
