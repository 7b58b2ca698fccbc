/** What responses say about their connection. That it holds is shown by test/e2e/idle-connections.sweep.test.ts. */
import t from 'tap';
import { GOOD_KEY, speak, startFront } from '../support/front-server.js';
import { header, requestBytes, type RequestOptions } from '../support/raw-client.js';

const kinds: readonly (readonly [name: string, status: number, request: RequestOptions])[] = [
  ['a whole file', 200, speak('/v1/tts')],
  ['a stream', 200, speak('/v1/tts/stream')],
  ['HEAD', 200, { method: 'HEAD', path: '/healthz' }],
  ['a list', 200, { path: '/v1/tts/speakers', key: GOOD_KEY }],
  ['a large answer', 200, { path: '/openapi.json', key: GOOD_KEY }],
  ['a 401', 401, { path: '/v1/tts/speakers' }],
  ['a 422', 422, speak('/v1/tts', { voice: 'nobody' })],
  ['a 404', 404, { path: '/nothing' }],
  ['a 405', 405, { method: 'PUT', path: '/v1/tts' }],
];

t.test('every response that keeps its connection says for how long', async (t) => {
  const front = await startFront(t);
  const client = await front.client();
  for (const [name, status, request] of kinds) {
    client.send(requestBytes(request));
    const response = await client.response(request.method === 'HEAD');
    t.equal(response.status, status, name);
    t.equal(header(response, 'keep-alive'), 'timeout=7', name);
    t.equal(header(response, 'connection'), 'keep-alive', `${name}: the header is for the next hop only`);
  }
  front.speech.script = (context) => context.fail('thread died');
  client.send(requestBytes(speak('/v1/tts')));
  const failed = await client.response();
  t.equal(failed.status, 500);
  t.equal(header(failed, 'keep-alive'), 'timeout=7', 'a 500');
});

t.test('a response that closes its connection says that, once', async (t) => {
  const front = await startFront(t);
  for (const [name, status, request] of kinds) {
    const client = await front.sent({ ...request, headers: ['Connection: Close'] });
    const response = await client.response(request.method === 'HEAD');
    t.equal(response.status, status, name);
    const ofConnection = response.headers.filter(([key]) => key === 'connection' || key === 'keep-alive');
    t.strictSame(ofConnection, [['connection', 'close']], name);
    await client.closed();
  }
  const refused = await front.sent({ path: '/healthz', headers: ['Host: twice'] });
  const response = await refused.response();
  t.equal(response.status, 400);
  t.equal(header(response, 'connection'), 'close', 'the service closes');
  t.equal(header(response, 'keep-alive'), undefined);
  await refused.closed();
});

t.test('a WebSocket has no time to idle', async (t) => {
  const front = await startFront(t);
  const upgrade = [
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  ];
  for (const connection of ['Connection: Upgrade', 'Connection: keep-alive, Upgrade']) {
    const client = await front.sent({ path: '/v1/tts/ws', key: GOOD_KEY, headers: [...upgrade, connection] });
    await client.until(() => client.bytes().includes('\r\n\r\n'));
    const head = client.bytes().toString('latin1');
    t.match(head, /^HTTP\/1\.1 101 /);
    t.notMatch(head, /keep-alive/i);
  }
});
