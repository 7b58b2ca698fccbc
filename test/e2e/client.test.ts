/** The client against the real service. */
import { execFile } from 'node:child_process';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { type SpeechContext, type Word, connect } from '../../src/client/index.js';
import { freePort, runScript, spawnService, startService } from '../support/service.js';
import { readSource } from '../support/source-files.js';
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
  const stranger = await connect({ url: service.url, apiKey: 'svc_sk_unknown' });
  t.match(await stranger.closed, { code: 'invalid_api_key' });
});

t.test('the examples of the client’s page run as printed', async (t) => {
  const blocks = [...readSource('src/client/README.md').matchAll(/^```js\n([\s\S]*?)^```$/gm)];
  const outputs: string[] = [];
  const dir = t.testdir();
  for (const [, code = ''] of blocks) {
    const path = join(dir, 'example.mjs');
    // The compiled file that the package exports as syrinx/client.
    const clientUrl = new URL('../../src/client/index.js', import.meta.url).href;
    writeFileSync(
      path,
      code.replace('syrinx/client', clientUrl).replace('http://127.0.0.1:8080', service.url),
    );
    const env = { PATH: process.env['PATH'], SYRINX_KEY: service.key };
    outputs.push((await promisify(execFile)(process.execPath, [path], { cwd: dir, env })).stdout);
  }
  t.strictSame(
    outputs[0]
      ?.replace(/^\d+\.\d\d /gm, '')
      .trim()
      .split('\n'),
    'Text is sent as it is written. The first sentence is heard at once.'.split(' '),
  );
  t.ok(statSync(join(dir, 'answer.pcm')).size > 2 * 48_000, 'more than two seconds');
  t.strictSame(outputs.slice(1), ['spoken\n']);
});

t.test('revoking a key closes its clients', async (t) => {
  const environment = { DATA_DIR: service.dataDir };
  const { stdout } = await runScript('scripts/keys.js', ['create'], environment);
  const key = /svc_sk_\w+/.exec(stdout)?.[0] ?? '';
  const client = await connect({ url: service.url, apiKey: key });
  const context = client.context({ voiceId: 'wren' });
  await context.started;
  await runScript('scripts/keys.js', ['revoke', key], environment);
  t.equal(await codeOf(collect(context)), 'invalid_api_key');
  t.match(await client.closed, { code: 'invalid_api_key', retryable: false });
});

t.test('the client connects again after the service was killed and restarted', async (t) => {
  // A fixed port, as in a deployment. A port that the system chose stays taken for a minute after a kill.
  const environment = { SYNTHESIS_THREADS: '1', PORT: String(await freePort()) };
  const first = await startService(t, environment);
  const client = await connect({
    url: first.url,
    apiKey: first.key,
    reconnect: { attemptsMax: 50, capMs: 500 },
  });
  t.teardown(() => client.close());
  const lost = client.context({ voiceId: 'wren' });
  lost.send(`${text} `.repeat(20));
  const reading = errorOf(collect(lost));
  await lost.started;
  await first.kill();
  t.match(await reading, { code: 'connection_lost', retryable: true });
  const next = client.context({ voiceId: 'wren' });
  next.send('There you are.');
  void next.close();
  const second = spawnService(t, { ...environment, DATA_DIR: first.dataDir });
  t.ok(Buffer.concat(await collect(next.audio)).length > 32_000, 'the waiting context speaks');
  await client.close();
  t.equal((await second.stop()).code, 0);
});
