import t from 'tap';
import { errors } from '../../src/errors.js';
import { AccountTurn } from '../../src/front/turns.js';
import { limits } from '../../src/limits.js';
import { header, requestBytes } from '../support/raw-client.js';
import { GOOD_KEY, eventually, requestLines, speak, startFront } from '../support/front-server.js';
import { SteppedTime } from '../support/stepped-time.js';
import { pause } from '../support/waiting.js';

/** The library answers 505 to a first line in pieces. */
const requestLine = 'POST /v1/tts/stream HTTP/1.1\r\n';
const head = (...lines: string[]): string =>
  [requestLine.trimEnd(), 'Host: a', `x-api-key: ${GOOD_KEY}`, ...lines, '', ''].join('\r\n');

/** A valid body of exactly so many bytes. */
const bodyOf = (bytes: number): string => {
  const frame = JSON.stringify({ text: '', voice: 'ada' });
  return JSON.stringify({ text: 'a'.repeat(bytes - frame.length), voice: 'ada' });
};

t.test('a body may come in any pieces', async (t) => {
  const front = await startFront(t);
  const body = JSON.stringify({ text: 'Grüße, 世界. 🦊', voice: 'ada' });
  const bytes = Buffer.from(body);
  for (const [name, pieces] of [
    [
      'byte by byte',
      [head(`Content-Length: ${bytes.length}`), ...[...bytes].map((byte) => Buffer.from([byte]))],
    ],
    [
      'headers byte by byte',
      [requestLine, ...Array.from(head(`Content-Length: ${bytes.length}`).slice(requestLine.length)), bytes],
    ],
  ] as const) {
    const client = await front.client();
    for (const piece of pieces) {
      client.send(piece);
      await new Promise((resolve) => setImmediate(resolve));
    }
    const response = await client.response();
    t.equal(response.status, 200, name);
    t.equal(front.speech.last.text, 'Grüße, 世界. 🦊', name);
    t.same(response.body, front.speech.last.expectedBytes(), name);
  }
});

t.test(
  'a body of the largest size is taken, one byte more is 413, and the client gets to read it',
  async (t) => {
    const front = await startFront(t);
    front.speech.script = (context) => context.stream(1, 300);
    const most = await front.sent({ ...speak('/v1/tts/stream'), body: bodyOf(limits.bodyBytesMax) });
    t.equal((await most.response()).status, 200);
    t.ok(front.speech.last.text.length > limits.bodyBytesMax - 40);

    const over = bodyOf(limits.bodyBytesMax + 1);
    for (const [name, bytes] of [
      ['declared', requestBytes({ ...speak('/v1/tts/stream'), body: over })],
      ['declared, four times over', requestBytes({ ...speak('/v1/tts/stream'), body: over.repeat(4) })],
    ] as const) {
      const client = await front.sent(bytes);
      const response = await client.response();
      t.equal(response.status, 413, name);
      t.equal(response.body.toString(), errors.bodyTooLarge.body, name);
      t.ok(header(response, 'x-request-id'), name);
      t.equal(header(response, 'connection'), 'close', name);
      await client.closed();
    }
    t.equal(front.speech.contexts.length, 1);
  },
);

t.test('a body with an enormous declared length is refused before it is sent', async (t) => {
  const front = await startFront(t);
  for (const declared of [limits.bodyDiscardBytesMax + 1, 999_999_999_999_999]) {
    const client = await front.sent(Buffer.from(head(`Content-Length: ${declared}`)));
    t.equal((await client.response()).status, 413);
    await client.closed();
  }
});

t.test('an answer that needs no body does not wait for it', async (t) => {
  const front = await startFront(t);
  const lines = head('Content-Length: 100000').replace(GOOD_KEY, 'svc_sk_none');
  const client = await front.sent(Buffer.from(lines));
  t.equal((await client.response()).status, 401);
});

t.test('Expect: 100-continue is honoured', async (t) => {
  const front = await startFront(t);
  const body = JSON.stringify({ text: 'Hi', voice: 'ada' });
  const client = await front.sent(
    Buffer.from(head(`Content-Length: ${body.length}`, 'Expect: 100-continue')),
  );
  await client.until(() => client.receivedBytes > 0);
  t.match(client.bytes().toString(), /^(?:HTTP\/1\.1 100 Continue\r\n\r\n){2}$/);
  client.send(body);
  t.equal((await client.response()).status, 200);
});

t.test('a body that is late is dropped, and a slow one in time is not', async (t) => {
  const bounds = { bodyReceiveMsMax: 300, stallRearmMs: 40 };
  const time = new SteppedTime(bounds.stallRearmMs / 4);
  const front = await startFront(t, { bounds, parts: { clock: time.clock } });
  const body = JSON.stringify({ text: 'Hi', voice: 'ada' });
  const lines = Buffer.from(head(`Content-Length: ${body.length}`));
  const [late, inTime] = await Promise.all([front.sent(lines), front.sent(lines)]);
  for (const character of body.slice(0, -1)) {
    late.send(character);
    inTime.send(character);
    await pause(5);
  }
  await eventually(() => front.server.inFlight === 2);
  await time.pass(bounds.bodyReceiveMsMax);
  t.notOk(late.isClosed, 'the time is not over');
  inTime.send(body.slice(-1));
  t.equal((await inTime.response()).status, 200);
  await time.passUntil(() => late.isClosed);
  t.equal(late.receivedBytes, 0, 'no answer');
  t.equal(front.speech.contexts.length, 1);
  t.match(
    requestLines(front).map(({ fields }) => fields['outcome']),
    ['complete', 'body-late'],
  );
});

t.test('the time in which a body waits to be read does not make it late', async (t) => {
  const bounds = { framesPerSecond: 40, bodyReceiveMsMax: 300, stallRearmMs: 40 };
  const time = new SteppedTime(bounds.stallRearmMs / 4);
  const front = await startFront(t, { bounds, parts: { clock: time.clock } });
  const small = { ...speak('/v1/tts/stream'), body: '{"text":1}' };
  const before = await Promise.all(Array.from({ length: 20 }, () => front.sent(small)));
  await eventually(() => before.some((client) => client.receivedBytes > 0));
  const body = JSON.stringify({ text: 'Hi', voice: 'ada' });
  const client = await front.sent(Buffer.from(head(`Content-Length: ${body.length}`) + body.slice(0, -1)));
  const startMs = time.clock();
  await time.passUntil(() => before.every(({ receivedBytes }) => receivedBytes > 0));
  t.ok(time.clock() - startMs > bounds.bodyReceiveMsMax);
  // It is read again, and looked at.
  await time.pass(bounds.bodyReceiveMsMax / 2);
  t.notOk(client.isClosed);
  client.send(body.slice(-1));
  await time.passUntil(() => client.receivedBytes > 0);
  t.equal((await client.response()).status, 200);
});

t.test('pieces count in the turn of their account before the body is whole', async (t) => {
  type Time = (this: AccountTurn, pieceBytes: number, work: () => unknown) => unknown;
  const before = Object.getOwnPropertyDescriptor(AccountTurn.prototype, 'time')!;
  const time = before.value as Time;
  let bytes = 0;
  const counting: Time = function (pieceBytes, work) {
    bytes += pieceBytes;
    return time.call(this, pieceBytes, work);
  };
  Object.defineProperty(AccountTurn.prototype, 'time', { ...before, value: counting });
  t.teardown(() => Object.defineProperty(AccountTurn.prototype, 'time', before));
  const front = await startFront(t);
  const half = Buffer.alloc(15_000, 97);
  await front.sent(Buffer.concat([Buffer.from(head('Content-Length: 30000')), half]));
  await eventually(() => bytes === half.length);
});

t.test('bodies in flight share one bound, and give back what they held', async (t) => {
  const front = await startFront(t, { bounds: { bodyBytesInFlightMax: 40_000 } });
  const half = Buffer.alloc(15_000, 97);
  const waiting = await front.sent(Buffer.concat([Buffer.from(head('Content-Length: 30000')), half]));
  const second = await front.sent(Buffer.concat([Buffer.from(head('Content-Length: 30000')), half]));
  await eventually(() => front.server.inFlight === 2);
  const third = await front.sent(Buffer.concat([Buffer.from(head('Content-Length: 30000')), half]));
  const refused = await third.response();
  t.equal(refused.status, 503);
  t.equal(refused.body.toString(), errors.unavailable.body);
  waiting.destroy();
  second.destroy();
  await eventually(() => front.server.inFlight === 0);
  const fourth = await front.sent({ ...speak('/v1/tts/stream'), body: bodyOf(35_000) });
  t.equal((await fourth.response()).status, 200);
});

t.test('clients that vanish in the middle of head or body leave nothing behind', async (t) => {
  const front = await startFront(t);
  const request = requestBytes(speak('/v1/tts/stream'));
  for (let at = 1; at < request.length; at += 7) {
    const client = await front.sent(request.subarray(0, at));
    await new Promise((resolve) => setImmediate(resolve));
    if (at % 2) client.destroy();
    else client.socket.resetAndDestroy();
  }
  const after = await front.sent(speak('/v1/tts/stream'));
  t.equal((await after.response()).status, 200);
  await eventually(() => front.server.inFlight === 0);
  t.equal(front.speech.contexts.length, 1);
});
