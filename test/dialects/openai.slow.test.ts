/** The API of OpenAI over HTTP. What its clients make of it is in openai-clients.slow.test.ts. */
import t from 'tap';
import { prose, startService, until } from '../support/service.js';

interface Speech {
  readonly model: string;
  readonly voice: string | { readonly id: string };
  readonly input: string;
  readonly [more: string]: unknown;
}

const SENTENCE = 'The kettle is on, and the paper is at the door.';

const service = await startService(t, {
  ...{ OPENAI_PORT: '0', SYNTHESIS_THREADS: '1' },
  OPENAI_VOICES: 'anna=lark,alloy=heron,eve=nova,ghost=nosuch',
});
const baseURL = `http://127.0.0.1:${String(service.dialectPorts['openai'])}/v1`;
const [brokeKey = ''] = await service.makeKeys(1, 0);

const asked = (input: string, more: object = {}): Speech => ({
  model: 'tts-1',
  voice: 'alloy',
  input,
  ...more,
});

const post = (body: unknown, key = service.key, path = '/audio/speech'): Promise<Response> =>
  fetch(baseURL + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

const bytesOf = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer());

t.test('every format has its type and its beginning, at 24 kHz', async (t) => {
  const formats: readonly (readonly [format: string | undefined, type: string, begin: RegExp])[] = [
    [undefined, 'audio/mpeg', /^\xff[\xf2\xf3]/],
    ['mp3', 'audio/mpeg', /^\xff[\xf2\xf3]/],
    ['opus', 'audio/ogg', /^OggS/],
    ['aac', 'audio/aac', /^\xff[\xf0\xf1\xf8\xf9]/],
    ['flac', 'audio/flac', /^fLaC/],
    ['wav', 'audio/wav', /^RIFF....WAVEfmt \x10\0\0\0\x01\0\x01\0\xc0\x5d\0\0/s],
    ['pcm', 'audio/pcm', /^/],
  ];
  for (const [format, type, begin] of formats) {
    const response = await post(asked(SENTENCE, { response_format: format, instructions: 'Speak softly.' }));
    t.equal(response.status, 200, type);
    t.equal(response.headers.get('content-type'), type);
    t.match((await bytesOf(response)).toString('latin1'), begin);
  }
});

t.test('a wav of a short text has its true sizes, and a longer one comes as it is made', async (t) => {
  for (const [input, isWhole] of [
    [SENTENCE, true],
    [' ', true],
    [SENTENCE.repeat(4), false],
  ] as const) {
    const response = await post(asked(input, { response_format: 'wav' }));
    const file = await bytesOf(response);
    t.equal(response.headers.get('content-length'), isWhole ? String(file.length) : null);
    t.equal(file.toString('latin1', 36, 40), 'data');
    t.strictSame(
      [file.readUInt32LE(4), file.readUInt32LE(40)],
      isWhole ? [file.length - 8, file.length - 44] : [0xffff_ffff, 0xffff_ffff],
    );
    t.ok(file.length > 2_000);
  }
});

t.test('a start warns of names whose voice does not exist', (t) => {
  t.strictSame(
    service
      .logged('there is no voice "nosuch": requests for "ghost" are refused')
      .map((entry) => entry['OPENAI_VOICES']),
    ['ghost=nosuch'],
  );
  t.equal(service.logged('there is no voice "nova": requests for "eve" are refused').length, 0);
  t.end();
});

t.test('of several headers with a key, the one counts by which the proxies choose a host', async (t) => {
  const other = 'svc_sk_unknown';
  const statusOf = async (headers: Record<string, string>): Promise<number> =>
    (await fetch(`${baseURL}/models`, { headers })).status;
  const { key } = service;
  t.equal(await statusOf({ 'x-api-key': key, 'xi-api-key': other, authorization: `Bearer ${other}` }), 200);
  t.equal(await statusOf({ 'xi-api-key': key, authorization: `Bearer ${other}` }), 200);
  t.equal(await statusOf({ authorization: `Bearer ${key}` }), 200);
  t.equal(await statusOf({ 'x-api-key': other, authorization: `Bearer ${key}` }), 401);
  t.equal(await statusOf({ 'xi-api-key': other, authorization: `Bearer ${key}` }), 401);
});

t.test('audio comes while it is made, and an abort frees the slot', async (t) => {
  for (let round = 0; round < 10; round++) {
    const aborter = new AbortController();
    const response = await fetch(`${baseURL}/audio/speech`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(asked(prose(50), { response_format: 'pcm' })),
      signal: aborter.signal,
    });
    const reader = response.body!.getReader() as ReadableStreamDefaultReader<Uint8Array>;
    const { value } = await reader.read();
    if (round === 0) t.ok(value!.length > 0 && (await service.openContexts()) === 1, 'its end is not made');
    aborter.abort();
  }
  t.ok(await until(async () => (await service.openContexts()) === 0));
  t.equal((await post(asked('Free.'))).status, 200);
});

t.test('a speed beyond what the voices can do is spoken at the nearest', async (t) => {
  // A voice speaks the same text up to a third longer or shorter each time.
  const bytesAt = async (speed: number): Promise<number> => {
    const one = async () => bytesOf(await post(asked(SENTENCE, { response_format: 'pcm', speed })));
    const spoken = await Promise.all(Array.from({ length: 8 }, one));
    return spoken.reduce((sum, { length }) => sum + length, 0) / spoken.length;
  };
  const [slowest, slow, normal, fast, fastest] = [
    await bytesAt(0.25),
    await bytesAt(0.5),
    await bytesAt(1),
    await bytesAt(2),
    await bytesAt(4),
  ];
  t.ok(slow > 1.6 * normal && fast < 0.65 * normal, `${slow} ${normal} ${fast}`);
  t.ok(Math.abs(slowest / slow - 1) < 0.3 && Math.abs(fastest / fast - 1) < 0.3, `${slowest} ${fastest}`);
});

t.test("OpenAI's names have voices, the operator's names come first, and others are refused", async (t) => {
  const voices = 'alloy ash ballad coral echo fable onyx nova sage shimmer verse marin cedar anna wren'.split(
    ' ',
  );
  // A key without credit: its requests pass every check but the last.
  for (const voice of voices) t.equal((await post(asked('a', { voice }), brokeKey)).status, 429, voice);
  t.equal((await post(asked('a', { voice: { id: 'anna' } }), brokeKey)).status, 429);
  for (const voice of ['nobody', 'Alloy', '']) {
    const response = await post(asked('a', { voice }), brokeKey);
    t.equal(response.status, 400);
    t.match(await response.json(), { error: { param: 'voice', message: /Valid voices: finch, heron, jay/ } });
  }
  const list = (await (await fetch(`${baseURL}/audio/voices`)).json()) as { voices: { id: string }[] };
  const ids = list.voices.map(({ id }) => id);
  t.equal(ids.length, new Set(ids).size);
  t.strictSame(ids.slice(0, 2), ['wren', 'wren_conv']);
  t.ok(['nova', 'anna'].every((name) => ids.includes(name)));
  t.equal(
    (await fetch(`${baseURL}/audio/voices`, { headers: { authorization: 'Bearer svc_sk_x' } })).status,
    401,
  );
  const refusal = async (headers: Record<string, string>): Promise<unknown> =>
    (await fetch(`${baseURL}/models/tts-1`, { headers })).json();
  t.match(await refusal({}), { error: { code: 'invalid_api_key', message: /^You did not send an API key/ } });
  t.match(await refusal({ authorization: 'Bearer sk-1' }), {
    error: { code: 'invalid_api_key', message: /^Incorrect API key: .* begins with svc_sk_/ },
  });
  t.same(await (await fetch(`${baseURL}/audio/models`)).json(), {
    models: [{ id: 'tts-1' }, { id: 'tts-1-hd' }, { id: 'gpt-4o-mini-tts' }],
  });
});

t.test('a body that is not valid is refused in the words of this API', async (t) => {
  const refusals: readonly (readonly [
    body: unknown,
    param: string | null,
    code: string | null,
    message: RegExp,
  ])[] = [
    ['{', null, null, /could not parse/],
    ['', null, null, /could not parse/],
    ['null', null, null, /could not parse/],
    ['['.repeat(500), null, null, /nests too deep/],
    ['[]', null, null, /must be a JSON object/],
    [{ voice: 'alloy' }, 'input', 'missing_required_parameter', /Missing required parameter: 'input'/],
    [{ input: 'a' }, 'voice', 'missing_required_parameter', /Missing required parameter: 'voice'/],
    [asked(''), 'input', 'empty_string', /empty string/],
    [asked('a', { input: ['a'] }), 'input', 'invalid_type', /expected a string, but got an array/],
    [asked('a', { voice: { name: 'a' } }), 'voice', 'invalid_type', /but got an object/],
    [
      asked('a', { response_format: 'alac' }),
      'response_format',
      'invalid_value',
      /'alac'.*'mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'/,
    ],
    [asked('a', { response_format: 'x'.repeat(900) }), 'response_format', 'invalid_value', /'x{100}…'/],
    [asked('a', { response_format: {} }), 'response_format', 'invalid_type', /but got an object/],
    [asked('a', { speed: 0.2 }), 'speed', 'decimal_below_min_value', />= 0.25, but got 0.2/],
    [asked('a', { speed: 4.1 }), 'speed', 'decimal_above_max_value', /<= 4, but got 4.1/],
    [asked('a', { speed: 'fast' }), 'speed', 'invalid_type', /expected a number/],
    [asked('a', { stream_format: 'ws' }), 'stream_format', 'invalid_value', /'audio', 'sse'/],
  ];
  for (const [body, param, code, message] of refusals) {
    const response = await post(body);
    t.equal(response.status, 400, JSON.stringify(body).slice(0, 80));
    t.match(await response.json(), { error: { param, code, message, type: 'invalid_request_error' } });
  }
  const none = await fetch(`${baseURL}/audio/nothing`);
  t.match([none.status, await none.json()], [404, { error: { type: 'invalid_request_error' } }]);
  t.match(await (await fetch(`${baseURL}/models`)).json(), { error: { code: 'invalid_api_key' } });
  t.equal((await post({}, service.key, '/models')).status, 405);
});

t.test('a drain lets speech end', async (t) => {
  const speaking = await post(asked(prose(5), { response_format: 'pcm' }));
  service.signal('SIGTERM');
  await service.untilLogged('stopping');
  t.ok((await bytesOf(speaking)).length > 48_000, 'what was begun is spoken to its end');
  t.match(await service.exited, { code: 0 });
  t.strictSame(service.log.errorLines, []);
});
