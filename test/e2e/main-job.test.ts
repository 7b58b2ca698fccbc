/** The main job, from end to end: the real service speaks on all transports, charges for it, and a kill takes nothing that was acknowledged. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createKeys } from '../../scripts/operator.js';
import { connect } from '../../src/client/index.js';
import { balances, chargesOf, memoryFolder } from '../store/support.js';
import { decodersOf } from '../support/decoders.js';
import { openStream, prose, readStream, SCRIPTED, speech, startService, until } from '../support/service.js';
import { collect } from '../support/speech-client.js';
import { samplesOf } from '../support/conversation.js';
import { missingTool } from '../support/tools.js';
import { pcm16, peak, peakOf, sentence } from './real-speech.js';

const dataDir = join(memoryFolder(t), 'data');
const [key = ''] = await createKeys(dataDir, [['listener', 10_000]]);
const env = { DATA_DIR: dataDir, SYNTHESIS_THREADS: '1', ACTOR_THREADS: '1' };
const service = await startService(t, env);
const tokens = sentence.split(' ');

/** What was charged so far. */
const charged = () => [...chargesOf(dataDir).values()].reduce((sum, { credits }) => sum + credits, 0);

t.test('a whole file is mp3 by default, and a decoder finds speech in it', async (t) => {
  const response = await service.post('/v1/tts', { text: sentence, voice: 'wren' }, { key });
  t.equal(response.status, 200);
  const { audio } = (await response.json()) as { audio: string };
  const path = join(t.testdir(), 'speech.mp3');
  writeFileSync(path, Buffer.from(audio, 'base64'));
  await t.test('decoded', { skip: missingTool('ffmpeg') }, (t) => {
    const samples = decodersOf('mp3', 32_000)[0]!.decode(path);
    const seconds = samples.length / 32_000;
    t.ok(seconds > 2 && seconds < 12, `${seconds} s`);
    t.ok(peakOf(samples) > 4_000, `peak ${peakOf(samples)}`);
    t.end();
  });
});

t.test('a stream has words as written, in order, each after its sound', async (t) => {
  const body = { text: sentence, voice: 'wren', timestamps: true, response_format: pcm16 };
  const { audio, words } = await readStream(await service.post('/v1/tts/stream', body, { key }));
  t.strictSame(
    words.map(({ word }) => word),
    tokens,
  );
  t.ok(peak(audio) > 4_000);
  for (const [i, { start, end, audioBytesBefore }] of words.entries())
    t.ok(start >= (words[i - 1]?.end ?? 0) && end >= start && end <= audioBytesBefore / 32_000);
});

t.test('a WebSocket speaks what arrives in pieces', async (t) => {
  const client = await connect({ url: service.url, apiKey: key });
  t.teardown(() => client.close());
  const context = client.context({
    voiceId: 'wren',
    format: { encoding: 'pcm', sampleRateHz: 16_000 },
    timestamps: true,
  });
  for (const piece of sentence.match(/.{1,5}/gsu) ?? []) context.send(piece);
  await context.close();
  const [chunks, words] = await Promise.all([collect(context.audio), collect(context.words)]);
  t.ok(peakOf(samplesOf(Buffer.concat(chunks))) > 4_000);
  t.strictSame(
    words.map(({ word }) => word),
    tokens,
  );
});

t.test('a wrong key, an unknown voice and a text that costs too much are refused', async (t) => {
  const statusOf = async (body: object, with_: string) =>
    (await service.post('/v1/tts/stream', body, { key: with_ })).status;
  t.equal(await statusOf(speech('Yes.'), 'svc_sk_wrong'), 401);
  t.equal(await statusOf({ ...speech('Yes.'), voice: 'no one' }, key), 422);
  t.equal(await statusOf(speech(prose(200)), key), 402);
});

t.test(
  'each character is charged once, and after a kill the books hold and the service speaks',
  async (t) => {
    await until(() => charged() >= 3 * sentence.length);
    t.equal(charged(), 3 * sentence.length);
    const stream = await openStream(service, prose(60), key);
    await service.kill();
    await t.rejects(stream.rest());
    const [account] = balances(dataDir);
    t.equal(account?.balance, account?.sum, 'the balance is the sum of the ledger');
    t.ok(charged() >= 3 * sentence.length, 'what was acknowledged is there');

    const before = charged();
    const next = await startService(t, env, SCRIPTED);
    t.equal((await next.post('/v1/tts', speech('Yes.'), { key })).status, 200);
    await until(() => charged() === before + 4);
    t.equal(charged(), before + 4);
  },
);
