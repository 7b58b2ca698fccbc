import t from 'tap';
import { errors } from '../../src/errors.js';
import { header } from '../support/raw-client.js';
import { GOOD_KEY, eventually, startFront } from '../support/front-server.js';

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
      ['gzip', ['Host: a', 'Transfer-Encoding: gzip'], chunked],
      ['gzip, then chunked', ['Host: a', 'Transfer-Encoding: gzip, chunked'], chunked],
      ['identity', ['Host: a', 'Transfer-Encoding: identity'], chunked],
      ['chunked, in quotes', ['Host: a', 'Transfer-Encoding: "chunked"'], chunked],
      ['chunked twice', ['Host: a', 'Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], chunked],
      ['chunked and another', ['Host: a', 'Transfer-Encoding: chunked', 'Transfer-Encoding: x'], chunked],
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

t.test('bad chunks end the connection and start no speech', async (t) => {
  const front = await startFront(t);
  for (const [name, payload] of [
    ['no number', `zz\r\n${body}\r\n0\r\n\r\n`],
    ['a negative number', `-1a\r\n${body}\r\n0\r\n\r\n`],
    ['a number beyond 64 bits', `fffffffffffffffff\r\n${body}\r\n0\r\n\r\n`],
  ] as const) {
    const client = await front.sent(
      Buffer.from(`${start}Host: a\r\nTransfer-Encoding: chunked\r\n\r\n${payload}`),
    );
    await client.closed();
    t.notMatch(client.bytes().toString(), /200 OK/, name);
  }
  const extended = await front.sent(
    Buffer.from(`${start}Host: a\r\nTransfer-Encoding: chunked\r\n\r\n1a;a=b\r\n${body}\r\n0\r\n\r\n`),
  );
  extended.socket.end();
  await extended.closed();
  t.equal(extended.receivedBytes, 0, 'a chunk extension');
  t.equal(front.speech.contexts.length, 0);

  // The body ends before its trailer, which then looks like an invalid request.
  const trailed = await front.sent(
    Buffer.from(`${start}Host: a\r\nTransfer-Encoding: chunked\r\n\r\n1a\r\n${body}\r\n0\r\nX: y\r\n\r\n`),
  );
  await trailed.closed();
  t.notMatch(trailed.bytes().toString(), /200 OK/, 'a trailer');
  await eventually(() => front.server.inFlight === 0);
  t.equal(front.admission.slotsTaken, 0);
});
