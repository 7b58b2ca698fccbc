import { getEventListeners } from 'node:events';
import { Readable } from 'node:stream';
import t from 'tap';
import { specifiedEncodings } from '../../src/api/formats.js';
import type { Encoding, SpeechEvent } from '../../src/client/index.js';
import { seededRandom } from '../../scripts/rig/random.js';
import { seedOfRun } from '../fuzz/check.js';
import { audio, ended, flushed, started, words } from '../support/scripted-socket.js';
import { codeOf, collect, connected, errorOf, key } from '../support/speech-client.js';

/** One line for each event: easier to read in a failure than bytes. */
const line = (event: SpeechEvent): string => {
  switch (event.type) {
    case 'audio':
      return `audio ${[...event.audio].join(',')}`;
    case 'word':
      return `${event.word} ${event.startSeconds}-${event.endSeconds}`;
    case 'flushed':
      return `flushed ${event.flushId}`;
  }
};

t.test('frames go out in order and as the protocol defines them', async (t) => {
  const { client, peer } = await connected(t, { headers: { 'x-tenant': 'acme' } });
  t.equal(peer.request.url, '/v1/tts/ws');
  t.equal(peer.request.headers['x-api-key'], key);
  t.equal(peer.request.headers['x-tenant'], 'acme');
  const context = client.context({
    voiceId: 'ada',
    format: { encoding: 'mp3', sampleRateHz: 24_000, bitrateKbps: 64 },
    timestamps: true,
    temperature: 0.7,
    contextId: 'c',
  });
  t.equal(context.id, 'c');
  t.equal(context.send('Good '), true);
  context.send('');
  context.send('day.');
  void context.flush('f');
  void context.close();
  t.strictSame(await peer.next(), {
    start_context: {
      voice_id: 'ada',
      model_id: 'default',
      timestamps: true,
      temperature: 0.7,
      response_format: { encoding: 'mp3', sample_rate: 24_000, bitrate: 64 },
    },
    context_id: 'c',
  });
  t.strictSame(await peer.next(), { send_text: 'Good ', context_id: 'c' });
  t.strictSame(await peer.next(), { send_text: 'day.', context_id: 'c' });
  t.strictSame(await peer.next(), { flush: true, context_id: 'c', flush_id: 'f' });
  t.strictSame(await peer.next(), { close_context: true, context_id: 'c' });
});

t.test('unset options are not sent, and every context has its own id', async (t) => {
  const { client, peer } = await connected(t);
  const [one, other] = [
    client.context({ voiceId: 'ada' }),
    client.context({ voiceId: 'ada', format: 'opus' }),
  ];
  t.not(one.id, other.id);
  t.strictSame(await peer.next(), {
    start_context: { voice_id: 'ada', model_id: 'default' },
    context_id: one.id,
  });
  t.strictSame(await peer.next(), {
    start_context: { voice_id: 'ada', model_id: 'default', response_format: { encoding: 'opus' } },
    context_id: other.id,
  });
  t.throws(() => client.context({ voiceId: 'ada', contextId: one.id }), TypeError);
});

t.test('the client’s type has every encoding of the specification, and no other', (t) => {
  const offered: Record<Encoding, true> = {
    mp3: true,
    wav: true,
    pcm: true,
    linear16: true,
    opus: true,
    mulaw: true,
    alaw: true,
  };
  t.same(Object.keys(offered).sort(), [...specifiedEncodings].sort());
  t.end();
});

t.test('started gives the resolved format', async (t) => {
  const { client, peer } = await connected(t);
  const context = client.context({ voiceId: 'ada', contextId: 'c' });
  peer.send(started('c', { encoding: 'mp3', sample_rate: 32_000, bitrate: '128k' }));
  t.strictSame(await context.started, {
    voiceId: 'ada',
    timestamps: true,
    format: { encoding: 'mp3', sampleRateHz: 32_000, bitrateKbps: 128 },
  });
});

t.test('events come in the order of arrival, and a flush after everything it waited for', async (t) => {
  const { client, peer } = await connected(t);
  const context = client.context({ voiceId: 'ada', contextId: 'c' });
  void context.flush('f');
  void context.close();
  peer.send(started('c'), audio('c', [1, 2]), words('c', 0, 'Good', 'day.'), audio('c', [3]), audio('c', []));
  peer.send(flushed('c', 'f'), audio('c', [4]), ...ended('c'));
  t.strictSame((await collect(context)).map(line), [
    'audio 1,2',
    'Good 0-1',
    'day. 1-2',
    'audio 3',
    'flushed f',
    'audio 4',
  ]);
});

t.test('audio and words can be read separately at the same time', async (t) => {
  const { client, peer } = await connected(t);
  const context = client.context({ voiceId: 'ada', contextId: 'c' });
  const read = Promise.all([collect(context.audio), collect(context.words)]);
  peer.send(audio('c', [1]), words('c', 0, 'one'), audio('c', [2]), words('c', 1, 'two'), ...ended('c'));
  const [chunks, list] = await read;
  t.strictSame(
    chunks.map((chunk) => [...chunk]),
    [[1], [2]],
  );
  t.strictSame(list, [
    { word: 'one', startSeconds: 0, endSeconds: 1 },
    { word: 'two', startSeconds: 1, endSeconds: 2 },
  ]);
  t.strictSame(await collect(context), [], 'read twice, it is at its end');
});

t.test('each kind of event has one reader', async (t) => {
  const { client, peer } = await connected(t);
  const context = client.context({ voiceId: 'ada', contextId: 'c' });
  const first = collect(context.audio);
  await t.rejects(collect(context.audio), TypeError);
  t.throws(() => context[Symbol.asyncIterator](), TypeError);
  t.throws(() => context.audio[Symbol.asyncIterator](), TypeError);
  peer.send(audio('c', [1]), ...ended('c'));
  t.equal((await first).length, 1, 'the first is not disturbed');
});

t.test('a chunk has its own memory, so that its samples can be read in place', async (t) => {
  const { client, peer } = await connected(t);
  const context = client.context({ voiceId: 'ada', contextId: 'c' });
  const samples = Int16Array.from([1, -2, 32_767, -32_768]);
  // An odd chunk before it would shift shared memory.
  peer.send(audio('c', [7]), audio('c', new Uint8Array(samples.buffer)), ...ended('c'));
  const [, chunk] = await collect(context.audio);
  t.strictSame(new Int16Array(chunk!.buffer), samples);
});

t.test('a flush resolves at its own completion, independently of others', async (t) => {
  const { client, peer } = await connected(t);
  const context = client.context({ voiceId: 'ada', contextId: 'c' });
  const order: string[] = [];
  const one = context.flush().then(() => order.push('one'));
  const two = context.flush('two').then(() => order.push('two'));
  await peer.next();
  const own = String((await peer.next())['flush_id']);
  t.not(own, 'two');
  peer.send(flushed('c', 'nobody’s'), flushed('c', 'two'), flushed('c', own));
  await Promise.all([one, two]);
  t.strictSame(order, ['two', 'one']);
  void context.flush('f');
  await t.rejects(context.flush('f'), TypeError, 'an id in use');
});

t.test('close resolves when everything has arrived; then nothing can be sent', async (t) => {
  const { client, peer } = await connected(t);
  const context = client.context({ voiceId: 'ada', contextId: 'c' });
  context.send('tail');
  const closing = context.close();
  t.equal(context.close(), closing, 'a second close is the first');
  t.equal(await codeOf(() => context.send('late')), 'closed');
  t.equal(await codeOf(context.flush()), 'closed');
  peer.send(audio('c', [1]), ...ended('c'));
  await closing;
  t.strictSame((await collect(context)).map(line), ['audio 1'], 'what arrived is there to be read');
  for (let i = 0; i < 3; i++) await peer.next();
  t.strictSame(peer.unread, [], 'start, text, close and no more');
  const again = client.context({ voiceId: 'ada', contextId: 'c' });
  t.equal(again.id, 'c', 'the id is free');
});

t.test('cancel ends reading at once, and no stale audio follows', async (t) => {
  const { client, peer } = await connected(t);
  const context = client.context({ voiceId: 'ada', contextId: 'c' });
  const flushing = context.flush();
  peer.send(started('c'), audio('c', [1]), audio('c', [2]));
  const reader = context[Symbol.asyncIterator]();
  await reader.next();
  await peer.caughtUp();
  const closing = context.close();
  context.cancel();
  context.cancel();
  peer.send(audio('c', [3]));
  t.strictSame(await reader.next(), { done: true, value: undefined }, 'not the second chunk');
  t.equal(await codeOf(flushing), 'cancelled');
  await closing;
  t.equal(await codeOf(() => context.send('late')), 'closed');
  t.throws(
    () => client.context({ voiceId: 'ada', contextId: 'c' }),
    TypeError,
    'not free before the last word',
  );
  const frames = [await peer.next(), await peer.next(), await peer.next(), await peer.next()];
  t.strictSame(frames[3], { cancel_context: true, context_id: 'c' });
  peer.send(...ended('c'));
  await peer.caughtUp();
  const next = client.context({ voiceId: 'ada', contextId: 'c' });
  peer.send(audio('c', [4]), ...ended('c'));
  t.strictSame((await collect(next)).map(line), ['audio 4']);
});

t.test('an id is free again even if the service answers a cancel with an error', async (t) => {
  const { client, peer } = await connected(t);
  client.context({ voiceId: 'ada', contextId: 'c' }).cancel();
  peer.send({ error: 'unknown context_id: c', context_id: 'c' });
  await peer.caughtUp();
  t.ok(client.context({ voiceId: 'ada', contextId: 'c' }));
});

t.test('cancel wakes a reader that waits', async (t) => {
  const { client } = await connected(t);
  const context = client.context({ voiceId: 'ada' });
  const [chunks, list] = [collect(context.audio), collect(context.words)];
  context.cancel();
  t.strictSame(await Promise.all([chunks, list]), [[], []]);
});

t.test('leaving a loop over audio cancels; leaving one over words does not', async (t) => {
  const { client, peer } = await connected(t);
  const context = client.context({ voiceId: 'ada', contextId: 'c' });
  peer.send(words('c', 0, 'one', 'two'), audio('c', [1]), audio('c', [2]));
  for await (const { word } of context.words) {
    t.equal(word, 'one');
    break;
  }
  peer.send(words('c', 2, 'three'));
  await peer.next();
  for await (const chunk of context.audio) {
    t.strictSame([...chunk], [1]);
    t.strictSame(peer.unread, []);
    break;
  }
  t.strictSame(await peer.next(), { cancel_context: true, context_id: 'c' });
});

t.test('a loop can be left while it waits, also by destroying a stream over it', async (t) => {
  const { client, peer } = await connected(t);
  const context = client.context({ voiceId: 'ada', contextId: 'c' });
  const stream = Readable.from(context.audio);
  const closed = new Promise((resolve) => stream.once('close', resolve));
  stream.resume();
  await peer.next();
  peer.send(audio('c', [1]));
  await peer.caughtUp();
  stream.destroy();
  await closed;
  t.strictSame(await peer.next(), { cancel_context: true, context_id: 'c' });
});

t.test('several pending reads get their events in order', async (t) => {
  const { client, peer } = await connected(t);
  const context = client.context({ voiceId: 'ada', contextId: 'c' });
  const reader = context.audio[Symbol.asyncIterator]();
  const steps = [reader.next(), reader.next(), reader.next(), reader.next()];
  peer.send(audio('c', [1]), audio('c', [2]), { error: 'Internal Server Error', context_id: 'c' });
  const results = await Promise.allSettled(steps);
  t.match(results, [
    { value: { done: false, value: Uint8Array.of(1) } },
    { value: { done: false, value: Uint8Array.of(2) } },
    { reason: { code: 'server_error' } },
    { value: { done: true } },
  ]);
  t.strictSame(await reader.next(), { done: true, value: undefined }, 'the error is thrown once');
});

t.test('leaving a block with `await using` cancels an open context', async (t) => {
  const { client, peer } = await connected(t);
  {
    await using context = client.context({ voiceId: 'ada', contextId: 'c' });
    context.send('cut off');
  }
  await peer.next();
  await peer.next();
  t.strictSame(await peer.next(), { cancel_context: true, context_id: 'c' });
});

t.test('an error frame fails only its context, with a code and the service’s text', async (t) => {
  const cases: [text: string, code: string, retryable: boolean][] = [
    ['INSUFFICIENT_CREDITS', 'insufficient_credits', false],
    ['Rate limit exceeded', 'rate_limited', true],
    ['Service unavailable', 'unavailable', true],
    ['Too much text is waiting', 'buffer_full', true],
    ['Too many flushes are waiting', 'buffer_full', true],
    ['Too many contexts are open', 'too_many_contexts', true],
    ['Internal Server Error', 'server_error', true],
    ['invalid frame: temperature: Input should be less than or equal to 3', 'invalid_frame', false],
    ['unknown context_id: c', 'invalid_frame', false],
  ];
  for (const [text, code, retryable] of cases) {
    const { client, peer } = await connected(t);
    const context = client.context({ voiceId: 'ada', contextId: 'c' });
    const other = client.context({ voiceId: 'ada', contextId: 'other' });
    const flushing = context.flush('f');
    const closing = context.close();
    peer.send(
      started('c'),
      audio('c', [1]),
      { error: text, context_id: 'c', flush_id: 'f' },
      audio('c', [2]),
    );
    const read: SpeechEvent[] = [];
    const error = await errorOf(async () => {
      for await (const event of context) read.push(event);
    });
    t.strictSame(read.map(line), ['audio 1'], 'what came before is read before');
    t.match(error, { code, retryable }, text);
    if (code === 'invalid_frame') t.equal(error.message, text);
    t.equal(await errorOf(flushing), error);
    t.equal(await errorOf(closing), error);
    t.equal(await errorOf(() => context.send('more')), error, 'send throws it too');
    peer.send(audio('other', [3]), ...ended('other'));
    t.strictSame((await collect(other)).map(line), ['audio 3']);
    for (let i = 0; i < 4; i++) await peer.next();
    t.strictSame(await peer.next(), { cancel_context: true, context_id: 'c' }, 'the client cancels it');
  }
});

t.test('an unknown voice has its own code, and there is nothing to cancel', async (t) => {
  const { client, peer } = await connected(t);
  const context = client.context({ voiceId: 'zed', contextId: 'c' });
  context.send('Hello.');
  await peer.next();
  await peer.next();
  const text = "Unknown voice 'zed'. Valid voices: ada, bob";
  peer.send({ error: text, context_id: 'c' }, { error: 'unknown context_id: c', context_id: 'c' });
  t.match(await errorOf(collect(context)), { code: 'unknown_voice', message: text, retryable: false });
  t.equal(await codeOf(context.started), 'unknown_voice');
  await peer.caughtUp();
  t.strictSame(peer.unread, []);
});

t.test('a signal cancels, and readers fail with its reason', async (t) => {
  const { client, peer } = await connected(t);
  const abort = new AbortController();
  const context = client.context({ voiceId: 'ada', contextId: 'c', signal: abort.signal });
  peer.send(started('c'), audio('c', [1]));
  const reader = context.audio[Symbol.asyncIterator]();
  await reader.next();
  const waiting = reader.next();
  const reason = new Error('barge-in');
  abort.abort(reason);
  t.match(await errorOf(waiting), { code: 'aborted', retryable: false, cause: reason });
  await peer.next();
  t.strictSame(await peer.next(), { cancel_context: true, context_id: 'c' });
  const late = client.context({ voiceId: 'ada', signal: abort.signal });
  t.equal(await codeOf(collect(late)), 'aborted', 'also one that fired before');
});

t.test('a signal that outlives its context holds nothing and does nothing', async (t) => {
  const { client, peer } = await connected(t);
  const abort = new AbortController();
  const context = client.context({ voiceId: 'ada', contextId: 'c', signal: abort.signal });
  await peer.next();
  peer.send(...ended('c'));
  t.equal(getEventListeners(abort.signal, 'abort').length, 1);
  t.strictSame(await collect(context), []);
  t.equal(getEventListeners(abort.signal, 'abort').length, 0);
  abort.abort();
  await peer.caughtUp();
  t.strictSame(peer.unread, []);
});

t.test(
  'long text is sent in messages that the service takes, none of which halves a character',
  async (t) => {
    const { client, peer } = await connected(t);
    const context = client.context({ voiceId: 'ada' });
    await peer.next();
    // Odd, so that a cut at an even place would split a pair; control characters take six bytes each.
    const text = `a${'😀'.repeat(200_000)}${'\u0001'.repeat(300_000)}`;
    context.send(text);
    void context.flush('end');
    let joined = '';
    for (let frame = await peer.next(); 'send_text' in frame; frame = await peer.next()) {
      t.ok(Buffer.byteLength(JSON.stringify(frame)) < 1024 * 1024);
      t.ok(String(frame['send_text']).isWellFormed());
      joined += String(frame['send_text']);
    }
    t.ok(joined === text);
  },
);

t.test('interleaved frames never mix the bytes of contexts', async (t) => {
  const seed = seedOfRun();
  t.comment(`seed ${seed}`);
  const random = seededRandom(seed);
  const { client, peer } = await connected(t);
  const contexts = Array.from({ length: 20 }, (_, i) =>
    client.context({ voiceId: 'ada', contextId: `c${i}` }),
  );
  const reading = contexts.map((context) => collect(context));
  const expected = contexts.map((): string[] => []);
  const open = contexts.map((_, i) => i);
  while (open.length > 0) {
    const at = Math.floor(random() * open.length);
    const i = open[at]!;
    const id = contexts[i]!.id;
    const dice = random();
    if (dice < 0.1) {
      peer.send(...ended(id));
      open.splice(at, 1);
    } else if (dice < 0.6) {
      const bytes = Array.from({ length: 1 + Math.floor(random() * 20) }, () => Math.floor(random() * 256));
      expected[i]!.push(`audio ${bytes.join(',')}`);
      peer.send(audio(id, bytes));
    } else {
      expected[i]!.push(`w${i} 0-1`, `v${i} 1-2`);
      peer.send(words(id, 0, `w${i}`, `v${i}`));
    }
  }
  const read = await Promise.all(reading);
  t.strictSame(
    read.map((events) => events.map(line)),
    expected,
  );
});

t.test('an unawaited promise does not end the process', async (t) => {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  process.on('unhandledRejection', note);
  t.teardown(() => process.off('unhandledRejection', note));
  const { client, peer, events } = await connected(t, { reconnect: false });
  const context = client.context({ voiceId: 'ada', contextId: 'c' });
  void context.flush();
  void context.close();
  peer.socket.terminate();
  t.match(await events.next(), { type: 'closed', error: { code: 'connection_lost' } });
  await new Promise((resolve) => setImmediate(resolve));
  t.strictSame(unhandled, []);
});
