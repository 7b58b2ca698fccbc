import t from 'tap';
import { limits } from '../../src/limits.js';
import { header, RawClient, requestBytes } from '../support/raw-client.js';
import {
  BROKE_KEY,
  eventually,
  GOOD_KEY,
  platformAsks,
  requestLines,
  startFront,
} from '../support/front-server.js';

t.test('samples go out as they are made, without a header', async (t) => {
  const front = await startFront(t);
  front.speech.script = () => {};
  const client = await front.sent(platformAsks({ sampleRate: 22_051 }));
  await eventually(() => front.speech.contexts.length === 1);
  const context = front.speech.last;
  t.match(context.options, {
    settings: { voiceId: 'ada', temperature: 1 },
    format: { encoding: 'pcm', sampleRateHz: 22_051 },
    framing: 'raw',
    timestamps: false,
  });
  t.equal(context.text, 'Hello there.');
  t.ok(context.ended);
  t.equal(client.receivedBytes, 0, 'the head waits for the first samples');

  context.audio(3_000);
  await client.until(() => client.receivedBytes > 3_000);
  t.equal(context.handedFrames.length, 1, 'heard before the rest is made');
  context.audio(2);
  context.close();
  const response = await client.response();
  t.equal(response.status, 200);
  t.ok(response.complete);
  t.same(response.body, context.expectedBytes());
  t.equal(header(response, 'content-type'), 'application/octet-stream');
  t.equal(header(response, 'transfer-encoding'), 'chunked');
  t.equal(header(response, 'cache-control'), 'no-store');
  t.ok(header(response, 'x-request-id'));
  t.ok(context.released);
  t.equal(front.admission.slotsTaken, 0);
});

t.test('no chunk ends inside a sample, whatever the sizes and however slow the reader', async (t) => {
  const front = await startFront(t, { bounds: { stallRearmMs: 100 } });
  const sizes = [2, 15_998, 16_000, 14_974, 19_200, 333_334, 30, 1_000_002];
  front.speech.script = (context) => {
    for (const size of sizes) context.audio(size);
    context.close();
  };
  for (const readAt of [null, 4_000_000]) {
    const client = await front.client();
    if (readAt !== null) client.readAt(readAt);
    client.send(requestBytes(platformAsks()));
    const response = await client.response();
    t.ok(response.complete);
    t.same(response.body, front.speech.last.expectedBytes());
    t.ok(response.chunkBytes.length > sizes.length);
    t.ok(response.chunkBytes.every((bytes) => bytes % 2 === 0 && bytes <= limits.writeBytesMax));
  }
});

t.test('the default rate is 24000, and every whole rate in the range works', async (t) => {
  const front = await startFront(t);
  for (const [message, sampleRateHz] of [
    [{}, 24_000],
    [{ sampleRate: 8_000 }, 8_000],
    [{ sampleRate: 48_000 }, 48_000],
    [{ sampleRate: 11_111 }, 11_111],
  ] as const) {
    t.equal((await RawClient.ask(front.port, platformAsks(message))).status, 200);
    t.same(front.speech.last.options.format, { encoding: 'pcm', sampleRateHz });
  }
});

t.test('the voice comes from the query in every encoding that clients use', async (t) => {
  const front = await startFront(t);
  for (const query of [
    'voice=ada_conv',
    'a=b&voice=ada_conv&c',
    'voice=ada%5Fconv',
    'voice=ada_conv&voice=bela',
  ]) {
    t.equal((await RawClient.ask(front.port, platformAsks({}, query))).status, 200, query);
    t.equal(front.speech.last.options.settings.voiceId, 'ada_conv');
  }
  for (const [query, voice] of [
    ['voice=', ''],
    ['voice', ''],
    ['voice=a+b%20c', 'a b c'],
    ['voice=%zz%ff', '%zz\ufffd'],
    ['voice=%0d%0aset-cookie:a', '\r\nset-cookie:a'],
  ] as const) {
    const response = await RawClient.ask(front.port, platformAsks({}, query));
    t.equal(response.status, 422, query);
    t.match(JSON.parse(response.body.toString()), {
      error: 'unknown_voice',
      voice,
      valid_voices: ['ada', 'ada_conv', 'bela'],
    });
    t.equal(header(response, 'set-cookie'), undefined);
  }
});

t.test('messages that ask for no speech get an empty answer', async (t) => {
  const front = await startFront(t);
  const whole = { call: { id: 'c' }, assistant: {}, customer: null, timestamp: 1.5 };
  for (const message of [
    { type: 'status-update', status: 'in-progress', text: undefined, ...whole },
    { type: 'end-of-call-report', text: 5, sampleRate: 'none' },
    { type: '', text: undefined },
    { type: 'VOICE-REQUEST', text: undefined },
  ])
    for (const key of [GOOD_KEY, BROKE_KEY])
      for (const query of ['voice=ada', 'voice=nobody']) {
        const response = await RawClient.ask(front.port, { ...platformAsks(message, query), key });
        t.equal(response.status, 200, message.type);
        t.equal(response.body.length, 0);
        t.equal(header(response, 'content-length'), '0');
        t.equal(header(response, 'content-type'), undefined);
        t.ok(header(response, 'x-request-id'));
      }
  t.equal(front.speech.contexts.length, 0);
  t.equal(front.admission.leases.length, 0, 'and cost nothing');
  const more = await RawClient.ask(front.port, {
    ...platformAsks(),
    body: JSON.stringify({ message: { type: 'voice-request', text: 'Hi', ...whole }, more: [1] }),
  });
  t.equal(more.status, 200, 'and whatever a request for speech carries besides is let pass');
  t.equal(front.speech.last.text, 'Hi');
});

t.test('keys, credit and slots work as on every route', async (t) => {
  const front = await startFront(t);
  const invalid = { ...platformAsks({}, ''), body: '{' };
  for (const [request, status, body] of [
    [{ ...invalid, key: null }, 401, '{"error":"Invalid or missing API key"}'],
    [{ ...invalid, key: 'svc_sk_none' }, 401, '{"error":"INVALID_API_KEY"}'],
    [{ ...platformAsks(), key: BROKE_KEY }, 402, '{"error":"INSUFFICIENT_CREDITS"}'],
    [{ ...platformAsks(), method: 'GET' }, 405, '{"detail":"Method Not Allowed"}'],
  ] as const) {
    const response = await RawClient.ask(front.port, request);
    t.equal(response.status, status);
    t.equal(response.body.toString(), body);
  }
  front.speech.script = () => {};
  for (let held = 0; held < 9; held++) await front.sent(platformAsks());
  await eventually(() => front.speech.contexts.length === 9);
  t.equal((await RawClient.ask(front.port, platformAsks())).status, 429);
  t.equal((await RawClient.ask(front.port, platformAsks({ type: 'hang' }))).status, 200, 'needs no slot');
  const [first] = front.speech.contexts;
  first!.close();
  await first!.whenReleased();
  front.speech.script = (context) => context.close();
  t.equal((await RawClient.ask(front.port, platformAsks())).status, 200);
});

t.test('a failure before the first sample is a clean 500, a later one cuts the response short', async (t) => {
  const front = await startFront(t);
  front.speech.script = (context) => context.fail('thread died');
  const early = await RawClient.ask(front.port, platformAsks());
  t.equal(early.status, 500);
  t.equal(early.body.toString(), 'Internal Server Error');
  t.equal(header(early, 'content-type'), 'text/plain; charset=utf-8');

  front.speech.script = (context) => context.audio(3_000);
  const client = await front.sent(platformAsks());
  await client.until(() => client.receivedBytes > 3_000);
  front.speech.last.fail('thread died');
  const late = await client.response();
  t.equal(late.status, 200);
  t.notOk(late.complete);
  t.same(late.body, front.speech.last.expectedBytes());
  t.ok(front.speech.last.released);
  t.match(requestLines(front).at(-1)?.fields, {
    route: '/v1/tts/integrations/voiceplatform',
    outcome: 'failed',
  });
  t.notMatch(JSON.stringify(front.lines), /Hello there/);
});

t.test('a caller that hangs up frees the slot', async (t) => {
  const front = await startFront(t);
  front.speech.script = (context) => context.stream(1_000, 30_000);
  const client = await front.sent(platformAsks());
  await client.until(() => client.receivedBytes > 0);
  client.destroy();
  await front.speech.last.whenReleased();
  t.equal(front.admission.slotsTaken, 0);
});
