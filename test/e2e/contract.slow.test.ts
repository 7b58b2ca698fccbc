/**
 * The contract, row by row, with the real service over real sockets: statuses, headers and bodies to the byte. Every
 * response is also validated against the service's own OpenAPI description.
 */
import t, { type Test } from 'tap';
import { errors } from '../../src/errors.js';
import { Description } from '../support/description.js';
import {
  header,
  RawClient,
  requestBytes,
  type RawResponse,
  type RequestOptions,
} from '../support/raw-client.js';
import { answered } from '../support/items.js';
import { platformRefusals, speechRefusals, withMembers } from '../support/refusals.js';
import { runScript, startService } from '../support/service.js';

const PAGE = 'https://shop.example';
const SPEECH = ['/v1/tts', '/v1/tts/stream'] as const;
const WEBHOOK = '/v1/tts/integrations/voiceplatform';
const VOICES = ['finch', 'heron', 'jay', 'lark', 'lark_conv', 'rook', 'rook_conv', 'wren', 'wren_conv'];

const service = await startService(t, { SYNTHESIS_THREADS: '1', CORS_ORIGINS: PAGE });
const { port, key } = service;
const description = new Description(await (await service.get('/openapi.json')).json());

const ids = new Set<string>();

/** Sends a request, and checks what every response must have. */
const ask = async (t: Test, request: RequestOptions): Promise<RawResponse> => {
  const response = await RawClient.ask(port, request);
  const name = `${request.method ?? 'GET'} ${request.path}`;
  const id = header(response, 'x-request-id') ?? '';
  if (!response.complete) t.fail(`${name}: cut short`);
  if (!/^[0-9a-f-]{36}$/.test(id) || ids.has(id)) t.fail(`${name}: x-request-id ${id}`);
  ids.add(id);
  const fault = description.responseFault(request.method ?? 'GET', request.path, response);
  if (fault !== null) t.fail(`${name}: not as described: ${fault}`);
  return response;
};

const post = (path: string, body: string | object, more: Partial<RequestOptions> = {}): RequestOptions => ({
  method: 'POST',
  path,
  key,
  body: typeof body === 'string' ? body : JSON.stringify(body),
  ...more,
});

const JSON_TYPE = 'application/json';

/** Compares status, content type and body. */
const answers = async (
  t: Test,
  request: RequestOptions,
  status: number,
  type: string | undefined,
  body: string | RegExp,
  name: string,
): Promise<RawResponse> => {
  const response = await ask(t, request);
  const text = response.body.toString();
  const same = body instanceof RegExp ? body.test(text) : body === text;
  if (response.status === status && header(response, 'content-type') === type && same) t.pass(name);
  else t.same([response.status, header(response, 'content-type'), text], [status, type, String(body)], name);
  return response;
};

t.test('speech: the table of refusals, on both routes', async (t) => {
  for (const path of SPEECH)
    for (const [body, ...items] of speechRefusals)
      await answers(
        t,
        post(path, body),
        422,
        JSON_TYPE,
        JSON.stringify({ detail: answered(items) }),
        `${path} ${body}`,
      );
});

t.test('the webhook: the table of refusals', async (t) => {
  for (const [query, body, ...items] of platformRefusals)
    await answers(
      t,
      post(WEBHOOK + query, body),
      422,
      JSON_TYPE,
      JSON.stringify({ detail: answered(items) }),
      `${query} ${body}`,
    );
});

t.test('bodies of another type, with bad UTF-8, too deep, too large', async (t) => {
  const speech = '{"text":"a","voice":"b"}';
  const notJson = (input: string) =>
    `{"detail":[{"type":"model_attributes_type","loc":["body"],` +
    `"msg":"Input should be a valid dictionary or object to extract fields from","input":${JSON.stringify(input)}}]}`;
  for (const path of [...SPEECH, `${WEBHOOK}?voice=wren`]) {
    const bytes = (body: Buffer, type: string): RequestOptions => ({
      method: 'POST',
      path,
      key,
      headers: [`Content-Type: ${type}`, `Content-Length: ${body.length}`],
    });
    const raw = async (body: Buffer, type: string): Promise<RawResponse> => {
      const client = await RawClient.open(port);
      client.send(Buffer.concat([requestBytes(bytes(body, type)), body]));
      const response = await client.response();
      client.destroy();
      t.equal(description.responseFault('POST', path, response), null);
      return response;
    };
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'text/json'])
      t.equal((await raw(Buffer.from(speech), type)).body.toString(), notJson(speech), `${path} ${type}`);
    for (const body of [Buffer.from([0x22, 0xff, 0x22]), Buffer.from('['.repeat(401))]) {
      const response = await raw(body, 'application/json; charset=utf-8');
      t.equal(response.status, 400);
      t.equal(response.body.toString(), '{"detail":"There was an error parsing the body"}');
    }
    const large = await raw(Buffer.alloc(1_048_577, 0x61), 'application/json');
    t.equal(large.status, 413);
    t.equal(large.body.toString(), errors.bodyTooLarge.body);
  }
});

t.test('an unknown voice has its own 422, on all three routes', async (t) => {
  for (const voice of ['nobody', '', 'Wren', 'wren ', 'grüß "Gott"']) {
    const body = JSON.stringify({
      error: 'unknown_voice',
      message: `Unknown voice '${voice}'. Valid voices: ${VOICES.join(', ')}`,
      voice,
      valid_voices: VOICES,
    });
    for (const request of [
      ...SPEECH.map((path) => post(path, { text: 'Hi', voice })),
      post(`${WEBHOOK}?voice=${encodeURIComponent(voice)}`, {
        message: { type: 'voice-request', text: 'Hi' },
      }),
    ])
      await answers(t, request, 422, JSON_TYPE, body, `${request.path} ${voice}`);
  }
});

const accepted: readonly (readonly [string, RegExp])[] = [
  ...[
    'mp3',
    'MP3',
    'wav',
    'pcm',
    'linear16',
    'opus',
    'mulaw',
    'alaw',
    'linear_pcm',
    'Linear-PCM',
    'pcm_s16le',
  ].map((name) => [`"response_format":"${name}"`, /./] as const),
  ...['raw', 'mu-law', 'ulaw', 'U-LAW', 'μ-law', 'a-law'].map(
    (name) => [`"response_format":{"encoding":"${name}"}`, /./] as const,
  ),
  ...['128', '"128"', '"128k"', 'null', '32', '"320k"'].map(
    (bitrate) => [`"response_format":{"bitrate":${bitrate}}`, /./] as const,
  ),
  ['"response_format":{"encoding":"wav","bitrate":null,"sample_rate":null}', /./],
  ['"response_format":{"encoding":"pcm","sample_rate":16000.0}', /./],
  ['"response_format":{"encoding":"opus","sample_rate":12000,"bitrate":192}', /./],
  ['"response_format":{}', /./],
  ['"temperature":null', /./],
  ['"temperature":0.5', /./],
  ['"temperature":3.0', /./],
  ['"timestamps":false,"normalize_text":true', /./],
  ['"timestamps":true', /"words":\[\]|^(?!.*"words")/s],
];

t.test('accepted members, on both routes; blank text is a short silence', async (t) => {
  for (const path of SPEECH)
    for (const [members, body] of accepted)
      for (const text of ['""', '" \\n\\t"']) {
        const sent = withMembers(`${members},"text":${text},"voice":"wren"`);
        const type = path === '/v1/tts' ? JSON_TYPE : 'text/plain; charset=utf-8';
        await answers(t, post(path, sent), 200, type, body, `${path} ${sent}`);
      }
});

t.test('any text is spoken', async (t) => {
  for (const text of [
    '🎈🎈',
    '日本語です。',
    'مرحبا',
    'Привет',
    'naïve café',
    'https://example.com/a?b=c',
    'a\tb\nc\u0000\u0007',
    '\ud800',
    '<speak>&amp;</speak>',
  ])
    for (const path of SPEECH)
      await answers(
        t,
        post(path, { text, voice: 'wren', response_format: 'pcm', timestamps: true }),
        200,
        path === '/v1/tts' ? JSON_TYPE : 'text/plain; charset=utf-8',
        /"audio/,
        `${path} ${JSON.stringify(text)}`,
      );
});

t.test('a method that a route lacks is 405, with the allowed ones', async (t) => {
  for (const [path, allow] of [
    ...[...SPEECH, WEBHOOK].map((path) => [path, 'POST'] as const),
    ...['/v1/tts/speakers', '/openapi.json', '/healthz', '/readyz'].map(
      (path) => [path, 'GET, HEAD'] as const,
    ),
  ])
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'BREW']) {
      if (allow.includes(method)) continue;
      const request = { method, path, key: null };
      const response = await answers(
        t,
        request,
        405,
        JSON_TYPE,
        '{"detail":"Method Not Allowed"}',
        `${method} ${path}`,
      );
      t.equal(header(response, 'allow'), allow);
    }
});

t.test('every other path is 404, with a page', async (t) => {
  for (const path of [
    '/',
    '/v1',
    '/v1/tts/',
    '/v1/tts/Stream',
    '/v1//tts',
    '/v1/tts%2Fstream',
    '/openapi.yaml',
  ])
    for (const method of ['GET', 'POST', 'DELETE']) {
      const type = 'text/html; charset=utf-8';
      await answers(
        t,
        { method, path, key },
        404,
        type,
        /^<!doctype html>[\s\S]*404[\s\S]*<\/html>\n$/,
        `${method} ${path}`,
      );
    }
});

t.test('HEAD is GET without the body', async (t) => {
  for (const path of ['/v1/tts/speakers', '/openapi.json', '/healthz', '/readyz']) {
    const [head, get] = [await ask(t, { method: 'HEAD', path, key }), await ask(t, { path, key })];
    t.equal(head.status, 200);
    t.equal(get.status, 200);
    for (const name of ['content-type', 'content-length'])
      t.equal(header(head, name), header(get, name), `${path} ${name}`);
    t.equal(head.body.length, 0);
    t.ok(get.body.length > 0);
  }
  t.equal((await ask(t, { method: 'HEAD', path: '/openapi.json' })).status, 401);
  t.equal((await ask(t, { method: 'HEAD', path: '/v1/tts' })).status, 405);
});

t.test('pages of a configured origin may send requests and read answers, streams included', async (t) => {
  const asked = await RawClient.ask(port, {
    method: 'OPTIONS',
    path: '/v1/tts/stream',
    headers: [`Origin: ${PAGE}`, 'Access-Control-Request-Method: POST'],
  });
  t.equal(asked.status, 200);
  t.equal(header(asked, 'access-control-allow-origin'), PAGE);
  t.equal(header(asked, 'access-control-allow-headers'), 'x-api-key, content-type, traceparent');
  for (const request of [
    post('/v1/tts/stream', { text: 'Yes.', voice: 'wren' }),
    post('/v1/tts', '{'),
    { path: '/nothing' },
  ]) {
    const response = await ask(t, { ...request, headers: [`Origin: ${PAGE}`] });
    t.equal(header(response, 'access-control-allow-origin'), PAGE);
    t.equal(header(response, 'access-control-expose-headers'), 'x-request-id, retry-after, traceparent');
    t.equal(header(response, 'vary'), 'origin');
  }
});

t.test('the webhook streams at the requested rate', async (t) => {
  const say = (text: string, message: object = {}): RequestOptions =>
    post(`${WEBHOOK}?voice=rook_conv`, {
      message: { type: 'voice-request', text, ...message, call: { id: 'c1' }, timestamp: 1.5 },
    });
  const text = 'One kettle, two cups, and the paper at the door.';
  for (const [message, hz] of [
    [{ sampleRate: 8_000 }, 8_000],
    [{ sampleRate: 22_051 }, 22_051],
    [{ sampleRate: 48_000 }, 48_000],
    [{}, 24_000],
  ] as const) {
    const response = await ask(t, say(text, message));
    t.equal(response.status, 200);
    t.equal(header(response, 'content-type'), 'application/octet-stream');
    t.ok(response.chunkBytes.length > 3 && response.chunkBytes.every((bytes) => bytes % 2 === 0));
    const seconds = response.body.length / 2 / hz;
    t.ok(seconds > 1.5 && seconds < 5, `${seconds} s at ${hz} Hz`);
    const samples = new Int16Array(
      response.body.buffer.slice(response.body.byteOffset, response.body.byteOffset + response.body.length),
    );
    t.ok(
      samples.reduce((max, sample) => Math.max(max, Math.abs(sample)), 0) > 4_000,
      'speech, and no header',
    );
  }
  const client = await RawClient.open(port);
  client.send(requestBytes(say(text.repeat(200))));
  await client.until(() => client.receivedBytes > 10_000);
  t.notMatch(
    client.bytes().toString('latin1'),
    /\r\n0\r\n\r\n$/,
    'the first audio comes long before the end',
  );
  client.destroy();
  const other = await ask(
    t,
    post(`${WEBHOOK}?voice=rook`, { message: { type: 'status-update', status: 'ended' } }),
  );
  t.equal(other.status, 200);
  t.equal(other.body.length, 0);
  t.equal((await ask(t, say(' '))).status, 200, 'blank text is a short silence');
});

const keysCommand = async (...args: readonly string[]): Promise<string> => {
  const { stdout } = await runScript('scripts/keys.js', args, { DATA_DIR: service.dataDir });
  return /svc_sk_\w+/.exec(stdout)?.[0] ?? '';
};

t.test('401 comes before any other check', async (t) => {
  const revoked = await keysCommand('create');
  await keysCommand('revoke', revoked);
  const routes: readonly RequestOptions[] = [
    ...[...SPEECH, WEBHOOK, `${WEBHOOK}?voice=wren`].map((path) => post(path, '{"voice":"nobody"')),
    { path: '/v1/tts/speakers' },
    { path: '/openapi.json' },
  ];
  for (const [sent, body, headers] of [
    [null, errors.keyMissing.body, []],
    ['', errors.keyMissing.body, []],
    ['sk_live_1', errors.keyMissing.body, []],
    [key.toUpperCase(), errors.keyMissing.body, []],
    [null, errors.keyMissing.body, [`Authorization: Bearer ${key}`]],
    ['svc_sk_', errors.keyUnknown.body, []],
    [`${key}x`, errors.keyUnknown.body, []],
    [key.slice(0, -1), errors.keyUnknown.body, []],
    [revoked, errors.keyUnknown.body, []],
  ] as const)
    for (const route of routes)
      await answers(t, { ...route, key: sent, headers }, 401, JSON_TYPE, body, `${route.path} ${sent ?? ''}`);
  const named = await ask(t, { path: '/v1/tts/speakers', headers: [`X-API-KEY: ${key}`] });
  t.equal(named.status, 200, 'the header name is case-insensitive');
});

t.test('the order of checks: fields, voice, credit, slots', async (t) => {
  // Enough for the nine streams and one word more.
  const text = 'The train was late again, so we walked along the river. '.repeat(300);
  const poor = await keysCommand('create', '--account', 'poor', '--credits', String(9 * text.length + 10));
  const streams = await Promise.all(
    Array.from({ length: 9 }, async () => {
      const client = await RawClient.open(port);
      client.send(requestBytes(post('/v1/tts/stream', { text, voice: 'wren' }, { key: poor })));
      // The stream has begun, and waits for its reader.
      await client.until(() => client.receivedBytes > 0);
      client.socket.pause();
      return client;
    }),
  );
  const large = 'Too much for what is left.';
  const targets = (body: { text: string; voice: string }): RequestOptions[] => [
    ...SPEECH.map((path) => post(path, body, { key: poor })),
    post(
      `${WEBHOOK}?voice=${body.voice}`,
      { message: { type: 'voice-request', text: body.text } },
      { key: poor },
    ),
  ];
  for (const request of targets({ text: 'Hi', voice: 'wren' })) {
    const response = await answers(t, request, 429, JSON_TYPE, errors.slotsExhausted.body, request.path);
    t.equal(header(response, 'retry-after'), undefined);
  }
  for (const request of targets({ text: large, voice: 'wren' }))
    await answers(t, request, 402, JSON_TYPE, errors.creditExhausted.body, request.path);
  for (const request of targets({ text: large, voice: 'nobody' }))
    await answers(t, request, 422, JSON_TYPE, /^\{"error":"unknown_voice"/, request.path);
  for (const path of SPEECH)
    await answers(
      t,
      post(path, { text: large, voice: 'nobody', more: 1 }, { key: poor }),
      422,
      JSON_TYPE,
      /^\{"detail":\[\{"type":"extra_forbidden"/,
      path,
    );
  await answers(t, post(WEBHOOK, '{}', { key: poor }), 422, JSON_TYPE, /"query","voice"/, 'the query');
  const acknowledged = await ask(
    t,
    post(`${WEBHOOK}?voice=wren`, { message: { type: 'hang' } }, { key: poor }),
  );
  t.equal(acknowledged.status, 200, 'a message without speech needs neither credit nor slot');
  await runScript('scripts/keys.js', ['credit', 'poor', '1000'], { DATA_DIR: service.dataDir });
  for (const request of targets({ text: large, voice: 'wren' }))
    await answers(t, request, 429, JSON_TYPE, errors.slotsExhausted.body, 'credit clears the 402 at once');
  for (const client of streams) client.destroy();
});
