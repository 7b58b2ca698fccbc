/** Rarer faults at the start, and starts with the real engine. */
import {
  appendFileSync,
  cpSync,
  existsSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { partOfToday, seedOfRun } from '../fuzz/check.js';
import { packageRoot } from '../support/package-root.js';
import {
  failsToStart,
  freePort,
  holdPort,
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

const flipByte = (path: string): void => {
  const bytes = readFileSync(path);
  const middle = bytes.length >> 1;
  bytes[middle] = (bytes[middle] ?? 0) ^ 0x10;
  writeFileSync(path, bytes);
};

const withoutSpeakers = (path: string): void => {
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as { speakers: unknown };
  writeFileSync(path, JSON.stringify({ ...manifest, speakers: [] }));
};

const damages = [
  ['a missing model file', 'frames.onnx', rmSync],
  ['a damaged model file', 'encoder.onnx', flipByte],
  ['a truncated model file', 'decoder.onnx', (path: string) => truncateSync(path, 1_000)],
  ['a missing manifest', 'manifest.json', rmSync],
  ['a manifest that is no JSON', 'manifest.json', (path: string) => appendFileSync(path, '}')],
  ['a manifest without speakers', 'manifest.json', withoutSpeakers],
] as const;
t.comment(`seed ${seedOfRun()}`);
for (const [fault, file, damage] of partOfToday(damages, 2))
  void t.test(`${fault}: the line has the path of the file`, async (t) => {
    const models = join(folder, fault.replaceAll(' ', '-'));
    cpSync(join(packageRoot, 'models'), models, { recursive: true });
    const path = join(models, 'syrinx-en', file);
    damage(path);
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

void t.test('onnxruntime reports nothing: it keeps no identity and no outbox', async (t) => {
  const home = join(folder, 'home');
  const service = await startService(t, { ...oneThread, HOME: home });
  t.equal((await service.get('/readyz', {})).status, 200, 'the models are loaded');
  t.match(await service.stop(), { code: 0 });
  t.notOk(existsSync(home), 'it would put them there');
});

void t.test('the ops listener says that voices load, and then that the service is ready', async (t) => {
  const opsPort = await freePort();
  const service = spawnService(t, { ...oneThread, OPS_PORT: String(opsPort) });
  const answers = new Set<string | null>();
  await until(async () => answers.add(await readiness(opsPort)).has('200 | ready'), 120_000);
  answers.delete(null);
  t.strictSame([...answers], ['503 | not ready | voices are loading', '200 | ready']);
  await service.listening();
  t.equal(service.opsPort, opsPort, 'the log has the port');
  t.equal(await readiness(service.port), '200 | ready', 'the other listener agrees');
});

void t.test('without the folder of voices the start fails, and names it', async (t) => {
  const missing = join(folder, 'nowhere');
  await failsToStart(t, spawnService(t, { ...oneThread, MODELS_DIR: missing }), missing);
});

void t.test('a port of another syrinx ends the start, and the other continues to serve', async (t) => {
  const first = await startService(t, oneThread, SCRIPTED);
  const second = spawnService(t, { ...oneThread, PORT: String(first.port) }, SCRIPTED);
  await failsToStart(t, second, 'in use');
  t.equal((await first.get('/healthz', {})).status, 200);
});

for (const [env, reason] of [
  [{ SOCKETS_PER_KEY: '0' }, 'SOCKETS_PER_KEY must be a whole number'],
  [{ PACKS_LOADED_MAX: '1' }, 'PACKS_LOADED_MAX must be a whole number'],
  [{ SOCKETS_MAX: 'many' }, 'SOCKETS_MAX must be a whole number'],
  [{ MEMORY_MAX_MIB: '1000000' }, 'but this machine'],
  [{ CONTEXTS_MAX: '1000000' }, 'lower CONTEXTS_MAX'],
] as const)
  void t.test(`${JSON.stringify(env)}: the line says what to change`, (t) =>
    failsToStart(t, spawnService(t, { ...oneThread, ...env }), reason),
  );

void t.test('a port of the ops listener in use: the line has its variable', async (t) => {
  const { port, release } = await holdPort();
  t.teardown(release);
  await failsToStart(
    t,
    spawnService(t, { ...oneThread, OPS_PORT: String(port) }, SCRIPTED),
    /^syrinx: cannot listen on 127\.0\.0\.1:\d+: the port is in use.* set OPS_PORT to .*\n$/,
  );
});

void t.test('the worst case is one entry of the log, in MiB, and the sum of its parts', async (t) => {
  const limits = { MEMORY_MAX_MIB: '900', CONTEXTS_MAX: '50' };
  const service = await startService(t, { ...oneThread, ...limits }, SCRIPTED);
  const [entry] = service.logged('worst case');
  t.match(entry, { memoryMaxMiB: 900, contextsMax: 50, level: 30 });
  const { total = 0, ...parts } = entry?.['mib'] as Record<string, number>;
  const sum = Object.values(parts).reduce((all, part) => all + part, 0);
  t.ok(Math.abs(sum - total) <= Object.keys(parts).length, `${sum} of ${total}`);
  t.ok(total <= 900);
  t.ok((entry?.['poolsFactor'] as number) < 1);
  t.match(await service.stop(), { code: 0 });
});

void t.test('a full disk behind standard error does not end the service', async (t) => {
  const launcher = ['sh', '-c', 'exec "$@" 2>/dev/full', 'sh'];
  const service = await startService(t, oneThread, SCRIPTED, launcher);
  for (const text of ['This is !warn and more.', 'Two.', 'Three.']) {
    const answer = await service.post('/v1/tts', { text, voice: 'wren' });
    t.equal(answer.status, 200);
    await answer.arrayBuffer();
  }
  t.equal(service.exit, null);
});

void t.test('the ops listener answers until the end of a drain', async (t) => {
  const service = await startService(t, oneThread, SCRIPTED);
  const records = recordsOf(await service.post('/v1/tts/stream', speech(prose(20))));
  await records.next();
  service.signal('SIGTERM');
  t.ok(await until(async () => (await readiness(service.opsPort)) === '503 | not ready | draining'));
  t.equal((await fetch(`${service.opsUrl}/metrics`)).status, 200);
  for await (const _ of records);
  t.match(await service.exited, { code: 0 });
  t.equal(await readiness(service.opsPort), null);
});
