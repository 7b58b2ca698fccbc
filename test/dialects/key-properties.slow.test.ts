/** A key that expires, has a limit or lacks voices, and an account that is suspended, for the clients of other services. */
import t, { type Test } from 'tap';
import type { KeyProperties } from '../../src/store/store.js';
import { operate } from '../../scripts/operator.js';
import { ElevenLabsClient } from '../support/elevenlabs-client.js';
import { SCRIPTED, startService, until } from '../support/service.js';
import { WyomingClient } from '../support/wyoming-client.js';

const service = await startService(
  t,
  {
    SYNTHESIS_THREADS: '1',
    ELEVENLABS_PORT: '0',
    OPENAI_PORT: '0',
    OPENAI_VOICES: 'anna=lark,bob=rook',
    WYOMING_PORT: '0',
    WYOMING_ACCOUNT: 'default',
  },
  SCRIPTED,
);
const { dataDir, dialectPorts } = service;

const createKey = (properties: Partial<KeyProperties>): Promise<string> =>
  operate(dataDir, async (administration) => (await administration.createKey('shop', null, properties)).key);

const elevenLabs = `127.0.0.1:${dialectPorts['elevenlabs']}/v1`;
const openAi = `http://127.0.0.1:${dialectPorts['openai']}/v1`;

/** @returns status and body; of audio no body */
const answerOf = async (asked: Promise<Response>): Promise<{ status: number; body: unknown }> => {
  const response = await asked;
  const bytes = Buffer.from(await response.arrayBuffer());
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
  return { status: response.status, body: isJson ? JSON.parse(bytes.toString()) : null };
};

const askElevenLabs = (key: string, voice: string, text: string) =>
  answerOf(
    fetch(`http://${elevenLabs}/text-to-speech/${voice}`, {
      method: 'POST',
      headers: { 'xi-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify({ text }),
    }),
  );

/** @returns the refusal of the handshake, or `null` */
const openElevenLabs = async (key: string, voice: string): Promise<unknown> => {
  const path = `ws://${elevenLabs}/text-to-speech/${voice}/stream-input`;
  const client = await ElevenLabsClient.open(path, { 'xi-api-key': key });
  if (!(client instanceof ElevenLabsClient)) return client;
  client.close();
  return null;
};

const askOpenAi = (key: string, voice: string, input: string) =>
  answerOf(
    fetch(`${openAi}/audio/speech`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'tts-1', voice, input }),
    }),
  );

const refusedBy = {
  elevenLabs: (status: number, name: string) => ({ status, body: { detail: { status: name } } }),
  openAi: (status: number, code: string) => ({ status, body: { error: { code } } }),
};

/** The key is not valid any more. */
const checkRefused = async (t: Test, key: string): Promise<void> => {
  const invalid = refusedBy.elevenLabs(401, 'invalid_api_key');
  t.match(await askElevenLabs(key, 'lark', 'Yes.'), invalid);
  t.match(await openElevenLabs(key, 'lark'), invalid);
  t.match(await askOpenAi(key, 'lark', 'Yes.'), refusedBy.openAi(401, 'invalid_api_key'));
};

t.test('a key knows its voices only', async (t) => {
  const key = await createKey({ voices: ['lark'] });
  const unknown = { status: 404, body: { detail: { status: 'voice_not_found', message: /lark$/ } } };
  t.match(await askElevenLabs(key, 'wren', 'Yes.'), unknown);
  t.match(await openElevenLabs(key, 'wren'), unknown);
  t.match(await askElevenLabs(key, 'lark', 'Yes.'), { status: 200 });
  t.equal(await openElevenLabs(key, 'lark'), null);
  const list = await answerOf(fetch(`http://${elevenLabs}/voices`, { headers: { 'xi-api-key': key } }));
  t.match(list.body, { voices: [{ voice_id: 'lark' }] });
  t.equal((list.body as { voices: unknown[] }).voices.length, 1);

  for (const voice of ['wren', 'bob'])
    t.match(await askOpenAi(key, voice, 'Yes.'), {
      status: 400,
      body: { error: { param: 'voice', message: /Valid voices: lark$/ } },
    });
  for (const voice of ['lark', 'anna', 'alloy'])
    t.match(await askOpenAi(key, voice, 'Yes.'), { status: 200 }, voice);
  const headers = { authorization: `Bearer ${key}` };
  const { body } = await answerOf(fetch(`${openAi}/audio/voices`, { headers }));
  const names = (body as { voices: { id: string }[] }).voices.map(({ id }) => id);
  t.ok(names.includes('anna') && names.includes('alloy'));
  t.notOk(names.includes('bob') || names.includes('wren'), 'no name that would be refused is listed');
});

t.test('a key spends its limit and no further', async (t) => {
  const key = await createKey({ creditLimit: 10 });
  const spent = refusedBy.elevenLabs(402, 'quota_exceeded');
  t.match(await askElevenLabs(key, 'lark', 'Eleven long'), spent);
  t.match(await askOpenAi(key, 'lark', 'Eleven long'), refusedBy.openAi(429, 'insufficient_quota'));
  t.match(await askOpenAi(key, 'lark', 'Ten, whole'), { status: 200 });
  t.ok(await until(async () => (await askElevenLabs(key, 'lark', '!')).status === 402));
  t.match(await openElevenLabs(key, 'lark'), spent);
});

t.test('a key that expires, and one whose account is suspended', async (t) => {
  const key = await createKey({ expiresAtMs: Date.now() + 600_000 });
  t.match(await askOpenAi(key, 'lark', 'Yes.'), { status: 200 });
  const { expiresAtMs } = await operate(dataDir, (administration) =>
    administration.change(key, { expiresAtMs: Date.now() + 1_000 }),
  );
  t.ok(await until(() => Date.now() >= expiresAtMs!));
  await checkRefused(t, key);
  const other = await createKey({});
  t.match(await askElevenLabs(other, 'lark', 'Yes.'), { status: 200 });
  await operate(dataDir, (administration) => administration.suspend('shop'));
  await checkRefused(t, other);
  await operate(dataDir, (administration) => administration.resume('shop'));
  t.match(await askElevenLabs(other, 'lark', 'Yes.'), { status: 200 });
});

t.test('Wyoming has no keys: the account that pays is suspended', async (t) => {
  const ask = async () => {
    const client = await WyomingClient.open(dialectPorts['wyoming'] ?? 0);
    t.teardown(() => client.close());
    client.send('synthesize', { text: 'Yes.' });
    return client;
  };
  await (await ask()).until('audio-stop');
  await operate(dataDir, (administration) => administration.suspend('default'));
  t.match(await (await ask()).untilClosed(), [{ type: 'error', data: { text: /suspended/ } }]);
  await operate(dataDir, (administration) => administration.resume('default'));
  await (await ask()).until('audio-stop');
});
