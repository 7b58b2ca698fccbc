import { readdirSync, readFileSync } from 'node:fs';
import t from 'tap';
import {
  pause,
  readStream,
  recordsOf,
  runScript,
  startService,
  until,
  type TestService,
} from '../support/service.js';

const long = 'The train was late again, so we walked along the river and talked about the summer. '.repeat(
  400,
);
const stream = { text: long, voice: 'wren', response_format: { encoding: 'pcm', sample_rate: 48_000 } };
const short = { text: 'Yes.', voice: 'wren', response_format: 'wav' };

const service = await startService(t, { SYNTHESIS_THREADS: '2' });
const keys = (...args: string[]) => runScript('scripts/keys.js', args, { DATA_DIR: service.dataDir });

/** Opens a stream that is read no further than its first record. */
const open = async (key?: string) => {
  const aborter = new AbortController();
  const response = await service.post('/v1/tts/stream', stream, {
    signal: aborter.signal,
    ...(key === undefined ? {} : { key }),
  });
  if (response.status === 200) await recordsOf(response.clone()).next();
  return { response, abort: () => aborter.abort() };
};

t.test('401, on every route that asks for a key', async (t) => {
  const missing = { error: 'Invalid or missing API key' };
  const unknown = { error: 'INVALID_API_KEY' };
  const cases: [Record<string, string>, object][] = [
    [{}, missing],
    [{ 'x-api-key': '' }, missing],
    [{ 'x-api-key': 'sk_live_123' }, missing],
    [{ 'x-api-key': service.key.toUpperCase() }, missing],
    [{ authorization: `Bearer ${service.key}` }, missing],
    [{ 'x-api-key': 'svc_sk_' }, unknown],
    [{ 'x-api-key': `${service.key}x` }, unknown],
    [{ 'x-api-key': service.key.slice(0, -1) }, unknown],
  ];
  for (const [headers, body] of cases)
    for (const [method, path] of [
      ['GET', '/v1/tts/speakers'],
      ['POST', '/v1/tts'],
      ['POST', '/v1/tts/stream'],
    ] as const) {
      const response = await fetch(service.url + path, {
        method,
        headers: { ...headers, 'content-type': 'application/json' },
        body: method === 'POST' ? '{"voice":"no such voice"}' : null,
      });
      t.equal(response.status, 401, 'nothing of the catalogue or the body shows without a key');
      t.same(await response.json(), body);
      t.match(response.headers.get('x-request-id'), /^[\w-]{8,}$/);
    }
  t.equal((await service.get('/v1/tts/speakers', { 'X-API-Key': service.key })).status, 200);
});

t.test('a key made by another process works at once; revoked, it stops at once', async (t) => {
  const made = await keys('create', '--account', 'shop');
  t.equal(made.code, 0, made.stderr);
  const key = /svc_sk_\w+/.exec(made.stdout)?.[0] ?? '';
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

t.test('nine requests a key; the tenth is refused at once; an aborted one frees its slot', async (t) => {
  const streams = await Promise.all(Array.from({ length: 9 }, () => open()));
  t.ok(streams.every(({ response }) => response.status === 200));
  for (const path of ['/v1/tts', '/v1/tts/stream']) {
    const tenth = await service.post(path, short);
    t.equal(tenth.status, 429);
    t.same(await tenth.json(), { error: 'Rate limit exceeded', reason: 'concurrency' });
    t.equal(tenth.headers.get('retry-after'), null);
  }
  const other = /svc_sk_\w+/.exec((await keys('create')).stdout)?.[0] ?? '';
  t.equal((await service.post('/v1/tts', short, { key: other })).status, 200, 'another key has its own nine');
  const freed = async () => (await service.post('/v1/tts', short)).status === 200;
  const aborted = performance.now();
  streams[0]?.abort();
  t.ok(await until(freed), 'while its text would have taken many minutes');
  t.comment(
    `the slot was free ${(performance.now() - aborted).toFixed(0)} ms after the abort, one request included`,
  );
  for (const { abort } of streams) abort();
  const all = async () => {
    const answers = await Promise.all(Array.from({ length: 9 }, () => service.post('/v1/tts', short)));
    await Promise.all(answers.map((answer) => answer.arrayBuffer()));
    return answers.every((answer) => answer.status === 200);
  };
  t.ok(await until(all), 'all nine are free again');
});

const descriptorsOf = (child: TestService) => readdirSync(`/proc/${child.pid}/fd`).length;

const heapOf = (child: TestService) => {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Number(/RssAnon:\s+(\d+)/.exec(status)?.[1]) / 1024;
};

t.test(
  'a thousand aborted requests leave nothing behind',
  { skip: process.platform !== 'linux' },
  async (t) => {
    const abortSome = async (count: number, path: string) => {
      for (let i = 0; i < count; i++) {
        const aborter = new AbortController();
        const request = service.post(path, stream, { signal: aborter.signal });
        // At every point of a request's life: before it is read, while it is made, while it is sent.
        await pause(i % 7);
        aborter.abort();
        await request
          .then(
            (response) => response.body?.cancel(),
            () => undefined,
          )
          .catch(() => undefined);
      }
    };
    const settled = () => until(async () => (await service.post('/v1/tts', short)).status === 200);
    await abortSome(100, '/v1/tts/stream');
    await settled();
    const before = { descriptors: descriptorsOf(service), heap: heapOf(service) };
    await abortSome(500, '/v1/tts/stream');
    await abortSome(500, '/v1/tts');
    await settled();
    t.ok(await until(() => descriptorsOf(service) <= before.descriptors + 5), 'no descriptor');
    const grownMiB = heapOf(service) - before.heap;
    t.ok(grownMiB < 100, `${grownMiB.toFixed(0)} MiB more than before`);
    const nine = await Promise.all(Array.from({ length: 9 }, () => service.post('/v1/tts', short)));
    t.ok(
      nine.every((response) => response.status === 200),
      'every slot is free',
    );
    t.equal((await service.get('/readyz', {})).status, 200);
    const { audio } = await readStream(
      await service.post('/v1/tts/stream', { ...stream, text: 'All is well.' }),
    );
    t.ok(audio.length > 50_000);
  },
);
