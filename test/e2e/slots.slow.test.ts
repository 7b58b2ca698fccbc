/** Keys and slots with the real engine: what another process changes counts at once, and an abort frees a slot. */
import t from 'tap';
import { openStream, runScript, startService, until } from '../support/service.js';

const short = { text: 'Yes.', voice: 'wren', response_format: 'wav' };
const service = await startService(t, { SYNTHESIS_THREADS: '2' });
const keys = (...args: string[]) => runScript('scripts/keys.js', args, { DATA_DIR: service.dataDir });
const keyIn = (output: string) => /svc_sk_\w+/.exec(output)?.[0] ?? '';

t.test('a key that another process makes works at once, and stops at once when it is revoked', async (t) => {
  const made = await keys('create', '--account', 'shop');
  t.equal(made.code, 0, made.stderr);
  const key = keyIn(made.stdout);
  t.equal((await service.post('/v1/tts', short, { key })).status, 200);
  const listed = await keys('list');
  t.notOk(listed.stdout.includes(key), 'a list never shows a key');
  t.match(listed.stdout, 'shop');
  t.equal((await keys('revoke', key)).code, 0);
  const refused = await service.post('/v1/tts', short, { key });
  t.equal(refused.status, 401);
  t.same(await refused.json(), { error: 'INVALID_API_KEY' });
  t.notOk(service.stdout.includes(key), 'nor does the log');
});

t.test('a key has nine requests; the tenth is refused at once; an aborted one frees its slot', async (t) => {
  const streams = await Promise.all(Array.from({ length: 9 }, () => openStream(service)));
  t.ok(streams.every(({ response }) => response.status === 200));
  for (const path of ['/v1/tts', '/v1/tts/stream']) {
    const tenth = await service.post(path, short);
    t.equal(tenth.status, 429);
    t.same(await tenth.json(), { error: 'Rate limit exceeded', reason: 'concurrency' });
    t.equal(tenth.headers.get('retry-after'), null);
  }
  const other = keyIn((await keys('create')).stdout);
  t.equal((await service.post('/v1/tts', short, { key: other })).status, 200, 'another key has its own nine');
  const isFree = async () => (await service.post('/v1/tts', short)).status === 200;
  const abortedMs = performance.now();
  streams[0]?.abort();
  t.ok(await until(isFree), 'long before its text could end');
  t.comment(`free ${(performance.now() - abortedMs).toFixed(0)} ms after the abort, one request included`);
  for (const { abort } of streams) abort();
  const areAllFree = async () => {
    const answers = await Promise.all(Array.from({ length: 9 }, () => service.post('/v1/tts', short)));
    await Promise.all(answers.map((answer) => answer.arrayBuffer()));
    return answers.every((answer) => answer.status === 200);
  };
  t.ok(await until(areAllFree), 'all nine are free again');
});
