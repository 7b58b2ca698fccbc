import { createServer as createNetServer, type AddressInfo } from 'node:net';
import t from 'tap';
import { ListenError } from '../../src/front/listener.js';
import { createServer } from '../../src/front/server.js';
import { limits } from '../../src/limits.js';
import { Metrics } from '../../src/metrics.js';
import { header, RawClient, requestBytes } from '../support/raw-client.js';
import {
  eventually,
  requestLines,
  FakeAdmission,
  recordingLog,
  speak,
  startFront,
  GOOD_KEY,
} from '../support/front-server.js';
import { FakeSpeech } from '../support/fake-speech.js';
import { openWs } from '../support/socket-client.js';

const build = (host: string, port: number) =>
  createServer({
    config: { host, port, dataDir: '.', corsOrigins: [] },
    speech: new FakeSpeech(),
    admission: new FakeAdmission(),
    readiness: { reasons: () => [], warnings: () => [] },
    log: recordingLog([]),
    metrics: new Metrics(),
    bounds: limits,
  });

t.test('a port that is not available is one clear line', async (t) => {
  const front = await startFront(t);
  await t.rejects(build('127.0.0.1', front.port).listen(), {
    name: 'ListenError',
    code: 'EADDRINUSE',
    message: new RegExp(`^cannot listen on 127\\.0\\.0\\.1:${front.port}: the port is in use.* or set PORT `),
  });
  const other = createNetServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  t.teardown(() => other.close());
  const { port } = other.address() as AddressInfo;
  await t.rejects(build('127.0.0.1', port).listen(), { code: 'EADDRINUSE' });
  await t.rejects(build('192.0.2.1', 0).listen(), {
    code: 'EADDRNOTAVAIL',
    message: /^cannot listen on 192\.0\.2\.1:0: this machine has no such address; set HOST /,
  });
  t.ok(new ListenError('h', 1, 'EACCES').message.includes('no permission'));
  t.equal((await RawClient.ask(front.port, { path: '/healthz' })).status, 200, 'the first one still serves');
});

t.test('a service can start again on its port as soon as it has ended', async (t) => {
  const chooser = build('127.0.0.1', 0);
  const { port } = await chooser.listen();
  chooser.close();
  for (let start = 0; start < 3; start++) {
    const server = build('127.0.0.1', port);
    t.equal((await server.listen()).port, port);
    const client = await RawClient.open(port);
    client.send(requestBytes({ path: '/healthz' }));
    t.equal((await client.response()).status, 200);
    server.close();
    server.close();
    await client.closed();
    client.destroy();
  }
});

t.test('a drain finishes what is in flight and takes nothing new', async (t) => {
  const front = await startFront(t, { bounds: { drainLingerMs: 20 } });
  const idleSocket = await openWs(front.port, GOOD_KEY);
  front.speech.script = (context) => context.audio(3_000);
  const streaming = await front.sent(speak('/v1/tts/stream'));
  await streaming.until(() => streaming.receivedBytes > 0);
  const kept = await front.client();
  kept.send(requestBytes({ path: '/readyz' }));
  t.equal((await kept.response()).status, 200);

  front.server.stopAccepting();
  front.server.stopAccepting();
  let idle = false;
  void front.server.whenIdle().then(() => (idle = true));
  kept.send(requestBytes({ path: '/readyz' }));
  const notReady = await kept.response();
  t.equal(notReady.status, 503);
  t.same(JSON.parse(notReady.body.toString()), { status: 'not ready', reasons: ['draining'] });
  t.match(await idleSocket.closing(), { code: 1001 }, 'from here on it refuses');
  kept.send(requestBytes(speak('/v1/tts/stream')));
  const refused = await kept.response();
  t.equal(refused.status, 503);
  t.equal(refused.body.toString(), '{"error":"Service unavailable"}');
  t.equal(header(refused, 'connection'), 'close');
  await kept.closed();
  await t.rejects(RawClient.open(front.port), { code: 'ECONNREFUSED' });

  t.notOk(idle);
  const [context] = front.speech.contexts;
  for (let count = 0; count < 5; count++) context?.audio(3_000);
  context?.close();
  const response = await streaming.response();
  t.ok(response.complete);
  t.same(response.body, context?.expectedBytes());
  await front.server.whenIdle();
  t.ok(idle);
  t.equal(front.speech.contexts.length, 1);
  t.equal(front.server.inFlight, 0);
});

t.test('a client that connected before a drain and sends its request afterwards is served', async (t) => {
  // A long time: the test sees everything before it is over.
  const front = await startFront(t, { bounds: { drainLingerMs: 60_000 } });
  front.speech.script = (context) => {
    context.audio(3_000);
    context.close();
  };
  const [streamer, upgrader] = [await front.client(), await RawClient.open(front.port)];
  t.teardown(() => upgrader.destroy());
  // The later request is served, so the server has both.
  t.equal((await RawClient.ask(front.port, { path: '/healthz' })).status, 200);
  front.server.stopAccepting();
  let idle = false;
  void front.server.whenIdle().then(() => (idle = true));
  await t.rejects(RawClient.open(front.port), { code: 'ECONNREFUSED' });

  streamer.send(requestBytes(speak('/v1/tts/stream')));
  const response = await streamer.response();
  t.equal(response.status, 200);
  t.ok(response.complete);
  const upgrade = ['Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Version: 13'];
  const socketKey = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==';
  upgrader.send(requestBytes({ path: '/v1/tts/ws', key: GOOD_KEY, headers: [...upgrade, socketKey] }));
  await upgrader.until(() => upgrader.receivedBytes > 0);
  await eventually(() => front.server.inFlight === 1);
  t.notOk(idle, 'and it waits for more');
  front.server.close();
  await front.server.whenIdle();
});

t.test('a drain does not wait if every connection has a request in flight', async (t) => {
  const front = await startFront(t, { bounds: { drainLingerMs: 60_000 } });
  const socket = await openWs(front.port, GOOD_KEY);
  front.server.stopAccepting();
  t.match(await socket.closing(), { code: 1001 });
  await front.server.whenIdle();
  t.equal(front.server.inFlight, 0);
});

t.test('close ends what is in flight at once and releases it', async (t) => {
  const front = await startFront(t);
  front.speech.script = (context) => context.audio(3_000);
  const client = await front.sent(speak('/v1/tts/stream'));
  await client.until(() => client.receivedBytes > 0);
  const waiting = await front.sent(speak('/v1/tts'));
  await eventually(() => front.speech.contexts.length === 2);
  front.server.close();
  await Promise.all([client.closed(), waiting.closed(), front.server.whenIdle()]);
  t.ok(front.speech.contexts.every(({ released }) => released));
  t.equal(front.server.inFlight, 0);
  t.same(
    requestLines(front).map(({ fields }) => fields['outcome']),
    ['failed', 'failed'],
    "our doing, not the clients'",
  );
});
