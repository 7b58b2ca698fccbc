import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import t from 'tap';
import { errors } from '../../src/errors.js';
import { header, requestBytes } from '../support/raw-client.js';
import { GOOD_KEY, OTHER_KEY, eventually, speak, startFront } from '../support/front-server.js';

const start = `POST /v1/tts/stream HTTP/1.1\r\nx-api-key: ${GOOD_KEY}\r\n`;
const body = '{"text":"a","voice":"ada"}';
const chunked = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
/** What an attacker wants the next server to read as a request of its own. */
const hidden = 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n';

t.test(
  'a head that two servers could read two ways is answered 400, and the connection closed',
  async (t) => {
    const front = await startFront(t);
    for (const [name, lines, payload] of [
      ['two equal lengths', ['Host: a', 'Content-Length: 26', 'Content-Length: 26'], body],
      ['two lengths', ['Host: a', 'Content-Length: 26', 'Content-Length: 0'], body],
      ['two lengths, the other way', ['Host: a', 'Content-Length: 0', 'Content-Length: 26'], body],
      ['an empty length', ['Host: a', 'Content-Length: '], body],
      ['two hosts', ['Host: a', 'Host: b', 'Content-Length: 26'], body],
      ['two equal hosts', ['Host: a', 'Host: a', 'Content-Length: 26'], body],
      ['an empty host', ['Host: ', 'Content-Length: 26'], body],
    ] as const) {
      const request = `${start}${lines.join('\r\n')}\r\n\r\n`;
      const client = await front.sent(Buffer.from(request));
      const response = await client.response();
      t.equal(response.status, 400, name);
      t.equal(response.body.toString(), errors.badRequest.body, name);
      t.ok(header(response, 'x-request-id'), name);
      await client.closed();
      const smuggler = await front.sent(Buffer.from(request + payload + hidden));
      await smuggler.closed();
      t.notMatch(smuggler.bytes().toString(), /200 OK/, `${name}: the hidden request is not answered`);
    }
    t.equal(front.speech.contexts.length, 0);
    t.equal(front.admission.authenticated, 0);
  },
);

t.test('what the library refuses by itself reaches no handler', async (t) => {
  const front = await startFront(t);
  for (const [name, lines, payload] of [
    ['length and coding', ['Host: a', 'Content-Length: 26', 'Transfer-Encoding: chunked'], chunked],
    ['coding and length', ['Host: a', 'Transfer-Encoding: chunked', 'Content-Length: 26'], chunked],
    ['a negative length', ['Host: a', 'Content-Length: -26'], body],
    ['a signed length', ['Host: a', 'Content-Length: +26'], body],
    ['a list of lengths', ['Host: a', 'Content-Length: 26, 26'], body],
    ['a hexadecimal length', ['Host: a', 'Content-Length: 0x1a'], body],
    ['a length beyond 64 bits', ['Host: a', 'Content-Length: 99999999999999999999'], body],
    ['no host', ['Content-Length: 26'], body],
  ] as const) {
    const client = await front.sent(Buffer.from(`${start}${lines.join('\r\n')}\r\n\r\n${payload}${hidden}`));
    const response = await client.response();
    t.equal(response.status, 400, name);
    await client.closed();
    t.notMatch(response.body.toString(), /HTTP\/1\.1/, `${name}: one answer`);
  }
  for (const [name, lines] of [
    ['a folded line', ['Host: a', 'X-A: b', '  c', 'Content-Length: 26']],
    [
      'a folded line that looks like a header',
      ['Host: a', 'X-A: b', '\tContent-Length: 0', 'Content-Length: 26'],
    ],
    ['white space before a colon', ['Host: a', 'Content-Length : 26']],
    ['white space before a colon', ['Host: a', 'Transfer-Encoding : chunked']],
    ['a bare carriage return', ['Host: a', 'X-A: b\rContent-Length: 0', 'Content-Length: 26']],
    ['a null byte', ['Host: a', 'X-A: b\0', 'Content-Length: 26']],
    ['no colon', ['Host: a', 'Foo', 'Content-Length: 26']],
  ] as const) {
    const client = await front.sent(Buffer.from(`${start}${lines.join('\r\n')}\r\n\r\n${body}${hidden}`));
    // The library waits for a valid end of the head, and gets the end of the connection.
    client.socket.end();
    await client.closed();
    t.equal(client.receivedBytes, 0, name);
  }
  t.equal(front.speech.contexts.length, 0);
});

const codings = [
  'chunked',
  'CHUNKED',
  'gzip',
  'gzip, chunked',
  'identity',
  '"chunked"',
  'chunked, chunked',
  'x\r\nTransfer-Encoding: chunked',
];
const coded = (coding: string): string => `${start}Host: a\r\nTransfer-Encoding: ${coding}\r\n\r\n`;

t.test('a body with a transfer coding gets 411, and the connection ends', async (t) => {
  const front = await startFront(t, { bounds: { chunkedBodyMs: 10 } });
  for (const coding of codings)
    for (const payload of [chunked, chunked.slice(0, -5)]) {
      const client = await front.sent(Buffer.from(coded(coding) + payload));
      const response = await client.response();
      t.equal(response.status, 411, coding);
      t.equal(response.body.toString(), errors.lengthRequired.body, coding);
      t.match(response.body.toString(), /Content-Length/);
      t.equal(header(response, 'connection'), 'close', coding);
      t.ok(header(response, 'x-request-id'), coding);
      await client.closed();
    }
  t.equal(front.speech.contexts.length, 0);
  t.equal(front.admission.authenticated, 0);
});

t.test('what follows the head of a chunked body is never a request', async (t) => {
  const front = await startFront(t);
  const head = coded('chunked');
  const victim = `GET /v1/tts/speakers HTTP/1.1\r\nHost: a\r\nx-api-key: ${OTHER_KEY}\r\n\r\n`;
  const attacks: readonly (readonly [name: string, pieces: readonly string[]])[] = [
    ['in one piece', [head + chunked + victim]],
    ['after the head', [head, chunked + victim]],
    ['after the body', [head + chunked, victim]],
    ['byte by byte', [head, ...Array.from(chunked + victim)]],
    ['a sign that the library takes as a digit', [`${head}3;\r\n${body}\r\n0\r\n\r\n`, victim]],
    ['two other bytes after a chunk', [`${head}1a\r\n${body}xx0\r\n\r\n`, victim]],
    ['a line feed alone', [`${head}1a\n${body}\n0\n\n`, victim]],
    ['an extension', [`${head}1a;a=b\r\n${body}\r\n0\r\n\r\n`, victim]],
    ['a trailer', [`${head}1a\r\n${body}\r\n0\r\nX: y\r\n\r\n`, victim]],
    ['no number', [`${head}zz\r\n${body}\r\n0\r\n\r\n`, victim]],
    ['a negative number', [`${head}-1a\r\n${body}\r\n0\r\n\r\n`, victim]],
    ['a number beyond 64 bits', [`${head}fffffffffffffffff\r\n${body}\r\n0\r\n\r\n`, victim]],
  ];
  await Promise.all(
    attacks.map(async ([name, pieces]) => {
      const client = await front.client();
      for (const piece of pieces) {
        client.send(piece);
        await new Promise((resolve) => setImmediate(resolve));
      }
      await client.closed();
      const answers = client.bytes().toString('latin1');
      t.notMatch(answers, /HTTP\/1\.1 2|svc_sk_/, name);
      t.ok((answers.match(/HTTP\/1\.1 /g) ?? []).length <= 1, `${name}: one answer at most`);
    }),
  );
  await eventually(() => front.server.inFlight === 0);
  t.equal(front.speech.contexts.length, 0);
  t.equal(front.admission.authenticated, 0);
});

t.test('a client that goes on to send chunks reads the 411, and its connection ends in time', async (t) => {
  const front = await startFront(t);
  const client = await front.sent(Buffer.from(coded('chunked')));
  const chunk = Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(65_536, 97), Buffer.from('\r\n')]);
  const sending = setInterval(() => client.send(chunk), 5);
  t.teardown(() => clearInterval(sending));
  t.equal((await client.response()).status, 411);
  await client.closed();
  await eventually(() => front.server.inFlight === 0);
});

/** Sends chunks of one byte as fast as it can, for 12 s at most. In a thread of its own: this one has the server. */
const floods = `
  const { connect } = require('node:net');
  const { parentPort, workerData } = require('node:worker_threads');
  const chunks = Buffer.from('1\\r\\nx\\r\\n'.repeat(10_000));
  const socket = connect(workerData.port, '127.0.0.1', () => socket.write(workerData.head));
  const pump = () => { while (socket.write(chunks)); };
  socket.on('error', () => undefined).on('drain', pump).on('close', () => process.exit()).resume();
  socket.once('connect', () => { pump(); parentPort.postMessage('floods'); });
  setTimeout(() => process.exit(), 12_000);
`;

t.test('while a connection floods with chunks of one byte, others are answered', async (t) => {
  const front = await startFront(t);
  const flood = new Worker(floods, { eval: true, workerData: { port: front.port, head: coded('chunked') } });
  t.teardown(() => flood.terminate());
  await once(flood, 'message');
  const startMs = performance.now();
  t.equal((await front.sent({ path: '/healthz' }).then((client) => client.response())).status, 200);
  const tookMs = performance.now() - startMs;
  t.ok(tookMs < 10_000, `${Math.round(tookMs)} ms`);
});

t.test('a second request before the answer, and a half-closed connection, end it at once', async (t) => {
  const front = await startFront(t);
  front.speech.script = () => undefined;
  const request = requestBytes(speak('/v1/tts/stream'));
  for (const pieces of [[Buffer.concat([request, request])], [request, request]]) {
    const client = await front.client();
    for (const piece of pieces) client.send(piece);
    await client.closed();
    t.equal(client.receivedBytes, 0, 'the library ends it without an answer');
  }
  const halfClosed = await front.sent(request);
  halfClosed.socket.end();
  await halfClosed.closed();
  t.equal(halfClosed.receivedBytes, 0);
  await eventually(() => front.server.inFlight === 0);
  t.equal(front.admission.slotsTaken, 0, 'no slot is left behind');
});
