/** The times of words that are bursts of sound, compared with the places where independent decoders put them. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { hasLongFrames, type AudioFormat } from '../../../src/api/formats.js';
import { limits } from '../../../src/limits.js';
import type { Framing } from '../../../src/threads/messages.js';
import { AudioPath } from '../../../workers/audio/audio-path.js';
import { createEncoder, loadCodec, loadEncoders } from '../../../workers/audio/encoders.js';
import { ContextActor } from '../../../workers/actor/context.js';
import { decodeAll, decodersOf } from '../../support/decoders.js';
import { speak, workThrough, type ScriptedSegment, type Spoken } from '../../support/spoken.js';
import { envelope, spansOver, tonesAt, toInt16 } from '../../support/tones.js';
import { missingTool } from '../../support/tools.js';
import { PlaybackClock } from '../../../src/threads/playback-clock.js';
import { pause } from '../../support/waiting.js';

const ENGINE_HZ = 24_000;
const PEAK = 12_000;
/** Times are whole milliseconds, and a codec smears onsets. */
const TOLERANCE_MS = 4;

await loadEncoders(limits);

/** Two words of 100 and 150 ms. The second one lasts to the end, so that samples held back by an encoder are missed. */
const segment = (samples: number, flush: boolean): ScriptedSegment => {
  const spans = [
    [2_400, 4_800],
    [samples - 3_600, samples],
  ] as const;
  const pcm = toInt16(samples, (i) => {
    const level = spans.reduce((sum, [from, to]) => sum + envelope(i, from, to, 48), 0);
    return level * tonesAt({ hz: [1_000], amplitude: PEAK }, i / ENGINE_HZ);
  });
  const words = spans.map(([startSample, endSample], i) => ({ text: `word${i}`, startSample, endSample }));
  return { pcm, words, flush };
};

const formats: readonly (readonly [AudioFormat, decodedHz: number])[] = [
  [{ encoding: 'mp3', sampleRateHz: 16_000, bitrateKbps: 32 }, 16_000],
  [{ encoding: 'mp3', sampleRateHz: 32_000, bitrateKbps: 128 }, 32_000],
  [{ encoding: 'mp3', sampleRateHz: 48_000, bitrateKbps: 64 }, 48_000],
  [{ encoding: 'opus', sampleRateHz: 8_000, bitrateKbps: 64 }, 48_000],
  [{ encoding: 'opus', sampleRateHz: 48_000, bitrateKbps: 64 }, 48_000],
  [{ encoding: 'mulaw', sampleRateHz: 8_000 }, 8_000],
  [{ encoding: 'alaw', sampleRateHz: 8_000 }, 8_000],
  [{ encoding: 'pcm', sampleRateHz: 24_000 }, 24_000],
  [{ encoding: 'pcm', sampleRateHz: 44_100 }, 44_100],
  [{ encoding: 'flac', sampleRateHz: 24_000 }, 24_000],
  [{ encoding: 'aac', sampleRateHz: 24_000, bitrateKbps: 96 }, 24_000],
];

const nameOf = (format: AudioFormat) =>
  `${format.encoding} at ${format.sampleRateHz} Hz${'bitrateKbps' in format ? `, ${format.bitrateKbps} kbps` : ''}`;

t.test(
  'a decoder can play the first chunk of speech, which is longer for encodings with long frames',
  async (t) => {
    // What is left of 100 and 250 ms without the silence before the first sound.
    const [short, medium] = [1_500, 5_100].map((samples) => toInt16(samples, (i) => (i % 50) / 100)) as [
      Int16Array,
      Int16Array,
    ];
    for (const [format] of formats) {
      const decodableMs = async (pcm: Int16Array) => {
        await loadCodec(format);
        const path = new AudioPath(ENGINE_HZ, await createEncoder(format, ENGINE_HZ));
        path.encode(pcm);
        const ms = path.decodableMs - (path.streamDelaySamples * 1_000) / ENGINE_HZ;
        path.dispose();
        return ms;
      };
      if (!hasLongFrames(format.encoding)) t.ok((await decodableMs(short)) > 0, nameOf(format));
      t.ok((await decodableMs(medium)) > 0, nameOf(format));
    }
  },
);

const checkTimes = (t: Test, spoken: Spoken, decoded: Int16Array, decodedHz: number) => {
  const heard = spansOver(decoded, PEAK / 3, decodedHz / 50);
  t.equal(heard.length, spoken.words.length, 'every word occurs once');
  heard.forEach(({ start, end }, i) => {
    const startMs = ((spoken.startSeconds[i] ?? 0) - start / decodedHz) * 1000;
    const endMs = ((spoken.endSeconds[i] ?? 0) - end / decodedHz) * 1000;
    t.ok(Math.abs(startMs) < TOLERANCE_MS, `word ${i} is reported to begin ${startMs.toFixed(1)} ms late`);
    t.ok(Math.abs(endMs) < TOLERANCE_MS, `word ${i} is reported to end ${endMs.toFixed(1)} ms late`);
  });
  t.ok((spoken.endSeconds.at(-1) ?? 0) <= decoded.length / decodedHz, 'no word exceeds the audio');
};

/** The audio before the answer to the n-th flush. */
const audioBefore = ({ frames, chunks }: Spoken, flush: number) => {
  const flushed = frames.filter((frame) => frame.type === 'flushed')[flush];
  const before = frames.slice(0, flushed === undefined ? 0 : frames.indexOf(flushed));
  return Buffer.concat(chunks.slice(0, before.filter((frame) => frame.type === 'audio').length));
};

/** Speech and its bytes, or those up to a flush, in a file for a decoder. */
interface Recording {
  readonly spoken: Spoken;
  readonly path: string;
}

const folder = t.testdir();
let files = 0;

const record = (spoken: Spoken, { encoding }: AudioFormat, bytes: Uint8Array): Recording => {
  const path = join(folder, `${files++}.${encoding}`);
  writeFileSync(path, bytes);
  return { spoken, path };
};

t.test(
  'words are at their times, and a flush pushes out all speech',
  { skip: missingTool('ffmpeg') },
  async (t) => {
    const lengths = [15_000, 9_601, 20_011];
    const recordings = await Promise.all(
      formats.map(async ([format]) => {
        // AAC is only streamed: it has no header that makes players skip the delay.
        const framings: readonly Framing[] = format.encoding === 'aac' ? ['stream'] : ['stream', 'whole'];
        const plain = lengths.map((samples) => segment(samples, false));
        const flushed = lengths.map((samples, i) => segment(samples, i < 2));
        const withFlushes = await speak(format, 'stream', flushed);
        const parts = [audioBefore(withFlushes, 0), audioBefore(withFlushes, 1)];
        const whole: Recording[] = [];
        for (const framing of framings) {
          const spoken = await speak(format, framing, plain);
          whole.push(record(spoken, format, spoken.file));
        }
        whole.push(record(withFlushes, format, withFlushes.file));
        return { whole, parts: parts.map((bytes) => record(withFlushes, format, bytes)) };
      }),
    );
    const decoded = decodeAll(
      formats.flatMap(([{ encoding, sampleRateHz }], i) => {
        const [decoder] = decodersOf(encoding, sampleRateHz);
        const { whole, parts } = recordings[i]!;
        return [...whole, ...parts].map(({ path }) => ({ decoder: decoder!, path }));
      }),
    ).values();
    for (const [i, [format, decodedHz]] of formats.entries())
      await t.test(nameOf(format), (t) => {
        const { whole, parts } = recordings[i]!;
        for (const { spoken } of whole) checkTimes(t, spoken, decoded.next().value!, decodedHz);
        for (const [flush, { spoken }] of parts.entries()) {
          const words = spansOver(decoded.next().value!, PEAK / 3, decodedHz / 50);
          t.equal(words.length, 2 * (flush + 1));
          const endMs =
            ((spoken.endSeconds[2 * flush + 1] ?? 0) - (words.at(-1)?.end ?? 0) / decodedHz) * 1000;
          t.ok(Math.abs(endMs) < TOLERANCE_MS, `the last word is complete (${endMs.toFixed(1)} ms)`);
        }
        t.end();
      });
  },
);

t.test('the durations of frames add up to the input, with and without flushes', async (t) => {
  for (const [format] of formats)
    for (const framing of ['stream', 'whole'] as const) {
      const { frames } = await speak(format, framing, [segment(15_000, true), segment(9_601, true)]);
      const totalMs = frames
        .filter((frame) => frame.type === 'audio')
        .reduce((sum, { durationMs }) => sum + durationMs, 0);
      t.ok(
        Math.abs(totalMs - (24_601 * 1000) / ENGINE_HZ) < 1e-6,
        `${nameOf(format)}, ${framing}: ${totalMs} ms`,
      );
    }
});

t.test('a flush with nothing held back adds nothing', async (t) => {
  for (const [format] of formats) {
    const { frames } = await speak(format, 'stream', [
      { pcm: new Int16Array(0), flush: true },
      segment(15_000, true),
      { pcm: new Int16Array(0), flush: true },
      { pcm: new Int16Array(0), flush: true },
    ]);
    const kinds = frames
      .filter((frame) => frame.type !== 'timestamps')
      .map((frame) => (frame.type === 'flushed' ? frame.flushId : frame.type));
    const noted = kinds.filter((kind, i) => kind !== kinds[i - 1]);
    const withoutTail = noted.filter((kind, i) => !(kind === 'audio' && noted[i + 1] === 'closed'));
    t.strictSame(
      withoutTail,
      ['after 0', 'audio', 'after 1', 'after 2', 'after 3', 'closed'],
      nameOf(format),
    );
  }
});

const openOpus = (sampleRateHz: number, frames: string[]) =>
  new ContextActor(
    {
      type: 'open',
      contextId: 1,
      format: { encoding: 'opus', sampleRateHz, bitrateKbps: 64 },
      framing: 'stream',
      timestamps: false,
      engineSampleRateHz: ENGINE_HZ,
      clock: 0,
    },
    new PlaybackClock(),
    (frame) => frames.push(frame.type),
    workThrough,
  );

const settle = () => pause(20);

t.test('a context cancelled before its encoder exists sends nothing', async (t) => {
  const frames: string[] = [];
  const actor = openOpus(48_000, frames);
  actor.announce({ type: 'close', contextId: 1 });
  actor.dispose();
  await settle();
  t.strictSame(frames, []);
});

t.test('a context whose encoder cannot be made fails once', async (t) => {
  const frames: string[] = [];
  const actor = openOpus(44_100, frames);
  actor.announce({ type: 'close', contextId: 1 });
  await settle();
  t.strictSame(frames, ['failed']);
});
