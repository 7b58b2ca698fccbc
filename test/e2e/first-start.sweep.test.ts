/**
 * What an operator meets at the start: each fault is one line that names its cause, and exit code 1. Rarer ones are in
 * boot.slow.test.ts.
 */
import { readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { threadNames } from '../../src/thread-name.js';
import { failsToStart, SCRIPTED, spawnService, startService } from '../support/service.js';

const folder = t.testdir({});
const oneThread = { SYNTHESIS_THREADS: '1', ACTOR_THREADS: '1' };

// Three at a time: most of a start is waiting for threads and the disk.
t.jobs = 3;

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

void t.test('the first start makes one key, for its owner alone; the next start makes none', async (t) => {
  const dataDir = join(folder, 'kept');
  const first = await startService(t, { DATA_DIR: dataDir, CONSOLE_PORT: '0' }, SCRIPTED);
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
