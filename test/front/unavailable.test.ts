/** A 503 says only that the client should come back; metrics and log show the operator which bound or state caused it. */
import t, { type Test } from 'tap';
import {
  header,
  RawClient,
  requestBytes,
  type RawResponse,
  type RequestOptions,
} from '../support/raw-client.js';
import {
  GOOD_KEY,
  eventually,
  requestLines,
  speak,
  startFront,
  type Front,
} from '../support/front-server.js';
import { openWs } from '../support/socket-client.js';

const UPGRADE: RequestOptions = {
  path: '/v1/tts/ws',
  key: GOOD_KEY,
  headers: [
    'Upgrade: websocket',
    'Connection: Upgrade',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  ],
};

const refusals = async (front: Front, reason: string): Promise<number> => {
  const series = `syrinx_refusals_total{reason="${reason}"} `;
  const line = (await front.metrics.text()).split('\n').find((text) => text.startsWith(series));
  return Number(line?.slice(series.length));
};

const isRefused = async (
  t: Test,
  front: Front,
  response: RawResponse,
  reason: string,
  times = 1,
): Promise<void> => {
  t.equal(response.status, 503);
  t.equal(response.body.toString(), '{"error":"Service unavailable"}', 'the same for all');
  t.equal(header(response, 'retry-after'), '1');
  t.match(requestLines(front).at(-1)?.fields, { status: 503, refusal: reason, keyId: 7 });
  t.equal(await refusals(front, reason), times);
};

const ask = async (front: Front, request: RequestOptions): Promise<RawResponse> =>
  (await front.sent(request)).response();

t.test('the texts of all requests have a bound', async (t) => {
  const front = await startFront(t, { bounds: { requestCharactersInFlightMax: 100 } });
  await isRefused(
    t,
    front,
    await ask(front, speak('/v1/tts', { text: 'a'.repeat(101) })),
    'textPoolExhausted',
  );
  t.equal((await ask(front, speak('/v1/tts', { text: 'a'.repeat(100) }))).status, 200);
});

t.test('the bodies of all requests have a bound', async (t) => {
  const front = await startFront(t, { bounds: { bodyBytesInFlightMax: 1_000 } });
  const large = speak('/v1/tts/stream', { text: 'a'.repeat(2_000) });
  await isRefused(t, front, await ask(front, large), 'bodyPoolExhausted');
});

t.test('all contexts have a bound', async (t) => {
  const front = await startFront(t);
  front.speech.refuse = () => 'contextPoolExhausted';
  await isRefused(t, front, await ask(front, speak('/v1/tts')), 'contextPoolExhausted');
  const socket = await openWs(front.port, GOOD_KEY);
  socket.start('a');
  await socket.frame(({ error }) => error === 'Service unavailable');
  t.equal(await refusals(front, 'contextPoolExhausted'), 2);
});

t.test('at the capacity of the machine an utterance is refused, and its credit is free', async (t) => {
  const front = await startFront(t);
  front.speech.isAtCapacity = true;
  await isRefused(t, front, await ask(front, speak('/v1/tts')), 'overloaded');
  await isRefused(t, front, await ask(front, speak('/v1/tts/stream')), 'overloaded', 2);
  t.strictSame(front.admission.inFlight, { slots: 0, reservedCredits: 0 });
});

t.test('WebSockets have a bound', async (t) => {
  const front = await startFront(t, { bounds: { socketsMax: 1 } });
  await openWs(front.port, GOOD_KEY);
  await isRefused(t, front, await ask(front, UPGRADE), 'socketPoolExhausted');
});

t.test('connections have a bound', async (t) => {
  const front = await startFront(t, { bounds: { connectionsMax: 1 } });
  await front.client();
  await eventually(() => front.server.shared.connections.open === 1);
  const one = await RawClient.open(front.port);
  t.teardown(() => one.destroy());
  await one.closed();
  t.equal(await refusals(front, 'connectionPoolExhausted'), 1);
});

t.test('a failing store answers 503', async (t) => {
  const front = await startFront(t);
  front.admission.admit = () => ({ ok: false, code: 'unavailable' });
  await isRefused(t, front, await ask(front, speak('/v1/tts')), 'storeUnavailable');
});

t.test('a drain answers 503, but not to a client that is sending its body', async (t) => {
  const front = await startFront(t);
  front.speech.script = (context) => {
    context.audio(3_000);
    context.close();
  };
  const request = requestBytes(speak('/v1/tts/stream'));
  const amid = await front.sent(request.subarray(0, -10));
  await eventually(() => front.server.inFlight === 1);
  // Every connection has a request, so refusals begin at once.
  front.server.stopAccepting();
  amid.send(request.subarray(-10));
  const response = await amid.response();
  t.equal(response.status, 200);
  t.ok(response.complete);
  amid.send(request);
  await isRefused(t, front, await amid.response(), 'draining');
});
