/** Connections that have not shown a key: what one address may hold, and that it is counted to the end. */
import type { Socket } from 'node:net';
import t from 'tap';
import { specificationErrors } from '../../src/api/error-shape.js';
import { ConnectionPool } from '../../src/front/connections.js';
import { Cors } from '../../src/front/cors.js';
import { forwardedAddress } from '../../src/front/request-head.js';
import { addHandler } from '../../src/front/routes.js';
import { createServices } from '../../src/front/services.js';
import { closeListenSocket, createApp, listenOn, localPort } from '../../src/front/uws.js';
import { limits } from '../../src/limits.js';
import { Metrics } from '../../src/metrics.js';
import { monotonicMs } from '../../src/monotonic.js';
import {
  activeKey,
  eventually,
  GOOD_KEY,
  keysInUse,
  recordingLog,
  speak,
  startFront,
  type Front,
} from '../support/front-server.js';
import { answerTo, openFrom, openIn } from '../support/many-connections.js';
import { requestBytes } from '../support/raw-client.js';

/** Opens connections that send nothing until one is refused. @returns how many were admitted */
const fill = (pool: ConnectionPool, connections: ReturnType<ConnectionPool['listener']>, address: string) => {
  let admitted = 0;
  while (connections.refusalOf(address) === null) {
    connections.open++;
    pool.strangers.add(address);
    admitted++;
  }
  return admitted;
};

t.test('the strangers of an address have a quarter of what all others leave', (t) => {
  const pool = new ConnectionPool(1_000);
  const connections = pool.listener();
  t.equal(fill(pool, connections, 'a'), 250);
  t.equal(connections.refusalOf('a'), 'connectionsOfAddressExhausted');
  t.equal(fill(pool, connections, 'b'), 187);
  connections.open += 400;
  t.equal(fill(pool, connections, 'c'), 40, 'connections with a key leave less');
  let others = 0;
  while (fill(pool, connections, `d${others}`) > 0) others++;
  t.equal(connections.open, 1_000);
  t.ok(others > 5, `then ${others} addresses more have some`);
  t.equal(connections.refusalOf('z'), 'connectionPoolExhausted');
  t.end();
});

t.test('a listener whose connections are all taken leaves the others their reserve', (t) => {
  const pool = new ConnectionPool(320);
  const [taken, other] = [pool.listener(), pool.listener()];
  while (taken.refusalOf(`${taken.open}`) === null) taken.open++;
  t.equal(taken.open, 310);
  t.equal(other.refusalOf('a'), null);
  t.equal(fill(pool, other, 'a'), 8);
  t.equal(fill(pool, other, 'b'), 2, 'a newcomer finds the rest');
  t.end();
});

t.test('a listener has its own bound within the pool', (t) => {
  const pool = new ConnectionPool(1_000);
  pool.listener();
  const small = pool.listener(40);
  t.equal(fill(pool, small, 'a'), 10);
  t.end();
});

const speakers = requestBytes({ path: '/v1/tts/speakers', key: GOOD_KEY });

const handshakeWith = (key: string): Buffer =>
  requestBytes({
    path: '/v1/tts/ws',
    key,
    headers: [
      'connection: upgrade',
      'upgrade: websocket',
      'sec-websocket-version: 13',
      'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
    ],
  });

const strangersOf = (front: Front): number =>
  front.server.shared.connections.strangers.countOf('127.0.0.1') +
  front.server.shared.connections.strangers.countOf('127.0.0.2');

t.test('one address that opens all connections and sends nothing leaves room for others', async (t) => {
  const front = await startFront(t, { bounds: { connectionsMax: 100 } });
  const attack = await openFrom(t, front.port, '127.0.0.1', 300);
  await eventually(() => openIn(attack) === 25);
  t.equal(front.server.shared.connections.open, 25);
  const others = await openFrom(t, front.port, '127.0.0.2', 10);
  for (const other of others) t.equal(await answerTo(other, speakers), 'HTTP/1.1 200');
  t.match(
    front.lines.filter(({ level }) => level === 'warn'),
    [{ fields: { refusal: 'connectionsOfAddressExhausted', address: '127.0.0.1' } }],
  );
  for (const socket of attack) socket.destroy();
  await eventually(() => front.server.shared.connections.strangers.countOf('127.0.0.1') === 0);
  const [again] = await openFrom(t, front.port, '127.0.0.1', 1);
  t.equal(await answerTo(again!, speakers), 'HTTP/1.1 200', 'the address is served again at once');
});

t.test('connections that ask with a key do not count for their address: it may be a proxy', async (t) => {
  const front = await startFront(t, { bounds: { connectionsMax: 200 } });
  const all: Socket[] = [];
  for (let round = 0; round < 4; round++) {
    // All in the same moment.
    const callers = await openFrom(t, front.port, '127.0.0.1', 20);
    for (const caller of callers) t.equal(await answerTo(caller, speakers), 'HTTP/1.1 200');
    t.equal(openIn(callers), 20);
    all.push(...callers);
  }
  t.equal(strangersOf(front), 80, 'they wait');
  const speech = requestBytes(speak('/v1/tts')).subarray(0, -5);
  for (const caller of all) caller.write(speech);
  await eventually(() => strangersOf(front) === 0);
});

t.test('requests with a key on one connection hide no other connection of its address', async (t) => {
  const front = await startFront(t, { bounds: { connectionsMax: 100 } });
  const [caller] = await openFrom(t, front.port, '127.0.0.1', 1);
  t.equal(await answerTo(caller!, speakers), 'HTTP/1.1 200');
  const idle = await openFrom(t, front.port, '127.0.0.1', 10);
  for (let index = 0; index < 20; index++) t.equal(await answerTo(caller!, speakers), 'HTTP/1.1 200');
  t.equal(strangersOf(front), 11);
  caller!.destroy();
  await eventually(() => strangersOf(front) === 10);
  for (const socket of idle) socket.destroy();
  await eventually(() => strangersOf(front) === 0);
});

t.test('a connection of a stranger counts once, whatever it asks for', async (t) => {
  const front = await startFront(t, { bounds: { connectionsMax: 100 } });
  const [kept, aborted, silent] = await openFrom(t, front.port, '127.0.0.1', 3);
  t.equal(strangersOf(front), 3);
  for (let index = 0; index < 5; index++) {
    t.equal(await answerTo(kept!, requestBytes({ path: '/healthz' })), 'HTTP/1.1 200');
    t.equal(
      await answerTo(kept!, requestBytes({ path: '/v1/tts/speakers', key: 'svc_sk_no' })),
      'HTTP/1.1 401',
    );
    t.equal(await answerTo(kept!, requestBytes({ path: '/nowhere' })), 'HTTP/1.1 404');
    t.equal(strangersOf(front), 3);
  }
  const closing = requestBytes({ path: '/healthz', headers: ['connection: close'] });
  t.equal(await answerTo(kept!, closing), 'HTTP/1.1 200');
  await eventually(() => strangersOf(front) === 2);
  silent!.destroy();
  await eventually(() => strangersOf(front) === 1);
  // A key, and then its end amid the body.
  aborted!.write(requestBytes(speak('/v1/tts')).subarray(0, -5));
  await eventually(() => strangersOf(front) === 0);
  aborted!.destroy();
  await eventually(() => front.server.shared.connections.open === 0);
  t.equal(strangersOf(front), 0);
});

t.test(
  'a connection that is reset just before its request is read is given back to its address',
  async (t) => {
    const front = await startFront(t, { bounds: { connectionsMax: 200 } });
    const { connections } = front.server.shared;
    const [first, ...fresh] = await openFrom(t, front.port, '127.0.0.1', 21);
    const waiting = await openFrom(t, front.port, '127.0.0.1', 20);
    for (const socket of waiting) t.equal(await answerTo(socket, speakers), 'HTTP/1.1 200');
    await eventually(() => strangersOf(front) === 41);
    const resets = [...fresh, ...waiting];
    // Its request is read in the same turn of the loop, before theirs.
    const authenticate = front.admission.authenticate.bind(front.admission);
    front.admission.authenticate = (header) => {
      for (const socket of resets) socket.resetAndDestroy();
      return authenticate(header);
    };
    first!.write(speakers);
    for (const [index, socket] of resets.entries())
      socket.write([speakers, requestBytes(speak('/v1/tts')), handshakeWith(GOOD_KEY)][index % 3]!);
    await eventually(() => connections.open === 1);
    t.equal(strangersOf(front), 1);
    t.equal(connections.strangers.countOf(''), 0);
  },
);

t.test('a client that names another address in a PROXY preamble counts for its own', async (t) => {
  const front = await startFront(t, { bounds: { connectionsMax: 100 } });
  const [socket] = await openFrom(t, front.port, '127.0.0.1', 1);
  const preamble = Buffer.concat([
    Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1'),
    // Version 2, a TCP connection over IPv4 from 10.0.0.9 to 10.0.0.1.
    Buffer.from([0x21, 0x11, 0, 12, 10, 0, 0, 9, 10, 0, 0, 1, 0, 1, 0, 80]),
  ]);
  const request = requestBytes({ path: '/healthz' });
  t.equal(
    await answerTo(socket!, Buffer.concat([preamble, request])),
    'HTTP/1.1 200',
    'the library takes it',
  );
  const { strangers } = front.server.shared.connections;
  t.strictSame([strangers.countOf('127.0.0.1'), strangers.countOf('10.0.0.9')], [1, 0]);
});

t.test('a method that the library does not know ends its connection, and disturbs no other', async (t) => {
  const front = await startFront(t, { bounds: { connectionsMax: 100 } });
  const [other, odd] = await openFrom(t, front.port, '127.0.0.1', 2);
  t.equal(await answerTo(other!, requestBytes({ path: '/healthz' })), 'HTTP/1.1 200');
  t.equal(await answerTo(odd!, requestBytes({ method: 'PROPFIND', path: '/v1/tts' })), 'HTTP/1.1 405');
  await eventually(() => openIn([odd!]) === 0);
  t.equal(strangersOf(front), 1);
  t.equal(await answerTo(other!, requestBytes({ path: '/healthz' })), 'HTTP/1.1 200');
});

t.test('a method in other letters takes nothing of the request before it', async (t) => {
  const front = await startFront(t, { bounds: { connectionsMax: 100 } });
  const [victim, ...odd] = await openFrom(t, front.port, '127.0.0.1', 6);
  victim!.write(requestBytes(speak('/v1/tts')).subarray(0, -5));
  await eventually(() => strangersOf(front) === 5);
  const [socket, ...lower] = odd;
  t.equal(await answerTo(socket!, handshakeWith(GOOD_KEY)), 'HTTP/1.1 101');
  for (const [index, method] of ['get', 'GeT', 'pOST', 'options'].entries()) {
    await answerTo(lower[index]!, requestBytes({ method, path: '/nowhere' }));
    await eventually(() => openIn([lower[index]!]) === 0);
  }
  t.equal(strangersOf(front), 0);
  for (const one of [victim!, socket!]) one.destroy();
  await eventually(() => front.server.shared.connections.open === 0);
  t.equal(strangersOf(front), 0);
});

t.test(
  'a WebSocket that its client has closed counts for its account while its connection is open',
  async (t) => {
    const front = await startFront(t, { bounds: { connectionsMax: 100 } });
    const { accounts } = front.server.shared.connections;
    const answers: string[] = [];
    for (let index = 0; index < 60; index++) {
      const [socket] = await openFrom(t, front.port, '127.0.0.1', 1);
      answers.push(await answerTo(socket!, handshakeWith(GOOD_KEY)));
      // A masked close frame without a code.
      socket!.write(Buffer.from([0x88, 0x80, 0, 0, 0, 0]));
    }
    const opened = answers.filter((answer) => answer === 'HTTP/1.1 101').length;
    t.ok(opened >= 40 && opened <= 50, `${opened} of 60`);
    t.ok(answers.slice(-5).every((answer) => answer === 'HTTP/1.1 503'));
    await eventually(() => accounts.countOf(activeKey(7).accountId) === opened);
  },
);

t.test('a refused WebSocket counts until the library has closed its connection', async (t) => {
  const front = await startFront(t, { bounds: { connectionsMax: 100 } });
  const sockets = await openFrom(t, front.port, '127.0.0.1', 5);
  for (const socket of sockets) t.equal(await answerTo(socket, handshakeWith('svc_sk_no')), 'HTTP/1.1 101');
  t.equal(strangersOf(front), 5, 'their ends have been sent, and their connections are open');
  t.equal(front.server.shared.connections.open, 5);
});

t.test('behind a proxy that says so, the address of the client counts', async (t) => {
  const clock = monotonicMs;
  const connections = new ConnectionPool(40).listener();
  const parts = {
    log: recordingLog([]),
    metrics: new Metrics(),
    clock,
    bounds: limits,
    connections,
    keys: keysInUse(),
  };
  const shared = createServices({ ...parts, cors: new Cors([]), errors: specificationErrors(limits) });
  const app = createApp();
  // Answers nobody.
  addHandler(app, { ...shared, isBehindProxy: true }, ['/*', '*'], () => () => undefined);
  const listening = listenOn(app, '127.0.0.1', 0, false)!;
  t.teardown(() => closeListenSocket(listening));
  const from = async (client: string, count: number): Promise<string[]> => {
    const sockets = await openFrom(t, localPort(listening), '127.0.0.1', count);
    connections.open += count;
    for (let index = 0; index < count; index++) connections.strangers.add('127.0.0.1');
    const answers: string[] = [];
    for (const socket of sockets) {
      socket.on('data', (bytes) => answers.push(bytes.toString('latin1', 9, 12)));
      // The client has written the first one.
      socket.write(requestBytes({ path: '/', headers: [`x-forwarded-for: 192.0.2.9, ${client}`] }));
    }
    await eventually(() => connections.strangers.countOf(client) + answers.length === count);
    return answers;
  };
  t.strictSame(await from('10.0.0.1', 12), ['503', '503', '503'], 'of 40, others leave 37');
  t.strictSame(await from('10.0.0.2', 4), []);
  t.equal(connections.strangers.countOf('127.0.0.1'), 0, 'none counts for the proxy');
});

t.test(
  'an address that a proxy forwards is read without its port, and what is none counts for nobody',
  (t) => {
    for (const [forwardedFor, address] of [
      ['10.0.0.1', '10.0.0.1'],
      ['192.0.2.9, 10.0.0.1:5123', '10.0.0.1'],
      ['[2001:db8::1]:443', '2001:db8::1'],
      ['[2001:db8::1]', '2001:db8::1'],
      ['2001:db8::1', '2001:db8::1'],
      ['::ffff:10.0.0.1', '::ffff:10.0.0.1'],
      ['10.0.0.1,', ''],
      ['unknown', ''],
      ['a'.repeat(7_000), ''],
      ['', ''],
    ] as const)
      t.equal(forwardedAddress({ forwardedFor }), address, forwardedFor.slice(0, 40));
    t.end();
  },
);
