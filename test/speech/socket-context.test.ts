/** Contexts of a socket: flushes, dropped utterances, and their activity meanwhile. */
import t from 'tap';
import type { Lease } from '../../src/accounts/lease.js';
import type { Frame } from '../../src/threads/messages.js';
import { limits } from '../../src/limits.js';
import { createLog } from '../../src/log.js';
import { Changes } from '../../scripts/rig/changes.js';
import { lease, optionsOf, startPlayed } from '../support/dispatch-bench.js';
import { opened } from '../support/fake-speech.js';

const LETTER_SAMPLES = 1_200;

const dispatcher = await startPlayed();
t.teardown(() => dispatcher.close(5_000));

/** A context whose frames are kept. Each is handed over as it comes, unless `holds`. */
const openContext = (
  options: { clientContextId?: string; framing?: 'stream'; group?: object; holds?: boolean } = {},
) => {
  const { holds = false, ...more } = options;
  const account = { settled: 0, closed: 0 };
  const lease: Lease = {
    account: 'default',
    settle: (characters) => (account.settled += characters),
    delivered: () => undefined,
    close: () => account.closed++,
    void: () => account.closed++,
  };
  const frames: Frame[] = [];
  const changes = new Changes();
  const context = opened(
    dispatcher.open(
      {
        lease,
        settings: { voiceId: 'scripted', temperature: 1, normalizeText: false },
        format: { encoding: 'pcm', sampleRateHz: 24_000 },
        framing: 'socket',
        timestamps: false,
        ...more,
      },
      (frame) => {
        frames.push(frame);
        if (frame.type === 'audio' && !holds) context.handed(frame);
        changes.notify();
      },
    ),
  );
  const until = (condition: () => boolean) => changes.until(condition);
  const flushed = (flushId: string) =>
    until(() => frames.some((frame) => frame.type === 'flushed' && frame.flushId === flushId));
  return { account, context, frames, until, flushed };
};

/** The kinds of frames in order; the letters that they speak for runs of audio. */
const summary = (frames: readonly Frame[]): string[] => {
  const kinds: string[] = [];
  let pcm: Buffer[] = [];
  const letters = () => {
    const bytes = Buffer.concat(pcm);
    pcm = [];
    let text = '';
    for (let at = 0; at + 2 * LETTER_SAMPLES <= bytes.length; at += 2 * LETTER_SAMPLES)
      text += String.fromCharCode(Math.floor(bytes.readInt16LE(at) / 50));
    if (text !== '') kinds.push(text);
  };
  for (const frame of frames) {
    if (frame.type === 'audio') {
      const message = JSON.parse(Buffer.from(frame.bytes).toString()) as { audio_chunk: string };
      pcm.push(Buffer.from(message.audio_chunk, 'base64'));
    } else if (frame.type === 'flushed' || frame.type === 'closed') {
      letters();
      kinds.push(frame.type === 'flushed' ? `<${frame.flushId}>` : '<closed>');
    }
  }
  letters();
  return kinds;
};

t.test('flushes are answered in their place, and text after a flush is a new utterance', async (t) => {
  const { account, context, frames, until } = openContext({ clientContextId: 'a "b" \ud800' });
  context.append('one. two ');
  context.append('thr');
  context.append('ee');
  context.flush('f1');
  context.flush('\ud800');
  context.append('four');
  context.flush('f2');
  context.append('fi');
  context.append('ve');
  context.end();
  await until(() => frames.at(-1)?.type === 'closed');
  t.strictSame(summary(frames), ['one. two three', '<f1>', '<\ud800>', 'four', '<f2>', 'five', '<closed>']);
  t.equal(account.settled, 'one. two threefourfive'.length);
  for (const frame of frames)
    if (frame.type === 'audio')
      t.strictSame(
        { ...(JSON.parse(Buffer.from(frame.bytes).toString()) as object), audio_chunk: '' },
        { audio_chunk: '', context_id: 'a "b" \ud800' },
      );
  context.release();
  t.equal(account.closed, 1);
});

t.test('text in any pieces gives the same segments and audio as the whole text', async (t) => {
  const text =
    'It was 3.14 or so. Dr. Who said: "Well!" Then 1,000 went on; and on, and on, to the end of it all. '.repeat(
      3,
    );
  const speakPieces = async (pieces: readonly string[]) => {
    const { context, frames, until } = openContext();
    for (const piece of pieces) context.append(piece);
    context.flush('f');
    context.end();
    await until(() => frames.at(-1)?.type === 'closed');
    context.release();
    const segments = frames.flatMap((frame) => (frame.type === 'spoken' ? [frame.segment] : []));
    return { letters: summary(frames), segments };
  };
  const whole = await speakPieces([text]);
  t.equal(whole.letters[0], text.trimEnd() + ' '.repeat(text.length - text.trimEnd().length));
  t.ok(whole.segments.length > 3);
  for (const size of [1, 2, 7, 50])
    t.strictSame(await speakPieces(text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []), whole, `by ${size}`);
});

t.test('a context that never speaks sends no audio', async (t) => {
  const { account, context, frames, until } = openContext();
  context.append(' \n ');
  t.equal(context.activity, 'idle', 'blank text is nothing to speak');
  context.flush('f');
  t.equal(context.activity, 'speaking');
  context.append('  ');
  context.end();
  await until(() => frames.at(-1)?.type === 'closed');
  t.strictSame(summary(frames), ['<f>', '<closed>']);
  t.equal(account.settled, 0);
  context.release();
});

t.test('the activity of a context', async (t) => {
  const { context, frames, until, flushed } = openContext({ holds: true });
  t.equal(context.activity, 'idle');
  context.append('Hello');
  t.equal(context.activity, 'holding', 'no segment is final');
  context.append(' there. ');
  t.equal(context.activity, 'speaking');
  await until(() => frames.some(({ type }) => type === 'spoken'));
  t.equal(context.activity, 'speaking', 'nothing is handed');
  for (const frame of frames) if (frame.type === 'audio') context.handed(frame);
  t.equal(context.activity, 'idle');
  context.append('And');
  t.equal(context.activity, 'holding');
  context.flush('f');
  t.equal(context.activity, 'speaking');
  await flushed('f');
  for (const frame of frames.slice(frames.findIndex(({ type }) => type === 'spoken')))
    if (frame.type === 'audio') context.handed(frame);
  t.equal(context.activity, 'idle');
  context.release();
  t.equal(context.activity, 'idle');
});

t.test('a dropped utterance is not spoken, text flushed before it is', async (t) => {
  const { account, context, frames, until } = openContext();
  const kept = 'This was flushed, long as it is. And so was this. ';
  context.append(kept);
  context.append('Its tail');
  context.flush('f1');
  context.append('x'.repeat(5_000));
  context.append(' and more');
  t.equal(context.dropUtterance(), 5_009, 'all of it, as it had not begun');
  t.equal(context.dropUtterance(), 0);
  context.flush('f2');
  context.append('Then this.');
  context.end();
  await until(() => frames.at(-1)?.type === 'closed');
  t.strictSame(summary(frames), [`${kept}Its tail`, '<f1>', '<f2>', 'Then this.', '<closed>']);
  t.equal(account.settled, `${kept}Its tailThen this.`.length);
  context.release();
});

t.test('of an utterance that has begun, started segments are spoken and the rest is dropped', async (t) => {
  const { account, context, frames, until } = openContext({ group: {} });
  const sentence = 'a sentence of some thirty letters. ';
  context.append(sentence.repeat(40));
  await until(() => frames.some(({ type }) => type === 'audio'));
  const dropped = context.dropUtterance();
  t.ok(dropped > 0);
  t.equal(dropped % sentence.length, 0, 'whole segments');
  context.flush('f');
  context.append('After it.');
  context.end();
  await until(() => frames.at(-1)?.type === 'closed');
  const begun = sentence.repeat(40 - dropped / sentence.length);
  t.strictSame(summary(frames), [begun, '<f>', 'After it.', '<closed>']);
  t.equal(account.settled + dropped, sentence.length * 40 + 'After it.'.length);
  context.release();
});

t.test(
  'speech begins before the end of a sentence, but not where the whole text is there at once',
  async (t) => {
    const begin = 'It looks like the flight to Denver ';
    const { account, context, flushed, frames } = openContext();
    context.append(begin);
    t.equal(context.activity, 'speaking');
    context.append('is late.');
    context.flush('f');
    await flushed('f');
    t.strictSame(summary(frames), [`${begin}is late.`, '<f>']);
    t.equal(account.settled, `${begin}is late.`.length);
    context.release();

    const request = openContext({ framing: 'stream' });
    request.context.append(begin);
    t.equal(request.context.activity, 'holding');
    request.context.release();
  },
);

t.test('a context whose transport hands over more audio than was made fails', async (t) => {
  const { context, frames, until, flushed } = openContext({ holds: true });
  context.append('Hello there.');
  context.flush('f');
  await flushed('f');
  for (const frame of frames)
    if (frame.type === 'audio') {
      context.handed(frame);
      context.handed(frame);
    }
  await until(() => frames.at(-1)?.type === 'failed');
  t.match(frames.at(-1), { reason: /^a fault of the scheduling: more audio was handed over than was made/ });
  context.release();
});

t.test('a fault that is found after the last frame of a context is logged', async (t) => {
  const lines: unknown[] = [];
  const log = createLog('silent', limits);
  log.error = (...line: unknown[]) => void lines.push(...line);
  const other = await startPlayed({ log });
  const frames: Extract<Frame, { type: 'audio' }>[] = [];
  const { granted } = lease();
  const closed = Promise.withResolvers<undefined>();
  const context = opened(
    other.open(optionsOf(granted), (frame) => {
      if (frame.type === 'audio') frames.push(frame);
      if (frame.type === 'closed') closed.resolve(undefined);
    }),
  );
  context.append('Hello there.');
  context.end();
  await closed.promise;
  for (const frame of [...frames, ...frames]) context.handed(frame);
  // The result of the segment can arrive after its last frame.
  while (lines.length === 0) await new Promise((resolve) => setImmediate(resolve));
  t.match(lines, [{ reason: /^a fault of the scheduling: more audio was handed over/ }, /after its end/]);
  context.release();
  t.equal(other.scheduler.unsentAudioMs, 0);
  await other.close(5_000);
});

t.test('contexts of one group each get their own audio', async (t) => {
  const group = {};
  const contexts = Array.from({ length: 8 }, (_, i) => {
    const opened = openContext({ group, clientContextId: `c${i}` });
    const text = `${String.fromCharCode(97 + i).repeat(30)}. `.repeat(5);
    opened.context.append(text);
    opened.context.end();
    return { ...opened, text };
  });
  for (const { context, frames, text, until } of contexts) {
    await until(() => frames.at(-1)?.type === 'closed');
    t.strictSame(summary(frames), [text, '<closed>']);
    context.release();
  }
});
