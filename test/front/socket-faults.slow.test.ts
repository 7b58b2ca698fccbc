/** Threads that die during an utterance, as the clients of several WebSockets see them. */
import t from 'tap';
import { Metrics } from '../../src/metrics.js';
import { long, sentence, startPlayed } from '../support/dispatch-bench.js';
import { eventually, GOOD_KEY, startFront } from '../support/front-server.js';
import { openNative, openWs, type SocketClient } from '../support/socket-client.js';

const start = async (t: Parameters<typeof startFront>[0]) => {
  const dispatcher = await startPlayed();
  const front = await startFront(t, { parts: { speech: dispatcher } });
  t.teardown(() => dispatcher.close(30_000));
  return { dispatcher, front };
};

const voice = { voice_id: 'scripted', response_format: { encoding: 'pcm', sample_rate: 24_000 } };
const LETTER_BYTES = 2_400;

const letters = (client: SocketClient, contextId: string): string => {
  const pcm = client.audio(contextId);
  let text = '';
  for (let at = 0; at + LETTER_BYTES <= pcm.length; at += LETTER_BYTES)
    text += String.fromCharCode(Math.floor(pcm.readInt16LE(at) / 50));
  return text;
};

for (const marker of ['!throw', '!exit'])
  t.test(`${marker}: its context gets one error frame, and the others continue`, async (t) => {
    const { dispatcher, front } = await start(t);
    const one = await openWs(front.port, GOOD_KEY);
    const two = await openNative(front.port, GOOD_KEY);
    for (const client of [one, two])
      for (const contextId of ['a', 'b']) {
        client.start(contextId, voice);
        client.text(contextId, long);
        client.flush(contextId, 'f');
      }
    one.start('victim', voice);
    one.text('victim', `${sentence}Then ${marker} it breaks. ${long}`);
    one.flush('victim', 'never');
    await one.frame(({ error }) => error !== undefined);
    for (const client of [one, two])
      for (const contextId of ['a', 'b']) {
        await client.frame((frame) => frame.flush_completed === true && frame.context_id === contextId);
        t.equal(letters(client, contextId), long);
      }
    const victim = one.of('victim');
    t.strictSame(
      victim.at(-1),
      { error: 'Internal Server Error', context_id: 'victim' },
      'and nothing after it',
    );
    t.equal(victim.filter(({ error }) => error !== undefined).length, 1);
    t.ok(sentence.startsWith(letters(one, 'victim').slice(0, 20)), 'what it said before was right');
    await eventually(() => front.admission.slotsTaken === 0);
    const settled = front.admission.leases.reduce((sum, lease) => sum + lease.settled, 0);
    const heard = letters(one, 'victim').length;
    // A segment is charged when its first audio is sent, even the one that failed.
    const begun = `${sentence}Then ${marker} it breaks. `.length;
    t.ok(settled - 4 * long.length <= begun, `${settled - 4 * long.length} for ${heard} heard`);
    t.ok(settled - 4 * long.length >= Math.min(heard, sentence.length));
    one.start('victim', voice);
    one.text('victim', 'After that.');
    one.flush('victim', 'f2');
    await one.frame(({ flush_id }) => flush_id === 'f2');
    t.ok(letters(one, 'victim').endsWith('After that.'), 'its id is free, its socket serves');
    one.close();
    two.close();
    await eventually(() => dispatcher.openContexts === 0 && dispatcher.scheduler.runningSegments === 0);
    t.equal(front.admission.slotsTaken, 0);
  });

for (const marker of ['!actor-exit', '!actor-throw'])
  t.test(`${marker}: every lost context gets one error frame`, async (t) => {
    const { dispatcher, front } = await start(t);
    const client = await openWs(front.port, GOOD_KEY);
    for (const contextId of ['a', 'b', 'c']) {
      client.start(contextId, voice);
      client.text(contextId, long);
      client.flush(contextId, 'f');
    }
    client.start('idle', voice);
    client.start('d', { ...voice, timestamps: true });
    client.text('d', `Now ${marker} it breaks. `);
    await client.until(() => client.frames.filter(({ error }) => error !== undefined).length === 5);
    await eventually(() => front.admission.slotsTaken === 0);
    for (const contextId of ['a', 'b', 'c', 'd', 'idle']) {
      const frames = client.of(contextId);
      t.strictSame(frames.at(-1), { error: 'Internal Server Error', context_id: contextId });
      t.equal(frames.filter(({ error }) => error !== undefined).length, 1);
    }
    await eventually(() => dispatcher.threads.isWhole);
    client.start('a', voice);
    client.text('a', long);
    client.flush('a', 'again');
    await client.frame(({ flush_id }) => flush_id === 'again');
    t.ok(letters(client, 'a').endsWith(long));
    client.close();
    await eventually(() => front.server.inFlight === 0);
    const settled = front.admission.leases.reduce((sum, lease) => sum + lease.settled, 0);
    t.ok(settled <= 4 * long.length + 40);
    t.equal(front.admission.slotsTaken, 0);
  });

t.test('a socket that closes cancels all of its speech', async (t) => {
  const { dispatcher, front } = await start(t);
  const client = await openWs(front.port, GOOD_KEY);
  for (let i = 0; i < 8; i++) {
    client.start(`c${i}`, voice);
    client.text(`c${i}`, long.repeat(50));
  }
  await client.until(() => client.frames.some(({ audio_chunk }) => audio_chunk !== undefined));
  client.ws.terminate();
  await eventually(() => front.admission.slotsTaken === 0);
  const [lease] = front.admission.leases;
  await eventually(() => dispatcher.scheduler.runningSegments === 0);
  t.equal(dispatcher.openContexts, 0);
  t.equal(lease?.closed, 1);
  t.ok((lease?.settled ?? Infinity) < 8 * long.length * 50);
});

t.test('after a cancel no audio of the cancelled text arrives', async (t) => {
  const { front } = await start(t);
  const client = await openWs(front.port, GOOD_KEY);
  for (let turn = 0; turn < 10; turn++) {
    client.start('a', voice);
    client.text('a', `${'x'.repeat(30)}. `.repeat(40));
    const seen = client.frames.length;
    await client.until(() => client.frames.slice(seen).some(({ audio_chunk }) => audio_chunk !== undefined));
    client.cancel('a');
    client.start('a', voice);
    client.text('a', 'y');
    client.flush('a', `f${turn}`);
    await client.frame(({ flush_id }) => flush_id === `f${turn}`);
    const closedAt = client.frames.findLastIndex(({ context_closed }) => context_closed === true);
    const after = client.frames.slice(closedAt + 1).flatMap(({ audio_chunk }) => audio_chunk ?? []);
    const pcm = Buffer.concat(after.map((chunk) => Buffer.from(chunk, 'base64')));
    t.equal(pcm.length, LETTER_BYTES, 'one letter');
    t.equal(String.fromCharCode(Math.floor(pcm.readInt16LE(0) / 50)), 'y');
    client.cancel('a');
  }
  client.close();
});

t.test(
  'a fault while a socket opens, after its end, is logged once, and the service serves on',
  async (t) => {
    class FailingMetrics extends Metrics {
      override refused(): void {
        throw new Error('scripted');
      }
    }
    const front = await startFront(t, { parts: { metrics: new FailingMetrics() } });
    const client = await openWs(front.port, 'svc_sk_unknown');
    await eventually(() => front.lines.some(({ message }) => message === 'socket failed'));
    await client.until(() => client.closed !== null);
    t.equal(client.closed?.code, 1008);
    const other = await openWs(front.port, GOOD_KEY);
    other.start('a', { voice_id: 'ada' });
    await other.frame(({ context_started }) => context_started !== undefined);
    other.close();
    const faults = front.lines.filter(({ level }) => level === 'error');
    t.match(faults, [{ message: 'socket failed' }]);
    t.equal(faults.length, 1, 'the second end is none');
  },
);
