import t from 'tap';
import type { AudioFormat } from '../../../src/api/formats.js';
import { limits } from '../../../src/limits.js';
import type { Frame } from '../../../src/threads/messages.js';
import { PlaybackClock } from '../../../src/threads/playback-clock.js';
import { loadEncoders } from '../../../workers/audio/encoders.js';
import { ContextActor } from '../../../workers/actor/context.js';
import { workThrough } from '../../support/spoken.js';

const ENGINE_RATE_HZ = 24_000;

await loadEncoders(limits);

/** Speaks chunks of odd sizes in one segment. */
const framesOf = (format: AudioFormat, sizes: readonly number[]): Frame[] => {
  const frames: Frame[] = [];
  const open = {
    type: 'open',
    contextId: 1,
    format,
    framing: 'raw',
    timestamps: false,
    engineSampleRateHz: ENGINE_RATE_HZ,
    clock: 0,
  } as const;
  const actor = new ContextActor(open, new PlaybackClock(), (frame) => frames.push(frame), workThrough);
  actor.announce({ type: 'segment', contextId: 1, segment: 0, words: [], tokenContinues: false });
  actor.announce({ type: 'close', contextId: 1 });
  let startSample = 0;
  for (const length of sizes) {
    const pcm = Int16Array.from({ length }, (_, i) => startSample + i);
    actor.chunk({ type: 'chunk', contextId: 1, segment: 0, startSample, pcm, words: [] });
    startSample += length;
  }
  actor.chunk({ type: 'segment-done', contextId: 1, segment: 0, samples: startSample });
  return frames;
};

const sizes = [1, 239, 7, 4_801, 1_001, 3];
const samples = sizes.reduce((sum, size) => sum + size, 0);

t.test('raw frames are the samples, one after the other, and nothing else', async (t) => {
  const frames = framesOf({ encoding: 'pcm', sampleRateHz: ENGINE_RATE_HZ }, sizes);
  t.same([...new Set(frames.map(({ type }) => type))], ['audio', 'closed']);
  const bytes = Buffer.concat(
    frames.map((frame) => (frame.type === 'audio' ? frame.bytes : Buffer.alloc(0))),
  );
  const spoken = Array.from({ length: bytes.length / 2 }, (_, i) => bytes.readInt16LE(2 * i));
  t.same(
    spoken,
    Array.from({ length: samples }, (_, i) => i),
  );
});

t.test('at any rate, a frame has whole samples, and together they are as long as the speech', async (t) => {
  for (const sampleRateHz of [8_000, 11_111, 22_051, 44_100, 47_999, 48_000]) {
    const audio = framesOf({ encoding: 'pcm', sampleRateHz }, sizes).filter(
      (frame) => frame.type === 'audio',
    );
    t.ok(audio.every(({ bytes }) => bytes.length % 2 === 0));
    const spoken = audio.reduce((sum, { bytes }) => sum + bytes.length / 2, 0);
    t.equal(spoken, Math.round((samples * sampleRateHz) / ENGINE_RATE_HZ), `${sampleRateHz} Hz`);
  }
});
