import t from 'tap';
import { limits } from '../../src/limits.js';
import { FakeLease } from '../support/fake-speech.js';
import { header } from '../support/raw-client.js';
import { eventually, requestLines, speak, startFront } from '../support/front-server.js';
import { pause } from '../support/waiting.js';

t.test('a stream sends its records as they are made, and ends when all are sent', async (t) => {
  const front = await startFront(t);
  front.speech.script = () => {};
  const client = await front.sent(speak('/v1/tts/stream', { timestamps: true, temperature: 2 }));
  await eventually(() => front.speech.contexts.length === 1);
  const context = front.speech.last;
  t.match(context.options, {
    settings: { voiceId: 'ada', temperature: 2 },
    framing: 'stream',
    timestamps: true,
  });
  t.equal(context.text, 'Hello there.');
  t.ok(context.ended);
  t.equal(client.receivedBytes, 0, 'the head waits for the first record');

  context.audio(3_000);
  await client.until(() => client.receivedBytes > 4_000);
  t.equal(context.handedFrames.length, 1, 'handed when the socket has it');
  context.timestamps(['Hello'], 0);
  context.audio(3_000);
  await eventually(() => context.handedFrames.length === 2);
  t.notOk(context.released);
  context.timestamps(['there.'], 1);
  context.close();
  const response = await client.response();
  t.equal(response.status, 200);
  t.ok(response.complete);
  t.same(response.body, context.expectedBytes());
  t.equal(header(response, 'content-type'), 'text/plain; charset=utf-8');
  t.equal(header(response, 'cache-control'), 'no-store');
  t.equal(header(response, 'x-accel-buffering'), 'no');
  t.equal(header(response, 'transfer-encoding'), 'chunked');
  for (const record of response.body.toString().split('\n\n').slice(0, -1))
    t.match(JSON.parse(record.replace(/^data: /, '')), { type: /^(audio|timestamps)$/ });
  t.ok(context.released, 'the slot is free');
  t.equal(front.admission.leases[0]?.voided, 0);
});

t.test('records larger than a write are sliced, smaller ones are one chunk each', async (t) => {
  const front = await startFront(t);
  const sizes = [3, 11_000, 12_000, 15_999, 16_000, 16_384, 40_000, 333_333, 30];
  front.speech.script = (context) => {
    for (const size of sizes) context.audio(size);
    context.close();
  };
  const client = await front.sent(speak('/v1/tts/stream'));
  const response = await client.response();
  t.ok(response.complete);
  t.same(response.body, front.speech.last.expectedBytes());
  t.ok(Math.max(...response.chunkBytes) <= limits.writeBytesMax);
  t.equal(response.chunkBytes[0], front.speech.last.expected[0]?.length);
  t.equal(front.speech.last.handedFrames.length, sizes.length);
});

t.test('a failure before the first record is a clean 500', async (t) => {
  const front = await startFront(t);
  front.speech.script = (context) => context.fail('thread died');
  const client = await front.sent(speak('/v1/tts/stream'));
  const response = await client.response();
  t.equal(response.status, 500);
  t.equal(response.body.toString(), 'Internal Server Error');
  t.equal(header(response, 'content-type'), 'text/plain; charset=utf-8');
  t.ok(header(response, 'x-request-id'));
  t.ok(front.speech.last.released);
  // So it is in one batch with audio that was not sent yet.
  front.speech.script = (context) => {
    context.audio(300);
    context.fail('thread died');
  };
  const again = await front.sent(speak('/v1/tts/stream'));
  t.equal((await again.response()).status, 500);
  t.equal(front.server.inFlight, 0);
  t.equal(front.lines.filter(({ level }) => level === 'error').length, 2);
});

t.test('a failure after it closes the connection without the end of the body', async (t) => {
  const front = await startFront(t);
  front.speech.script = (context) => context.audio(3_000);
  const client = await front.sent(speak('/v1/tts/stream'));
  await client.until(() => client.receivedBytes > 4_000);
  front.speech.last.fail('thread died');
  const response = await client.response();
  t.equal(response.status, 200);
  t.notOk(response.complete, 'seen to be cut short');
  t.same(response.body, front.speech.last.expectedBytes());
  t.ok(front.speech.last.released);
  t.equal(front.admission.leases[0]?.voided, 0, 'what was heard is charged');
  t.match(requestLines(front)[0]?.fields, { outcome: 'failed', status: 200 });
});

t.test(
  'a text whose voice a reload takes away gets 503, or is cut; it is no fault of the service',
  async (t) => {
    const front = await startFront(t);
    for (const path of ['/v1/tts', '/v1/tts/stream'] as const) {
      front.speech.script = (context) => context.fail('reloaded', 'voiceRetired');
      const response = await (await front.sent(speak(path))).response();
      t.equal(response.status, 503);
      t.equal(response.body.toString(), '{"error":"The voice was replaced"}');
    }
    front.speech.script = (context) => context.audio(3_000);
    const client = await front.sent(speak('/v1/tts/stream'));
    await client.until(() => client.receivedBytes > 4_000);
    front.speech.last.fail('reloaded', 'voiceRetired');
    t.notOk((await client.response()).complete, 'seen to be cut short');
    t.ok(front.speech.last.released);
    t.equal(front.server.inFlight, 0);
    t.strictSame(
      front.lines.filter(({ level }) => level === 'error'),
      [],
    );
    t.match(requestLines(front).at(-1)?.fields, { outcome: 'failed', refusal: 'voiceRetired' });
  },
);

t.test('a context that closes without audio is an empty 200', async (t) => {
  const front = await startFront(t);
  front.speech.script = (context) => context.close();
  const client = await front.sent(speak('/v1/tts/stream'));
  const response = await client.response();
  t.equal(response.status, 200);
  t.equal(response.body.length, 0);
  t.ok(response.complete);
});

t.test('a service that takes no more contexts answers 503 and closes the lease', async (t) => {
  const front = await startFront(t);
  front.speech.refuse = () => 'contextPoolExhausted';
  for (const path of ['/v1/tts', '/v1/tts/stream'] as const) {
    const client = await front.sent(speak(path));
    const response = await client.response();
    t.equal(response.status, 503);
    t.equal(response.body.toString(), '{"error":"Service unavailable"}');
  }
  t.equal(front.admission.slotsTaken, 0);
  t.equal(front.server.inFlight, 0);
});

t.test('a client that leaves at any point releases its context at once', async (t) => {
  const front = await startFront(t);
  front.speech.script = () => {};
  const leave = [
    ['closes', (client: { destroy(): void }) => client.destroy()],
    ['resets', (client: { socket: { resetAndDestroy(): unknown } }) => client.socket.resetAndDestroy()],
    ['closes its half', (client: { socket: { end(): unknown } }) => client.socket.end()],
  ] as const;
  for (const path of ['/v1/tts', '/v1/tts/stream'] as const)
    for (const [how, go] of leave)
      for (const frames of [0, 1, 1_000]) {
        const client = await front.sent(speak(path));
        const before = front.speech.contexts.length;
        await eventually(() => front.speech.contexts.length === before || front.server.inFlight > 0);
        await eventually(() => front.speech.contexts.length > 0 && !front.speech.last.released);
        const context = front.speech.last;
        if (frames > 1) {
          client.socket.pause();
          context.stream(frames, 30_000);
          await pause(20);
        } else if (frames === 1) {
          context.audio(3_000);
          if (path === '/v1/tts/stream') await client.until(() => client.receivedBytes > 0);
        }
        go(client);
        await context.whenReleased();
        t.equal(front.server.inFlight, 0, `${path}: ${how} after ${frames} frames`);
        client.destroy();
      }
  t.equal(front.admission.slotsTaken, 0);
  t.same(new Set(requestLines(front).map(({ fields }) => fields['outcome'])), new Set(['aborted']));
});

t.test('a reader that takes nothing is dropped, and its slot is free', async (t) => {
  const front = await startFront(t, { bounds: { readerStallMsMax: 200, stallRearmMs: 40 } });
  front.speech.script = (context) => context.stream(2_000, 30_000);
  for (const path of ['/v1/tts', '/v1/tts/stream'] as const) {
    const client = await front.client();
    client.socket.pause();
    client.send(
      `POST ${path} HTTP/1.1\r\nHost: a\r\nx-api-key: svc_sk_good\r\nContent-Length: 26\r\n\r\n{"text":"a","voice":"ada"}`,
    );
    await eventually(() => front.server.inFlight === 1);
    await eventually(() => front.server.inFlight === 0);
    t.ok(front.speech.last.released);
    if (path === '/v1/tts/stream')
      t.ok(front.speech.last.unsentMs < 2 * limits.unsentAudioMsMax, 'the gate held');
  }
  t.same(
    requestLines(front).map(({ fields }) => fields['outcome']),
    ['reader-stalled', 'reader-stalled'],
  );
});

t.test('hundreds of aborted requests in a row leave nothing behind', async (t) => {
  const front = await startFront(t);
  front.speech.script = (context) => context.stream(50, 3_000);
  const request = speak('/v1/tts/stream');
  for (let round = 0; round < 300; round++) {
    const client = await front.sent(round % 3 === 0 ? speak('/v1/tts') : request);
    if (round % 2) await client.until(() => client.receivedBytes > 0);
    client.destroy();
  }
  await eventually(() => front.server.inFlight === 0);
  t.equal(front.admission.slotsTaken, 0);
  t.ok(front.speech.contexts.every((context) => context.released));
  const client = await front.sent(request);
  const response = await client.response();
  t.same(response.body, front.speech.last.expectedBytes());
  t.equal(front.server.inFlight, 0);
});

t.test('a hundred streams at once arrive whole', async (t) => {
  const front = await startFront(t);
  front.admission.admit = () => ({ ok: true, lease: new FakeLease(() => undefined) });
  front.speech.script = (context) => context.stream(40, 6_000 + 3 * front.speech.contexts.length);
  const clients = await Promise.all(Array.from({ length: 100 }, () => front.sent(speak('/v1/tts/stream'))));
  const responses = await Promise.all(clients.map((client) => client.response()));
  const expected = new Set(
    front.speech.contexts.map((context) => context.expectedBytes().toString('latin1')),
  );
  for (const response of responses) {
    t.ok(response.complete);
    t.ok(expected.delete(response.body.toString('latin1')));
  }
});
