/** The list of requests: every way of asking for speech is in it once, with why it ended, and without texts. */
import t from 'tap';
import { whoOf } from '../../src/console/call-rules.js';
import type { Question, RequestRow } from '../../src/console/contract.js';
import { ConsoleClient } from '../support/console-client.js';
import { ElevenLabsClient } from '../support/elevenlabs-client.js';
import { SCRIPTED, startService, until } from '../support/service.js';
import { openWs } from '../support/socket-client.js';
import { WyomingClient } from '../support/wyoming-client.js';

const service = await startService(
  t,
  {
    ...{ SYNTHESIS_THREADS: '1', CONSOLE_PORT: '0', OPENAI_PORT: '0', ELEVENLABS_PORT: '0' },
    ...{ WYOMING_PORT: '0', WYOMING_ACCOUNT: 'default' },
  },
  SCRIPTED,
);
const operator = await ConsoleClient.claim(service);
const { accountId } = await operator.call('createAccount', { name: 'own', credits: 1_000 });
const { key, view } = await operator.call('createKey', { accountId, properties: { name: 'web' } });
const all: Question<'requests'> = { accountId: null, keyId: null, status: null, before: null };

const rowsOf = async (question: Partial<typeof all> = {}): Promise<readonly RequestRow[]> =>
  (await operator.call('requests', { ...all, ...question })).rows;
/** Waits for a request that ended with this route and reason. */
const rowWith = async (route: string, reason: string): Promise<RequestRow> => {
  let found: RequestRow | undefined;
  const isThere = async () =>
    (found = (await rowsOf()).find((row) => row.route === route && row.reason === reason)) !== undefined;
  if (!(await until(isThere))) throw new Error(`no ${route} ended with ${reason}`);
  return found!;
};
const speak = { text: 'A secret text.', voice: 'wren' };
const post = async (path: string, body: unknown, withKey = key): Promise<Response> => {
  const response = await service.post(path, body, { key: withKey });
  await response.arrayBuffer();
  return response;
};

t.test('requests over HTTP, spoken, refused, failed and left', async (t) => {
  const spoken = await post('/v1/tts', speak);
  t.match(await rowWith('/v1/tts', 'complete'), {
    requestId: spoken.headers.get('x-request-id'),
    ...{ accountId, keyId: view.keyId, voice: 'wren', characters: 14, status: 200, end: 'complete' },
    ...{ firstAudioMs: Number, totalMs: Number, atMs: Number },
  });
  await post('/v1/tts', { text: 'A secret text.', voice: 'a secret voice' });
  t.match(await rowWith('/v1/tts', 'voiceUnknown'), { voice: null, status: 422, end: 'refused' });
  await post('/v1/tts/stream', { text: 'A secret text.', voice: 'wrenn' });
  t.match(await rowWith('/v1/tts/stream', 'voiceUnknown'), { voice: 'wrenn' }, 'an id is kept, and no text');
  await post('/v1/tts', { text: 7 });
  t.match(await rowWith('/v1/tts', 'requestInvalid'), { status: 422, characters: null });
  await post('/v1/tts', speak, 'svc_sk_secret');
  t.match(await rowWith('/v1/tts', 'keyUnknown'), { status: 401, keyId: null, accountId: null });
  await post('/v1/tts', { text: 'A secret text. '.repeat(100), voice: 'wren' });
  t.match(await rowWith('/v1/tts', 'creditExhausted'), { status: 402, characters: 1_500 });
  await post('/v1/tts', { text: '!throw', voice: 'wren' });
  t.match(await rowWith('/v1/tts', 'failed'), { status: 500, end: 'failed' });
  const left = new AbortController();
  const long = { text: 'A secret text of a listener. '.repeat(20), voice: 'wren' };
  const stream = await service.post('/v1/tts/stream', long, { key, signal: left.signal });
  await stream.body!.getReader().read();
  left.abort();
  t.match(await rowWith('/v1/tts/stream', 'aborted'), { status: 200, end: 'stopped', firstAudioMs: Number });
});

t.test('contexts of a WebSocket, and what it refuses', async (t) => {
  const socket = await openWs(service.port, key);
  socket.start('one', { voice_id: 'wren' });
  socket.text('one', 'A secret text.');
  socket.closeContext('one');
  await socket.frame(({ context_closed }) => context_closed === true);
  const spoken = await rowWith('/v1/tts/ws', 'complete');
  t.match(spoken, { accountId, voice: 'wren', characters: 14, status: 101, firstAudioMs: Number });
  socket.send({ secret: 'A secret frame.' });
  t.match(await rowWith('/v1/tts/ws', 'frameInvalid'), { requestId: spoken.requestId, end: 'refused' });
  socket.start('two', { voice_id: 'wren' });
  socket.text('two', 'A secret text. '.repeat(200));
  t.match(await rowWith('/v1/tts/ws', 'creditExhausted'), { voice: 'wren', end: 'refused' });
  socket.send({ cancel_context: true, context_id: 'two' });
  t.match(await rowWith('/v1/tts/ws', 'cancelled'), { end: 'stopped', characters: 0 });
  socket.start('three', { voice_id: 'wren' });
  socket.text('three', '!throw');
  socket.closeContext('three');
  t.match(await rowWith('/v1/tts/ws', 'failed'), { end: 'failed' });
  socket.start('four', { voice_id: 'wren' });
  socket.text('four', 'A secret');
  await socket.frame(
    ({ context_id, context_started }) => context_id === 'four' && context_started !== undefined,
  );
  socket.close();
  t.match(await rowWith('/v1/tts/ws', 'aborted'), { characters: 8 });
  await openWs(service.port, 'svc_sk_secret').then(
    (refused) => refused.closing(),
    () => undefined,
  );
  t.match(await rowWith('/v1/tts/ws', 'keyUnknown'), { accountId: null, end: 'refused' });
  const ofSocket = (await rowsOf()).filter(({ requestId }) => requestId === spoken.requestId);
  t.equal(ofSocket.length, 6, 'one for each context, and for each refusal that ended none');
});

t.test('dialects and Wyoming', async (t) => {
  const { dialectPorts } = service;
  const at = (name: string) => `127.0.0.1:${String(dialectPorts[name])}`;
  const openai = await fetch(`http://${at('openai')}/v1/audio/speech`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'tts-1', voice: 'wren', input: 'A secret text.', response_format: 'pcm' }),
  });
  await openai.arrayBuffer();
  t.match(await rowWith('openai:/v1/audio/speech', 'complete'), { voice: 'wren', characters: 14, accountId });
  const client = await ElevenLabsClient.open(
    `ws://${at('elevenlabs')}/v1/text-to-speech/wren/stream-input?output_format=pcm_24000`,
    { 'xi-api-key': key },
  );
  if ('status' in client) throw new Error(`refused with ${client.status}`);
  client.send({ text: ' ' }, { text: 'A secret text. ' }, { text: '' });
  const socketRoute = 'elevenlabs:/v1/text-to-speech/:voice/stream-input';
  t.match(await rowWith(socketRoute, 'complete'), { voice: 'wren', status: 101 });
  const wyoming = await WyomingClient.open(dialectPorts['wyoming']!);
  wyoming.send('synthesize', { text: 'A secret text.', voice: { name: 'wren' } });
  await wyoming.until('audio-stop');
  const row = await rowWith('wyoming:synthesize', 'complete');
  t.match(row, { voice: 'wren', characters: 14, status: 200, firstAudioMs: Number });
  t.not(row.accountId, accountId, 'the account that pays');
  wyoming.send('synthesize', { text: '!throw', voice: { name: 'wren' } });
  t.match(await rowWith('wyoming:synthesize', 'failed'), { status: 500 });
  wyoming.close();
});

t.test('names, filters and pages', async (t) => {
  t.strictSame(await rowsOf({ keyId: 2 ** 32 }), [], 'a key that cannot be');
  t.strictSame(await rowsOf({ status: 9_999_999_999 }), []);
  const { accounts, keys } = await operator.call('requests', all);
  t.ok(accounts.some(({ account }) => account === 'own'));
  t.ok(keys.some(({ keyId, keyName }) => keyId === view.keyId && keyName === 'web'));
  t.ok(
    keys.some((one) => one.key === 'Playground'),
    'the hidden key that Wyoming uses',
  );
  for (const end of ['complete', 'refused', 'failed', 'stopped'] as const) {
    const rows = await rowsOf({ status: end });
    t.ok(rows.length > 0 && rows.every((row) => row.end === end), end);
  }
  t.strictSame([...new Set((await rowsOf({ status: 402 })).map(({ status }) => status))], [402]);
  t.ok((await rowsOf({ keyId: view.keyId })).every(({ keyId }) => keyId === view.keyId));

  const other = await operator.call('createAccount', { name: 'many', credits: null });
  const made = await operator.call('createKey', { accountId: other.accountId, properties: {} });
  for (let index = 0; index < 250; index++) await post('/v1/tts', {}, made.key);
  const mine = { ...all, accountId: other.accountId };
  const seen: RequestRow[] = [];
  const sizes: number[] = [];
  for (let before: number | null = null; ;) {
    const page: Awaited<ReturnType<typeof operator.call<'requests'>>> = await operator.call('requests', {
      ...mine,
      before,
    });
    sizes.push(page.rows.length);
    seen.push(...page.rows);
    before = page.next;
    if (before === null) break;
  }
  t.strictSame(sizes, [50, 50, 50, 50, 50]);
  t.equal(new Set(seen.map(({ requestId }) => requestId)).size, 250, 'each once');
  t.ok(
    seen.every((row, index) => index === 0 || row.atMs <= seen[index - 1]!.atMs),
    'the newest first',
  );
});

t.test('a member sees its account only, and the past of the service is for operators', async (t) => {
  const member = await operator.invited(accountId, 'max');
  const { accounts, keys, rows } = await member.call('requests', { ...all, accountId });
  t.ok(rows.length > 10 && rows.every((row) => row.accountId === accountId));
  t.strictSame(
    [accounts, keys],
    [[{ accountId, account: 'own' }], [{ keyId: view.keyId, key: view.prefix, keyName: 'web' }]],
  );
  t.equal((await member.post('/api/requests', all)).status, 403);
  const [foreign] = (await operator.call('accounts', {})).filter(({ name }) => name === 'default');
  t.match((await member.post('/api/requests', { ...all, accountId: foreign!.accountId })).status, /^40[34]$/);
  t.equal(whoOf('history'), 'operator');
});

t.test('nothing that a client wrote is in it, and neither are probes and the page itself', async (t) => {
  await service.get('/healthz');
  await operator.ask('/');
  const answers = JSON.stringify([await operator.call('requests', all), await rowsOf({ accountId })]);
  t.notMatch(answers, /secret/i);
  t.notMatch(answers, /healthz|"\/api\/|"\/\*/);
});
