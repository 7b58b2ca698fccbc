/** What an operator meets at the start: each fault is one line that says what is wrong, and exit code 1. */
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { threadNames } from '../../src/thread-name.js';
import { packageRoot } from '../support/package-root.js';
import { spawnService, startService } from '../support/service.js';

const folder = mkdtempSync(join(tmpdir(), 'syrinx-boot-'));
t.teardown(() => rmSync(folder, { recursive: true, force: true }));

const oneThread = { SYNTHESIS_THREADS: '1' };

const oneLine = (stderr: string) => stderr.trimEnd().split('\n').length === 1;

const copyOfModels = (name: string): string => {
  const copy = join(folder, name);
  cpSync(join(packageRoot, 'models'), copy, { recursive: true });
  return join(copy, 'syrinx-en');
};

const flipByte = (path: string): void => {
  const bytes = readFileSync(path);
  const middle = bytes.length >> 1;
  bytes[middle] = (bytes[middle] ?? 0) ^ 0x10;
  writeFileSync(path, bytes);
};

const modelFaults: Record<string, { file: string; damage: (path: string) => void }> = {
  'a missing model file': { file: 'frames.onnx', damage: (path) => rmSync(path) },
  'a damaged model file': { file: 'encoder.onnx', damage: flipByte },
  'a truncated model file': { file: 'decoder.onnx', damage: (path) => truncateSync(path, 1_000) },
  'a missing manifest': { file: 'manifest.json', damage: (path) => rmSync(path) },
  'a manifest that is no JSON': { file: 'manifest.json', damage: (path) => appendFileSync(path, '}') },
  'a manifest without speakers': {
    file: 'manifest.json',
    damage: (path) => {
      const manifest = JSON.parse(readFileSync(path, 'utf8')) as { speakers: unknown };
      writeFileSync(path, JSON.stringify({ ...manifest, speakers: [] }));
    },
  },
};

for (const [what, { file, damage }] of Object.entries(modelFaults))
  t.test(`${what} is named in one line, and the service does not start`, async (t) => {
    const pack = copyOfModels(what.replaceAll(' ', '-'));
    damage(join(pack, file));
    const service = spawnService(t, { ...oneThread, MODELS_DIR: join(pack, '..') });
    t.match(await service.exited, { code: 1 });
    t.ok(oneLine(service.stderr), service.stderr);
    t.ok(service.stderr.includes(join(pack, file)), 'the line has the path of the file');
  });

t.test('a folder without voices', async (t) => {
  const service = spawnService(t, { MODELS_DIR: join(folder, 'nowhere') });
  t.match(await service.exited, { code: 1 });
  t.ok(oneLine(service.stderr), service.stderr);
  t.ok(service.stderr.includes(join(folder, 'nowhere')));
});

t.test('a port in use', async (t) => {
  const holder = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => holder.once('listening', resolve));
  t.teardown(() => holder.close());
  const port = (holder.address() as { port: number }).port;
  const service = spawnService(t, { ...oneThread, PORT: String(port) });
  t.match(await service.exited, { code: 1 });
  t.ok(oneLine(service.stderr), service.stderr);
  t.match(service.stderr, `127.0.0.1:${port}`);
  t.match(service.stderr, 'in use');
});

t.test('a port in use by another syrinx', async (t) => {
  const first = await startService(t, oneThread);
  const second = spawnService(t, { ...oneThread, PORT: String(first.port) });
  t.match(await second.exited, { code: 1 });
  t.match(second.stderr, 'in use');
  t.equal((await first.get('/healthz', {})).status, 200, 'the first one serves on');
});

t.test('a data folder that cannot be written', async (t) => {
  const file = join(folder, 'a-file');
  writeFileSync(file, '');
  const service = spawnService(t, { DATA_DIR: join(file, 'data') });
  t.match(await service.exited, { code: 1 });
  t.ok(oneLine(service.stderr), service.stderr);
  t.ok(service.stderr.includes(join(file, 'data')));
});

t.test('a variable that cannot be used', async (t) => {
  const service = spawnService(t, { SYNTHESIS_THREADS: 'many' });
  t.match(await service.exited, { code: 1 });
  t.ok(oneLine(service.stderr), service.stderr);
  t.match(service.stderr, 'SYNTHESIS_THREADS');
});

t.test('the first start makes one key, for its owner alone; the next start makes none', async (t) => {
  const dataDir = join(folder, 'kept');
  const first = await startService(t, { DATA_DIR: dataDir });
  const { key } = first;
  t.match(key, /^svc_sk_\w{32,}$/);
  t.equal(statSync(join(dataDir, 'first-key')).mode & 0o777, 0o600);
  t.notOk(first.stdout.includes(key), 'it is not in the log');
  await t.test('its threads have names', { skip: process.platform !== 'linux' }, (t) => {
    const folder = `/proc/${first.pid}/task`;
    const names = readdirSync(folder).map((id) => readFileSync(`${folder}/${id}/comm`, 'utf8').trim());
    for (const name of Object.values(threadNames)) t.ok(names.includes(name), name);
    t.end();
  });
  t.match(await first.stop(), { code: 0 });
  rmSync(join(dataDir, 'first-key'));
  const second = await startService(t, { ...oneThread, DATA_DIR: dataDir });
  t.equal((await second.get('/v1/tts/speakers', { 'x-api-key': key })).status, 200, 'the key still works');
  t.throws(() => second.key, 'no other was made');
  t.equal(second.stderr, '', 'no warnings');
});

t.test('nothing is reported to anyone: onnxruntime keeps no identity and no outbox', async (t) => {
  const home = join(folder, 'home');
  const service = await startService(t, { ...oneThread, HOME: home });
  t.equal((await service.get('/readyz', {})).status, 200, 'the models are loaded');
  t.match(await service.stop(), { code: 0 });
  t.notOk(existsSync(home), 'where it would put them');
});
