import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect, createServer as createNetServer, type AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { limits } from '../../src/limits.js';
import { OpsServer } from '../../src/ops/ops-server.js';
import { header, RawClient } from '../support/raw-client.js';
import { recordingLog, type LogLine } from '../support/front-server.js';
import { eventually, pause } from '../support/waiting.js';

const start = async (t: Test, text: () => Promise<string> = () => Promise.resolve('some 1\n')) => {
  const lines: LogLine[] = [];
  const reasons: string[] = [];
  const ops = await OpsServer.listen({
    bounds: limits,
    host: '127.0.0.1',
    port: 0,
    names: ['metrics.internal'],
    metrics: { contentType: 'text/plain; version=0.0.4; charset=utf-8', text },
    readiness: { reasons: () => reasons, warnings: () => [] },
    log: recordingLog(lines),
  });
  t.teardown(() => ops.close());
  const ask = (path: string, method = 'GET') => fetch(`http://127.0.0.1:${ops.port}${path}`, { method });
  return { ops, ask, lines, reasons };
};

t.test('the ops listener serves metrics and health, and nothing else', async (t) => {
  const { ask, reasons } = await start(t);
  const metrics = await ask('/metrics?collect%5B%5D=all');
  t.equal(metrics.status, 200);
  t.equal(metrics.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
  t.equal(await metrics.text(), 'some 1\n');
  t.same(await (await ask('/healthz')).json(), { status: 'ok' });
  t.same(await (await ask('/readyz')).json(), { status: 'ready' });
  reasons.push('draining', 'the store is damaged');
  const unready = await ask('/readyz');
  t.equal(unready.status, 503);
  t.equal(unready.headers.get('retry-after'), '1');
  t.same(await unready.json(), { status: 'not ready', reasons: ['draining', 'the store is damaged'] });
  t.equal((await ask('/healthz')).status, 200, 'it lives all the same');
  for (const path of ['/', '/metrics/', '/v1/tts', '/__proto__', '//metrics'])
    t.equal((await ask(path)).status, 404, path);
  const head = await ask('/metrics', 'HEAD');
  t.match([head.status, head.headers.get('content-length'), await head.text()], [200, '7', '']);
  const posted = await ask('/metrics', 'POST');
  t.match([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD']);
});

t.test('the ops listener answers under addresses and names of its own, and under no other', async (t) => {
  const { ops } = await start(t);
  const statusFor = async (hostLine: string, path = '/metrics'): Promise<number> =>
    (await RawClient.ask(ops.port, Buffer.from(`GET ${path} HTTP/1.1\r\n${hostLine}\r\n\r\n`))).status;
  for (const host of [
    '127.0.0.1',
    'localhost',
    'LOCALHOST:9464',
    '[::1]:9464',
    '10.0.0.7:9464',
    'metrics.internal',
  ])
    t.equal(await statusFor(`Host: ${host}`), 200, host);
  for (const host of [
    'attacker.example',
    'attacker.example:9464',
    'localhost.attacker.example',
    '127.0.0.1.nip.io',
    '',
  ])
    for (const path of ['/metrics', '/healthz', '/readyz', '/other'])
      t.equal(await statusFor(`Host: ${host}`, path), 421, `${host}${path}`);
  const old = await RawClient.open(ops.port);
  old.send('GET /healthz HTTP/1.0\r\n\r\n');
  await old.closed();
  t.match(old.bytes().toString(), / 200 OK/, 'HTTP/1.0 has no host');
});

t.test('probes of HTTP/1.0 are answered, with a host and without', async (t) => {
  const { ops, reasons } = await start(t);
  const statusLine = async (head: string): Promise<string> => {
    const client = await RawClient.open(ops.port);
    client.send(head);
    await client.closed();
    return client.bytes().toString().split('\r\n', 1)[0] ?? '';
  };
  for (const path of ['/healthz', '/readyz', '/metrics'])
    for (const head of [`GET ${path} HTTP/1.0\r\n\r\n`, `HEAD ${path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n`])
      t.equal(await statusLine(head), 'HTTP/1.1 200 OK', head);
  reasons.push('draining');
  t.match(await statusLine('GET /readyz HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 503 /);
});

const asks = Buffer.from('GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n');

t.test('scrapes at the same time share one result, and the next one is new', async (t) => {
  let scrapes = 0;
  const { promise, resolve } = Promise.withResolvers<string>();
  const { ask } = await start(t, () => (++scrapes === 1 ? promise : Promise.resolve('fresh\n')));
  const asked = [ask('/metrics'), ask('/metrics'), ask('/metrics')];
  // Answered on another connection after the three were accepted.
  t.equal((await ask('/healthz')).status, 200);
  resolve('shared\n');
  for (const response of asked) t.equal(await (await response).text(), 'shared\n');
  t.equal(await (await ask('/metrics')).text(), 'fresh\n');
});

t.test('loops of scrapes share few texts, and each scrape has a new one', async (t) => {
  let scrapes = 0;
  const { ask } = await start(t, () => Promise.resolve(`${++scrapes}`));
  const startMs = performance.now();
  const loop = async (): Promise<void> => {
    for (let index = 0; index < 35; index++) {
      const before = scrapes;
      t.ok(Number(await (await ask('/metrics')).text()) >= before, 'no older text');
    }
  };
  await Promise.all(Array.from({ length: 4 }, loop));
  const loopMs = performance.now() - startMs;
  t.ok(scrapes <= 10 + loopMs / 100, `${scrapes} texts for 140 scrapes in ${Math.round(loopMs)} ms`);
});

t.test(
  'a loop of any requests on a connection is answered later, and a probe of its address at once',
  async (t) => {
    const { ops } = await start(t);
    let answered = 0;
    let isOver = false;
    const loop = async (path: string): Promise<void> => {
      const client = await RawClient.open(ops.port);
      t.teardown(() => client.destroy());
      while (!isOver) {
        client.send(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`);
        await client.response();
        answered++;
      }
    };
    const paths = ['/healthz', '/readyz', '/other', '/healthz'];
    const startMs = performance.now();
    const loops = paths.map(loop);
    await eventually(() => answered > 24);
    // On a busy machine the probe itself may be late.
    let meanwhile = Number.POSITIVE_INFINITY;
    for (let probe = 0; probe < 5; probe++) {
      const before = answered;
      t.equal((await RawClient.ask(ops.port, asks)).status, 200);
      meanwhile = Math.min(meanwhile, answered - before);
    }
    t.ok(meanwhile <= paths.length, 'while each of the loops waits');
    isOver = true;
    await Promise.all(loops);
    const steps = (performance.now() - startMs) / 100;
    t.ok(answered <= paths.length * (6 + steps), `${answered} answers in ${Math.round(steps)} steps`);
  },
);

t.test('a failing scrape is a 500, and the log has it without the message', async (t) => {
  const { ask, lines } = await start(t, () => Promise.reject(new RangeError('of something said')));
  t.equal((await ask('/metrics')).status, 500);
  t.match(lines, [{ level: 'error', fields: { errorType: 'RangeError' } }]);
  t.notMatch(JSON.stringify(lines), 'of something said');
  t.equal((await ask('/healthz')).status, 200);
});

t.test('invalid HTTP gets 400, and a head that is too long 431', async (t) => {
  const { ops, ask } = await start(t);
  for (const [bytes, status] of [
    ['\x16\x03\x01\x02\r\n\r\n', 400],
    [`GET /metrics HTTP/1.1\r\nhost: localhost\r\nx: ${'y'.repeat(limits.opsHeadBytesMax)}\r\n\r\n`, 431],
  ] as const) {
    const client = await RawClient.open(ops.port);
    client.send(Buffer.from(bytes, 'latin1'));
    t.equal((await client.response()).status, status);
    client.destroy();
  }
  t.equal((await ask('/healthz')).status, 200);
});

t.test('of requests in one piece the first is parsed and answered, and ends the connection', async (t) => {
  const { ops } = await start(t);
  let parsed = 0;
  const count = (): number => parsed++;
  subscribe('http.server.request.start', count);
  t.teardown(() => unsubscribe('http.server.request.start', count));
  const client = await RawClient.open(ops.port);
  client.send(Buffer.concat(Array.from({ length: 1_000 }, () => asks)));
  await client.closed();
  t.equal(parsed, 1);
  const answer = client.bytes().toString();
  t.equal(answer.match(/HTTP\/1\.1 /g)?.length, 1);
  t.match(answer, /^HTTP\/1\.1 200 [^]*\r\nconnection: close\r\n/i);
});

t.test('a request with a body is answered, its body is not parsed, and its connection ends', async (t) => {
  const { ops } = await start(t);
  let bodyBytes = 0;
  const watch = (message: unknown): void => {
    const { request } = message as { readonly request: IncomingMessage };
    const push = request.push.bind(request);
    request.push = (piece: Buffer | null) => {
      bodyBytes += piece?.length ?? 0;
      return push(piece);
    };
  };
  subscribe('http.server.request.start', watch);
  t.teardown(() => unsubscribe('http.server.request.start', watch));
  const head = 'POST /healthz HTTP/1.1\r\nhost: localhost\r\n';
  const chunks = '1\r\nx\r\n'.repeat(10_000);
  for (const [lines, body] of [
    ['transfer-encoding: chunked', `${chunks}0\r\n\r\n`],
    ['transfer-encoding: chunked', chunks],
    ['content-length: 60000', chunks],
    ['content-length: 900000000000', ''],
  ] as const)
    for (const [before, after] of [
      [`${head}${lines}\r\n\r`, `\n${body}`],
      [`${head}${lines}\r\n\r\n`, body],
      [`${head}${lines}\r\n\r\n${body}`, ''],
    ] as const) {
      const client = await RawClient.open(ops.port);
      client.send(before);
      if (after !== '') await pause(5);
      client.send(after);
      const response = await client.response();
      t.match([response.status, header(response, 'connection')], [405, 'close'], lines);
      await client.closed();
    }
  t.equal(bodyBytes, 0);
  const lines = await RawClient.open(ops.port);
  lines.send('\r\n'.repeat(30_000));
  await lines.closed();
});

t.test('a client that waits for each answer keeps its connection', async (t) => {
  const { ops } = await start(t);
  const client = await RawClient.open(ops.port);
  t.teardown(() => client.destroy());
  for (let index = 0; index < 20; index++) {
    // A head may come in pieces.
    client.send(asks.subarray(0, index));
    await pause(2);
    client.send(asks.subarray(index));
    t.equal((await client.response()).status, 200);
  }
  t.notOk(client.isClosed);
});

t.test('an address that has too many connections loses its oldest one', async (t) => {
  const { ops } = await start(t);
  const most = limits.opsConnectionsMax / 4;
  const clients: RawClient[] = [];
  t.teardown(() => clients.forEach((client) => client.destroy()));
  for (let index = 0; index < limits.opsConnectionsMax + 6; index++) {
    const client = await RawClient.open(ops.port);
    clients.push(client);
    if (index % 20 !== 0) continue;
    client.send(asks);
    t.equal((await client.response()).status, 200);
  }
  const open = clients.slice(-most);
  await Promise.all(clients.slice(0, -most).map((client) => client.closed()));
  t.ok(open.every((client) => !client.isClosed));
  open[0]?.send(asks);
  t.equal((await open[0]?.response())?.status, 200);
});

t.test('an address that has too many connections takes the place of no other', async (t) => {
  const { ops } = await start(t);
  const other = connect({ port: ops.port, host: '127.0.0.1', localAddress: '127.0.0.2' });
  t.teardown(() => other.destroy());
  await once(other, 'connect');
  const ended = once(other, 'close');
  const flood: RawClient[] = [];
  t.teardown(() => flood.forEach((client) => client.destroy()));
  while (flood.length < limits.opsConnectionsMax) flood.push(await RawClient.open(ops.port));
  await Promise.all(flood.slice(0, limits.opsConnectionsMax / 2).map((client) => client.closed()));
  other.write(asks);
  const answered = Promise.race([once(other.setEncoding('utf8'), 'data'), ended]);
  const [answer] = (await answered) as [unknown];
  t.match(answer, /^HTTP\/1\.1 200 /);
});

t.test('connections that ask for nothing do not end a scrape of their address', async (t) => {
  const { promise, resolve } = Promise.withResolvers<string>();
  let scrapes = 0;
  const { ops } = await start(t, () => (scrapes++, promise));
  const scraper = await RawClient.open(ops.port);
  scraper.send('GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n');
  await eventually(() => scrapes === 1);
  const idle: RawClient[] = [];
  t.teardown(() => [scraper, ...idle].forEach((client) => client.destroy()));
  const most = limits.opsConnectionsMax / 4;
  while (idle.length < 4 * most) idle.push(await RawClient.open(ops.port));
  await Promise.all(idle.slice(0, -most).map((client) => client.closed()));
  resolve('some 1\n');
  t.equal((await scraper.response()).status, 200);
  t.notOk(idle.at(-1)?.isClosed, 'the newest has a place');
});

t.test('a probe is answered while many addresses hold the port', async (t) => {
  const { ops } = await start(t);
  const held = Array.from({ length: 3 * limits.opsConnectionsMax }, (_, index) =>
    connect({ port: ops.port, host: '127.0.0.1', localAddress: `127.0.0.${2 + (index % 60)}` }),
  );
  t.teardown(() => held.forEach((socket) => socket.destroy()));
  for (const socket of held) socket.on('error', () => undefined);
  await Promise.all(held.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
  t.equal((await RawClient.ask(ops.port, asks)).status, 200);
  await eventually(() => held.filter((socket) => !socket.destroyed).length <= limits.opsConnectionsMax);
});

t.test('a port that is not available is one clear line that names the variables', async (t) => {
  const other = createNetServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  t.teardown(() => other.close());
  const { port } = other.address() as AddressInfo;
  const readiness = { reasons: () => [], warnings: () => [] };
  const metrics = { contentType: '', text: () => Promise.resolve('') };
  await t.rejects(
    OpsServer.listen({
      ...{ host: '127.0.0.1', names: [], port, metrics, readiness },
      ...{ bounds: limits, log: recordingLog([]) },
    }),
    {
      name: 'ListenError',
      code: 'EADDRINUSE',
      message: new RegExp(`^cannot listen on 127\\.0\\.0\\.1:${port}: the port is in use.* or set OPS_PORT `),
    },
  );
});

t.test('a close ends waiting connections and can be repeated', async (t) => {
  const { ops } = await start(t);
  const { port } = ops;
  const client = await RawClient.open(port);
  t.teardown(() => client.destroy());
  client.send(Buffer.from('GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n'));
  t.equal((await client.response()).status, 200);
  await Promise.all([ops.close(), ops.close()]);
  await ops.close();
  await t.rejects(RawClient.open(port));
});
