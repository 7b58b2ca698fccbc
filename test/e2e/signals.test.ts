import t from 'tap';
import { pause, readStream, recordsOf, spawnService, startService } from '../support/service.js';

const text = 'The train was late again, so we walked along the river and talked about the summer. '.repeat(
  30,
);
const request = { text, voice: 'wren', response_format: { encoding: 'pcm', sample_rate: 48_000 } };

t.test('SIGTERM in the middle of a stream: it completes, nothing new is taken, exit 0', async (t) => {
  const service = await startService(t);
  const whole = readStream(await service.post('/v1/tts/stream', { ...request, timestamps: true }));
  const paced = await service.post('/v1/tts/stream', request);
  const records = recordsOf(paced);
  await records.next();
  service.process.kill('SIGTERM');
  await pause(50);
  await t.rejects(service.get('/healthz', {}), 'no new connection');
  const { words, audio } = await whole;
  t.equal(words.map(({ word }) => word).join(' '), text.trim(), 'to the last word');
  t.ok(audio.length / 96_000 >= (words.at(-1)?.end ?? Infinity));
  let rest = 0;
  for await (const record of records) rest += record.audio_chunk?.length ?? 0;
  t.ok(rest > 1_000_000, 'the other one too');
  t.match(await service.exited, { code: 0, signal: null });
  t.equal(service.stderr, '');
});

t.test('SIGTERM while a synchronous request is made: it is answered', async (t) => {
  const service = await startService(t);
  const answer = service.post('/v1/tts', request);
  await pause(20);
  service.process.kill('SIGTERM');
  const response = await answer;
  // The signal may come before the request was read: then it is refused, clearly.
  if (response.status === 503) t.equal(response.headers.get('connection'), 'close');
  else t.ok(((await response.json()) as { audio: string }).audio.length > 1_000_000);
  t.match(await service.exited, { code: 0 });
});

t.test('a second signal ends it now', async (t) => {
  const service = await startService(t);
  const response = await service.post('/v1/tts/stream', { ...request, text: text.repeat(20) });
  const records = recordsOf(response);
  await records.next();
  service.process.kill('SIGTERM');
  await pause(100);
  service.process.kill('SIGINT');
  t.match(await service.exited, { code: 0 });
  await t.rejects(async () => {
    for await (const _ of records);
  }, 'the stream is cut, visibly');
});

t.test('Ctrl-C under npm arrives twice at once, and still lets the stream complete', async (t) => {
  const service = await startService(t);
  const whole = readStream(await service.post('/v1/tts/stream', { ...request, timestamps: true }));
  service.process.kill('SIGINT');
  await pause(5);
  service.process.kill('SIGINT');
  const { words } = await whole;
  t.equal(words.map(({ word }) => word).join(' '), text.trim());
  t.match(await service.exited, { code: 0, signal: null });
});

t.test('SIGTERM while the voices load', async (t) => {
  const service = spawnService(t);
  while (!service.stdout.includes('first API key')) await pause(2);
  service.process.kill('SIGTERM');
  t.match(await service.exited, { code: 0, signal: null });
});

t.test('SIGINT with nothing to do', async (t) => {
  const service = await startService(t);
  t.match(await service.stop('SIGINT'), { code: 0, signal: null });
});
