import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import t from 'tap';
import { errors } from '../../src/errors.js';
import { Description } from '../support/description.js';
import { eventually } from '../support/waiting.js';
import { header, RawClient, requestBytes, type RequestOptions } from '../support/raw-client.js';
import {
  BROKE_KEY,
  GOOD_KEY,
  platformAsks,
  requestLines,
  speak,
  startFront,
} from '../support/front-server.js';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

t.test('every answer has its status, content type, body and a new x-request-id', async (t) => {
  const front = await startFront(t);
  const table = errors;
  const cases: [string, RequestOptions, number, string, string | RegExp][] = [
    ['no key', { path: '/v1/tts/speakers' }, 401, 'application/json', table.keyMissing.body],
    [
      'a bearer token',
      { path: '/v1/tts/speakers', headers: ['Authorization: Bearer svc_sk_good'] },
      401,
      'application/json',
      table.keyMissing.body,
    ],
    [
      'a key of another shape',
      { path: '/v1/tts/speakers', key: 'sk_good' },
      401,
      'application/json',
      table.keyMissing.body,
    ],
    [
      'an unknown key',
      { path: '/v1/tts/speakers', key: 'svc_sk_none' },
      401,
      'application/json',
      table.keyUnknown.body,
    ],
    [
      'speakers',
      { path: '/v1/tts/speakers', key: GOOD_KEY },
      200,
      'application/json',
      '{"speaker_ids":["ada","bela","ada_conv"]}',
    ],
    [
      'speech without a key',
      { ...speak('/v1/tts'), key: null },
      401,
      'application/json',
      table.keyMissing.body,
    ],
    [
      'streamed speech with an unknown key',
      { ...speak('/v1/tts/stream'), key: 'svc_sk_none' },
      401,
      'application/json',
      table.keyUnknown.body,
    ],
    [
      'no credit',
      { ...speak('/v1/tts/stream'), key: BROKE_KEY },
      402,
      'application/json',
      table.creditExhausted.body,
    ],
    [
      'a wrong method',
      { path: '/v1/tts', key: GOOD_KEY },
      405,
      'application/json',
      '{"detail":"Method Not Allowed"}',
    ],
    [
      'a wrong method without a key',
      { method: 'DELETE', path: '/v1/tts/stream' },
      405,
      'application/json',
      '{"detail":"Method Not Allowed"}',
    ],
    [
      'a method nobody knows',
      { method: 'BREW', path: '/v1/tts/speakers' },
      405,
      'application/json',
      '{"detail":"Method Not Allowed"}',
    ],
    [
      'an unknown path',
      { path: '/v2/tts', key: GOOD_KEY },
      404,
      'text/html; charset=utf-8',
      /^<!doctype html>/,
    ],
    [
      'a trailing slash',
      { ...speak('/v1/tts'), path: '/v1/tts/' },
      404,
      'text/html; charset=utf-8',
      /^<!doctype html>/,
    ],
    [
      'another case',
      { path: '/V1/tts/speakers', key: GOOD_KEY },
      404,
      'text/html; charset=utf-8',
      /^<!doctype html>/,
    ],
    [
      'an escaped path',
      { path: '/v1/tts/speaker%73', key: GOOD_KEY },
      404,
      'text/html; charset=utf-8',
      /^<!doctype html>/,
    ],
    [
      'no body',
      { method: 'POST', path: '/v1/tts', key: GOOD_KEY },
      422,
      'application/json',
      /"missing".*Field required/,
    ],
    ['no JSON', { ...speak('/v1/tts'), body: '{' }, 422, 'application/json', /"json_invalid"/],
    ['an extra field', speak('/v1/tts/stream', { more: 1 }), 422, 'application/json', /"extra_forbidden"/],
    [
      'no UTF-8',
      { ...speak('/v1/tts'), body: Buffer.from([0x22, 0xff, 0x22]) },
      400,
      'application/json',
      table.bodyUnreadable.body,
    ],
    [
      'an unknown voice',
      speak('/v1/tts', { voice: 'zoe' }),
      422,
      'application/json',
      /^\{"error":"unknown_voice".*"valid_voices":\["ada","ada_conv","bela"\]\}$/,
    ],
    ['health', { path: '/healthz' }, 200, 'application/json', '{"status":"ok"}'],
    ['readiness', { path: '/readyz' }, 200, 'application/json', '{"status":"ready"}'],
  ];
  const seen = new Set<string>();
  for (const [name, request, status, type, body] of cases) {
    const response = await RawClient.ask(front.port, request);
    t.equal(response.status, status, `${name}: status`);
    t.equal(header(response, 'content-type'), type, `${name}: content type`);
    if (typeof body === 'string') t.equal(response.body.toString(), body, `${name}: body`);
    else t.match(response.body.toString(), body, `${name}: body`);
    const id = header(response, 'x-request-id') ?? '';
    t.match(id, uuid, `${name}: x-request-id`);
    t.notOk(seen.has(id), `${name}: a fresh one`);
    seen.add(id);
    t.equal(header(response, 'uwebsockets'), undefined, `${name}: the library is not named`);
  }
  t.equal(front.speech.contexts.length, 0, 'nothing was spoken');
  t.equal(front.admission.slotsTaken, 0, 'no slot was kept');
  t.equal(requestLines(front).length, cases.length, 'one log line a request');
});

t.test('405 names the allowed methods', async (t) => {
  const front = await startFront(t);
  for (const [path, allow] of [
    ['/v1/tts', 'POST'],
    ['/v1/tts/stream', 'POST'],
    ['/v1/tts/speakers', 'GET, HEAD'],
    ['/openapi.json', 'GET, HEAD'],
    ['/v1/tts/integrations/voiceplatform', 'POST'],
    ['/healthz', 'GET, HEAD'],
  ] as const) {
    const response = await RawClient.ask(front.port, { method: 'PUT', path });
    t.equal(response.status, 405);
    t.equal(header(response, 'allow'), allow, path);
  }
});

t.test('HEAD answers with the head of GET and no body', async (t) => {
  const front = await startFront(t);
  const client = await front.client();
  for (const path of ['/v1/tts/speakers', '/openapi.json', '/healthz', '/readyz']) {
    client.send(requestBytes({ method: 'HEAD', path, key: GOOD_KEY }));
    const response = await client.response(true);
    t.equal(response.status, 200, path);
    t.equal(header(response, 'content-type'), 'application/json');
    t.match(header(response, 'x-request-id'), uuid);
    t.equal(response.rest.length, 0, 'nothing follows');
    const get = await RawClient.ask(front.port, { path, key: GOOD_KEY });
    t.equal(header(response, 'content-length'), String(get.body.length), 'the length that GET has');
  }
  for (const path of ['/v1/tts/speakers', '/openapi.json'])
    t.equal((await RawClient.ask(front.port, { method: 'HEAD', path })).status, 401);
  const wrong = await RawClient.ask(front.port, { method: 'HEAD', path: '/v1/tts' });
  t.equal(wrong.status, 405);
  client.send(requestBytes({ path: '/healthz' }));
  t.equal((await client.response()).body.toString(), '{"status":"ok"}', 'the connection goes on');
  client.send(requestBytes({ method: 'HEAD', path: '/healthz', headers: ['Host: twice'] }));
  t.equal((await client.response(true)).status, 400);
  await client.closed();
});

t.test('/readyz says why the service is not ready; /healthz stays ok', async (t) => {
  const front = await startFront(t);
  front.reasons.push('voices are loading');
  const ready = await RawClient.ask(front.port, { path: '/readyz' });
  t.equal(ready.status, 503);
  t.equal(header(ready, 'retry-after'), '1');
  t.same(JSON.parse(ready.body.toString()), { status: 'not ready', reasons: ['voices are loading'] });
  t.equal((await RawClient.ask(front.port, { path: '/healthz' })).status, 200);
  front.reasons.length = 0;
  front.warnings.push('a thread hangs');
  const warned = await RawClient.ask(front.port, { path: '/readyz' });
  t.equal(warned.status, 200, 'a warning takes no speech away');
  t.same(JSON.parse(warned.body.toString()), { status: 'ready', warnings: ['a thread hangs'] });
});

t.test(
  'the tenth request of a key gets 429 at once, and a slot is free when a response is over',
  async (t) => {
    const front = await startFront(t);
    front.speech.script = () => {};
    for (let held = 0; held < 9; held++) await front.sent(speak('/v1/tts/stream'));
    const tenth = async () => RawClient.ask(front.port, speak('/v1/tts/stream'));
    while (front.speech.contexts.length < 9) await new Promise((resolve) => setImmediate(resolve));
    const refused = await tenth();
    t.equal(refused.status, 429);
    t.equal(refused.body.toString(), '{"error":"Rate limit exceeded","reason":"concurrency"}');
    t.equal(header(refused, 'retry-after'), undefined);
    front.speech.script = (context) => context.stream(1, 300);
    front.speech.contexts[0]!.stream(1, 300);
    await front.speech.contexts[0]!.whenReleased();
    t.equal((await tenth()).status, 200);
  },
);

t.test('a key or a body with line breaks never becomes a header', async (t) => {
  const front = await startFront(t);
  const evil = 'x\r\nset-cookie: a=b\r\n\r\n<html>';
  for (const body of [{ voice: evil }, { response_format: { encoding: evil } }, { [evil]: 1 }]) {
    const response = await RawClient.ask(front.port, speak('/v1/tts', body));
    t.equal(response.status, 422);
    t.same(
      response.headers.map(([name]) => name).sort(),
      ['connection', 'content-length', 'content-type', 'date', 'keep-alive', 'x-request-id'],
      'our headers and no other',
    );
    t.equal(response.rest.length, 0);
    t.doesNotThrow(() => JSON.parse(response.body.toString()) as unknown);
  }
  const path = await RawClient.ask(front.port, {
    path: '/%0d%0aset-cookie:%20a=b',
    key: 'svc_sk_%0d%0aa: b',
  });
  t.same(path.headers.map(([name]) => name).sort(), [
    'connection',
    'content-length',
    'content-type',
    'date',
    'keep-alive',
    'x-request-id',
  ]);
});

t.test('the log has one line for each request with ids and numbers, without text or key', async (t) => {
  const front = await startFront(t);
  const secret = 'the quick brown secret 🦊';
  const response = await RawClient.ask(front.port, speak('/v1/tts/stream', { text: secret }));
  t.equal(response.status, 200);
  await RawClient.ask(front.port, speak('/v1/tts', { text: secret, voice: secret }));
  const [line] = requestLines(front);
  t.match(line?.fields, {
    requestId: header(response, 'x-request-id'),
    keyId: 7,
    route: '/v1/tts/stream',
    method: 'post',
    status: 200,
    outcome: 'complete',
    characters: Array.from(secret).length,
    firstAudioMs: Number,
    totalMs: Number,
  });
  const all = JSON.stringify(front.lines);
  t.notMatch(all, /secret/);
  t.notMatch(all, /svc_sk_/);
});

t.test('requests follow one another on a kept-alive connection', async (t) => {
  const front = await startFront(t);
  const client = await front.client();
  for (let round = 0; round < 3; round++) {
    client.send(requestBytes(speak('/v1/tts/stream')));
    const streamed = await client.response();
    t.ok(streamed.complete);
    t.same(streamed.body, front.speech.last.expectedBytes());
    client.send(requestBytes({ path: '/v1/tts/speakers', key: GOOD_KEY }));
    t.equal((await client.response()).status, 200);
    client.send(requestBytes({ ...speak('/v1/tts'), body: '[]' }));
    t.equal((await client.response()).status, 422);
  }
});

t.test(
  'a request that is pipelined behind one in flight ends the connection and gives the slot back',
  async (t) => {
    const front = await startFront(t);
    front.speech.script = (context) => context.audio(300);
    const client = await front.sent(speak('/v1/tts/stream'));
    await client.until(() => client.receivedBytes > 0);
    client.send(requestBytes(speak('/v1/tts/stream')));
    await client.closed();
    await front.speech.last.whenReleased();
    t.equal(front.speech.contexts.length, 1);
    t.equal(front.admission.slotsTaken, 0);
    t.equal(front.server.inFlight, 0);
  },
);

t.test('requests that are answered at once may be pipelined', async (t) => {
  const front = await startFront(t);
  const one = requestBytes({ path: '/healthz' });
  const client = await front.sent(Buffer.concat([one, one, one]));
  for (let count = 0; count < 3; count++) t.equal((await client.response()).status, 200);
});

t.test(
  'hundreds of pipelined requests end their connection, and the service holds few answers',
  async (t) => {
    const front = await startFront(t, { parts: { clock: () => 0 } });
    const one = requestBytes({ path: '/healthz' });
    const client = await front.sent(Buffer.concat(Array.from({ length: 2_000 }, () => one)));
    await client.closed();
    const answered = requestLines(front).filter(({ fields }) => fields['status'] === 200);
    t.ok(answered.length <= 400, `${answered.length} were answered`);
    t.equal(front.server.inFlight, 0);
  },
);

t.test('many connections that ask in the same moment are all answered, and stay open', async (t) => {
  const front = await startFront(t);
  const one = requestBytes({ path: '/healthz' });
  const clients = await Promise.all(Array.from({ length: 60 }, () => RawClient.open(front.port)));
  for (let round = 0; round < 2; round++) {
    for (const client of clients) client.send(one);
    for (const client of clients) t.equal((await client.response()).status, 200);
  }
});

t.test('clients without a key that ask again at each answer leave the thread to others', async (t) => {
  let nowMs = 0;
  const front = await startFront(t, { parts: { clock: () => nowMs } });
  const clients = await Promise.all(Array.from({ length: 60 }, () => RawClient.open(front.port)));
  t.teardown(() => clients.forEach((client) => client.destroy()));
  let answered = 0;
  for (const client of clients)
    void (async () => {
      for (;;) {
        client.send(requestBytes({ path: '/v1/nothing' }));
        await client.response();
        answered++;
      }
    })().catch(() => undefined);
  // The clock stands, so only a tenth of a second's part is there.
  await eventually(() => answered >= 360);
  t.equal((await RawClient.ask(front.port, { path: '/v1/tts/speakers', key: GOOD_KEY })).status, 200);
  t.equal((await RawClient.ask(front.port, { path: '/healthz' })).status, 200, 'a probe is answered');
  const other = get({ port: front.port, path: '/v1/nothing', localAddress: '127.0.0.2' });
  const [{ statusCode }] = (await once(other, 'response')) as [IncomingMessage];
  t.equal(statusCode, 404, 'another network is answered');
  t.ok(answered < 380, `${answered} were answered`);
  nowMs += 1_000;
  await eventually(() => answered >= 700);
});

t.test('500 and 503 match the OpenAPI description', async (t) => {
  const front = await startFront(t);
  const asked = await RawClient.ask(front.port, { path: '/openapi.json', key: GOOD_KEY });
  const description = new Description(JSON.parse(asked.body.toString()));
  front.speech.script = (context) => context.fail('thread died');
  for (const status of [500, 503]) {
    for (const request of [speak('/v1/tts'), speak('/v1/tts/stream'), platformAsks()]) {
      const response = await RawClient.ask(front.port, request);
      t.equal(response.status, status);
      t.equal(description.responseFault('POST', request.path, response), null, `${request.path} ${status}`);
    }
    front.speech.refuse = () => 'contextPoolExhausted';
  }
  front.reasons.push('voices are loading');
  const ready = await RawClient.ask(front.port, { path: '/readyz' });
  t.equal(ready.status, 503);
  t.equal(description.responseFault('GET', '/readyz', ready), null);
});

t.test('of two keys the first counts, as proxies choose the host by it', async (t) => {
  const front = await startFront(t);
  const statusOf = async (key: string, second: string) => {
    const headers = [`X-Api-Key: ${second}`];
    return (await RawClient.ask(front.port, { path: '/v1/tts/speakers', key, headers })).status;
  };
  t.equal(await statusOf(GOOD_KEY, 'svc_sk_none'), 200);
  t.equal(await statusOf('svc_sk_none', GOOD_KEY), 401);
});

t.test('a head of 8,000 bytes is read, as of a browser with the cookies of other programs', async (t) => {
  const front = await startFront(t);
  const headers = [`Cookie: ${'other=1; '.repeat(880)}`];
  t.equal((await RawClient.ask(front.port, { path: '/healthz', headers })).status, 200);
  const tooMany = [`Cookie: ${'other=1; '.repeat(920)}`];
  t.equal((await RawClient.ask(front.port, { path: '/healthz', headers: tooMany })).status, 431);
});
