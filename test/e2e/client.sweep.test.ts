/** The client against the real service: its package, the examples of its page, speech, a revoked key, and a service that starts again. */
import { execFile, execFileSync } from 'node:child_process';
import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { createKeys, operate } from '../../scripts/operator.js';
import { packageProgram } from '../../scripts/package/main.js';
import { connect, type SpeechContext, type Word } from '../../src/client/index.js';
import { temporaryFolder } from '../store/support.js';
import { packageRoot } from '../support/package-root.js';
import { runner } from '../support/run-command.js';
import { freePort, SCRIPTED, spawnService, startService } from '../support/service.js';
import { readSource } from '../support/source-files.js';
import { codeOf, collect, errorOf } from '../support/speech-client.js';
import { missingTool } from '../support/tools.js';

const packageBytesMax = 100_000;
const skip = missingTool('npm');

// A fixed port, as in a deployment. A port that the system chose stays taken for a minute after a kill.
const environment = { PORT: String(await freePort()) };
const service = await startService(t, environment);

/** Installs the client's package into an empty project, without the registry. */
const install = async (dir: string): Promise<void> => {
  const npm = (...args: readonly string[]) =>
    execFileSync('npm', args, { cwd: dir, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  const made = await runner(packageProgram, '')('--client', '--out', dir);
  if (made.status !== 0) throw new Error(made.stderr);
  npm('pack', '--ignore-scripts', join(packageRoot, 'node_modules', 'ws'));
  const files = readdirSync(dir).map((name) => `./${name}`);
  writeFileSync(join(dir, 'package.json'), '{"name": "empty"}');
  npm('install', '--offline', '--no-audit', ...files);
};

t.test(
  'the client’s package is small, has types, and its page’s examples run as printed',
  { skip },
  async (t) => {
    // Outside of this project, whose packages it would find.
    const dir = temporaryFolder(t);
    await install(dir);
    const installed = join(dir, 'node_modules');
    t.strictSame(
      readdirSync(installed).filter((name) => !name.startsWith('.')),
      ['syrinx-client', 'ws'],
    );
    const files = readdirSync(join(installed, 'syrinx-client'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
    const bytes = files.reduce((sum, path) => sum + statSync(path).size, 0);
    t.comment(`${bytes} bytes in ${files.length} files`);
    t.ok(bytes <= packageBytesMax, `${bytes} bytes`);
    t.strictSame(
      files.filter((path) => !/(?:\.js|\.d\.ts|\.md|package\.json|LICENSE)$/.test(path)),
      [],
    );

    writeFileSync(
      join(dir, 'typed.mts'),
      `import { connect, type ContextOptions, type SyrinxErrorCode } from 'syrinx-client';
     const options: ContextOptions = { voiceId: 'wren', format: 'pcm' };
     export const speak = async (): Promise<Uint8Array[]> => {
       await using client = await connect({ url: '', apiKey: '' });
       const code: SyrinxErrorCode = 'closed';
       const chunks: Uint8Array[] = [];
       for await (const chunk of client.context(options).audio) chunks.push(chunk);
       return code === 'closed' ? chunks : [];
     };
     // @ts-expect-error: no such option
     export const wrong: ContextOptions = { voiceId: 'wren', speed: 2 };\n`,
    );
    const compiler = join(packageRoot, 'node_modules', 'typescript', 'bin', 'tsc');
    const types = ['--typeRoots', join(packageRoot, 'node_modules', '@types'), '--types', 'node'];
    const strict = [
      '--strict',
      '--noEmit',
      '--skipDefaultLibCheck',
      '--module',
      'nodenext',
      '--target',
      'es2022',
      '--lib',
      'esnext',
    ];
    await promisify(execFile)(process.execPath, [compiler, ...strict, ...types, 'typed.mts'], { cwd: dir });

    const blocks = [...readSource('src/client/README.md').matchAll(/^```js\n([\s\S]*?)^```$/gm)];
    const outputs: string[] = [];
    for (const [, code = ''] of blocks) {
      const path = join(dir, 'example.mjs');
      writeFileSync(path, code.replace('http://127.0.0.1:8080', service.url));
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
  },
);

t.test('connecting with an unknown key says so, each time', async (t) => {
  const codes: string[] = [];
  for (let i = 0; i < 5; i++)
    codes.push(await codeOf(connect({ url: service.url, apiKey: `svc_sk_${'x'.repeat(43)}` })));
  t.strictSame(new Set(codes), new Set(['invalid_api_key']));
});

t.test('revoking a key closes its clients', async (t) => {
  const [key = ''] = await createKeys(service.dataDir, [[null, null]]);
  const client = await connect({ url: service.url, apiKey: key });
  const context = client.context({ voiceId: 'wren' });
  await context.started;
  await operate(service.dataDir, (administration) => administration.revoke(key));
  t.equal(await codeOf(collect(context)), 'invalid_api_key');
  t.match(await client.closed, { code: 'invalid_api_key', retryable: false });
});

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

// The last test: it ends the service.
t.test('the client connects again after the service was killed and restarted', async (t) => {
  const client = await connect({
    url: service.url,
    apiKey: service.key,
    reconnect: { attemptsMax: 500, capMs: 500 },
  });
  t.teardown(() => client.close());
  const lost = client.context({ voiceId: 'wren' });
  lost.send('Good morning, the kettle is on, and the paper is at the door! '.repeat(30));
  const reading = errorOf(collect(lost));
  await lost.started;
  await service.kill();
  t.match(await reading, { code: 'connection_lost', retryable: true });
  const next = client.context({ voiceId: 'wren' });
  next.send('There you are.');
  void next.close();
  const second = spawnService(t, { ...environment, DATA_DIR: service.dataDir }, SCRIPTED);
  t.ok(Buffer.concat(await collect(next.audio)).length > 32_000, 'the waiting context speaks');
  await client.close();
  t.equal((await second.stop()).code, 0);
});
