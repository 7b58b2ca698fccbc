/**
 * The service keeps no client input. This test sends unique keys and words in every possible way, and then searches the
 * log at level trace, the files of the service, and the heaps of its threads for them.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { createKeys } from '../../scripts/operator.js';
import { limits } from '../../src/limits.js';
import { RawClient, requestBytes, type RequestOptions } from '../support/raw-client.js';
import { pause, startService, until, type TestService } from '../support/service.js';
import { openWs } from '../support/socket-client.js';
import { temporaryFolder } from '../store/support.js';

/** Words that are in no dictionary, and a code as people have it read to them. */
const words = 'Quorvimble trasketh novendrum';
const code = 'ZQ7-4471-XKRV';
const sentence = `The ${words} said ${code} to 17 of them, and went home.`;
/** Part of the names of voices, contexts, paths and headers. */
const name = 'zorblatqix';
const canaries = [...words.split(' '), 'ZQ7-4471', '4471-XKRV', name];
/**
 * The name of an unknown field. Where code reads the fields of an object, V8 keeps the first name that it meets: in the
 * heap, and nowhere else.
 */
const field = 'plimmerdusk';

const speech = (more: object = {}): string => JSON.stringify({ text: sentence, voice: 'wren', ...more });

/** HTTP requests, each with the status that it must get. */
const requests = (key: string): readonly (readonly [number, RequestOptions])[] => {
  const post = (path: string, body: string, more: Partial<RequestOptions> = {}): RequestOptions => ({
    method: 'POST',
    path,
    key,
    body,
    ...more,
  });
  const stream = '/v1/tts/stream';
  const hook = '/v1/tts/integrations/voiceplatform';
  const message = (more: object = {}) =>
    JSON.stringify({ message: { type: 'voice-request', text: sentence, sampleRate: 16_000, ...more } });
  return [
    [200, post('/v1/tts', speech({ timestamps: true, normalize_text: true }))],
    [200, post(stream, speech({ timestamps: true, response_format: { encoding: 'opus' } }))],
    [200, post(stream, speech({ normalize_text: true, response_format: { encoding: 'pcm' } }))],
    [200, post(`${hook}?voice=wren&${name}=${name}`, message())],
    [200, post('/v1/tts', speech({ text: sentence.repeat(4) }))],
    [200, { path: '/v1/tts/speakers', key, headers: [`user-agent: ${name}`, `x-${name}: ${code}`] }],
    [404, { path: `/v1/${name}?text=${code}`, key }],
    [405, { method: 'PUT', path: stream, key, body: speech() }],
    [401, post('/v1/tts', speech(), { key: `svc_sk_${name}${code}` })],
    [401, post('/v1/tts', speech(), { key: `${name}${code}` })],
    [401, post(stream, speech(), { key: null, headers: [`authorization: Bearer ${key}`] })],
    [422, post('/v1/tts', speech({ voice: `${name}${code}` }))],
    [422, post(stream, speech({ [field]: sentence, temperature: code }))],
    [422, post(stream, speech({ response_format: sentence }))],
    [422, post('/v1/tts', JSON.stringify(sentence))],
    [422, post(`${hook}?voice=${name}`, message())],
    [422, post(`${hook}?voice=wren`, message({ sampleRate: sentence }))],
    [422, post(stream, `{"text": "${sentence}", `)],
    [400, post(stream, '['.repeat(500) + JSON.stringify(sentence))],
    [422, post(stream, Buffer.concat([Buffer.from(sentence), Buffer.of(0xff)]).toString('latin1'))],
    [413, post('/v1/tts', speech({ text: sentence.repeat(20_000) }))],
  ];
};

const last = (key: string): RequestOptions => ({
  method: 'POST',
  path: '/v1/tts/stream',
  key,
  body: speech({ normalize_text: true, timestamps: true }),
});

const send = async (port: number, request: RequestOptions): Promise<number> => {
  const client = await RawClient.open(port);
  client.send(requestBytes(request));
  const { status } = await client.response();
  client.destroy();
  return status;
};

/** Every kind of WebSocket message, and then a client that vanishes. */
const overSocket = async (service: TestService, key: string): Promise<void> => {
  const client = await openWs(service.port, key);
  const contextId = `${name}-context`;
  client.start(contextId, { voice_id: 'wren', timestamps: true });
  for (const piece of sentence.match(/.{1,7}/gs) ?? []) client.text(contextId, piece);
  client.flush(contextId, `${name}-flush`);
  await client.frame(({ flush_id }) => flush_id === `${name}-flush`);
  client.send(`{"send_text": "${sentence}", `);
  client.send({ send_text: sentence, [field]: code });
  client.send({ send_text: sentence, context_id: `${name}-unknown` });
  client.ws.send(Buffer.from(sentence));
  client.start(`${name}-voice`, { voice_id: `${name}${code}` });
  client.start(`${name}-cancelled`, { voice_id: 'wren' });
  client.text(`${name}-cancelled`, sentence.repeat(50));
  await client.frame((frame) => frame.context_id === `${name}-cancelled` && frame.audio_chunk !== undefined);
  client.cancel(`${name}-cancelled`);
  client.text(contextId, sentence);
  client.closeContext(contextId);
  await client.frame((frame) => frame.context_id === contextId && frame.context_closed === true);
  // The client vanishes in the middle of a word.
  client.start(null, { voice_id: 'wren' });
  client.text(null, `${sentence} ${sentence} ${words.slice(0, 14)}`);
  await client.frame((frame) => frame.context_id === undefined && frame.audio_chunk !== undefined);
  client.ws.terminate();
};

/** Clients that leave during a request, and during a stream. */
const left = async (service: TestService, key: string): Promise<void> => {
  const half = await RawClient.open(service.port);
  const whole = requestBytes({ method: 'POST', path: '/v1/tts', key, body: speech() });
  half.send(whole.subarray(0, whole.length - 20));
  const stream = await RawClient.open(service.port);
  const body = speech({ text: sentence.repeat(100) });
  stream.send(requestBytes({ method: 'POST', path: '/v1/tts/stream', key, body }));
  await stream.until(() => stream.receivedBytes > 10_000);
  stream.destroy();
  half.destroy();
};

const leftIn = (text: string | Buffer): string[] => canaries.filter((canary) => text.includes(canary));

/** Files below a folder that contain a canary. */
const leftInFiles = (folder: string, more: readonly string[]): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .flatMap((entry) => {
      const bytes = readFileSync(join(entry.parentPath, entry.name));
      return [...leftIn(bytes), ...more.filter((key) => bytes.includes(key))].map(
        (found) => `${entry.name}: ${found}`,
      );
    });

const startWithKeys = async (t: Test) => {
  const folder = temporaryFolder(t);
  const dataDir = join(folder, 'data');
  const [good = '', poor = ''] = await createKeys(dataDir, [
    ['good', 10_000_000],
    ['poor', 3],
  ]);
  const keys = { good, poor };
  const snapshots = join(folder, 'snapshots');
  const env = {
    DATA_DIR: dataDir,
    SNAPSHOTS: snapshots,
    LOG_LEVEL: 'trace',
    SYNTHESIS_THREADS: '1',
    ACTOR_THREADS: '1',
  };
  const service = await startService(t, env, 'test/support/dissected-service.js');
  return { service, keys, dataDir, snapshots };
};

t.test('no key and no text is in the log, in a file, or, after the request, in a heap', async (t) => {
  const { service, keys, dataDir, snapshots } = await startWithKeys(t);
  const { port } = service;
  for (const [status, request] of requests(keys.good))
    t.equal(await send(port, request), status, `${request.path} ${status}`);
  t.equal(await send(port, { method: 'POST', path: '/v1/tts', key: keys.poor, body: speech() }), 402);
  // Nine streams, and one request more.
  const text = sentence.repeat(200);
  const spoken = await Promise.all(
    Array.from({ length: 9 }, () =>
      service.post('/v1/tts/stream', { text, voice: 'wren' }, { key: keys.good }),
    ),
  );
  const refused = await service.post('/v1/tts', { text, voice: 'wren' }, { key: keys.good });
  t.equal(refused.status, 429);
  await refused.text();
  for (const response of spoken) await response.body?.cancel();
  await overSocket(service, keys.good);
  const unknown = await openWs(port, `svc_sk_${name}${code}`);
  t.match(await unknown.closing(), { code: 1008 });
  await left(service, keys.good);
  // The last request of all, so that nothing else has replaced it in a cache.
  t.equal(await send(port, last(keys.good)), 200);
  const ends = (msg: string) => service.entries.filter((line) => line.msg === msg).length;
  const expected = requests(keys.good).length + 1 + 9 + 1 + 2 + 1;
  t.ok(await until(() => ends('request') >= expected && ends('socket') >= 2));
  t.equal(ends('request'), expected, 'a log entry for each request');
  t.equal(ends('socket'), 2, 'and for each WebSocket');

  const secrets = [keys.good, keys.poor];
  await pause(5 * limits.pronunciationsKeptMs);
  service.signal('SIGWINCH');
  t.ok(await until(() => existsSync(join(snapshots, 'done')), 120_000));
  const heaps = readdirSync(snapshots).filter((file) => file.endsWith('.heapsnapshot'));
  t.equal(heaps.length, 4, 'of the front, actor, synthesis and ledger threads');
  t.strictSame(leftInFiles(snapshots, secrets), [], 'heaps');
  t.match(await service.stop(), { code: 0 });
  t.strictSame(leftInFiles(dataDir, [...secrets, field]), [], 'files');
  const log = service.stdout + service.stderr;
  t.strictSame([...leftIn(log), ...[...secrets, field].filter((key) => log.includes(key))], [], 'log');
  t.equal(service.stderr, '');
});
