/**
 * What an operator meets at the start: each fault is one line that names its cause, and exit code 1. Rarer ones are in
 * boot.slow.test.ts.
 */
import { readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { threadNames } from '../../src/thread-name.js';
import {
  failsToStart,
  holdPort,
  prose,
  recordsOf,
  SCRIPTED,
  spawnService,
  speech,
  startService,
  until,
} from '../support/service.js';
import { readiness } from './readiness.js';

const folder = t.testdir({});
const oneThread = { SYNTHESIS_THREADS: '1', ACTOR_THREADS: '1' };

// Three at a time: most of a start is waiting for threads and the disk.
t.jobs = 3;

void t.test('a port in use: the line has the address, and for the ops listener its variable', async (t) => {
  const { port, release } = await holdPort();
  t.teardown(release);
  await failsToStart(
    t,
    spawnService(t, { ...oneThread, PORT: String(port) }, SCRIPTED),
    `127.0.0.1:${port}`,
    'in use',
  );
  await failsToStart(
    t,
    spawnService(t, { ...oneThread, OPS_PORT: String(port) }, SCRIPTED),
    /^syrinx: cannot listen on 127\.0\.0\.1:\d+: the port is in use.* set OPS_PORT to .*\n$/,
  );
});

void t.test('a data folder that cannot be written', async (t) => {
  const file = join(folder, 'a-file');
  writeFileSync(file, '');
  const dataDir = join(file, 'data');
  await failsToStart(t, spawnService(t, { ...oneThread, DATA_DIR: dataDir }, SCRIPTED), dataDir);
});

for (const [env, reason] of [
  [{ SYNTHESIS_THREADS: 'many' }, 'SYNTHESIS_THREADS'],
  [{ MEMORY_MAX_MIB: '128' }, 'MEMORY_MAX_MIB allows 128 MiB'],
] as const)
  void t.test(`${JSON.stringify(env)}: the line says what to change`, (t) =>
    failsToStart(t, spawnService(t, { ...oneThread, ...env }), reason),
  );

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

void t.test('the first start makes one key, for its owner alone; the next start makes none', async (t) => {
  const dataDir = join(folder, 'kept');
  const first = await startService(t, { DATA_DIR: dataDir, CONSOLE_PORT: '0' });
  const { key } = first;
  t.match(key, /^svc_sk_\w{32,}$/);
  t.equal(statSync(join(dataDir, 'first-key')).mode & 0o777, 0o600);
  t.notOk(first.stdout.includes(key), 'it is not in the log');
  await t.test('its threads have names', { skip: process.platform !== 'linux' }, (t) => {
    const tasks = `/proc/${first.pid}/task`;
    const names = readdirSync(tasks).map((id) => readFileSync(`${tasks}/${id}/comm`, 'utf8').trim());
    for (const name of Object.values(threadNames)) t.ok(names.includes(name), name);
    t.end();
  });
  t.match(await first.stop(), { code: 0 });
  rmSync(join(dataDir, 'first-key'));
  const second = await startService(t, { ...oneThread, DATA_DIR: dataDir }, SCRIPTED);
  t.equal((await second.get('/v1/tts/speakers', { 'x-api-key': key })).status, 200, 'the key still works');
  t.throws(() => second.key, 'there is no other');
  t.equal(second.stderr, '', 'no warnings');
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
