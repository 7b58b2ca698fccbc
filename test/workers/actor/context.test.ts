import { setImmediate as defer } from 'node:timers';
import { setImmediate } from 'node:timers/promises';
import t from 'tap';
import type { AudioFormat, SampleFormat } from '../../../src/api/formats.js';
import { limits } from '../../../src/limits.js';
import type { ChunkMail, Frame, Framing, WordTime } from '../../../src/threads/messages.js';
import { PlaybackClock } from '../../../src/threads/playback-clock.js';
import { InvariantError } from '../../../src/fault.js';
import { monotonicMs } from '../../../src/monotonic.js';
import { loadCodec, loadEncoders } from '../../../workers/audio/encoders.js';
import { ContextActor } from '../../../workers/actor/context.js';
import { RunQueue } from '../../../workers/actor/run-queue.js';
import { seededRandom } from '../../../scripts/rig/random.js';
import { workThrough } from '../../support/spoken.js';

const RATE_HZ = 24_000;

await loadEncoders(limits);

const open = (
  framing: Framing = 'stream',
  format: AudioFormat = { encoding: 'pcm', sampleRateHz: RATE_HZ },
  timestamps = false,
) => {
  const frames: Frame[] = [];
  const actor = new ContextActor(
    { type: 'open', contextId: 1, format, framing, timestamps, engineSampleRateHz: RATE_HZ, clock: 0 },
    new PlaybackClock(),
    (frame) => frames.push(frame),
    workThrough,
  );
  return { actor, frames };
};

const announce = (actor: ContextActor, segment: number, words: string[] = [], tokenContinues = false) =>
  actor.announce({ type: 'segment', contextId: 1, segment, words, tokenContinues });

/** A ramp that starts at the chunk's place in its segment: every sample shows where it belongs. */
const chunk = (segment: number, startSample: number, length: number, words: WordTime[] = []): ChunkMail => ({
  type: 'chunk',
  contextId: 1,
  segment,
  startSample,
  pcm: Int16Array.from({ length }, (_, i) => segment * 10_000 + startSample + i),
  words,
});

const done = (segment: number, samples: number): ChunkMail => ({
  type: 'segment-done',
  contextId: 1,
  segment,
  samples,
});

const streamedSamples = (frames: readonly Frame[]): number[] => {
  const parts = frames
    .filter((frame) => frame.type === 'audio')
    .map((frame) => {
      const text = Buffer.from(frame.bytes).toString('utf8');
      const record = JSON.parse(text.slice('data: '.length)) as { audio_chunk: string };
      return Buffer.from(record.audio_chunk, 'base64');
    });
  const bytes = Buffer.concat(parts);
  return Array.from({ length: bytes.length / 2 }, (_, i) => bytes.readInt16LE(2 * i));
};

const wholeBytes = (frames: readonly Frame[]): Buffer => {
  const head = frames.filter((frame) => frame.type === 'head');
  const audio = frames.filter((frame) => frame.type === 'audio');
  const text = [...head, ...audio].map((frame) => Buffer.from(frame.bytes).toString('latin1')).join('');
  return Buffer.from(text, 'base64');
};

t.test('chunks are released in the order of the announcements, however they come', async (t) => {
  const { actor, frames } = open();
  actor.chunk(chunk(1, 0, 100));
  announce(actor, 0);
  announce(actor, 1);
  actor.announce({ type: 'close', contextId: 1 });
  t.equal(frames.length, 0, 'segment 1 waits for segment 0');
  actor.chunk(done(1, 100));
  actor.chunk(chunk(0, 0, 50));
  t.equal(frames.length, 1, 'the head segment is released as it comes');
  actor.chunk(chunk(0, 50, 50));
  actor.chunk(done(0, 100));
  t.same(streamedSamples(frames), [
    ...Array.from({ length: 100 }, (_, i) => i),
    ...Array.from({ length: 100 }, (_, i) => 10_000 + i),
  ]);
  t.equal(frames.at(-1)?.type, 'closed');
});

t.test('encoders of AAC open after the work of others', async (t) => {
  const aac: AudioFormat = { encoding: 'aac', sampleRateHz: RATE_HZ, bitrateKbps: 96 };
  await loadCodec(aac);
  const order: string[] = [];
  const queue = new RunQueue<ContextActor>({
    clock: monotonicMs,
    workMs: 1,
    work(actor) {
      order.push(String(actor.id));
      return actor.work() !== null;
    },
    dueMs: (actor) => actor.dueMs,
    onPause: () => void order.push('mail'),
    defer: (run) => void defer(run),
  });
  const actors = [1, 2, 3, 4].map((contextId) => {
    const clock = new PlaybackClock();
    clock.start(monotonicMs() + contextId);
    const format = contextId === 4 ? ({ encoding: 'pcm', sampleRateHz: RATE_HZ } as const) : aac;
    return new ContextActor(
      {
        ...{ type: 'open', contextId, format, framing: 'stream', timestamps: false },
        engineSampleRateHz: RATE_HZ,
        clock: 0,
      },
      clock,
      () => undefined,
      (woken) => queue.wake(woken),
    );
  });
  for (const actor of actors) announce(actor, 0);
  actors[3]!.chunk(chunk(0, 0, 50));
  while (new Set(order).size < 5) await setImmediate();
  const turns = order.join(' ');
  t.match(turns, /^4 /, 'the one that is due last has no encoder to open');
  for (const actor of actors) actor.dispose();
});

t.test('a segment that is run again adds no sample twice', async (t) => {
  const { actor, frames } = open();
  announce(actor, 0);
  actor.announce({ type: 'close', contextId: 1 });
  actor.chunk(chunk(0, 0, 60));
  actor.chunk(chunk(0, 60, 40));
  actor.chunk(chunk(0, 0, 60));
  actor.chunk(chunk(0, 60, 40));
  actor.chunk(chunk(0, 100, 20));
  actor.chunk(done(0, 120));
  t.same(
    streamedSamples(frames),
    Array.from({ length: 120 }, (_, i) => i),
  );
});

t.test('the chunks of two runs of a segment may arrive interleaved', async (t) => {
  const { actor, frames } = open();
  announce(actor, 0);
  actor.announce({ type: 'close', contextId: 1 });
  // The thread of the first run died after three chunks. Ports keep no common order.
  actor.chunk(chunk(0, 0, 60));
  actor.chunk(chunk(0, 0, 60));
  actor.chunk(chunk(0, 60, 40));
  actor.chunk(chunk(0, 60, 40));
  actor.chunk(chunk(0, 100, 20));
  actor.chunk(chunk(0, 100, 20));
  actor.chunk(chunk(0, 120, 30));
  actor.chunk(done(0, 150));
  t.equal(streamedSamples(frames).length, 150);
  t.equal(frames.at(-1)?.type, 'closed');
});

t.test('what comes of a second run after the first was complete is dropped', async (t) => {
  const { actor, frames } = open();
  announce(actor, 0);
  actor.chunk(chunk(0, 0, 60));
  actor.chunk(chunk(0, 0, 30));
  actor.chunk(done(0, 60));
  actor.chunk(chunk(0, 30, 30));
  actor.chunk(done(0, 60));
  actor.announce({ type: 'close', contextId: 1 });
  t.equal(streamedSamples(frames).length, 60);
  t.equal(frames.at(-1)?.type, 'closed');
});

t.test('a segment that runs again after it was complete is dropped', async (t) => {
  const { actor, frames } = open();
  announce(actor, 0);
  for (let run = 0; run < 2; run++) {
    actor.chunk(chunk(0, 0, 60));
    actor.chunk(done(0, 60));
  }
  announce(actor, 1);
  actor.announce({ type: 'close', contextId: 1 });
  for (let run = 0; run < 2; run++) {
    actor.chunk(chunk(1, 0, 30));
    actor.chunk(done(1, 30));
  }
  t.equal(streamedSamples(frames).length, 90);
  t.equal(frames.at(-1)?.type, 'closed');
});

const faults = {
  'a lost chunk': [chunk(0, 0, 60), chunk(0, 100, 20)],
  'a lost first chunk': [chunk(0, 60, 40)],
  'a chunk that overlaps the one before': [chunk(0, 0, 60), chunk(0, 40, 40)],
  'a second run that is cut elsewhere': [
    chunk(0, 0, 60),
    chunk(0, 60, 40),
    chunk(0, 0, 80),
    chunk(0, 80, 40),
  ],
  'an end with fewer samples than came': [chunk(0, 0, 60), done(0, 40)],
  'an end with more samples than came': [chunk(0, 0, 60), done(0, 100)],
  'a chunk after the end': [chunk(0, 0, 60), done(0, 60), chunk(0, 60, 10)],
  'a second end that differs': [chunk(0, 0, 60), done(0, 60), done(0, 61)],
};

for (const [what, mails] of Object.entries(faults))
  t.test(`${what} is an error`, async (t) => {
    const { actor } = open();
    const last = mails.at(-1) as ChunkMail;
    for (const mail of mails.slice(0, -1)) actor.chunk(mail);
    t.throws(() => actor.chunk(last), InvariantError);
  });

t.test('word times run on across segments and come with their audio', async (t) => {
  const { actor, frames } = open('stream', { encoding: 'pcm', sampleRateHz: 8_000 }, true);
  announce(actor, 0, ['Hello,', 'world.']);
  announce(actor, 1, ['Again.']);
  actor.announce({ type: 'close', contextId: 1 });
  actor.chunk(chunk(0, 0, 12_000, [{ word: 0, startSample: 240, endSample: 6_000 }]));
  actor.chunk(chunk(0, 12_000, 12_000, [{ word: 1, startSample: 7_200, endSample: 18_000 }]));
  actor.chunk(done(0, 24_000));
  actor.chunk(chunk(1, 0, 12_000, [{ word: 0, startSample: 0, endSample: 12_000 }]));
  actor.chunk(done(1, 12_000));
  const timings = frames.filter((frame) => frame.type === 'timestamps').map((frame) => frame.timings);
  t.same(timings, [
    { words: ['Hello,'], start_seconds: [0.01], end_seconds: [0.25] },
    { words: ['world.'], start_seconds: [0.3], end_seconds: [0.75] },
    { words: ['Again.'], start_seconds: [1], end_seconds: [1.5] },
  ]);
  const kinds = frames.map((frame) => frame.type);
  t.ok(kinds.indexOf('timestamps') < kinds.lastIndexOf('audio'), 'they interleave with the audio');
});

t.test('times of words are whole milliseconds, and no word ends after its audio', async (t) => {
  const { actor, frames } = open('stream', undefined, true);
  announce(actor, 0, ['Hi.']);
  actor.announce({ type: 'close', contextId: 1 });
  // 4.95 and 99.95 ms.
  actor.chunk(chunk(0, 0, 2_399, [{ word: 0, startSample: 119, endSample: 2_399 }]));
  actor.chunk(done(0, 2_399));
  const timings = frames.filter((frame) => frame.type === 'timestamps').map((frame) => frame.timings);
  t.same(timings, [{ words: ['Hi.'], start_seconds: [0.004], end_seconds: [0.099] }]);
});

t.test('a token that spans segments is reported once, from its first start to its last end', async (t) => {
  const { actor, frames } = open('stream', undefined, true);
  announce(actor, 0, ['so', 'aaa'], true);
  announce(actor, 1, ['bbb'], true);
  announce(actor, 2, ['ccc', 'end']);
  actor.announce({ type: 'close', contextId: 1 });
  for (const segment of [0, 1, 2]) {
    const words =
      segment === 1
        ? [{ word: 0, startSample: 0, endSample: 2_400 }]
        : [
            { word: 0, startSample: 0, endSample: 1_200 },
            { word: 1, startSample: 1_200, endSample: 2_400 },
          ];
    actor.chunk(chunk(segment, 0, 2_400, words));
    actor.chunk(done(segment, 2_400));
  }
  const timings = frames.filter((frame) => frame.type === 'timestamps').map((frame) => frame.timings);
  t.same(
    timings.flatMap((timing) => timing.words),
    ['so', 'aaabbbccc', 'end'],
  );
  t.same(
    timings.flatMap((timing) => timing.start_seconds),
    [0, 0.05, 0.25],
  );
  t.same(
    timings.flatMap((timing) => timing.end_seconds),
    [0.05, 0.25, 0.3],
  );
});

t.test('a whole wav is one base64 text with exact sizes, whatever the chunks', async (t) => {
  const random = seededRandom(7);
  for (let round = 0; round < 50; round++) {
    const { actor, frames } = open('whole', { encoding: 'wav', sampleRateHz: RATE_HZ });
    announce(actor, 0);
    actor.announce({ type: 'close', contextId: 1 });
    let at = 0;
    const chunks = 1 + Math.floor(random() * 6);
    for (let i = 0; i < chunks; i++) {
      const length = 1 + Math.floor(random() * 40);
      actor.chunk(chunk(0, at, length));
      at += length;
    }
    actor.chunk(done(0, at));
    const file = wholeBytes(frames);
    t.equal(file.length, 44 + 2 * at);
    t.equal(file.readUInt32LE(4), file.length - 8);
    t.equal(file.readUInt32LE(40), 2 * at);
    t.ok(
      Array.from({ length: at }, (_, i) => file.readInt16LE(44 + 2 * i)).every((sample, i) => sample === i),
    );
  }
});

t.test(
  'stream headers: one of unknown size for wav, a right one a chunk for linear16, none for pcm',
  async (t) => {
    const headersOf = (encoding: SampleFormat['encoding']) => {
      const { actor, frames } = open('stream', { encoding, sampleRateHz: 16_000 });
      announce(actor, 0);
      actor.announce({ type: 'close', contextId: 1 });
      actor.chunk(chunk(0, 0, 24_000));
      actor.chunk(done(0, 24_000));
      const chunks = frames
        .filter((frame) => frame.type === 'audio')
        .map((frame) => {
          const text = Buffer.from(frame.bytes).toString('utf8').slice('data: '.length);
          return Buffer.from((JSON.parse(text) as { audio_chunk: string }).audio_chunk, 'base64');
        });
      return chunks.map((bytes) =>
        bytes.toString('latin1', 0, 4) === 'RIFF'
          ? {
              ...{ rate: bytes.readUInt32LE(24), bytesPerSecond: bytes.readUInt32LE(28) },
              ...{ data: bytes.readUInt32LE(40), length: bytes.length },
            }
          : undefined,
      );
    };
    const wav = headersOf('wav');
    t.match(wav[0], { rate: 16_000, bytesPerSecond: 32_000, data: 0xffff_ffff });
    t.ok(wav.slice(1).every((header) => header === undefined));
    const linear16 = headersOf('linear16');
    t.ok(linear16.length > 1);
    t.ok(linear16.every((header) => header?.rate === 16_000 && header.data === header.length - 44));
    t.ok(headersOf('pcm').every((header) => header === undefined));
  },
);

t.test('flushes are answered in their place', async (t) => {
  const { actor, frames } = open();
  announce(actor, 0);
  actor.announce({ type: 'flush', contextId: 1, flushId: 'one' });
  announce(actor, 1);
  actor.announce({ type: 'flush', contextId: 1, flushId: 'two' });
  actor.announce({ type: 'close', contextId: 1 });
  actor.chunk(chunk(1, 0, 10));
  actor.chunk(done(1, 10));
  actor.chunk(chunk(0, 0, 10));
  actor.chunk(done(0, 10));
  t.same(
    frames.map((frame) => (frame.type === 'flushed' ? frame.flushId : frame.type)),
    ['audio', 'one', 'audio', 'two', 'closed'],
  );
});

t.test('a disposed context sends nothing more', async (t) => {
  const { actor, frames } = open('stream', { encoding: 'pcm', sampleRateHz: 8_000 });
  announce(actor, 0);
  actor.dispose();
  actor.dispose();
  actor.chunk({ ...done(0, 0) });
  t.equal(frames.length, 0);
});

t.test(
  'a context of a socket makes its encoder for its first segment, not to open, flush or close',
  async (t) => {
    const impossible: AudioFormat = { encoding: 'opus', sampleRateHz: 11_025, bitrateKbps: 64 };
    const idle = open('socket', impossible);
    idle.actor.announce({ type: 'flush', contextId: 1, flushId: 'f' });
    idle.actor.announce({ type: 'close', contextId: 1 });
    await setImmediate();
    t.same(
      idle.frames.map(({ type }) => type),
      ['flushed', 'closed'],
    );
    const speaking = open('socket', impossible);
    speaking.actor.announce({ type: 'flush', contextId: 1, flushId: 'f' });
    announce(speaking.actor, 0);
    await setImmediate();
    t.same(
      speaking.frames.map(({ type }) => type),
      ['flushed', 'failed'],
    );
  },
);
