/** The metrics of a whole service after exactly known traffic. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';
import { createKeys } from '../../scripts/operator.js';
import { temporaryFolder } from '../store/support.js';
import { labelsOf, parseExposition } from '../support/exposition.js';
import { RawClient, requestBytes, type RequestOptions } from '../support/raw-client.js';
import { pause, SCRIPTED, startService, until, type TestService } from '../support/service.js';
import { openWs } from '../support/socket-client.js';

const folder = temporaryFolder(t);
const dataDir = join(folder, 'data');
const [rich = '', poor = ''] = await createKeys(dataDir, [
  ['rich', 10_000_000],
  ['poor', 3],
]);
const env = { DATA_DIR: dataDir, SYNTHESIS_THREADS: '1', ACTOR_THREADS: '1' };
const service = await startService(t, env, SCRIPTED);

/** All series of one scrape. */
const scrape = async (of: TestService): Promise<Map<string, number>> => {
  const text = await (await fetch(`${of.opsUrl}/metrics`)).text();
  return new Map([...parseExposition(text).values()].flatMap(({ samples }) => [...samples]));
};

const send = async (request: RequestOptions): Promise<number> => {
  const client = await RawClient.open(service.port);
  client.send(requestBytes(request));
  const { status } = await client.response();
  client.destroy();
  return status;
};

/** 600 ms with the scripted engine: 50 ms a character. */
const text = 'Hello there.';
const pcm = { encoding: 'pcm', sample_rate: 24_000 };
const ask = (path: string, body: object, key: string | null = rich): RequestOptions => ({
  method: 'POST',
  path,
  key,
  body: JSON.stringify(body),
});
const speech = { text, voice: 'wren', response_format: pcm };

t.test('a scrape agrees with the requests', async (t) => {
  const before = await scrape(service);
  t.equal(before.get('syrinx_ready'), 1);
  for (const [path, body, key, status] of [
    ['/v1/tts/stream', speech, rich, 200],
    ['/v1/tts/stream', speech, rich, 200],
    ['/v1/tts', speech, rich, 200],
    ['/v1/tts', speech, null, 401],
    ['/v1/tts', speech, 'svc_sk_unknown', 401],
    ['/v1/tts', speech, poor, 402],
    ['/v1/tts', { ...speech, voice: 'nobody' }, rich, 422],
    ['/v1/tts', { ...speech, temperature: 'hot' }, rich, 422],
    ['/v1/nothing', speech, rich, 404],
  ] as const)
    t.equal(await send(ask(path, body, key)), status, `${path} ${status}`);
  const socket = await openWs(service.port, rich);
  socket.start('a', { voice_id: 'wren', response_format: { encoding: 'linear16', sample_rate: 24_000 } });
  socket.text('a', text);
  socket.flush('a', 'first');
  await socket.frame(({ flush_id }) => flush_id === 'first');
  socket.text('a', text);
  socket.flush('a', 'second');
  await socket.frame(({ flush_id }) => flush_id === 'second');
  socket.text('b', text);
  socket.send('{');
  socket.start('c', { voice_id: 'nobody' });
  await socket.until(() => socket.frames.filter(({ error }) => error !== undefined).length === 3);

  // The metrics of a request and its job may follow its last bytes.
  const seen = async () => (await scrape(service)).get('syrinx_queue_wait_seconds_count');
  t.ok(await until(async () => (await seen()) === 5));
  const now = await scrape(service);
  const moved = [...now].filter(([series, value]) => value !== (before.get(series) ?? 0));
  const counts = moved.filter(([series]) => /^syrinx_\w+_(?:total|count)\b/.test(series));
  const rounded = counts.map(([series, value]) => [series, Math.round(value * 1_000) / 1_000] as const);
  const {
    syrinx_synthesis_seconds_total: synthesis,
    syrinx_underruns_total: underruns = 0,
    ...exact
  } = Object.fromEntries(rounded);
  t.ok(synthesis! > 0);
  const lag = exact['syrinx_playback_lag_seconds_count']!;
  const inTime = 'syrinx_playback_lag_seconds_bucket{le="0.005"}';
  t.equal(
    underruns,
    lag - (now.get(inTime)! - (before.get(inTime) ?? 0)),
    'each lag that a player cannot hide',
  );
  t.ok(lag >= 4, 'at least one chunk of each stream');
  t.strictSame(exact, {
    ...Object.fromEntries(
      ['audio', 'decoded', 'audible'].flatMap((figure) => [
        [`syrinx_first_${figure}_seconds_count{route="/v1/tts/stream",encoding="pcm"}`, 2],
        [`syrinx_first_${figure}_seconds_count{route="/v1/tts",encoding="pcm"}`, 1],
        [`syrinx_first_${figure}_seconds_count{route="/v1/tts/ws",encoding="linear16"}`, 2],
      ]),
    ),
    syrinx_queue_wait_seconds_count: 5,
    syrinx_real_time_factor_count: 5,
    'syrinx_speech_seconds_total{encoding="pcm"}': 1.8,
    'syrinx_speech_seconds_total{encoding="linear16"}': 1.2,
    'syrinx_requests_total{route="/v1/tts/stream",status="200"}': 2,
    'syrinx_requests_total{route="/v1/tts",status="200"}': 1,
    'syrinx_requests_total{route="/v1/tts",status="401"}': 2,
    'syrinx_requests_total{route="/v1/tts",status="402"}': 1,
    'syrinx_requests_total{route="/v1/tts",status="422"}': 2,
    'syrinx_requests_total{route="*",status="404"}': 1,
    'syrinx_requests_total{route="/v1/tts/ws",status="101"}': 1,
    'syrinx_refusals_total{reason="keyMissing"}': 1,
    'syrinx_refusals_total{reason="keyUnknown"}': 1,
    'syrinx_refusals_total{reason="creditExhausted"}': 1,
    'syrinx_refusals_total{reason="voiceUnknown"}': 2,
    'syrinx_refusals_total{reason="requestInvalid"}': 1,
    'syrinx_refusals_total{reason="contextUnknown"}': 1,
    'syrinx_refusals_total{reason="frameInvalid"}': 1,
    syrinx_playback_lag_seconds_count: lag,
  });
  t.match([now.get('syrinx_sockets'), now.get('syrinx_contexts')], [1, 1]);
  socket.close();
  t.ok(await until(async () => (await scrape(service)).get('syrinx_sockets') === 0));
  t.equal((await scrape(service)).get('syrinx_contexts'), 0);
});

t.test('the wait before a flush or a close does not count as lag', async (t) => {
  const lags = async () => {
    const now = await scrape(service);
    const of = (series: string) => now.get(`syrinx_playback_lag_seconds_${series}`)!;
    return { chunks: of('count'), lateSeconds: of('sum') };
  };
  const before = await lags();
  const socket = await openWs(service.port, rich);
  const encodings = ['opus', 'mp3'];
  for (const encoding of encodings) {
    socket.start(encoding, { voice_id: 'wren', response_format: { encoding } });
    socket.text(encoding, text);
    socket.flush(encoding, 'said');
    await socket.frame((frame) => frame.context_id === encoding && frame.flush_id === 'said');
  }
  // Longer than the 600 ms of speech, and than a busy machine is late.
  await pause(12_000);
  for (const encoding of encodings) {
    socket.closeContext(encoding);
    await socket.frame((frame) => frame.context_id === encoding && frame.context_closed === true);
  }
  const after = await lags();
  t.ok(after.chunks >= before.chunks + 4, 'the last bytes of the encoder are counted');
  t.ok(after.lateSeconds < before.lateSeconds + 10, 'less than the pause');
  socket.close();
  t.ok(await until(async () => (await scrape(service)).get('syrinx_sockets') === 0));
});

t.test('gauges show open streams and buffered audio', async (t) => {
  const client = await RawClient.open(service.port);
  t.teardown(() => client.destroy());
  client.socket.pause();
  const long = {
    ...speech,
    text: 'All is well that ends well. '.repeat(600),
    response_format: { ...pcm, sample_rate: 48_000 },
  };
  client.send(requestBytes(ask('/v1/tts/stream', long)));
  const gauges = async () => {
    const now = await scrape(service);
    return {
      streams: now.get('syrinx_streams{route="/v1/tts/stream"}'),
      bytes: now.get('syrinx_buffered_bytes')!,
      audio: now.get('syrinx_buffered_audio_seconds')!,
    };
  };
  t.ok(await until(async () => (await gauges()).audio > 10));
  const held = await gauges();
  t.equal(held.streams, 1);
  t.ok(held.audio < 60, `${held.audio} s: the backpressure gate is shut`);
  t.ok(held.bytes > 500_000, `${held.bytes} bytes`);
  client.destroy();
  t.ok(await until(async () => (await gauges()).streams === 0));
  t.match(await gauges(), { bytes: 0, audio: 0 });
});

t.test('thread deaths are counted', async (t) => {
  const killer = await RawClient.open(service.port);
  killer.send(requestBytes(ask('/v1/tts/stream', { ...speech, text: '!exit please, now' })));
  const restarts = async () => (await scrape(service)).get('syrinx_thread_restarts_total{kind="synthesis"}');
  t.ok(await until(async () => (await restarts()) === 1));
  // Before the client leaves: an aborted request is no failure.
  const failures = async () =>
    (await scrape(service)).get('syrinx_failures_total{route="/v1/tts/stream"}') ?? 0;
  t.ok(await until(async () => (await failures()) > 0));
  killer.destroy();
  t.ok(await until(async () => (await scrape(service)).get('syrinx_ready') === 1), 'a new thread is ready');
  t.equal(await failures(), 1);
});

t.test('client input never becomes a label', async (t) => {
  const junk = (place: number): string => `x${place.toString(36)}y`;
  const wave = async (from: number) => {
    for (let i = from; i < from + 60; i++) {
      const name = junk(i);
      await Promise.all([
        send({ method: 'POST', path: `/${name}?${name}=${name}`, key: `svc_sk_${name}`, body: '' }),
        send({ method: name.toUpperCase(), path: '/v1/tts', key: name, headers: [`x-${name}: ${name}`] }),
        send(ask('/v1/tts', { ...speech, voice: name })),
        send(ask('/v1/tts/stream', { ...speech, response_format: { encoding: name } })),
        send(ask('/v1/tts/stream', { ...speech, [name]: name })),
      ]);
    }
    const socket = await openWs(service.port, rich);
    for (let i = from; i < from + 60; i++) {
      socket.start(junk(i), { voice_id: junk(i) });
      socket.flush(junk(i), junk(i));
      socket.send({ [junk(i)]: junk(i) });
    }
    await socket.until(() => socket.frames.length === 180);
    socket.close();
  };
  const isReadLater = (series: string): boolean => series.startsWith('syrinx_read_later_seconds');
  /** Whether a body must wait depends on the machine: its series come at any time, for known routes only. */
  const steady = (samples: ReadonlyMap<string, number>): string[] =>
    [...samples.keys()].filter((series) => !isReadLater(series));
  await wave(0);
  const first = new Set(steady(await scrape(service)));
  await wave(1_000);
  const second = await scrape(service);
  t.strictSame(
    steady(second).filter((series) => !first.has(series)),
    [],
  );
  const routesOf = (series: readonly string[]) => new Set(series.map((one) => labelsOf(one).get('route')));
  const known = routesOf(steady(second));
  t.strictSame(
    [...routesOf([...second.keys()].filter(isReadLater))].filter((route) => !known.has(route)),
    [],
  );
  const values = [...second.keys()].flatMap((series) => [...labelsOf(series).values()]);
  t.strictSame(
    values.filter((value) => /x[0-9a-z]+y/.test(value)),
    [],
  );
  // Each route, reason of a refusal and kind of collection that has occurred has its own.
  t.ok(steady(second).length < 460, `${steady(second).length} series`);
});

t.test(
  'no more files can be opened: the metrics and the status miss only what is read from files',
  async (t) => {
    const other = await startService(t, { ...env, DATA_DIR: join(folder, 'other') }, SCRIPTED);
    const client = await RawClient.open(Number(new URL(other.opsUrl).port));
    t.teardown(() => client.destroy());
    const ask = async () => {
      client.send(Buffer.from('GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n'));
      const { status, body } = await client.response();
      return { status, text: body.toString() };
    };
    t.match(await ask(), { status: 200, text: /^process_open_fds \d/m });
    const limits = ['--pid', String(other.pid), '--nofile=3:'];
    t.equal(spawnSync('prlimit', limits).status, 0);
    other.signal('SIGUSR2');
    t.match(await other.untilLogged('status'), { ready: true, rssMiB: null });
    const { status, text } = await ask();
    t.equal(status, 200);
    t.match(text, /^process_cpu_seconds_total \d/m);
    t.match(await other.stop(), { code: 0 });
  },
);
