/** Which requests become WebSockets. */
import t from 'tap';
import { SOCKET_PATH } from '../../src/front/ws/sockets.js';
import { GOOD_KEY, eventually, startFront } from '../support/front-server.js';
import { header, requestBytes } from '../support/raw-client.js';
import { upgradeLines } from '../support/websocket-frames.js';

const [upgrade, connection, version, key] = upgradeLines;

t.test('a request that lacks a part of a handshake becomes no WebSocket', async (t) => {
  const front = await startFront(t);
  const cases: readonly (readonly [name: string, status: number, lines: readonly string[]])[] = [
    ['only a key', 400, [key]],
    ['no upgrade', 400, [connection, version, key]],
    ['another upgrade', 400, ['Upgrade: h2c', connection, version, key]],
    ['no connection', 400, [upgrade, version, key]],
    ['another connection', 400, [upgrade, 'Connection: keep-alive', version, key]],
    ['no version', 426, [upgrade, connection, key]],
    ['version 8', 426, [upgrade, connection, 'Sec-WebSocket-Version: 8', key]],
    ['version 130', 426, [upgrade, connection, 'Sec-WebSocket-Version: 130', key]],
    ['two versions', 426, [upgrade, connection, version, version, key]],
    ['two keys', 400, [...upgradeLines, key]],
    ['no key', 400, [upgrade, connection, version]],
    ['a short key', 400, [upgrade, connection, version, 'Sec-WebSocket-Key: dGhl']],
    ['a key that is not base64', 400, [upgrade, connection, version, `Sec-WebSocket-Key: ${'!'.repeat(24)}`]],
    ['a key of 18 bytes', 400, [upgrade, connection, version, `Sec-WebSocket-Key: ${'a'.repeat(24)}`]],
    ['a body', 400, [...upgradeLines, 'Content-Length: 5']],
    ['a chunked body', 411, [...upgradeLines, 'Transfer-Encoding: chunked']],
  ];
  await Promise.all(
    cases.map(async ([name, status, headers]) => {
      const client = await front.sent(requestBytes({ path: SOCKET_PATH, key: GOOD_KEY, headers }));
      const response = await client.response();
      t.equal(response.status, status, name);
      t.match(header(response, 'x-request-id'), /^[\w-]{36}$/, name);
      if (status === 426) t.equal(header(response, 'sec-websocket-version'), '13', name);
      await client.closed();
    }),
  );
  t.equal(front.admission.authenticated, 0);
  t.equal(front.server.inFlight, 0);
});

t.test('a handshake is taken as browsers, proxies and other clients word it', async (t) => {
  const front = await startFront(t);
  for (const [name, headers] of [
    ['plain', upgradeLines],
    ['Firefox', [upgrade, 'Connection: keep-alive, Upgrade', version, key]],
    ['other cases', ['UPGRADE: WebSocket', 'connection: upgrade', version, key]],
    ['two connection lines', ['Connection: keep-alive', ...upgradeLines]],
    ['several upgrades', ['Upgrade: foo,  websocket', connection, version, key]],
    ['an empty body', [...upgradeLines, 'Content-Length: 0']],
  ] as const) {
    const client = await front.sent(requestBytes({ path: SOCKET_PATH, key: GOOD_KEY, headers }));
    await client.until(() => client.bytes().includes('\r\n\r\n'));
    t.match(client.bytes().toString('latin1'), /^HTTP\/1\.1 101 /, name);
    client.destroy();
  }
  await eventually(() => front.server.inFlight === 0);
});

t.test('a path beside that of WebSockets has none, before the first one and after it', async (t) => {
  const front = await startFront(t);
  const statusOf = async (path: string): Promise<string> => {
    const client = await front.sent(requestBytes({ path, key: GOOD_KEY, headers: upgradeLines }));
    await client.until(() => client.bytes().includes('\r\n\r\n'));
    const status = client.bytes().toString('latin1', 9, 12);
    client.destroy();
    return status;
  };
  for (let i = 0; i < 2; i++) {
    t.equal(await statusOf('/v1/tts/other'), '404');
    t.equal(await statusOf('/v1/tts/speakers'), '200');
    t.equal(await statusOf('/v1/other/ws'), '404');
    t.equal(await statusOf(SOCKET_PATH), '101');
  }
});
