/** The console when the store or a voice pack fails: it says what is wrong, and nothing is half done. */
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t from 'tap';
import { readConfig, ConfigError } from '../../src/config.js';
import type { VoicesView } from '../../src/console/contract.js';
import { storePath } from '../../src/store/sqlite/database.js';
import { ConsoleClient, Refused } from '../support/console-client.js';
import { packageRoot } from '../support/package-root.js';
import { failsToStart, holdPort, SCRIPTED, spawnService, startService, until } from '../support/service.js';

const small = { SYNTHESIS_THREADS: '1', CONSOLE_PORT: '0' };

t.test('a store that another program has locked', async (t) => {
  const service = await startService(t, small, SCRIPTED);
  const operator = await ConsoleClient.claim(service);
  const before = await operator.call('accounts', {});
  const lock = new DatabaseSync(storePath(service.dataDir));
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

t.test('voices: a damaged pack is named, and the others go on', async (t) => {
  const models = join(t.testdir(), 'models');
  cpSync(join(packageRoot, 'models'), models, { recursive: true });
  const service = await startService(t, { ...small, MODELS_DIR: models });
  const operator = await ConsoleClient.claim(service);
  const before = await operator.call('voices', {});
  t.match(before.packs, [{ name: 'syrinx-en', loaded: true, message: null, bytes: Number }]);
  t.match(before.packs[0]?.voices[0], {
    ...{ id: 'wren', pack: 'syrinx-en', language: 'en', sampleRateHz: 24_000 },
    description: /\w/,
    licence: /Apache-2\.0/,
  });
  t.match(before.reload, { running: false, message: null, atMs: null });
  /** @param message of the log at its end */
  const reload = async (message: string): Promise<VoicesView> => {
    const begun = await operator.call('reloadVoices', {});
    t.ok(begun.reload.running);
    await service.untilLogged(message);
    return operator.call('voices', {});
  };
  mkdirSync(join(models, 'broken'));
  const failed = await reload(
    'the voices were not reloaded, the current ones go on: fix the fault, then SIGHUP again',
  );
  t.match(failed.packs, [
    { name: 'syrinx-en', loaded: true, message: null },
    { name: 'broken', loaded: false, message: /broken\/manifest\.json: the file is missing$/, voices: [] },
  ]);
  t.match(failed.reload, { message: /broken\/manifest\.json/, atMs: Number });
  t.equal(failed.generation, 1);
  rmSync(join(models, 'broken'), { recursive: true });
  const mended = await reload('voices reloaded');
  t.match(mended, {
    generation: 2,
    packs: [{ name: 'syrinx-en', loaded: true, message: null }],
    reload: { message: null },
  });
  t.equal(mended.packs.length, 1);
  const audit = await operator.call('audit', { beforeId: null });
  t.equal(audit.filter(({ action }) => action === 'voices.reload').length, 2);
});

t.test('a port that is taken ends the start with what to do', async (t) => {
  const { port, release } = await holdPort();
  t.teardown(release);
  const service = spawnService(t, { ...small, CONSOLE_PORT: String(port) }, SCRIPTED);
  await failsToStart(t, service, `cannot listen on 127.0.0.1:${port}`, 'CONSOLE_PORT');
});

t.test('the configuration of the console', (t) => {
  const of = (env: Record<string, string>) => readConfig(env).console;
  t.same(of({}), { host: '127.0.0.1', port: 8081, origin: null, isGiven: false });
  for (const off of ['off', 'OFF', ' off ']) t.equal(of({ CONSOLE_PORT: off }), null);
  t.same(of({ CONSOLE_HOST: '::', CONSOLE_PORT: '0', CONSOLE_ORIGIN: 'HTTPS://Console.Example:443' }), {
    ...{ host: '::', port: 0, isGiven: true },
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
