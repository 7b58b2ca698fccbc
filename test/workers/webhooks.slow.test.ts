/** Messages to the webhooks of accounts: what they reach, what they are signed with, how often they are sent. */
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { createServer as createTcp, type AddressInfo, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { createServer as createTls } from 'node:tls';
import t, { type Test } from 'tap';
import { after, dueOf, type Delivery } from '../../src/accounts/webhooks.js';
import { limits, type Bounds } from '../../src/limits.js';
import { makeCertificate } from '../support/certificates.js';
import { missingTool } from '../support/tools.js';
import { eventually } from '../support/waiting.js';
import { reachOf } from '../../workers/webhook-reach.js';
import { openWebhooks } from '../../workers/webhooks.js';

interface Got {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A receiver on this machine. */
const receiver = async (t: Test, status = 200) => {
  const got: Got[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (piece: Buffer) => (body += piece.toString()));
    request.on('end', () => {
      got.push({ headers: request.headers, body });
      response.writeHead(status, { location: '/elsewhere' }).end('x'.repeat(100_000));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return { got, port: (server.address() as AddressInfo).port };
};

const message = { type: 'test', accountId: 1, account: 'ada', text: 'A test.' } as const;
const open = (t: Test, allow: readonly string[], bounds: Partial<Bounds> = {}) =>
  openWebhooks({ folder: t.testdir(), allow, bounds: { ...limits, ...bounds } });

/** Says something other than an answer. */
const odd = async (t: Test, say: (socket: Socket) => void) => {
  const sockets: Socket[] = [];
  const server = createTcp((socket) => {
    sockets.push(socket.on('error', () => undefined));
    socket.once('data', () => say(socket));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, sockets };
};

t.test('a message is signed as Standard Webhooks says', async (t) => {
  const webhooks = open(t, ['127.0.0.0/8', '::1']);
  const { got, port } = await receiver(t);
  const url = `http://localhost:${port}/alerts`;
  const secret = webhooks.check(url);
  t.strictSame(await webhooks.send({ url, secret }, 'msg_1', message), {
    isDelivered: true,
    result: 'answered 200',
  });
  const [{ body, headers } = { body: '', headers: {} as IncomingHttpHeaders }] = got;
  t.strictSame(JSON.parse(body), message);
  const signed = `msg_1.${headers['webhook-timestamp'] as string}.${body}`;
  const expected = createHmac('sha256', Buffer.from(secret, 'base64')).update(signed).digest('base64');
  t.equal(headers['webhook-signature'], `v1,${expected}`);
});

t.test(
  'an internal address is not reached unless the operator allows it, by number or by name',
  async (t) => {
    const { got, port } = await receiver(t);
    const closed = open(t, []);
    for (const host of [
      '127.0.0.1',
      '10.1.2.3',
      '169.254.169.254',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '0x7f.1',
      '[fd00::1]',
    ])
      t.throws(() => closed.check(`https://${host}:${port}/`), { message: /address/ }, host);
    t.throws(() => closed.check(`http://example.com/`), { message: /https/ });
    for (const url of ['ftp://example.com', 'https://a:b@example.com', 'nothing'])
      t.throws(() => closed.check(url), { message: /address/ }, url);
    t.ok(closed.check('https://example.com/alerts'));
    // What a name means is known only when it is called.
    for (const url of [
      `https://localhost:${port}/`,
      `http://localhost:${port}/`,
      `http://127.0.0.1:${port}/`,
    ])
      t.match(await closed.send({ url, secret: 'AAAA' }, 'id', message), {
        isDelivered: false,
        result: 'no address that may be called was found',
      });
    const missing = await closed.send({ url: 'https://missing.invalid/', secret: 'AAAA' }, 'id', message);
    t.equal(missing.result, 'no address that may be called was found', 'no name can be guessed by it');
    const other = open(t, ['10.0.0.0/8']);
    t.match(await other.send({ url: `http://localhost:${port}/`, secret: 'AAAA' }, 'id', message), {
      isDelivered: false,
    });
    t.match(await other.send({ url: 'http://8.8.8.8:9/', secret: 'AAAA' }, 'id', message), {
      isDelivered: false,
      result: 'no address that may be called was found',
    });
    t.equal(got.length, 0);
  },
);

t.test('a redirect is not followed, and counts as a failure', async (t) => {
  const { got, port } = await receiver(t, 302);
  const webhooks = open(t, ['127.0.0.1']);
  const url = `http://127.0.0.1:${port}/`;
  t.strictSame(await webhooks.send({ url, secret: webhooks.check(url) }, 'id', message), {
    isDelivered: false,
    result: 'answered 302',
  });
  t.equal(got.length, 1);
});

t.test('every receiver comes to a result in time', async (t) => {
  const sender = (webhookAnswerMsMax: number) =>
    open(t, ['127.0.0.1', '::1'], { webhookAnswerMsMax, watchdogBeatMs: 100 });
  // The thread has a low priority: what ends by itself may take long on a busy machine.
  const [webhooks, impatient] = [sender(30_000), sender(2_000)];
  const resultAt = async (url: string, by = webhooks) =>
    (await by.send({ url, secret: 'AAAA' }, 'id', message)).result;
  const resultOf = async (say: (socket: Socket) => void, by?: typeof webhooks) =>
    resultAt((await odd(t, say)).url, by);
  const upgrade = 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n';
  t.equal(await resultOf((socket) => socket.write(upgrade)), 'answered 101');
  let floodBytes = 0;
  const interim = 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(4_000);
  const flood = (socket: Socket): void => {
    const more = (): void => {
      while (!socket.destroyed && socket.write(interim)) floodBytes += interim.length;
    };
    socket.on('drain', more);
    more();
  };
  t.match(await resultOf(flood), /interim/);
  t.ok(floodBytes < 10_000_000, `it takes no flood: ${floodBytes} bytes`);
  t.equal(await resultOf(() => undefined, impatient), 'no answer in time');
  t.equal(
    await resultOf((socket) => void socket.write('HTTP/1.1 200 OK\r\n'), impatient),
    'no answer in time',
  );
  t.match(await resultOf((socket) => socket.resetAndDestroy()), /ECONNRESET|hang up/);
  t.match(await resultAt('http://localhost:1/'), /ECONNREFUSED/, 'of a name with several addresses, too');
});

t.test('a stop ends what is being sent, and nothing is sent after it', async (t) => {
  const webhooks = open(t, ['127.0.0.1']);
  const { sockets, url } = await odd(t, () => undefined);
  const sent = webhooks.send({ url, secret: 'AAAA' }, 'id', message);
  const refused = t.rejects(sent, { message: /stopping/ });
  await eventually(() => sockets.length === 1);
  webhooks.stop();
  await refused;
  await t.rejects(webhooks.send({ url, secret: 'AAAA' }, 'id', message), { message: /stopping/ });
  t.equal(sockets.length, 1);
});

t.test(
  'a receiver cannot choose the parameters of the key exchange',
  { skip: missingTool('openssl') },
  async (t) => {
    const { certPath, keyPath } = makeCertificate(t.testdir(), 'rsa', ['rsa:2048']);
    const server = createTls({
      ...{ cert: readFileSync(certPath), key: readFileSync(keyPath) },
      ...{ maxVersion: 'TLSv1.2', ciphers: 'DHE-RSA-AES256-GCM-SHA384', dhparam: 'auto' },
    }).listen(0, '127.0.0.1');
    server.on('tlsClientError', () => undefined);
    await once(server, 'listening');
    t.teardown(() => server.close());
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const { result } = await open(t, ['127.0.0.1']).send({ url, secret: 'AAAA' }, 'id', message);
    t.match(result, /alert handshake/);
  },
);

t.test('the addresses of this machine are internal', (t) => {
  const own = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
  for (const { address } of own) t.notOk(reachOf([]).mayCall(address), address);
  t.ok(reachOf([], []).mayCall('8.8.8.8'));
  t.notOk(reachOf([], ['8.8.8.8']).mayCall('8.8.8.8'));
  t.ok(reachOf(['8.8.8.8'], ['8.8.8.8']).mayCall('8.8.8.8'));
  t.notOk(reachOf([], ['2600::1']).mayCall('2600:0::1'));
  t.end();
});

t.test('one message a day for each cause, with a bound on the attempts', (t) => {
  const bounds = { webhookAttemptsMax: 5, webhookRetryMs: 60_000 };
  const day = 86_400_000;
  const attempts: number[] = [];
  let delivery: Delivery | undefined;
  let ids = 0;
  const newId = () => `msg_${ids++}`;
  // A receiver that never takes it, for two days, looked at once a minute.
  for (let nowMs = 0; nowMs < 2 * day; nowMs += 60_000) {
    const deliveries = delivery === undefined ? {} : { 'credit.low': delivery };
    const due = dueOf({ deliveries }, 'credit.low', nowMs, newId);
    if (due === null) continue;
    attempts.push(nowMs / 60_000);
    delivery = after(due, false, nowMs, bounds);
  }
  t.strictSame(attempts, [0, 1, 5, 21, 85, 1440, 1441, 1445, 1461, 1525]);
  t.equal(ids, 2, 'attempts of a day are the same message');
  const done = after(delivery!, true, 0, bounds);
  t.equal(dueOf({ deliveries: { 'credit.low': done } }, 'credit.low', day, newId), null);
  t.ok(dueOf({ deliveries: { 'credit.low': done } }, 'credit.low', -day, newId), 'the clock was ahead');
  t.ok(
    dueOf({ deliveries: { 'credit.low': done } }, 'credit.out', day, newId),
    'another cause is on its own',
  );
  t.end();
});
