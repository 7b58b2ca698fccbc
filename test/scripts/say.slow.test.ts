import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { say } from '../../scripts/say.js';
import { runner } from '../support/run-command.js';
import { ScriptedSocket, audio as audioFrame, ended, started, words } from '../support/scripted-socket.js';

const sayPath = fileURLToPath(new URL('../../scripts/say.js', import.meta.url));

/** In this process. */
const run = async (args: readonly string[], env: Record<string, string> = {}) => {
  const before = process.listeners('SIGINT');
  const { status: code, ...written } = await runner(say, env['DATA_DIR'] ?? '/nowhere', env)(...args);
  for (const added of process.listeners('SIGINT')) if (!before.includes(added)) process.off('SIGINT', added);
  return { code, ...written };
};

const runProcess = async (args: readonly string[], env: Record<string, string>, input: string) => {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', sayPath, ...args], {
    env: { PATH: process.env['PATH'], ...env },
  });
  child.stdin.end(input);
  const [stdout, stderr, code] = await Promise.all([
    readAll(child.stdout),
    readAll(child.stderr),
    new Promise<number | null>((resolve) => child.once('close', resolve)),
  ]);
  return { stdout, stderr, code };
};

type Answer = (body: Record<string, unknown>, response: ServerResponse) => void;

/** Stands in for the service: what `say` does with its answers is tested here, not the service. */
const serve = async (t: Test, answer: Answer): Promise<{ url: string; keys: unknown[] }> => {
  const keys: unknown[] = [];
  const onRequest = async (request: IncomingMessage, response: ServerResponse) => {
    keys.push(request.headers['x-api-key']);
    if (request.url === '/v1/tts/speakers') response.end(JSON.stringify({ speaker_ids: ['ada', 'bob'] }));
    else answer(JSON.parse(await readAll(request)) as Record<string, unknown>, response);
  };
  const server = createServer((request, response) => void onRequest(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return { url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`, keys };
};

const record = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const audio = (bytes: Buffer) => record({ type: 'audio', audio_chunk: bytes.toString('base64') });
const samples = Buffer.from(Array.from({ length: 400 }, (_, i) => i % 256));

/** A header as a stream has it: its sizes are not known. */
const streamHeader = (): Buffer => {
  const header = Buffer.alloc(44);
  header.write('RIFF\xff\xff\xff\xffWAVEfmt ', 'latin1');
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(32_000, 24);
  header.writeUInt32LE(64_000, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write('data\xff\xff\xff\xff', 36, 'latin1');
  return header;
};

const checkWav = (t: Test, path: string, data: Buffer) => {
  const bytes = readFileSync(path);
  t.equal(bytes.readUInt32LE(4), bytes.length - 8, 'the RIFF size is true');
  t.equal(bytes.readUInt32LE(40), bytes.length - 44, 'the data size is true');
  t.strictSame(bytes.subarray(44), data);
};

t.test('a WAV file has the true sizes, and records may be split anywhere', async (t) => {
  const dir = t.testdir();
  const asked: Record<string, unknown>[] = [];
  const { url, keys } = await serve(t, (body, response) => {
    asked.push(body);
    const stream =
      audio(Buffer.concat([streamHeader(), samples])) +
      record({ type: 'timestamps', words: ['Good', 'day.'], start_seconds: [0, 1], end_seconds: [1, 2] }) +
      audio(samples);
    for (let i = 0; i < stream.length; i += 100) response.write(stream.slice(i, i + 100));
    response.end();
  });
  const path = join(dir, 'out.wav');
  const { code, stderr } = await run(['Good', 'day.', '-o', path, '--url', url], {
    SYRINX_KEY: 'svc_sk_test',
  });
  t.equal(code, 0, stderr);
  t.match(stderr, /^ada: first audio after \d+ ms/, 'the default voice is the first');
  t.strictSame(asked[0]?.['text'], 'Good day.');
  t.strictSame(keys, ['svc_sk_test', 'svc_sk_test']);
  checkWav(t, path, Buffer.concat([samples, samples]));
  t.notOk(existsSync(`${path}.part`));
});

t.test('linear16 repeats its header on every chunk; the file has it once', async (t) => {
  const path = join(t.testdir(), 'out.wav');
  const { url } = await serve(t, (_body, response) => {
    for (let i = 0; i < 3; i++) response.write(audio(Buffer.concat([streamHeader(), samples])));
    response.end();
  });
  const { code } = await run([
    'hi',
    '-o',
    path,
    '--format',
    'linear16',
    '--voice',
    'bob',
    '--url',
    url,
    '--key',
    'k',
  ]);
  t.equal(code, 0);
  checkWav(t, path, Buffer.concat([samples, samples, samples]));
});

t.test(
  'text comes from standard input, audio goes to standard output, the key from the data folder',
  async (t) => {
    const dir = t.testdir({ 'first-key': 'svc_sk_first\n' });
    const { url, keys } = await serve(t, (body, response) =>
      response.end(audio(Buffer.from(String(body['text'])))),
    );
    const { code, stdout } = await runProcess(['-o', '-', '--url', url], { DATA_DIR: dir }, 'from a pipe');
    t.equal(code, 0);
    t.equal(stdout, 'from a pipe');
    t.equal(keys[0], 'svc_sk_first');
  },
);

t.test('a stream that breaks off leaves no file', async (t) => {
  const path = join(t.testdir(), 'out.wav');
  writeFileSync(path, 'what was there before');
  const { url } = await serve(t, (_body, response) => {
    response.write(audio(samples), () => response.destroy());
  });
  const { code, stderr } = await run(['hi', '-o', path, '--url', url, '--key', 'k']);
  t.equal(code, 1);
  t.match(stderr, /broke off/);
  t.equal(readFileSync(path, 'utf8'), 'what was there before');
  t.notOk(existsSync(`${path}.part`));
});

t.test('each refusal is explained in words', async (t) => {
  const cases: [number, unknown, RegExp][] = [
    [401, { error: 'INVALID_API_KEY' }, /does not know this key/],
    [401, { error: 'Invalid or missing API key' }, /not a key of the service/],
    [402, { error: 'INSUFFICIENT_CREDITS' }, /no credit/],
    [429, { error: 'Rate limit exceeded', reason: 'concurrency' }, /in flight/],
    [
      422,
      { error: 'unknown_voice', message: 'Voice zed is unknown', valid_voices: [] },
      /Voice zed is unknown/,
    ],
    [
      422,
      {
        detail: [
          { loc: ['body', 'response_format', 'encoding'], msg: 'Value error, Unsupported', type: 'x' },
        ],
      },
      /response_format\.encoding: Value error, Unsupported/,
    ],
    [500, 'Internal Server Error', /answered 500/],
  ];
  const path = join(t.testdir(), 'out.wav');
  for (const [status, body, expected] of cases) {
    const { url } = await serve(t, (_body, response) => response.writeHead(status).end(JSON.stringify(body)));
    const { code, stderr } = await run(['hi', '-o', path, '--voice', 'v', '--url', url, '--key', 'k']);
    t.equal(code, 1);
    t.match(stderr, expected);
    t.notMatch(stderr, /\bat .*:\d+:\d+/, 'no stack trace');
  }
});

t.test('an address at which something else answers is named', async (t) => {
  for (const body of ['<!doctype html>', '{"status":"ready"}']) {
    const other = createServer((_request, response) => response.end(body)).listen(0, '127.0.0.1');
    t.teardown(() => other.close());
    await once(other, 'listening');
    const url = `http://127.0.0.1:${String((other.address() as AddressInfo).port)}`;
    const { code, stderr } = await run(['hi', '--url', url, '--key', 'k']);
    t.equal(code, 1);
    t.equal(
      stderr,
      `What answers at ${url} is not the speech service: give the address that the start shows beside "Speech".\n`,
    );
  }
});

t.test('what is missing is named: the service, a key, an option, a text, a format', async (t) => {
  const dir = t.testdir();
  const passing = createServer().listen(0, '127.0.0.1');
  await once(passing, 'listening');
  const { port } = passing.address() as AddressInfo;
  passing.close();
  const gone = await run(['hi', '--url', `http://127.0.0.1:${String(port)}`, '--key', 'k']);
  t.equal(gone.code, 1);
  t.match(gone.stderr, /npm start/);
  const keyless = await run(['hi'], { DATA_DIR: dir });
  t.equal(keyless.code, 1);
  t.match(keyless.stderr, /npm run keys -- create/);
  const wrong = await run(['hi', '--louder']);
  t.equal(wrong.code, 2);
  t.match(wrong.stderr, /--louder[\s\S]*--voice/);
  t.match(await run(['hi', '--url', '127.0.0.1:8080']), { code: 2, stderr: /^say: --url begins with http/ });
  t.match(await run(['hi', '-f', 'mp3']), { code: 2, stderr: /^say: --format is for files/ });
  t.match(await run([' ', '']), { code: 1, stderr: 'There is nothing to speak: the text is empty.\n' });
  t.match(await runProcess([], {}, '\n'), { code: 1, stderr: /standard input is empty/ });
  const flac = join(dir, 'x.flac');
  t.match(await run(['hi', '-o', flac]), {
    code: 2,
    stderr: /x\.flac: no format has this ending\. Use \.wav, /,
  });
  t.notOk(existsSync(flac));
});

t.test('the name of the file chooses the format, in any case, unless --format does', async (t) => {
  const dir = t.testdir();
  const asked: unknown[] = [];
  const { url } = await serve(t, ({ response_format: format }, response) => {
    asked.push(format);
    response.end(audio(samples));
  });
  for (const args of [['a.MP3'], ['a.ogg'], ['a'], ['.hidden'], ['a.flac', '--format', 'alaw']])
    await run(['hi', '-o', join(dir, args[0]!), ...args.slice(1), '--url', url, '--key', 'k']);
  const encodings = ['mp3', 'opus', 'wav', 'wav', 'alaw'];
  t.strictSame(
    asked,
    encodings.map((encoding) => ({ encoding })),
  );
});

t.test('without a file it plays, through the first player there is', async (t) => {
  const dir = t.testdir({ heard: '' });
  const player = join(dir, 'aplay');
  writeFileSync(player, `#!/bin/sh\n/bin/cat > '${join(dir, 'heard')}'\n`, { mode: 0o755 });
  const { url } = await serve(t, (body, response) => {
    t.match(body['response_format'], { encoding: 'wav' });
    response.write(audio(Buffer.concat([streamHeader(), samples])));
    response.end(audio(samples));
  });
  const { PATH, TMPDIR } = process.env;
  t.teardown(() => {
    process.env['PATH'] = PATH;
    if (TMPDIR === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = TMPDIR;
  });
  Object.assign(process.env, { PATH: dir, TMPDIR: dir });
  const listen = () => run(['hi', '--url', url, '--key', 'k']);
  const { code, stderr } = await listen();
  t.equal(code, 0, stderr);
  t.strictSame(readFileSync(join(dir, 'heard')), Buffer.concat([samples, samples]));
  t.strictSame(readdirSync(dir).sort(), ['aplay', 'heard'], 'nothing else is left');

  const silences: readonly (readonly [name: string, script: string | null, why: RegExp])[] = [
    ['aplay', 'echo no sound card >&2\nexit 1', /Nothing was heard: aplay could not play: no sound card\./],
    // So does ffplay without a sound device.
    ['ffplay', 'echo audio open failed >&2\necho more >&2', /ffplay could not play: audio open failed\./],
    ['aplay', null, /no player is installed \(ffplay, aplay, paplay, play, afplay\)/],
  ];
  for (const [name, script, why] of silences) {
    rmSync(player, { force: true });
    rmSync(join(dir, 'ffplay'), { force: true });
    if (script !== null) writeFileSync(join(dir, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const silent = await listen();
    t.equal(silent.code, 1);
    t.match(silent.stderr, why);
    const [, path = ''] = /The speech is in (.+\.wav)$/m.exec(silent.stderr) ?? [];
    checkWav(t, path, Buffer.concat([samples, samples]));
  }
});

t.test('--ws sends the text word by word, and writes what comes meanwhile', async (t) => {
  const path = join(t.testdir(), 'out.wav');
  const server = await ScriptedSocket.listen(t);
  const flags = ['--ws', '-o', path, '--voice', 'ada', '--url', server.url, '--key', 'svc_sk_test'];
  const running = run([' Good  day,\nyou', ...flags]);
  const peer = await server.peer();
  t.equal(peer.request.headers['x-api-key'], 'svc_sk_test');
  const start = await peer.next();
  const id = String(start['context_id']);
  t.match(start, {
    start_context: { voice_id: 'ada', timestamps: true, response_format: { encoding: 'wav' } },
  });
  peer.send(started(id), audioFrame(id, Buffer.concat([streamHeader(), samples])));
  for (const word of [' Good  ', 'day,\n', 'you']) t.match(await peer.next(), { send_text: word });
  t.match(await peer.next(), { close_context: true });
  peer.send(words(id, 0, 'Good', 'day,'), audioFrame(id, samples), ...ended(id));
  const { code, stderr } = await running;
  t.equal(code, 0, stderr);
  t.match(stderr, /^ada: first audio after \d+ ms/);
  checkWav(t, path, Buffer.concat([samples, samples]));
  t.equal((await peer.closed).code, 1000);
});

t.test('--ws explains each refusal in words too, and leaves no file', async (t) => {
  const cases: [string, RegExp][] = [
    ['INVALID_API_KEY', /does not know this key/],
    ['INSUFFICIENT_CREDITS', /no credit/],
    ['Rate limit exceeded', /in flight/],
    ["Unknown voice 'zed'. Valid voices: ada", /Unknown voice 'zed'/],
    ['', /broke off/],
  ];
  for (const [error, expected] of cases) {
    const path = join(t.testdir(), 'out.wav');
    const server = await ScriptedSocket.listen(t);
    const running = run(['hi', '--ws', '-o', path, '--voice', 'zed', '--url', server.url, '--key', 'k']);
    const peer = await server.peer();
    const { context_id: id } = await peer.next();
    if (error === '') peer.socket.terminate();
    else peer.send({ error, context_id: id });
    const { code, stderr } = await running;
    t.equal(code, 1);
    t.match(stderr, expected);
    t.notMatch(stderr, /\bat .*:\d+:\d+/, 'no stack trace');
    t.notOk(existsSync(path) || existsSync(`${path}.part`));
  }
});
