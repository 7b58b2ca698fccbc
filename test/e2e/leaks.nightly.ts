/** Many repetitions on one service leave nothing behind: no file, no thread, no memory, no slot. */
import { readdirSync, readFileSync } from 'node:fs';
import t from 'tap';
import {
  pause,
  prose,
  readStream,
  speech,
  startService,
  type TestService,
  until,
} from '../support/service.js';

const skip = process.platform !== 'linux';
const short = { text: 'Yes.', voice: 'wren', response_format: 'wav' };

const filesOf = ({ openFiles }: TestService) => openFiles;
const threadsOf = ({ pid }: TestService) => readdirSync(`/proc/${pid}/task`).length;
const anonymousMiBOf = ({ pid }: TestService) =>
  Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

/** Of each path. */
const aborted = 500;

t.test('many aborted requests leave no file, no memory and no slot', { skip }, async (t) => {
  const service = await startService(t, { SYNTHESIS_THREADS: '2' });
  const abortSome = async (count: number, path: string) => {
    for (let i = 0; i < count; i++) {
      const aborter = new AbortController();
      const request = service.post(path, speech(prose(400)), { signal: aborter.signal });
      // In every state of a request: before it is read, while it is made, while it is sent.
      await pause(i % 7);
      aborter.abort();
      await request.then((response) => response.body?.cancel()).catch(() => undefined);
    }
  };
  const isSettled = () => until(async () => (await service.post('/v1/tts', short)).status === 200);
  await abortSome(40, '/v1/tts/stream');
  await isSettled();
  const before = { files: filesOf(service), anonymousMiB: anonymousMiBOf(service) };
  await abortSome(aborted, '/v1/tts/stream');
  await abortSome(aborted, '/v1/tts');
  await isSettled();
  t.ok(await until(() => filesOf(service) <= before.files + 5), 'no file');
  const grownMiB = anonymousMiBOf(service) - before.anonymousMiB;
  t.comment(`${grownMiB.toFixed(0)} MiB more than before`);
  // A heap that has not settled holds 20 MiB more; each request that is kept, some hundred KB at least.
  t.ok(grownMiB < Math.max(50, aborted / 5), `${grownMiB.toFixed(0)} MiB more than before`);
  const nine = await Promise.all(Array.from({ length: 9 }, () => service.post('/v1/tts', short)));
  t.ok(
    nine.every((response) => response.status === 200),
    'every slot is free',
  );
  t.equal((await service.get('/readyz', {})).status, 200);
  const { audio } = await readStream(await service.post('/v1/tts/stream', speech('All is well.')));
  t.ok(audio.length > 50_000);
});

t.test('reloads of the voices under traffic, one after another and all at once', { skip }, async (t) => {
  const service = await startService(t, { SYNTHESIS_THREADS: '1' });
  const text = prose(2);
  let isRunning = true;
  let streams = 0;
  const traffic = Array.from({ length: 2 }, async () => {
    while (isRunning) {
      const response = await service.post('/v1/tts/stream', speech(text, { timestamps: true }));
      const { words } = await readStream(response);
      t.equal(words.map(({ word }) => word).join(' '), text.trim());
      streams++;
    }
  });
  const reloads = () => service.logged('voices reloaded').length;
  const reload = async () => {
    const count = reloads() + 1;
    service.signal('SIGHUP');
    await service.untilLogged('voices reloaded', count);
  };
  const isSettled = () => until(() => service.logged('the older voices are unloaded').length === reloads());
  await reload();
  await isSettled();
  const files = filesOf(service);
  for (let i = 0; i < 3; i++) await reload();
  const before = reloads();
  for (let i = 0; i < 10; i++) {
    service.signal('SIGHUP');
    await pause(5);
  }
  t.ok(await until(() => reloads() > before));
  isRunning = false;
  await Promise.all(traffic);
  t.ok(streams >= 3);
  service.signal('SIGUSR2');
  await service.untilLogged('status');
  await reload();
  t.ok(await isSettled());
  const fresh = await startService(t, { SYNTHESIS_THREADS: '1' });
  t.ok(await until(() => threadsOf(service) === threadsOf(fresh)), 'as many threads as after a start');
  t.ok(await until(() => filesOf(service) <= files), 'no more files than after the first reload');
  t.match(await service.stop(), { code: 0, signal: null });
  t.equal(service.stderr, '');
});
