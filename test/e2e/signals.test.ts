import t from 'tap';
import { RawClient } from '../support/raw-client.js';
import {
  pause,
  readStream,
  recordsOf,
  spawnService,
  startService,
  until,
  type TestService,
} from '../support/service.js';

const text = 'The train was late again, so we walked along the river and talked about the summer. '.repeat(
  12,
);
const request = { text, voice: 'wren', response_format: { encoding: 'pcm', sample_rate: 48_000 } };

const oneThread = { SYNTHESIS_THREADS: '1' };

/** The first signal was heard. */
const stopping = (service: TestService) => until(() => service.stdout.includes('"stopping"'));

t.test('SIGTERM amid streams and a whole file: all complete, nothing new is taken, exit 0', async (t) => {
  const service = await startService(t, { SYNTHESIS_THREADS: '2' });
  const file = service.post('/v1/tts', request);
  const whole = readStream(await service.post('/v1/tts/stream', { ...request, timestamps: true }));
  const paced = await service.post('/v1/tts/stream', request);
  const records = recordsOf(paced);
  await records.next();
  service.signal('SIGTERM');
  t.ok(await stopping(service));
  await t.rejects(RawClient.open(service.port), 'no new connection');
  const { words, audio } = await whole;
  t.equal(words.map(({ word }) => word).join(' '), text.trim(), 'to the last word');
  t.ok(audio.length / 96_000 >= (words.at(-1)?.end ?? Infinity));
  const response = await file;
  t.equal(response.status, 200);
  t.ok(((await response.json()) as { audio: string }).audio.length > 1_000_000, 'the file');
  let rest = 0;
  for await (const record of records) rest += record.audio_chunk?.length ?? 0;
  t.ok(rest > 1_000_000, 'the stream that was read late');
  t.match(await service.exited, { code: 0, signal: null });
  t.equal(service.stderr, '');
});

t.test('a second signal ends it now', async (t) => {
  const service = await startService(t, oneThread);
  const response = await service.post('/v1/tts/stream', { ...request, text: text.repeat(30) });
  const records = recordsOf(response);
  await records.next();
  service.signal('SIGTERM');
  t.ok(await stopping(service));
  service.signal('SIGINT');
  t.match(await service.exited, { code: 0 });
  await t.rejects(async () => {
    for await (const _ of records);
  }, 'the stream is cut, visibly');
});

t.test('what takes longer than DRAIN_SECONDS is cut', async (t) => {
  const service = await startService(t, { ...oneThread, DRAIN_SECONDS: '1' });
  const response = await service.post('/v1/tts/stream', { ...request, text: text.repeat(30) });
  const records = recordsOf(response);
  await records.next();
  service.signal('SIGTERM');
  let hasEnded = false;
  void service.exited.then(() => (hasEnded = true));
  // Nobody reads on: by itself it would not end, and the default is far longer than this wait.
  t.ok(await until(() => hasEnded, 15_000));
  t.match(await service.exited, { code: 0, signal: null });
  await t.rejects(async () => {
    for await (const _ of records);
  }, 'visibly');
});

t.test('Ctrl-C under npm arrives twice at once, and still lets the stream complete', async (t) => {
  const service = await startService(t, oneThread);
  const whole = readStream(await service.post('/v1/tts/stream', { ...request, timestamps: true }));
  service.signal('SIGINT');
  t.ok(await stopping(service));
  service.signal('SIGINT');
  const { words } = await whole;
  t.equal(words.map(({ word }) => word).join(' '), text.trim());
  t.match(await service.exited, { code: 0, signal: null });
});

t.test('SIGTERM while the voices load', async (t) => {
  const service = spawnService(t);
  while (!service.stdout.includes('first API key')) await pause(2);
  service.signal('SIGTERM');
  t.match(await service.exited, { code: 0, signal: null });
});

t.test('a second signal while the voices load ends it now', async (t) => {
  const service = spawnService(t, { SYNTHESIS_THREADS: '8' });
  while (!service.stdout.includes('first API key')) await pause(2);
  service.signal('SIGTERM');
  t.ok(await stopping(service));
  service.signal('SIGINT');
  t.match(await service.exited, { code: null, signal: 'SIGTERM' });
  t.notMatch(service.stdout, '"listening"', 'it does not wait for them');
});

t.test('SIGINT with nothing to do', async (t) => {
  const service = await startService(t, oneThread);
  service.signal('SIGINT');
  t.match(await service.exited, { code: 0, signal: null });
});

t.test('SIGHUP and SIGUSR2 end nothing; the latter tells what is going on', async (t) => {
  const service = await startService(t);
  service.signal('SIGHUP');
  service.signal('SIGUSR2');
  t.ok(await until(() => service.entries.some((line) => line.msg === 'status')));
  t.match(
    service.entries.find((line) => line.msg === 'status'),
    { requestsInFlight: 0, openContexts: 0, runningSegments: 0, threadsWhole: true },
  );
  t.match(await service.stop(), { code: 0, signal: null });
});

for (const drain of ['hangs', 'fails'])
  t.test(`a fault that nothing catches, and a drain that ${drain}: a supervisor sees a crash`, async (t) => {
    const service = await startService(t, { ...oneThread, DRAIN: drain }, 'test/support/faulty-main.js');
    service.signal('SIGWINCH');
    // SIGTERM would pass for an end that was asked for, and the service stay down.
    t.match(await service.exited, { code: null, signal: 'SIGKILL' });
    t.ok(service.entries.some(({ msg }) => msg === 'uncaught exception'));
    t.equal(
      service.entries.filter(({ msg }) => msg === 'the drain failed').length,
      drain === 'fails' ? 1 : 0,
    );
  });

t.test('SIGTERM with a thread that hangs is still an end that was asked for', async (t) => {
  const service = await startService(t, { ...oneThread, DRAIN: 'hangs' }, 'test/support/faulty-main.js');
  t.match(await service.stop(), { code: null, signal: 'SIGTERM' });
});
