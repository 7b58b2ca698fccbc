/** The API of OpenAI: its official client, unmodified, and LiveKit's plugin, against the running service. */
import t from 'tap';
import { loadClient, missingClients } from '../support/interop.js';
import { prose, startService, until } from '../support/service.js';

interface Speech {
  readonly model: string;
  readonly voice: string | { readonly id: string };
  readonly input: string;
  readonly [more: string]: unknown;
}

/** As far as these tests use it. */
interface OpenAI {
  readonly audio: {
    readonly speech: { create(body: Speech, options?: { signal: AbortSignal }): Promise<Response> };
  };
  readonly models: { list(): Promise<{ data: { id: string }[] }> };
}

interface OpenAIModule {
  readonly default: new (options: { apiKey: string; baseURL: string; maxRetries?: number }) => OpenAI;
}

interface APIError extends Error {
  readonly status: number;
  readonly code: string | null;
  readonly param: string | null;
  readonly type: string | null;
}

const SENTENCE = 'The kettle is on, and the paper is at the door.';
const ROUTE = 'openai:/v1/audio/speech';

const service = await startService(t, {
  ...{ OPENAI_PORT: '0', OPENAI_VOICES: 'anna=lark,alloy=heron', SYNTHESIS_THREADS: '1' },
});
const baseURL = `http://127.0.0.1:${String(service.dialectPorts['openai'])}/v1`;
const [brokeKey = ''] = await service.makeKeys(1, 0);

const clientOf = (apiKey: string, maxRetries = 2): OpenAI => {
  const { default: Client } = loadClient('openai') as OpenAIModule;
  return new Client({ apiKey, baseURL, maxRetries });
};

const asked = (input: string, more: object = {}): Speech => ({
  model: 'tts-1',
  voice: 'alloy',
  input,
  ...more,
});

const errorOf = async (answer: Promise<unknown>): Promise<APIError> => {
  try {
    await answer;
  } catch (error) {
    return error as APIError;
  }
  throw new Error('it was answered');
};

const post = (body: unknown, key = service.key, path = '/audio/speech'): Promise<Response> =>
  fetch(baseURL + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

const bytesOf = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer());

const openContexts = async (): Promise<number> => (await service.status()).openContexts;

const requestsWith = (status: number): number =>
  service.logged('request').filter((entry) => entry['route'] === ROUTE && entry['status'] === status).length;

t.test('every format has its type and its beginning, at 24 kHz', async (t) => {
  const formats: readonly (readonly [format: string | undefined, type: string, begin: RegExp])[] = [
    [undefined, 'audio/mpeg', /^\xff[\xf2\xf3]/],
    ['mp3', 'audio/mpeg', /^\xff[\xf2\xf3]/],
    ['opus', 'audio/ogg', /^OggS/],
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

t.test('audio comes while it is made, and an abort frees the slot, each time', async (t) => {
  for (let round = 0; round < 50; round++) {
    const aborter = new AbortController();
    const response = await fetch(`${baseURL}/audio/speech`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(asked(prose(50), { response_format: 'pcm' })),
      signal: aborter.signal,
    });
    const reader = response.body!.getReader() as ReadableStreamDefaultReader<Uint8Array>;
    const { value } = await reader.read();
    if (round === 0) t.ok(value!.length > 0 && (await openContexts()) === 1, 'its end is not made');
    aborter.abort();
  }
  t.ok(await until(async () => (await openContexts()) === 0));
  t.equal((await post(asked('Free.'))).status, 200);
});

t.test('a speed beyond what the voices can do is spoken at the nearest', async (t) => {
  const bytesAt = async (speed: number): Promise<number> =>
    (await bytesOf(await post(asked(SENTENCE, { response_format: 'pcm', speed })))).length;
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
      asked('a', { response_format: 'aac' }),
      'response_format',
      'invalid_value',
      /'aac'.*'mp3', 'opus', 'flac'/,
    ],
    [asked('a', { response_format: 'x'.repeat(900) }), 'response_format', 'invalid_value', /'x{200}…'/],
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

t.test('the official client: speech, events, lists', { skip: missingClients }, async (t) => {
  const client = clientOf(service.key);
  const whole = await client.audio.speech.create(asked(SENTENCE, { response_format: 'wav' }));
  t.ok((await bytesOf(whole)).length > 2 * 48_000, 'more than two seconds');
  const blank = await client.audio.speech.create(asked(' \n', { response_format: 'pcm' }));
  t.ok((await bytesOf(blank)).length < 48_000, 'blank text is a short silence');
  const stream = await client.audio.speech.create(
    asked(SENTENCE, { model: 'gpt-4o-mini-tts', response_format: 'pcm', stream_format: 'sse' }),
  );
  t.match(stream.headers.get('content-type'), /^text\/event-stream/);
  const events = (await stream.text())
    .trim()
    .split('\n\n')
    .map((event) => JSON.parse(event.replace(/^data: /, '')) as { type: string; audio?: string });
  const samples = events.slice(0, -1).map(({ audio = '' }) => Buffer.from(audio, 'base64').length);
  t.ok(samples.length > 3 && samples.every((bytes) => bytes > 0 && bytes % 2 === 0));
  t.match(events.at(-1), { type: 'speech.audio.done', usage: { total_tokens: SENTENCE.length } });
  t.strictSame(
    (await client.models.list()).data.map(({ id }) => id),
    ['tts-1', 'tts-1-hd', 'gpt-4o-mini-tts'],
  );
});

t.test('the official client: each refusal is its right exception', { skip: missingClients }, async (t) => {
  const refused = async (key: string, body: Speech): Promise<unknown[]> => {
    const error = await errorOf(clientOf(key).audio.speech.create(body));
    return [error.constructor.name, error.status, error.code, error.param];
  };
  const wrong = `svc_sk_${'A'.repeat(43)}`;
  t.strictSame(await refused(wrong, asked('a')), ['AuthenticationError', 401, 'invalid_api_key', null]);
  t.strictSame(await refused('sk-of-another', asked('a')), [
    'AuthenticationError',
    401,
    'invalid_api_key',
    null,
  ]);
  const unknown = asked('a', { voice: 'nobody' });
  t.strictSame(await refused(service.key, unknown), ['BadRequestError', 400, 'invalid_value', 'voice']);
  const before = requestsWith(429);
  t.strictSame(await refused(brokeKey, asked('a')), ['RateLimitError', 429, 'insufficient_quota', null]);
  t.equal(requestsWith(429), before + 1, 'without credit it does not try again');
  const long = asked('a'.repeat(1_100_000));
  t.match(await refused(service.key, long), ['APIError', 413]);
});

t.test(
  'the official client: the tenth request is tried again until there is room',
  { skip: missingClients },
  async (t) => {
    const [key = ''] = await service.makeKeys(1);
    const body = asked(prose(400), { response_format: 'pcm' });
    const nine = await Promise.all(Array.from({ length: 9 }, () => clientOf(key).audio.speech.create(body)));
    const refused = await errorOf(clientOf(key, 0).audio.speech.create(asked('a')));
    t.match([refused.constructor.name, refused.code], ['RateLimitError', 'rate_limit_exceeded']);
    const before = requestsWith(429);
    const tenth = clientOf(key).audio.speech.create(asked('Now there is room.'));
    t.ok(await until(() => requestsWith(429) > before));
    for (const response of nine) await response.body?.cancel();
    t.equal((await tenth).status, 200);
  },
);

interface LiveKitModule {
  readonly TTS: new (options: { apiKey: string; baseURL: string; voice: string }) => {
    synthesize(
      text: string,
    ): AsyncIterable<{ frame: { sampleRate: number; samplesPerChannel: number }; final: boolean }>;
  };
}

t.test("LiveKit's plugin: frames of speech", { skip: missingClients }, async (t) => {
  (loadClient('@livekit/agents') as { initializeLogger(options: object): void }).initializeLogger({
    ...{ pretty: false, level: 'silent' },
  });
  const { TTS } = loadClient('@livekit/agents-plugin-openai') as LiveKitModule;
  let [samples, finals] = [0, 0];
  for await (const { frame, final } of new TTS({ apiKey: service.key, baseURL, voice: 'nova' }).synthesize(
    SENTENCE,
  )) {
    t.equal(frame.sampleRate, 24_000);
    samples += frame.samplesPerChannel;
    finals += Number(final);
  }
  t.ok(samples > 2 * 24_000, `${samples} samples`);
  t.equal(finals, 1);
});

t.test('a drain lets speech end', { skip: missingClients }, async (t) => {
  const speaking = await clientOf(service.key).audio.speech.create(
    asked(prose(5), { response_format: 'pcm' }),
  );
  service.signal('SIGTERM');
  await service.untilLogged('stopping');
  t.ok((await bytesOf(speaking)).length > 48_000, 'what was begun is spoken to its end');
  t.match(await service.exited, { code: 0 });
  t.strictSame(service.log.errorLines, []);
});
