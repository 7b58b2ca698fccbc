import { getEventListeners } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import t from 'tap';
import { type ConnectionEvent, type SyrinxClient, backoffMs, connect } from '../../src/client/index.js';
import { Arrivals } from '../support/arrivals.js';
import { FakeClock } from '../support/fake-clock.js';
import { seededRandom } from '../../scripts/rig/random.js';
import {
  type Peer,
  ScriptedSocket,
  type Upgrade,
  audio,
  ended,
  started,
} from '../support/scripted-socket.js';
import { codeOf, collect, connected, errorOf, key } from '../support/speech-client.js';

const refuse =
  (status: number, body: string): Upgrade =>
  (_request, socket) => {
    socket.end(`HTTP/1.1 ${status} No\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  };

t.test('a refused handshake gives an error code, and is tried again only if that can help', async (t) => {
  const cases: [status: number, body: string, code: string, retryable: boolean][] = [
    [401, '{"error":"Invalid or missing API key"}', 'invalid_api_key', false],
    [402, '{"error":"INSUFFICIENT_CREDITS"}', 'insufficient_credits', false],
    [404, '<html>', 'handshake_refused', false],
    [200, 'hello', 'handshake_refused', false],
    [429, '', 'rate_limited', true],
    [503, '{"error":"Service unavailable"}', 'unavailable', true],
    [502, 'x'.repeat(100_000), 'unavailable', true],
  ];
  for (const [status, body, code, retryable] of cases) {
    let tries = 0;
    const upgrade: Upgrade = (request, socket, accept) => {
      tries += 1;
      refuse(status, body)(request, socket, accept);
    };
    const { url } = await ScriptedSocket.listen(t, { upgrade });
    const clock = new FakeClock();
    const onEvent = ({ type }: ConnectionEvent) => {
      // Later: the next timer is set after this event.
      if (type === 'lost') setImmediate(() => clock.advance(5_000));
    };
    const error = await errorOf(connect({ url, apiKey: key, clock, onEvent, reconnect: { attemptsMax: 3 } }));
    t.match(error, { code, retryable }, String(status));
    t.match(error.message, String(status));
    t.ok(error.message.length < 300);
    t.equal(tries, retryable ? 3 : 1);
    t.equal(clock.nextMs, undefined, 'no timer is left');
  }
});

t.test('if nothing listens at the address, the error says so', async (t) => {
  const passing = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => passing.once('listening', resolve));
  const { port } = passing.address() as AddressInfo;
  await new Promise((resolve) => passing.close(resolve));
  const error = await errorOf(connect({ url: `http://127.0.0.1:${port}`, apiKey: key, reconnect: false }));
  t.match(error, { code: 'unreachable', retryable: true, cause: { code: 'ECONNREFUSED' } });
  t.match(error.message, `127.0.0.1:${port}`);
});

t.test('an unanswered handshake ends at its timeout', async (t) => {
  const { url } = await ScriptedSocket.listen(t, { upgrade: () => undefined });
  const clock = new FakeClock();
  const connecting = errorOf(connect({ url, apiKey: key, clock, reconnect: false, connectTimeoutMs: 3_000 }));
  clock.advance(2_999);
  t.equal(clock.nextMs, 1);
  clock.advance(1);
  t.match(await connecting, { code: 'unreachable', message: /3000 ms/ });
});

t.test('waits double from 200 ms to 5 s, with jitter down to half', (t) => {
  const waits = (random: () => number) =>
    [1, 2, 3, 4, 5, 6, 7, 40].map((n) => backoffMs(n, undefined, random));
  t.strictSame(
    waits(() => 0),
    [100, 200, 400, 800, 1_600, 2_500, 2_500, 2_500],
  );
  t.strictSame(
    waits(() => 1),
    [200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000],
  );
  t.end();
});

t.test('the client tries again after exactly those waits, then gives up with the last reason', async (t) => {
  const { url } = await ScriptedSocket.listen(t, { upgrade: refuse(503, '') });
  const clock = new FakeClock();
  const events = new Arrivals<ConnectionEvent>();
  const options = { clock, random: seededRandom(7), onEvent: (event: ConnectionEvent) => events.push(event) };
  const connecting = errorOf(connect({ url, apiKey: key, ...options }));
  const random = seededRandom(7);
  for (let failures = 1; failures < 8; failures++) {
    const wait = backoffMs(failures, undefined, random);
    t.match(await events.next(), { type: 'lost', error: { code: 'unavailable' }, retryInMs: wait });
    t.equal(clock.nextMs, wait);
    clock.advance(wait);
  }
  t.match(await events.next(), { type: 'closed', error: { code: 'unavailable' } });
  t.equal((await connecting).code, 'unavailable');
  t.equal(clock.nextMs, undefined);
});

t.test('failures count in a row, and a live connection resets the count', async (t) => {
  let isDown = false;
  const upgrade: Upgrade = (_request, socket, accept) => {
    if (isDown) socket.destroy();
    else accept();
  };
  const { server, peer, clock, events, client } = await connected(
    t,
    { reconnect: { attemptsMax: 2 } },
    { upgrade },
  );
  let current = peer;
  for (let i = 0; i < 5; i++) {
    // Any sign of life counts: here a ping.
    await current.caughtUp();
    current.socket.terminate();
    t.match(await events.next(), { type: 'lost', retryInMs: 100 });
    clock.advance(100);
    t.strictSame(await events.next(), { type: 'open' });
    current = await server.peer();
  }
  await current.caughtUp();
  isDown = true;
  current.socket.terminate();
  t.match(await events.next(), { type: 'lost', error: { code: 'connection_lost' } });
  clock.advance(100);
  t.match(await events.next(), { type: 'closed', error: { code: 'unreachable', retryable: true } });
  t.equal(client.state, 'closed');
  const late = await errorOf(() => client.context({ voiceId: 'ada' }));
  t.match(late, { code: 'closed', message: /cannot be reached/, cause: { code: 'unreachable' } });
});

/** Ways to vanish, each after the client has seen what came before. */
const vanish: Record<string, (peer: Peer) => void> = {
  'the socket is cut': (peer) => {
    peer.socket.terminate();
  },
  'the service goes away': (peer) => {
    peer.socket.close(1001, 'draining');
  },
  'it ends for no reason': (peer) => {
    peer.socket.close(1000);
  },
  'it fails': (peer) => {
    peer.socket.close(1011);
  },
};

for (const [how, cut] of Object.entries(vanish))
  t.test(
    `${how}: in whatever state, contexts fail so that they can be tried again, and the next ones work`,
    async (t) => {
      const { server, client, peer, clock, events } = await connected(t);
      const open = (contextId: string) => client.context({ voiceId: 'ada', contextId });
      const unstarted = open('unstarted');
      const speaking = open('speaking');
      const flushing = open('flushing');
      const closing = open('closing');
      const cancelled = open('cancelled');
      const done = open('done');
      const started1 = unstarted.started;
      const flush = flushing.flush();
      const close = closing.close();
      cancelled.cancel();
      for (const id of ['speaking', 'flushing', 'closing', 'cancelled', 'done'])
        peer.send(started(id), audio(id, [1]));
      peer.send(...ended('done'));
      await done.close();
      cut(peer);
      const lost = { code: 'connection_lost', retryable: true };
      t.match(await events.next(), { type: 'lost', error: lost });
      t.equal(client.state, 'waiting');
      t.match(await errorOf(started1), lost);
      t.match(await errorOf(flush), lost);
      t.match(await errorOf(close), lost);
      t.match(await errorOf(collect(speaking)), lost);
      t.match(await errorOf(() => speaking.send('more')), lost);
      t.strictSame(await collect(cancelled), [], 'what its caller ended is no failure');
      t.strictSame(await collect(done.audio), [Uint8Array.of(1)], 'nor is what was complete');

      const next = open('speaking');
      next.send('Again.');
      clock.advance(100);
      t.strictSame(await events.next(), { type: 'open' });
      const second = await server.peer();
      t.match(await second.next(), { context_id: 'speaking', start_context: {} });
      t.match(await second.next(), { send_text: 'Again.' });
      second.send(audio('speaking', [2]), ...ended('speaking'));
      t.strictSame(await collect(next.audio), [Uint8Array.of(2)]);
      t.strictSame(second.unread, [], 'nothing of the lost ones is sent again');
    },
  );

t.test('if the service vanishes during a handshake, the next try succeeds', async (t) => {
  let tries = 0;
  const upgrade: Upgrade = (_request, socket, accept) => {
    tries += 1;
    if (tries === 1) socket.destroy();
    else if (tries === 2) socket.end('HTTP/1.1 101 Swi');
    else accept();
  };
  const { url } = await ScriptedSocket.listen(t, { upgrade });
  const clock = new FakeClock();
  const codes: string[] = [];
  const onEvent = (event: ConnectionEvent) => {
    if (event.type !== 'lost') return;
    codes.push(event.error.code);
    setImmediate(() => clock.advance(event.retryInMs));
  };
  const client = await connect({ url, apiKey: key, clock, onEvent });
  t.strictSame(codes, ['unreachable', 'unreachable']);
  t.equal(client.state, 'open');
  await client.close();
});

t.test('contexts opened without a connection wait for the next one, or end without it', async (t) => {
  let refusals = 0;
  const upgrade: Upgrade = (_request, socket, accept) => {
    if (refusals-- > 0) socket.destroy();
    else accept();
  };
  const { server, client, peer, clock, events } = await connected(t, {}, { upgrade });
  peer.socket.terminate();
  await events.next();
  const [kept, dropped] = [client.context({ voiceId: 'ada' }), client.context({ voiceId: 'bob' })];
  for (const piece of ['one ', 'two ', 'three']) kept.send(piece);
  dropped.send('never heard');
  dropped.cancel();
  refusals = 1;
  clock.advance(100);
  t.match(await events.next(), { type: 'lost' }, 'a try that fails is no reason to fail');
  clock.advance(200);
  await events.next();
  const second = await server.peer();
  t.match(await second.next(), { start_context: { voice_id: 'ada' } });
  for (const piece of ['one ', 'two ', 'three']) t.match(await second.next(), { send_text: piece });
  second.socket.terminate();
  await events.next();
  const waiting = client.context({ voiceId: 'ada' });
  const reading = errorOf(collect(waiting));
  await client.close();
  t.match(await reading, { code: 'closed' });
  t.equal(clock.nextMs, undefined, 'no try is left');
});

t.test('waiting contexts fail when the last try fails', async (t) => {
  const { client, peer, clock, events, server } = await connected(t, { reconnect: { attemptsMax: 2 } });
  peer.socket.terminate();
  await events.next();
  const waiting = client.context({ voiceId: 'ada' });
  clock.advance(100);
  (await server.peer()).socket.close(1008, 'policy');
  await events.next();
  t.equal(await codeOf(collect(waiting)), 'invalid_api_key');
});

t.test('a key that is refused after the handshake fails `connect`, not the first context', async (t) => {
  const server = await ScriptedSocket.listen(t);
  const clock = new FakeClock();
  const connecting = errorOf(connect({ url: server.url, apiKey: key, clock }));
  const peer = await server.peer();
  peer.send({ error: 'INVALID_API_KEY' });
  peer.socket.close(1008, 'INVALID_API_KEY');
  const message = /does not know this API key/;
  t.match(await connecting, { code: 'invalid_api_key', retryable: false, message });
  t.equal(clock.nextMs, undefined, 'there is no other try');
});

t.test('an unknown or revoked key ends the client without another try', async (t) => {
  for (const contextId of [undefined, 'c']) {
    const { client, peer, clock } = await connected(t);
    const context = client.context({ voiceId: 'ada', contextId: 'c' });
    peer.send(started('c'), { error: 'INVALID_API_KEY', ...(contextId && { context_id: contextId }) });
    peer.socket.close(1008);
    t.match(await errorOf(collect(context)), { code: 'invalid_api_key', retryable: false });
    t.match(await client.closed, { code: 'invalid_api_key' });
    t.equal(clock.nextMs, undefined);
  }
});

t.test('an error without a context is reported and affects no context', async (t) => {
  const { client, peer, events } = await connected(t);
  const context = client.context({ voiceId: 'ada', contextId: 'c' });
  peer.send({ error: 'Service unavailable' }, audio('c', [1]), ...ended('c'));
  t.strictSame(await collect(context.audio), [Uint8Array.of(1)]);
  t.match(await events.next(), { type: 'error', error: { code: 'unavailable' } });
});

t.test('a service that answers pings is kept, however long it is silent otherwise', async (t) => {
  const { client, peer, clock } = await connected(t);
  for (let i = 0; i < 10; i++) {
    const pinged = new Promise((resolve) => peer.socket.once('ping', resolve));
    clock.advance(15_000);
    await pinged;
    // Its pong left before this ping of the server's.
    await peer.caughtUp();
  }
  t.equal(client.state, 'open');
});

t.test('a service that answers no ping counts as lost after one more interval', async (t) => {
  const { client, peer, clock, events } = await connected(t, { pingIntervalMs: 1_000 });
  peer.socket.pause();
  clock.advance(1_000);
  t.equal(client.state, 'open', 'it answered the ping before');
  clock.advance(1_000);
  t.match(await events.next(), { type: 'lost', error: { code: 'connection_lost', message: /ping/ } });
});

t.test('an invalid frame ends the connection, and the client opens another', async (t) => {
  const bad: (string | Buffer)[] = [
    'not json',
    '[]',
    'null',
    '"text"',
    '{"audio_chunk": 1, "context_id": "c"}',
    '{"audio_chunk": "###", "context_id": "c"}',
    '{"audio_chunk": "AAAA", "context_id": 1}',
    '{"error": {}}',
    '{"timestamps": {"words": ["a"], "start_seconds": [0], "end_seconds": []}}',
    '{"timestamps": {"words": ["a"], "start_seconds": ["0"], "end_seconds": [1]}}',
    '{"timestamps": null}',
    '{"flush_completed": true, "context_id": "c"}',
    '{"context_started": {"voice_id": "ada"}, "context_id": "c"}',
    Buffer.from('{"context_closed": true, "context_id": "c"}'),
  ];
  for (const message of bad) {
    const { server, client, peer, clock, events } = await connected(t);
    const context = client.context({ voiceId: 'ada', contextId: 'c' });
    peer.socket.send(message);
    t.match(await errorOf(collect(context)), { code: 'protocol_error', retryable: true }, String(message));
    await events.next();
    clock.advance(100);
    await server.peer();
    await client.close();
  }
});

t.test('invalid WebSocket bytes and endless messages are protocol errors too', async (t) => {
  const { peer, events } = await connected(t, { reconnect: false });
  (peer.socket as unknown as { _socket: { write(bytes: Buffer): void } })._socket.write(
    Buffer.alloc(100, 0xff),
  );
  t.match(await events.next(), { type: 'closed', error: { code: 'protocol_error' } });
  const other = await connected(t, { reconnect: false });
  other.peer.socket.on('error', () => undefined);
  other.peer.socket.send('x'.repeat(5 * 1024 * 1024));
  t.match(await other.events.next(), { type: 'closed', error: { code: 'protocol_error' } });
});

t.test('frames of unknown kinds and contexts are ignored', async (t) => {
  const { client, peer } = await connected(t);
  const context = client.context({ voiceId: 'ada', contextId: 'c' });
  peer.send({ visemes: [], context_id: 'c' }, audio('nobody', [9]), { audio_chunk: 'AAAA' });
  peer.send(audio('c', [1]), ...ended('c'));
  t.strictSame(await collect(context.audio), [Uint8Array.of(1)]);
  t.equal(client.state, 'open');
});

t.test('close ends the connection cleanly, fails open contexts, and can be repeated', async (t) => {
  const unused = new AbortController();
  const { client, peer } = await connected(t, { signal: unused.signal });
  const context = client.context({ voiceId: 'ada' });
  const reading = errorOf(collect(context));
  await Promise.all([client.close(), client.close()]);
  await client.close();
  t.equal((await peer.closed).code, 1000);
  t.match(await reading, { code: 'closed', retryable: false });
  t.equal(await client.closed, undefined);
  t.equal(getEventListeners(unused.signal, 'abort').length, 0);
  t.equal(await codeOf(() => client.context({ voiceId: 'ada' })), 'closed');
});

t.test('the client does not wait long for an unanswered close', async (t) => {
  const { client, peer, clock } = await connected(t, { closeTimeoutMs: 500 });
  peer.socket.pause();
  const closing = client.close();
  t.equal(client.state, 'closing');
  clock.advance(500);
  await closing;
  t.equal(client.state, 'closed');
  t.equal(clock.nextMs, undefined);
});

t.test('a signal ends an attempt to connect, a wait, and the client', async (t) => {
  const reason = new Error('shutting down');
  const { url } = await ScriptedSocket.listen(t, { upgrade: () => undefined });
  const aborted = { code: 'aborted', retryable: false, cause: reason };
  t.match(await errorOf(connect({ url, apiKey: key, signal: AbortSignal.abort(reason) })), aborted);
  const connecting = new AbortController();
  const attempt = errorOf(connect({ url, apiKey: key, signal: connecting.signal }));
  connecting.abort(reason);
  t.match(await attempt, aborted);

  const open = new AbortController();
  const { client, peer } = await connected(t, { signal: open.signal });
  const reading = errorOf(collect(client.context({ voiceId: 'ada' })));
  open.abort(reason);
  t.match(await reading, aborted);
  t.match(await client.closed, aborted);
  t.equal(getEventListeners(open.signal, 'abort').length, 0);
  t.equal((await peer.closed).code, 1000);

  const waiting = new AbortController();
  const lost = await connected(t, { signal: waiting.signal });
  lost.peer.socket.terminate();
  await lost.events.next();
  waiting.abort(reason);
  t.match(await lost.client.closed, aborted);
  t.equal(lost.clock.nextMs, undefined);
});

t.test('the URL may be that of the service or of its WebSocket', async (t) => {
  const paths: string[] = [];
  const upgrade: Upgrade = (request, _socket, accept) => {
    paths.push(request.url ?? '');
    accept();
  };
  const { port } = await ScriptedSocket.listen(t, { upgrade });
  const clients: SyrinxClient[] = [];
  for (const path of ['', '/', '/prefix', '/prefix/', '/v1/tts/ws', '/prefix/v1/tts/ws'])
    clients.push(await connect({ url: `ws://127.0.0.1:${port}${path}`, apiKey: key }));
  clients.push(await connect({ url: new URL(`http://127.0.0.1:${port}`), apiKey: key }));
  const [plain, prefixed] = ['/v1/tts/ws', '/prefix/v1/tts/ws'];
  t.strictSame(paths, [plain, plain, prefixed, prefixed, plain, prefixed, plain]);
  for (const client of clients) await client.close();
});

t.test('invalid options are refused before anything is sent', async (t) => {
  const url = 'http://127.0.0.1:1';
  await t.rejects(connect({ url: 'nowhere', apiKey: key }), { name: 'TypeError', message: /^url/ });
  await t.rejects(connect({ url: 'ftp://host', apiKey: key }), { name: 'TypeError', message: /^url/ });
  for (const apiKey of ['svc_sk_with space', 'svc_sk_line\nbreak', 'svc_sk_ключ'])
    await t.rejects(connect({ url, apiKey }), { name: 'TypeError', message: /^apiKey/ });
  for (const apiKey of ['', undefined])
    await t.rejects(connect({ url, apiKey: apiKey as string }), {
      name: 'TypeError',
      message: /^apiKey: set a key/,
    });
});

t.test('a misspelt option is an error that lists the options', async (t) => {
  // As a program in JavaScript could write them.
  const options = (value: object) => value as never;
  const url = 'http://127.0.0.1:1';
  await t.rejects(connect(options({ url, apiKey: key, key })), {
    name: 'TypeError',
    message: /^connect: unknown option key; the options are apiKey, .*, url$/,
  });
  await t.rejects(connect(options({ url, apiKey: key, reconnect: { attempts: 3 } })), {
    name: 'TypeError',
    message: /^reconnect: unknown option attempts; the options are attemptsMax, capMs, firstMs$/,
  });
  const { client, peer } = await connected(t);
  t.throws(() => client.context(options({ voiceId: 'ada', speed: 2, toString: 1 })), {
    name: 'TypeError',
    message: /^context: unknown option speed, toString; the options are contextId, format, /,
  });
  t.throws(() => client.context(options({ voiceId: 'ada', format: { encoding: 'pcm', sampleRate: 1 } })), {
    name: 'TypeError',
    message: /^format: unknown option sampleRate; the options are bitrateKbps, encoding, sampleRateHz$/,
  });
  await peer.caughtUp();
  t.strictSame(peer.unread, [], 'nothing was sent');
});
