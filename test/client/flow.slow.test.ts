import t from 'tap';
import type { SpeechContext } from '../../src/client/index.js';
import { type Peer, audio, ended, flushed } from '../support/scripted-socket.js';
import { codeOf, collect, connected } from '../support/speech-client.js';
import { pause, until } from '../support/waiting.js';

const MiB = 1024 * 1024;
const chunkBytes = 64 * 1024;
/** More than the kernel's buffers of both ends hold. */
const chunks = 320;

/** Sends numbered chunks; each begins with its number. */
const flood = (peer: Peer, contextId: string): void => {
  for (let i = 0; i < chunks; i++) {
    const bytes = Buffer.alloc(chunkBytes);
    bytes.writeUInt32LE(i);
    peer.send(audio(contextId, bytes));
  }
};

/** Waits until the other side takes no more. @returns the bytes that it did not take */
const stalledBytes = async (peer: Peer): Promise<number> => {
  let before = -1;
  await until(async () => {
    const same = peer.socket.bufferedAmount === before;
    before = peer.socket.bufferedAmount;
    if (same) return true;
    await pause(100);
    return false;
  }, 20_000);
  return before;
};

const numbers = async (context: SpeechContext): Promise<number[]> =>
  (await collect(context.audio)).map((chunk) => Buffer.from(chunk.buffer).readUInt32LE());

const options = { receiveBufferBytesMax: MiB } as const;

t.test('a slow reader holds back the service and loses nothing', async (t) => {
  const { client, peer } = await connected(t, options);
  const context = client.context({ voiceId: 'ada', contextId: 'c' });
  flood(peer, 'c');
  peer.send(...ended('c'));
  t.ok((await stalledBytes(peer)) > 10 * MiB, 'most of it waits at the service');
  t.strictSame(
    await numbers(context),
    Array.from({ length: chunks }, (_, i) => i),
  );
  t.equal(peer.socket.bufferedAmount, 0);
});

t.test('an unread context fails after a while, and its neighbours continue', async (t) => {
  const { client, peer, clock } = await connected(t, { ...options, pingIntervalMs: 4_000 });
  const unread = client.context({ voiceId: 'ada', contextId: 'unread' });
  const other = client.context({ voiceId: 'ada', contextId: 'other' });
  const reading = numbers(other);
  await peer.next();
  await peer.next();
  flood(peer, 'unread');
  peer.send(audio('other', [5, 0, 0, 0]), ...ended('other'));
  t.ok((await stalledBytes(peer)) > 10 * MiB);
  // Pings continue and their answers stay unread: that must not end the connection.
  clock.advance(19_999);
  t.equal(client.state, 'open');
  clock.advance(1);
  t.strictSame(await reading, [5]);
  t.equal(client.state, 'open');
  t.strictSame(await peer.next(), { cancel_context: true, context_id: 'unread' });
  let bytes = 0;
  const code = await codeOf(async () => {
    for await (const chunk of unread.audio) bytes += chunk.length;
  });
  t.equal(code, 'slow_consumer');
  t.ok(bytes > MiB && bytes < 2 * MiB, `${bytes} bytes were kept`);
});

t.test('a slow but steady reader does not fail its context', async (t) => {
  const { client, peer, clock } = await connected(t, { ...options, pingIntervalMs: 1e9 });
  const context = client.context({ voiceId: 'ada', contextId: 'c' });
  // Many reads pass until there is room again.
  for (let i = 0; i < 400; i++) peer.send(audio('c', Buffer.alloc(8 * 1024)));
  peer.send(...ended('c'));
  await stalledBytes(peer);
  let count = 0;
  for await (const _chunk of context.audio) {
    count += 1;
    // Slower than any speech.
    clock.advance(10_000);
  }
  t.equal(count, 400);
});

t.test('unread flushes do not hold up a caller that reads only audio', async (t) => {
  const { client, peer, clock } = await connected(t, { receiveBufferBytesMax: 1_000, pingIntervalMs: 1e9 });
  const context = client.context({ voiceId: 'ada', contextId: 'c' });
  const reading = collect(context.audio);
  for (let i = 0; i < 30; i++) void context.flush(String(i));
  for (let i = 0; i < 30; i++) peer.send(flushed('c', String(i)));
  peer.send(audio('c', [1]));
  await peer.caughtUp();
  clock.advance(60_000);
  peer.send(audio('c', [2]), ...ended('c'));
  t.equal((await reading).length, 2);
});

t.test('ending a context that held up the others lets them continue', async (t) => {
  const { client, peer } = await connected(t, options);
  const unread = client.context({ voiceId: 'ada', contextId: 'unread' });
  const other = client.context({ voiceId: 'ada', contextId: 'other' });
  flood(peer, 'unread');
  peer.send(audio('other', [5, 0, 0, 0]), ...ended('other'));
  await stalledBytes(peer);
  unread.cancel();
  t.strictSame(await numbers(other), [5]);
});

t.test('the client can be closed while it is held up', async (t) => {
  const { client, peer } = await connected(t, options);
  client.context({ voiceId: 'ada', contextId: 'c' });
  flood(peer, 'c');
  await stalledBytes(peer);
  await client.close();
  t.equal((await peer.closed).code, 1000);
});

t.test(
  'send says when to wait, drained when to go on, and sending without waiting is an error',
  async (t) => {
    const { client, peer } = await connected(t, { sendBufferBytesMax: 2 * MiB });
    const context = client.context({ voiceId: 'ada' });
    t.equal(context.send('a little'), true);
    await context.drained();
    await peer.next();
    await peer.next();
    peer.socket.pause();
    const piece = 'x'.repeat(60 * 1024);
    let sent = 0;
    // The kernel's buffers take some bytes first.
    while (context.send(piece)) sent += 1;
    sent += 1;
    let isDrained = false;
    const draining = context.drained().then(() => (isDrained = true));
    const code = await codeOf(() => {
      for (;;) {
        context.send(piece);
        sent += 1;
      }
    });
    t.equal(code, 'buffer_full');
    t.equal(isDrained, false);
    peer.socket.resume();
    await draining;
    t.equal(context.send('on it goes'), true);
    for (let i = 0; i < sent; i++) t.equal(String((await peer.next())['send_text']).length, piece.length);
    t.strictSame(await peer.next(), { send_text: 'on it goes', context_id: context.id });
  },
);

t.test('frames that wait for a connection are bounded too', async (t) => {
  const { client, peer, events } = await connected(t, { sendBufferBytesMax: MiB });
  peer.socket.terminate();
  await events.next();
  const context = client.context({ voiceId: 'ada' });
  const draining = context.drained();
  let sent = 0;
  const code = await codeOf(() => {
    for (; ; sent += 1) context.send('x'.repeat(60 * 1024));
  });
  t.equal(code, 'buffer_full');
  t.equal(sent, 18);
  t.equal(await codeOf(() => client.context({ voiceId: 'ada', contextId: 'c' })), 'buffer_full');
  t.equal(
    await codeOf(() => client.context({ voiceId: 'ada', contextId: 'c' })),
    'buffer_full',
    'not: in use',
  );
  const late = context.drained();
  await draining;
  await client.close();
  await late;
});

t.test('a context that cannot send its close fails', async (t) => {
  const { client, peer, events } = await connected(t, { sendBufferBytesMax: MiB });
  peer.socket.terminate();
  await events.next();
  const context = client.context({ voiceId: 'ada' });
  await codeOf(() => {
    for (;;) context.send('x'.repeat(100 * 1024));
  });
  t.equal(await codeOf(context.flush()), 'buffer_full');
  t.equal(await codeOf(context.close()), 'buffer_full');
  t.equal(await codeOf(collect(context)), 'buffer_full');
});

t.test('contexts and flushes are bounded', async (t) => {
  const { client, peer } = await connected(t, { contextsMax: 2 });
  const first = client.context({ voiceId: 'ada', contextId: 'c' });
  client.context({ voiceId: 'ada' });
  t.equal(await codeOf(() => client.context({ voiceId: 'ada' })), 'too_many_contexts');
  for (let i = 0; i < 256; i++) void first.flush();
  t.equal(await codeOf(first.flush()), 'buffer_full');
  peer.send(...ended('c'));
  await collect(first);
  t.ok(client.context({ voiceId: 'ada' }));
});
