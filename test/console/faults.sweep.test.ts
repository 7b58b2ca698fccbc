/** The console when the store or a voice pack fails: it says what is wrong, and nothing is half done. */
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t from 'tap';
import { readConfig, ConfigError } from '../../src/config.js';
import type { VoicesView } from '../../src/console/contract.js';
import { storePath } from '../../src/store/sqlite/database.js';
import { ConsoleClient, PASSWORD, Refused } from '../support/console-client.js';
import { packageRoot } from '../support/package-root.js';
import { smallDisk } from '../support/small-disk.js';
import { missingTool } from '../support/tools.js';
import { failsToStart, holdPort, SCRIPTED, spawnService, startService, until } from '../support/service.js';

const small = { SYNTHESIS_THREADS: '1', CONSOLE_PORT: '0' };

// `null` if this user may not mount.
const disk = missingTool('mount') === false ? smallDisk(t) : null;
const env = disk === null ? small : { ...small, DATA_DIR: join(disk.path, 'data') };
const service = await startService(t, env, SCRIPTED);
const operator = await ConsoleClient.claim(service);

t.test('a change to a locked store gets 503, and nothing is half done', async (t) => {
  const before = await operator.call('accounts', {});
  const lock = new DatabaseSync(storePath(service.dataDir), { timeout: 10_000 });
  t.teardown(() => lock.isOpen && lock.close());
  lock.exec('BEGIN IMMEDIATE');
  const refused = await operator
    .call('createAccount', { name: 'late', credits: 10 })
    .catch((e: unknown) => e);
  t.ok(refused instanceof Refused);
  t.match(refused, { status: 503, refusal: { code: 'unavailable', message: /lock/ } });
  t.equal((await operator.ask('/')).status, 200, 'the page is there');
  t.equal((await fetch(`${service.url}/healthz`)).status, 200);
  lock.exec('ROLLBACK');
  lock.close();
  t.ok(await until(async () => (await operator.post('/api/accounts', {})).status === 200));
  t.same(await operator.call('accounts', {}), before, 'nothing is half done');
  await operator.call('createAccount', { name: 'late', credits: 10 });
});

t.test('changes on a full disk get 503, and none is half done', { skip: missingTool('mount') }, async (t) => {
  if (disk === null) {
    t.comment('this user may not mount: not tested');
    return;
  }
  const account = await operator.call('createAccount', { name: 'early', credits: 10 });
  const { accountId } = account;
  const { view: key } = await operator.call('createKey', { accountId, properties: { name: 'web' } });
  const stateOf = async () => ({
    accounts: await operator.call('accounts', {}),
    keys: await operator.call('keys', { accountId }),
    users: await operator.call('users', { accountId }),
    audit: await operator.call('audit', { beforeId: null }),
  });
  const before = await stateOf();
  disk.fill();
  const acts = {
    createAccount: () => operator.call('createAccount', { name: 'latest', credits: 10 }),
    credit: () => operator.call('credit', { accountId, credits: 5 }),
    createKey: () => operator.call('createKey', { accountId, properties: {} }),
    changeKey: () => operator.call('changeKey', { keyId: key.keyId, changes: { name: 'desk' } }),
    revokeKey: () => operator.call('revokeKey', { keyId: key.keyId }),
    suspend: () => operator.call('suspendAccount', { accountId, suspended: true }),
    invite: () => operator.call('invite', { accountId }),
    withdrawInvitations: () => operator.call('withdrawInvitations', { accountId }),
    deleteAccount: () => operator.call('deleteAccount', { accountId }),
    signIn: () => new ConsoleClient(service.consolePort).call('signIn', { name: 'olga', password: PASSWORD }),
  };
  for (const [name, act] of Object.entries(acts)) {
    const refused = await act().catch((error: unknown) => error);
    t.match(
      refused,
      { status: 503, refusal: { code: 'unavailable', message: /disk of the store is full/ } },
      name,
    );
  }
  t.same(await stateOf(), before, 'nothing is half done, and what there is can be read');
  disk.makeRoom();
  t.ok(
    await until(async () => (await operator.post('/api/credit', { accountId, credits: 5 })).status === 200),
  );
  t.match(await operator.call('account', { accountId }), { balance: 15, suspendedAtMs: null, keys: 1 });
});

t.test('voices: a damaged pack is named, and the others go on', async (t) => {
  const models = join(t.testdir(), 'models');
  cpSync(join(packageRoot, 'models'), models, { recursive: true });
  const service = await startService(t, { ...small, MODELS_DIR: models }, SCRIPTED);
  const operator = await ConsoleClient.claim(service);
  const before = await operator.call('voices', {});
  t.match(before.packs, [
    {
      ...{ name: 'syrinx-en', format: 'syrinx', loaded: true, message: null, bytes: Number },
      ...{ notes: [], trial: null },
    },
  ]);
  t.match(before.packs[0]?.voices[0], {
    ...{ id: 'wren', pack: 'syrinx-en', language: 'en', sampleRateHz: 24_000 },
    description: /\w/,
    licence: /Apache-2\.0/,
  });
  t.match(before.reload, { running: false, message: null, atMs: null });
  /** @param message of the log at its end; @param count how often it has come then */
  const reload = async (message: string, count = 1): Promise<VoicesView> => {
    // A reload that has begun is not refused for the size of its answer.
    t.strictSame(await operator.call('reloadVoices', {}), {});
    await service.untilLogged(message, count);
    return operator.call('voices', {});
  };
  mkdirSync(join(models, 'broken'));
  // A copy with one voice of another name.
  cpSync(join(models, 'syrinx-en'), join(models, 'garden'), { recursive: true });
  const copied = join(models, 'garden', 'manifest.json');
  const parsed = JSON.parse(readFileSync(copied, 'utf8')) as { speakers: { id: string }[] };
  writeFileSync(copied, JSON.stringify({ ...parsed, speakers: [{ ...parsed.speakers[0], id: 'robin' }] }));
  const partial = await reload('voices reloaded');
  t.match(partial, {
    generation: 2,
    packs: [
      { name: 'syrinx-en', loaded: true, message: null },
      { name: 'garden', loaded: true, trial: { realTimeFactor: Number, firstChunkMs: Number } },
      { name: 'broken', loaded: false, message: /broken: the folder is empty$/, voices: [] },
    ],
    reload: { message: null, atMs: Number },
  });
  for (const name of ['broken', 'garden']) rmSync(join(models, name), { recursive: true });
  const manifest = join(models, 'syrinx-en', 'manifest.json');
  renameSync(manifest, `${manifest}-`);
  const failed = await reload(
    'the voices were not reloaded, the current ones go on: fix the fault, then SIGHUP again',
  );
  t.match(failed, {
    generation: 2,
    packs: [{ name: 'syrinx-en', loaded: true, message: /manifest\.json: the file is missing$/ }],
    reload: { message: /manifest\.json: the file is missing$/, atMs: Number },
  });
  t.strictSame(
    failed.packs.map(({ name }) => name),
    ['syrinx-en', 'garden'],
    'a pack that speaks stays, though its folder is gone',
  );
  renameSync(`${manifest}-`, manifest);
  const mended = await reload('voices reloaded', 2);
  t.match(mended, {
    generation: 3,
    packs: [{ name: 'syrinx-en', loaded: true, message: null }],
    reload: { message: null },
  });
  t.equal(mended.packs.length, 1);
  const audit = await operator.call('audit', { beforeId: null });
  t.equal(audit.filter(({ action }) => action === 'voices.reload').length, 3);
});

t.test('a port that is taken ends the start with what to do', async (t) => {
  const { port, release } = await holdPort();
  t.teardown(release);
  const service = spawnService(t, { ...small, CONSOLE_PORT: String(port) }, SCRIPTED);
  await failsToStart(t, service, `cannot listen on 127.0.0.1:${port}`, 'CONSOLE_PORT');
});

t.test('the console takes its address from the configuration, and refuses what is no address', (t) => {
  const of = (env: Record<string, string>) => readConfig(env).console;
  t.same(of({}), { host: '127.0.0.1', port: 8081, origin: null, isGiven: false, webhookAllow: [] });
  for (const off of ['off', 'OFF', ' off ']) t.equal(of({ CONSOLE_PORT: off }), null);
  t.same(of({ CONSOLE_HOST: '::', CONSOLE_PORT: '0', CONSOLE_ORIGIN: 'HTTPS://Console.Example:443' }), {
    ...{ host: '::', port: 0, isGiven: true, webhookAllow: [] },
    origin: 'https://console.example',
  });
  for (const port of ['on', '-1', '65536', '80.5'])
    t.throws(
      () => of({ CONSOLE_PORT: port }),
      /^CONSOLE_PORT must be a whole number from 0 to 65535, or off, not/,
    );
  for (const origin of ['*', 'console.example', 'https://a.example, https://b.example', 'ftp://a.example'])
    t.throws(() => of({ CONSOLE_ORIGIN: origin }), ConfigError, origin);
  t.end();
});
