/** The client against the real service. Its examples, a revoked key and a restart are in client.slow.test.ts. */
import t from 'tap';
import { type SpeechContext, type Word, connect } from '../../src/client/index.js';
import { startService } from '../support/service.js';
import { codeOf, collect, errorOf } from '../support/speech-client.js';

const service = await startService(t, { SYNTHESIS_THREADS: '1' });
const text =
  'Good morning, the "kettle" is on. It cost 3.50 pounds — and the paper (as ever) is at the door!';

const open = async () => {
  const client = await connect({ url: service.url, apiKey: service.key });
  t.teardown(() => client.close());
  return client;
};

/** Reads a context to its end: samples and words. */
const read = async (context: SpeechContext): Promise<{ pcm: Buffer; words: Word[] }> => {
  const [chunks, words] = await Promise.all([collect(context.audio), collect(context.words)]);
  return { pcm: Buffer.concat(chunks), words };
};

t.test('speech arrives while text is sent, and its words are in order and within the audio', async (t) => {
  const client = await open();
  const context = client.context({
    voiceId: 'wren',
    format: { encoding: 'pcm', sampleRateHz: 24_000 },
    timestamps: true,
    temperature: 0.7,
  });
  const reading = read(context);
  t.strictSame(await context.started, {
    voiceId: 'wren',
    timestamps: true,
    format: { encoding: 'pcm', sampleRateHz: 24_000 },
  });
  for (const piece of text.match(/.{1,3}/gsu) ?? []) context.send(piece);
  await context.flush();
  context.send('And again.');
  await context.close();
  const { pcm, words } = await reading;
  t.strictSame(
    words.map(({ word }) => word),
    `${text} And again.`.split(' '),
  );
  const seconds = pcm.length / 2 / 24_000;
  t.ok(seconds > 4 && seconds < 20, `${seconds} s`);
  let last = 0;
  for (const { word, startSeconds, endSeconds } of words) {
    t.ok(startSeconds >= last && endSeconds >= startSeconds, word);
    last = endSeconds;
  }
  t.ok(last <= seconds, 'the last word ends within the audio');
});

t.test('concurrent contexts have a format each', async (t) => {
  const client = await open();
  const formats = ['pcm', 'mp3', 'opus', 'mulaw'] as const;
  const contexts = formats.map((format) => client.context({ voiceId: 'rook', format }));
  const reading = contexts.map((context) => collect(context.audio));
  for (const context of contexts) {
    context.send(text);
    void context.close();
  }
  const bytes = (await Promise.all(reading)).map((chunks) => Buffer.concat(chunks));
  const bytesPerSecond = [64_000, 16_000, 8_000, 8_000];
  bytes.forEach((all, i) => {
    const seconds = all.length / bytesPerSecond[i]!;
    t.ok(seconds > 2 && seconds < 20, `${formats[i]}: ${seconds} s`);
  });
  t.equal(bytes[2]?.toString('latin1', 0, 4), 'OggS');
});

t.test('a cancelled context drops the rest, and the next context speaks', async (t) => {
  const client = await open();
  const context = client.context({ voiceId: 'lark' });
  context.send(`${text} `.repeat(50));
  const flushing = context.flush();
  let heard = 0;
  for await (const chunk of context.audio) {
    heard += chunk.length;
    if (heard > 64_000) context.cancel();
  }
  t.equal(await codeOf(flushing), 'cancelled');
  t.ok(heard < 50 * 2 * 64_000, `${heard} bytes, not all of it`);
  const next = client.context({ voiceId: 'lark' });
  next.send('Sorry, go on.');
  void next.close();
  t.ok(Buffer.concat(await collect(next.audio)).length > 32_000);
});

t.test('refusals of the service have a code', async (t) => {
  const client = await open();
  const unknown = await errorOf(collect(client.context({ voiceId: 'nobody' })));
  t.match(unknown, { code: 'unknown_voice', retryable: false });
  t.match(unknown.message, /wren_conv/);
  const wrong = client.context({ voiceId: 'wren', format: { encoding: 'mulaw', sampleRateHz: 16_000 } });
  t.match(await errorOf(collect(wrong)), { code: 'invalid_frame', message: /8000 Hz/ });
  const right = client.context({ voiceId: 'wren' });
  right.send('Still here.');
  void right.close();
  t.ok((await collect(right.audio)).length > 0, 'the connection still works');

  t.equal(await codeOf(connect({ url: service.url, apiKey: 'no_key' })), 'invalid_api_key');
  t.equal(await codeOf(connect({ url: service.url, apiKey: 'svc_sk_unknown' })), 'invalid_api_key');
});
