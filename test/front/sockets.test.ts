/** The WebSocket route over real connections, with two independent clients. */
import { once } from 'node:events';
import t from 'tap';
import { WebSocket } from 'ws';
import { limits } from '../../src/limits.js';
import type { FakeContext } from '../support/fake-speech.js';
import {
  eventually,
  GOOD_KEY,
  OTHER_KEY,
  SECOND_KEY,
  startFront,
  type Front,
} from '../support/front-server.js';
import { header, RawClient, requestBytes } from '../support/raw-client.js';
import { kindOf, openers, openNative, openWs } from '../support/socket-client.js';

const PATH = '/v1/tts/ws';
const UPGRADE: [string, string][] = [
  ['Connection', 'Upgrade'],
  ['Upgrade', 'websocket'],
  ['Sec-WebSocket-Version', '13'],
  ['Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ=='],
];

const handshake = (port: number, headers: readonly (readonly [string, string])[]) => {
  const lines = [...UPGRADE, ...headers].map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return RawClient.ask(port, Buffer.from(`GET ${PATH} HTTP/1.1\r\nHost: a\r\n${lines}\r\n`));
};

const socketLines = (front: Front) => front.lines.filter(({ message }) => message === 'socket');

t.test('the handshake: 401 without a key of the right shape, 503 while draining, ids on all', async (t) => {
  const front = await startFront(t);
  const missing = '{"error":"Invalid or missing API key"}';
  for (const headers of [
    [],
    [['x-api-key', '']],
    [['x-api-key', 'sk_1']],
    [['authorization', 'Bearer svc_sk_good']],
  ] as [string, string][][]) {
    const refused = await handshake(front.port, headers);
    t.equal(refused.status, 401);
    t.equal(refused.body.toString(), missing);
    t.equal(header(refused, 'content-type'), 'application/json');
    t.match(header(refused, 'x-request-id'), /^[\w-]{8,}$/);
  }
  const client = await front.client();
  client.send(
    `GET ${PATH} HTTP/1.1\r\nHost: a\r\nX-API-Key: ${GOOD_KEY}\r\n${UPGRADE.map(([n, v]) => `${n}: ${v}\r\n`).join('')}\r\n`,
  );
  await client.until(() => client.receivedBytes > 0);
  const head = client.bytes().toString('latin1');
  t.match(head, /^HTTP\/1\.1 101 Switching Protocols\r\n/);
  t.match(head, /\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=\r\n/i);
  const id = /\r\nx-request-id: ([\w-]{36})\r\n/.exec(head)?.[1];
  t.ok(id);
  client.destroy();
  await eventually(() => socketLines(front).length === 1);
  t.match(socketLines(front)[0]?.fields, { requestId: id }, 'the same id as in the log');
  t.equal(front.server.inFlight, 0);
});

t.test('a request that is no upgrade gets 405, with or without a key', async (t) => {
  const front = await startFront(t);
  for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'])
    for (const key of [GOOD_KEY, undefined]) {
      const response = await RawClient.ask(front.port, {
        method,
        path: PATH,
        ...(key !== undefined && { key }),
        ...(method === 'POST' && { body: '{}' }),
      });
      t.equal(response.status, 405, method);
      if (method !== 'HEAD') t.equal(response.body.toString(), '{"detail":"Method Not Allowed"}');
      t.match(header(response, 'x-request-id'), /^[\w-]{8,}$/);
    }
  t.equal((await RawClient.ask(front.port, { path: `${PATH}/` })).status, 404);
});

for (const [name, open] of openers) {
  t.test(`${name}: an unknown key gets an error frame, then close code 1008`, async (t) => {
    const front = await startFront(t);
    const client = await open(front.port, 'svc_sk_unknown');
    t.strictSame(await client.closing(), { code: 1008, reason: 'INVALID_API_KEY' });
    t.strictSame(client.frames, [{ error: 'INVALID_API_KEY' }]);
    t.equal(front.server.inFlight, 0);
  });

  t.test(`${name}: every frame of a conversation has exactly its keys`, async (t) => {
    const front = await startFront(t);
    front.speech.script = (context) => {
      context.speak(3_000);
      context.close();
    };
    const client = await open(front.port, GOOD_KEY);
    client.start('a', { timestamps: true });
    client.text('a', 'Hello ');
    client.flush('a', 'f1');
    client.text('a', 'there.');
    client.closeContext('a');
    await client.frame(({ context_closed }) => context_closed === true);
    t.strictSame(
      client.frames.map((frame) => ({
        ...frame,
        ...(frame.audio_chunk !== undefined && { audio_chunk: '' }),
      })),
      [
        {
          context_started: {
            voice_id: 'ada',
            model_id: 'default',
            timestamps: true,
            response_format: { encoding: 'pcm', sample_rate: 32_000 },
          },
          context_id: 'a',
        },
        { audio_chunk: '', context_id: 'a' },
        { flush_completed: true, flush_id: 'f1', context_id: 'a' },
        { audio_chunk: '', context_id: 'a' },
        { flush_completed: true, flush_id: 'a:close', context_id: 'a' },
        { context_closed: true, context_id: 'a' },
      ],
    );
    client.start('a');
    await client.until(() => client.frames.length === 7);
    t.equal(kindOf(client.frames[6] ?? {}), 'context_started', 'after its contexts a socket opens new ones');
    client.close();
    await client.closing();
    await eventually(() => front.server.inFlight === 0);
    t.equal(front.admission.slotsTaken, 0);
  });

  t.test(`${name}: malformed frames get an error frame and affect nothing else`, async (t) => {
    const front = await startFront(t);
    const client = await open(front.port, GOOD_KEY);
    client.start('a');
    const bad = [
      '',
      '{',
      '[]',
      '{}',
      '{"flush":false}',
      '{"send_text":"x","flush":true}',
      '\u0000',
      '{"a":1}',
    ];
    for (const frame of bad) client.send(frame);
    client.start('b', { voice_id: 'nobody' });
    client.text('c', 'x');
    client.text('a', 'Still here.');
    client.flush('a', 'f');
    await client.frame(({ flush_completed }) => flush_completed === true);
    const errors = client.frames.flatMap(({ error }) => error ?? []);
    t.equal(errors.length, bad.length + 2);
    t.ok(errors.slice(0, bad.length).every((error) => error.startsWith('invalid frame: ')));
    t.match(errors[bad.length], 'ada, ada_conv, bela', 'every valid voice');
    t.equal(errors.at(-1), 'unknown context_id: c');
    t.equal(client.audio('a').length, 3_000);
    client.close();
  });

  t.test(
    `${name}: a message may have all the text of its bound, and text may split a surrogate pair`,
    async (t) => {
      const front = await startFront(t);
      const client = await open(front.port, GOOD_KEY);
      client.start('a');
      const text = 'é'.repeat(limits.socketTextBytesMax / 2);
      client.text('a', text);
      client.cancel('a');
      client.start('b');
      // As Python's `json` writes it.
      client.send(`{"send_text":"${'\\u00e9'.repeat(limits.socketTextBytesMax / 2)}","context_id":"b"}`);
      client.start('c');
      client.text('c', '\ud83d');
      client.text('c', '\ude00');
      client.text('c', '!');
      client.text('c', '\ud83d');
      client.flush('c', 'f');
      client.text('c', '?');
      client.flush('c', 'g');
      await client.frame(({ flush_id }) => flush_id === 'g');
      t.strictSame(
        client.frames.filter(({ error }) => error !== undefined),
        [],
      );
      t.ok(front.speech.contexts[0]?.text === text);
      t.ok(front.speech.contexts[1]?.text === text);
      t.equal(front.speech.contexts[2]?.text, '😀!?', 'a half at a flush is no text');
      client.text('b', 'é'.repeat(limits.socketTextBytesMax / 2 + 1));
      const refused = await client.frame(({ error }) => error !== undefined);
      t.match(refused, { error: /^invalid frame: send_text/, context_id: 'b' });
      client.close();
    },
  );
}

t.test('a binary message is an invalid frame; fragments are reassembled', async (t) => {
  const front = await startFront(t);
  const client = await openWs(front.port, GOOD_KEY);
  client.ws.send(Buffer.from('{"flush":true}'), { binary: true });
  t.strictSame(await client.frame(({ error }) => error !== undefined), {
    error: 'invalid frame: binary message',
  });
  const frame = JSON.stringify({
    start_context: { voice_id: 'ada', model_id: 'default' },
    context_id: 'frag',
  });
  for (let at = 0; at < frame.length; at++)
    client.ws.send(frame[at] ?? '', { binary: false, fin: at === frame.length - 1 });
  await client.frame(({ context_started }) => context_started !== undefined);
  client.close();
});

t.test('a message above the bound ends only its own socket', async (t) => {
  const front = await startFront(t);
  const neighbour = await openNative(front.port, GOOD_KEY);
  const whole = await openWs(front.port, GOOD_KEY);
  whole.start('a');
  whole.text('a', 'Hello. ');
  await eventually(() => front.admission.slotsTaken === 1);
  whole.send('x'.repeat(limits.socketMessageBytesMax + 1));
  await whole.closing();
  const fragmented = await openWs(front.port, GOOD_KEY);
  const piece = 'x'.repeat(limits.socketMessageBytesMax / 4);
  for (let i = 0; i < 5; i++) fragmented.ws.send(piece, { binary: false, fin: false });
  await fragmented.closing();
  await eventually(() => front.server.inFlight === 1);
  t.equal(front.admission.slotsTaken, 0);
  neighbour.start('n');
  await neighbour.frame(({ context_started }) => context_started !== undefined);
  neighbour.close();
});

t.test(
  'messages that arrive hold the part of their account; its other sockets take short ones',
  async (t) => {
    const { socketMessageBytesMax, socketShortMessageBytesMax } = limits;
    const front = await startFront(t, { bounds: { arrivingMessageBytesMax: 40 * socketMessageBytesMax } });
    const messageOf = (bytes: number): string => 'x'.repeat(bytes);
    /** Each sends so much of a message, whose end never comes. */
    const holding = async (keys: readonly string[], bytes: number) => {
      const clients = await Promise.all(keys.map((key) => openWs(front.port, key)));
      for (const { ws } of clients) ws.send(messageOf(bytes), { binary: false, fin: false });
      for (const { ws } of clients) ws.ping();
      await Promise.all(clients.map(({ ws }) => Promise.race([once(ws, 'pong'), once(ws, 'close')])));
      return clients.filter(({ closed }) => closed === null);
    };
    const keys = Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? GOOD_KEY : SECOND_KEY));
    const held = await holding(keys, socketMessageBytesMax - 100);
    t.equal(held.length, 20, 'half of what there is, with all its keys');
    t.equal((await holding(keys, socketShortMessageBytesMax - 100)).length, 40);
    t.equal((await holding([OTHER_KEY], socketMessageBytesMax - 100)).length, 1, 'another account');
    for (const { ws } of held) ws.terminate();
    await eventually(() => front.server.inFlight === 41);
    t.equal((await holding(keys, socketMessageBytesMax - 100)).length, 19, 'again');
  },
);

t.test(
  'floods: a thousand contexts, a storm of flushes, junk; the socket next to it keeps its pace',
  async (t) => {
    const front = await startFront(t);
    const neighbour = await openNative(front.port, GOOD_KEY);
    const flood = await openWs(front.port, GOOD_KEY);
    for (let i = 0; i < 1_000; i++) flood.start(`c${i}`);
    for (let i = 0; i < 5_000; i++) flood.flush(`c${i % 10}`, `f${i}`);
    for (let i = 0; i < 5_000; i++) flood.send('{"x":');
    neighbour.start('n');
    neighbour.text('n', 'Hello.');
    neighbour.flush('n', 'f');
    await neighbour.frame(({ flush_id }) => flush_id === 'f');
    const answers = 1_000 + 5_000 + 5_000;
    await flood.until(() => flood.frames.length >= answers);
    t.equal(flood.frames.length, answers, 'each is answered once');
    t.equal(front.speech.contexts.length, limits.contextsPerSocketMax + 1);
    flood.close();
    neighbour.close();
  },
);

t.test(
  'a context beyond the part of its account is refused with a word of its own; the socket stays',
  async (t) => {
    const front = await startFront(t);
    const socket = await openWs(front.port, GOOD_KEY);
    front.speech.refuse = () => 'contextsOfAccountExhausted';
    socket.start('a');
    t.match(await socket.frame(() => true), { error: 'Too many contexts are open', context_id: 'a' });
    front.speech.refuse = null;
    socket.start('a');
    await socket.frame(({ context_started }) => context_started !== undefined);
    t.match(await front.metrics.text(), 'syrinx_refusals_total{reason="contextsOfAccountExhausted"} 1');
    socket.close();
  },
);

t.test('a client that floods and never reads is dropped', async (t) => {
  const front = await startFront(t, { bounds: { socketAnswerBytesMax: 65_536 } });
  const flood = await openWs(front.port, GOOD_KEY);
  flood.ws.pause();
  const junk = `{"flush":1,"context_id":"${'i'.repeat(1_000)}"}`;
  const timer = setInterval(() => {
    for (let i = 0; i < 500 && flood.ws.bufferedAmount < 1e7; i++) flood.send(junk);
  }, 1);
  t.teardown(() => clearInterval(timer));
  await eventually(() => socketLines(front).length === 1);
  t.match(socketLines(front)[0]?.fields, { outcome: 'flooded' });
  flood.ws.terminate();
});

t.test(
  'a slow reader closes its backpressure gate and gets every byte; its neighbour keeps its pace',
  async (t) => {
    const front = await startFront(t);
    const slow = await openWs(front.port, GOOD_KEY);
    const quick = await openNative(front.port, GOOD_KEY);
    front.speech.script = () => undefined;
    slow.start('slow');
    await slow.frame(({ context_started }) => context_started !== undefined);
    const [context] = front.speech.contexts as [FakeContext];
    slow.ws.pause();
    // More than the kernel's buffers hold.
    const frames = 1_000;
    context.stream(frames, 21_000);
    await eventually(() => context.unsentMs >= limits.unsentAudioMsMax);
    quick.start('quick');
    quick.text('quick', 'Hello.');
    quick.flush('quick', 'f');
    await quick.frame(({ flush_id }) => flush_id === 'f');
    t.ok(context.handedFrames.length < frames, 'the stalled one is not handed everything');
    slow.ws.resume();
    await slow.until(() => slow.audio.length > 0 && context.handedFrames.length === frames);
    await slow.frame(({ context_closed }) => context_closed === true);
    const expected = Buffer.concat(
      context.expected.map((bytes) =>
        Buffer.from((JSON.parse(bytes.toString()) as { audio_chunk: string }).audio_chunk, 'base64'),
      ),
    );
    t.ok(slow.audio('slow').equals(expected), 'every byte, in order');
    slow.close();
    quick.close();
  },
);

t.test('both sides answer pings; a client that answers none is dropped', async (t) => {
  const front = await startFront(t, {
    bounds: { socketPingMs: 200, socketSilenceMsMax: 1_500, keyRecheckMsMax: 400 },
  });
  const alive = await openWs(front.port, GOOD_KEY);
  const native = await openNative(front.port, GOOD_KEY);
  const dead = await openWs(front.port, GOOD_KEY, { autoPong: false });
  let pinged = 0;
  alive.ws.on('ping', () => pinged++);
  const ponged = new Promise((resolve) => alive.ws.once('pong', resolve));
  alive.ws.ping();
  await ponged;
  await dead.closing();
  await eventually(() => socketLines(front).length === 1);
  t.match(socketLines(front)[0]?.fields, { outcome: 'silent' });
  t.ok(pinged >= 3);
  t.equal(alive.closed, null);
  t.equal(native.closed, null);
  alive.close();
  native.close();
});

t.test('a revoked key ends its open sockets within a second, and no others', async (t) => {
  const front = await startFront(t);
  const clients = [await openWs(front.port, GOOD_KEY), await openNative(front.port, GOOD_KEY)];
  const other = await openWs(front.port, 'svc_sk_broke');
  front.speech.script = () => undefined;
  clients[0]?.start('a');
  clients[0]?.text('a', 'Hello. ');
  await eventually(() => front.admission.slotsTaken === 1);
  front.admission.revoked.add(7);
  for (const client of clients) {
    t.strictSame(await client.closing(), { code: 1008, reason: 'INVALID_API_KEY' });
    t.strictSame(client.frames.at(-1), { error: 'INVALID_API_KEY' });
  }
  t.equal(front.admission.slotsTaken, 0);
  t.ok(front.speech.last.released);
  t.equal(other.closed, null);
  other.close();
});

t.test('a store that says that a key was revoked ends its sockets at once, and no others', async (t) => {
  const front = await startFront(t, { bounds: { keyRecheckMsMax: 600_000 } });
  const clients = [await openWs(front.port, GOOD_KEY), await openNative(front.port, GOOD_KEY)];
  const other = await openWs(front.port, 'svc_sk_broke');
  front.admission.revoke(7);
  for (const client of clients)
    t.strictSame(await client.closing(), { code: 1008, reason: 'INVALID_API_KEY' });
  t.equal(other.closed, null);
  other.close();
});

t.test('a client that vanishes between any two frames leaves nothing behind', async (t) => {
  const front = await startFront(t);
  front.speech.flushScript = (context, flushId) => {
    context.speak(30_000);
    if (flushId !== 'never') context.emit({ type: 'flushed', contextId: 0, flushId });
  };
  const frames = [
    { start_context: { voice_id: 'ada', model_id: 'default' }, context_id: 'a' },
    { send_text: 'Hello. ', context_id: 'a' },
    { flush: true, flush_id: 'f', context_id: 'a' },
    { start_context: { voice_id: 'ada', model_id: 'default' } },
    { send_text: 'Held' },
    { flush: true, flush_id: 'never' },
    { cancel_context: true },
    { send_text: 'More. ', context_id: 'a' },
    { close_context: true, context_id: 'a' },
  ];
  for (let count = 0; count <= frames.length; count++) {
    const client = await openWs(front.port, GOOD_KEY);
    for (const frame of frames.slice(0, count)) client.send(frame);
    // Half of them at once, half after their frames were handled.
    if (count % 2 === 0) await new Promise<void>((resolve) => client.ws.send(' ', {}, () => resolve()));
    client.ws.terminate();
    await eventually(() => front.server.inFlight === 0);
    t.equal(front.admission.slotsTaken, 0, `after ${count} frames`);
    t.ok(front.speech.contexts.every(({ released }) => released));
  }
  t.ok(
    front.admission.leases.every(({ closed }) => closed === 1),
    'every lease was closed once',
  );
});

t.test('a drain ends idle sockets with 1001, lets speaking ones finish, and takes no new ones', async (t) => {
  const front = await startFront(t, { bounds: { drainLingerMs: 20 } });
  front.speech.script = () => undefined;
  const idle = await openNative(front.port, GOOD_KEY);
  const busy = await openWs(front.port, GOOD_KEY);
  const kept = await front.client();
  kept.send(requestBytes({ path: '/healthz' }));
  await kept.response();
  busy.start('a');
  busy.text('a', 'Hello. ');
  busy.closeContext('a');
  await eventually(() => front.speech.contexts.length === 1 && front.speech.last.ended);
  front.server.stopAccepting();
  t.match(await idle.closing(), { code: 1001 });
  kept.send(
    `GET ${PATH} HTTP/1.1\r\nHost: a\r\nx-api-key: ${GOOD_KEY}\r\n${UPGRADE.map(([n, v]) => `${n}: ${v}\r\n`).join('')}\r\n`,
  );
  t.equal((await kept.response()).status, 503);
  let isIdle = false;
  void front.server.whenIdle().then(() => (isIdle = true));
  front.speech.last.speak(3_000);
  front.speech.last.close();
  await busy.frame(({ context_closed }) => context_closed === true);
  t.match(await busy.closing(), { code: 1001 });
  await front.server.whenIdle();
  t.ok(isIdle);
});

t.test('a close of the server ends speaking sockets with 1001', async (t) => {
  const front = await startFront(t);
  const client = await openWs(front.port, GOOD_KEY);
  client.start('a');
  client.text('a', 'Hello. ');
  await eventually(() => front.admission.slotsTaken === 1);
  front.server.close();
  t.match(await client.closing(), { code: 1001 });
  t.equal(front.admission.slotsTaken, 0);
  t.equal(front.server.inFlight, 0);
});

t.test('sockets have a bound, and a subprotocol does not matter', async (t) => {
  const front = await startFront(t, { bounds: { socketsMax: 2 } });
  const first = await openWs(front.port, GOOD_KEY);
  const second = new WebSocket(`ws://127.0.0.1:${front.port}${PATH}`, ['tts.v1'], {
    headers: { 'x-api-key': GOOD_KEY },
  });
  await new Promise((resolve) => second.once('open', resolve));
  t.equal(second.protocol, 'tts.v1');
  await t.rejects(openWs(front.port, GOOD_KEY), /503/);
  first.close();
  await first.closing();
  await eventually(() => front.server.inFlight === 1);
  const third = await openWs(front.port, GOOD_KEY);
  third.close();
  second.close();
});
