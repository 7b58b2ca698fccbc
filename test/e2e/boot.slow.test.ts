/** Rarer faults at the start, and starts with the real engine. */
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { readConfig } from '../../src/config.js';
import { packageRoot } from '../support/package-root.js';
import {
  failsToStart,
  freePort,
  prose,
  recordsOf,
  SCRIPTED,
  spawnService,
  speech,
  startService,
  until,
} from '../support/service.js';
import { missingTool } from '../support/tools.js';
import { readiness } from './readiness.js';

const folder = t.testdir({});
const oneThread = { SYNTHESIS_THREADS: '1', ACTOR_THREADS: '1' };

// Three at a time: most of a start is waiting for threads and the disk.
t.jobs = 3;

void t.test('a pack that cannot be used ends the start: the line has the path of the file', async (t) => {
  const models = join(folder, 'models');
  cpSync(join(packageRoot, 'models'), models, { recursive: true });
  const path = join(models, 'syrinx-en', 'manifest.json');
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as object;
  writeFileSync(path, JSON.stringify({ ...manifest, speakers: [] }));
  await failsToStart(t, spawnService(t, { ...oneThread, MODELS_DIR: models }), path);
});

void t.test(
  'few open files leave few connections; with too few the service does not start',
  { skip: missingTool('prlimit') },
  async (t) => {
    const spawn = (files: number) =>
      spawnService(t, oneThread, SCRIPTED, ['prlimit', `--nofile=${files}:${files}`]);
    const few = spawn(400);
    await few.listening();
    const { files, connectionsMax } = few.logged('worst case')[0] as unknown as Record<string, number>;
    t.ok(files! <= 400, `${files} files`);
    t.ok(connectionsMax! >= 64 && connectionsMax! < 400, `${connectionsMax} connections`);
    t.match(await few.stop(), { code: 0 });
    await failsToStart(t, spawn(100), 'may open 100: raise the limit');
  },
);

void t.test('the ops listener says that voices load, and then that the service is ready', async (t) => {
  const opsPort = await freePort();
  const home = join(folder, 'home');
  const service = spawnService(t, { ...oneThread, OPS_PORT: String(opsPort), HOME: home });
  const answers = new Set<string | null>();
  await until(async () => answers.add(await readiness(opsPort)).has('200 | ready'), 120_000);
  answers.delete(null);
  t.strictSame([...answers], ['503 | not ready | voices are loading', '200 | ready']);
  await service.listening();
  t.equal(service.opsPort, opsPort, 'the log has the port');
  t.equal(await readiness(service.port), '200 | ready', 'the other listener agrees');
  t.match(await service.stop(), { code: 0 });
  t.notOk(existsSync(home), 'onnxruntime reports nothing: it would put its identity and its outbox there');
});

void t.test('without the folder of voices the start fails, and names it', async (t) => {
  const missing = join(folder, 'nowhere');
  await failsToStart(t, spawnService(t, { ...oneThread, MODELS_DIR: missing }), missing);
});

void t.test('a variable with a wrong value: the line says what to change', (t) => {
  for (const env of [{ SOCKETS_PER_KEY: '0' }, { PACKS_LOADED_MAX: '1' }, { SOCKETS_MAX: 'many' }])
    t.throws(() => readConfig(env), { message: `${Object.keys(env)[0]} must be a whole number` });
  for (const password of ['12#rest', '12/rest', '12?rest', 'two#words'])
    t.throws(() => readConfig({ STORE_URL: `postgres://u:${password}@host/db` }), {
      // The error must not show it.
      message: /^STORE_URL (?!.*(?:rest|words))/,
    });
  const url = 'postgres://u:12%23rest@host/db?host=/run/postgresql';
  t.equal(readConfig({ STORE_URL: url }).storeUrl, url);
  t.end();
});

void t.test('a service with a full disk behind standard error', async (t) => {
  const limits = { MEMORY_MAX_MIB: '900', CONTEXTS_MAX: '50' };
  const launcher = ['sh', '-c', 'exec "$@" 2>/dev/full', 'sh'];
  const service = await startService(t, { ...oneThread, ...limits }, SCRIPTED, launcher);

  await t.test('the worst case is one entry of the log, in MiB, and the sum of its parts', (t) => {
    const [entry] = service.logged('worst case');
    t.match(entry, { memoryMaxMiB: 900, contextsMax: 50, level: 30 });
    const { total = 0, ...parts } = entry?.['mib'] as Record<string, number>;
    const sum = Object.values(parts).reduce((all, part) => all + part, 0);
    t.ok(Math.abs(sum - total) <= Object.keys(parts).length, `${sum} of ${total}`);
    t.ok(total <= 900);
    t.ok((entry?.['poolsFactor'] as number) < 1);
    t.end();
  });

  await t.test('its port ends the start of another syrinx, and it continues to serve', async (t) => {
    const second = spawnService(t, { ...oneThread, PORT: String(service.port) }, SCRIPTED);
    await failsToStart(t, second, `127.0.0.1:${service.port}`, 'in use');
    t.equal((await service.get('/healthz', {})).status, 200);
  });

  await t.test('what it cannot write there does not end it', async (t) => {
    for (const text of ['This is !warn and more.', 'Two.', 'Three.']) {
      const answer = await service.post('/v1/tts', { text, voice: 'wren' });
      t.equal(answer.status, 200);
      await answer.arrayBuffer();
    }
    t.equal(service.exit, null);
  });

  await t.test('the ops listener answers until the end of a drain', async (t) => {
    const records = recordsOf(await service.post('/v1/tts/stream', speech(prose(20))));
    await records.next();
    service.signal('SIGTERM');
    t.ok(await until(async () => (await readiness(service.opsPort)) === '503 | not ready | draining'));
    t.equal((await fetch(`${service.opsUrl}/metrics`)).status, 200);
    for await (const _ of records);
    t.match(await service.exited, { code: 0 });
    t.equal(await readiness(service.opsPort), null);
  });
});
