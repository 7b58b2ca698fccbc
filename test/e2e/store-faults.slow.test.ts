/**
 * The store becomes unusable while the service runs: the service admits nothing, `/readyz` says why, and the service
 * recovers without a restart. It charges the speech of that time when the store is back.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t, { type Test } from 'tap';
import { createKeys } from '../../scripts/operator.js';
import { limits } from '../../src/limits.js';
import { openExisting, storePath } from '../../src/store/sqlite/database.js';
import { balances, temporaryFolder } from '../store/support.js';
import { RawClient, requestBytes } from '../support/raw-client.js';
import { smallDisk } from '../support/small-disk.js';
import { SCRIPTED, startService, until, type TestService } from '../support/service.js';
import { listen, proseOf } from '../support/speech-oracle.js';
import { missingTool } from '../support/tools.js';

const start = (t: Test, dataDir: string) => startService(t, { DATA_DIR: dataDir }, SCRIPTED);

/** A key of a new account that has 100,000 credits. */
const keyOf = async (dataDir: string, account: string): Promise<string> =>
  (await createKeys(dataDir, [[account, 100_000]]))[0]!;

/** The reasons of `/readyz`; `null` while the service is ready. */
const reasonsOf = async (service: TestService): Promise<string | null> => {
  const response = await service.get('/readyz', {});
  const { reasons } = (await response.json()) as { reasons?: string[] };
  return response.status === 200 ? null : (reasons ?? []).join('; ');
};

const readyAgain = (service: TestService) => until(async () => (await reasonsOf(service)) === null);

const nothingIsAdmitted = async (t: Test, service: TestService, key: string) => {
  for (const path of ['/v1/tts', '/v1/tts/stream'] as const) {
    const refused = await service.post(path, { text: 'Yes.', voice: 'wren' }, { key });
    t.equal(refused.status, 503, path);
    t.same(await refused.json(), { error: 'Service unavailable' });
  }
  t.equal((await service.get('/healthz', {})).status, 200, 'the process is alive');
};

const speaks = async (t: Test, service: TestService, key: string, why: string) =>
  t.match(await listen(service.port, { path: '/v1/tts', key, text: 'Yes.' }), { status: 200 }, why);

/** A check of the store that began during the fault may end after it, and refuse once more. */
const recovers = async (t: Test, service: TestService, key: string) => {
  const speech = () => listen(service.port, { path: '/v1/tts', key, text: 'Yes.' });
  t.ok(await until(async () => (await speech()).status === 200), 'it recovers by itself');
};

const balanceBecomes = async (t: Test, dataDir: string, account: string, expected: number, why: string) => {
  const payer = () => balances(dataDir).find(({ name }) => name === account);
  await until(() => payer()?.balance === expected);
  t.match(payer(), { balance: expected, sum: expected }, why);
};

const dataDir = join(temporaryFolder(t), 'data');
await keyOf(dataDir, 'first');
const service = await start(t, dataDir);

void t.test('the store is locked by another process', async (t) => {
  const key = await keyOf(dataDir, 'locked');
  const text = proseOf(900);
  // During a request, whose charge then has to wait.
  const client = await RawClient.open(service.port);
  t.teardown(() => client.destroy());
  const body = JSON.stringify({ text: text, voice: 'wren', response_format: 'pcm' });
  client.send(requestBytes({ method: 'POST', path: '/v1/tts/stream', key, body }));
  await client.until(() => client.receivedBytes > 1_000);
  const holder = new DatabaseSync(storePath(dataDir), { timeout: 10_000 });
  const logged = service.entries.length;
  holder.exec('BEGIN EXCLUSIVE');
  const response = await client.response();
  t.ok(response.complete, 'an admitted request completes');
  t.ok(await until(async () => (await reasonsOf(service)) !== null), 'the service notices without a request');
  t.equal(await reasonsOf(service), 'the store is locked by another process');
  await nothingIsAdmitted(t, service, key);
  const errors = service.entries.slice(logged).filter(({ level }) => level === 50);
  t.equal(errors.length, 1, 'one log entry for all attempts');
  t.match(errors[0]?.['reason'], `The store ${storePath(dataDir)} is locked by another process`);
  holder.exec('ROLLBACK');
  holder.close();
  t.ok(await readyAgain(service));
  await recovers(t, service, key);
  await balanceBecomes(t, dataDir, 'locked', 99_996 - text.length, 'the request is charged, once');
});

void t.test('the store is moved away: a write to the unlinked file would be lost', async (t) => {
  const key = await keyOf(dataDir, 'moved');
  await speaks(t, service, key, 'before');
  await balanceBecomes(t, dataDir, 'moved', 99_996, 'charged');
  for (const [what, from] of [
    ['the file', storePath(dataDir)],
    ['its log', `${storePath(dataDir)}-wal`],
    ['its shared memory', `${storePath(dataDir)}-shm`],
    ['the folder', dataDir],
  ] as const) {
    const away = `${dataDir}-away`;
    renameSync(from, away);
    t.equal(await reasonsOf(service), 'the store is not where it was', `${what}: at once`);
    await nothingIsAdmitted(t, service, key);
    t.throws(() => statSync(from), 'no other is made in its place');
    renameSync(away, from);
    t.ok(await readyAgain(service), 'it is back');
    await recovers(t, service, key);
  }
  await balanceBecomes(t, dataDir, 'moved', 99_980, 'nothing is lost');
});

void t.test('the store is damaged: requests are refused, never answered with 500', async (t) => {
  const key = await keyOf(dataDir, 'damaged');
  const away = `${dataDir}-away`;
  renameSync(dataDir, away);
  mkdirSync(dataDir);
  writeFileSync(storePath(dataDir), 'no database at all, but a file with the name of one'.repeat(100));
  // A check between the two calls above found no file.
  const isDamaged = async () => (await reasonsOf(service)) === 'the store is damaged';
  t.ok(await until(isDamaged), 'the service says so');
  await nothingIsAdmitted(t, service, key);
  const speakers = await service.get('/v1/tts/speakers', { 'x-api-key': key });
  t.equal(speakers.status, 503);
  rmSync(dataDir, { recursive: true });
  renameSync(away, dataDir);
  t.ok(await readyAgain(service));
  await recovers(t, service, key);
});

/** Limits the size of the files that a running process may write. */
const limitFileSize = (service: TestService, bytes: number | 'unlimited') =>
  spawnSync('prlimit', ['--pid', String(service.pid), `--fsize=${bytes}:unlimited`]).status;

void t.test('the store is not writable any more', { skip: missingTool('prlimit') }, async (t) => {
  const key = await keyOf(dataDir, 'unwritable');
  if (limitFileSize(service, 1) !== 0) {
    t.comment('prlimit is not allowed here: not tested');
    return;
  }
  await speaks(t, service, key, 'only a write can detect it');
  t.ok(await until(async () => (await reasonsOf(service)) !== null));
  t.equal(await reasonsOf(service), 'the store cannot be written: see its permissions and its disk');
  await nothingIsAdmitted(t, service, key);
  t.equal(limitFileSize(service, 'unlimited'), 0);
  t.ok(await readyAgain(service));
  await recovers(t, service, key);
  await balanceBecomes(t, dataDir, 'unwritable', 99_992, 'both are charged, once');
});

void t.test('another store takes its place: a backup, or a new store', async (t) => {
  const key = await keyOf(dataDir, 'replaced');
  await speaks(t, service, key, 'before');
  await balanceBecomes(t, dataDir, 'replaced', 99_996, 'charged');
  const backup = join(dataDir, 'backup.sqlite');
  const source = new DatabaseSync(storePath(dataDir));
  source.exec(`VACUUM INTO '${backup}'`);
  source.close();
  await speaks(t, service, key, 'after the backup');
  await balanceBecomes(t, dataDir, 'replaced', 99_992, 'charged');
  rmSync(storePath(dataDir));
  t.equal(await reasonsOf(service), 'the store is not where it was');
  copyFileSync(backup, storePath(dataDir));
  t.match(await reasonsOf(service), 'another store is beside the write-ahead log of the one that was there');
  await nothingIsAdmitted(t, service, key);
  for (const suffix of ['-wal', '-shm']) rmSync(storePath(dataDir) + suffix);
  t.ok(await readyAgain(service), 'without that log the backup is used');
  // The balance of the backup. The last charge is written again if it was not yet acknowledged.
  const restored = balances(dataDir).find(({ name }) => name === 'replaced')?.balance ?? 0;
  t.ok(restored === 99_996 || restored === 99_992, `${restored}`);
  await recovers(t, service, key);
  await balanceBecomes(t, dataDir, 'replaced', restored - 4, 'and goes on from there');

  for (const name of readdirSync(dataDir)) rmSync(join(dataDir, name), { recursive: true });
  const [other = ''] = await createKeys(dataDir, [['other', null]]);
  t.ok(await readyAgain(service));
  t.match(
    await listen(service.port, { path: '/v1/tts', key, text: 'Yes.' }),
    { status: 401 },
    'the old keys are unknown',
  );
  await speaks(t, service, other, 'the new keys are valid');
});

void t.test('the disk of the store is full', { skip: missingTool('mount') }, async (t) => {
  const disk = smallDisk(t);
  if (disk === null) {
    t.comment('this user may not mount: not tested');
    return;
  }
  const dataDir = join(disk.path, 'data');
  const key = await keyOf(dataDir, 'full');
  const service = await start(t, dataDir);
  disk.fill();
  t.ok(await until(async () => (await reasonsOf(service)) !== null), 'the service notices without a request');
  t.equal(await reasonsOf(service), 'the disk of the store is full');
  await nothingIsAdmitted(t, service, key);
  disk.makeRoom();
  t.ok(await readyAgain(service));
  await recovers(t, service, key);
  await balanceBecomes(t, dataDir, 'full', 99_996, 'charged');
  t.match(await service.stop(), { code: 0 });
  disk.fill();
  t.throws(() => openExisting(dataDir, limits), { message: /^The disk of .* is full/ });
});
