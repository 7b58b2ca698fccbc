/** Where speech begins, as the frames of an actor tell it, against what decoders make of their bytes. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { AudioFormat } from '../../../src/api/formats.js';
import { limits } from '../../../src/limits.js';
import type { Frame, Framing } from '../../../src/threads/messages.js';
import { loadEncoders } from '../../../workers/audio/encoders.js';
import { AUDIBLE_SAMPLE, OnsetFinder } from '../../../workers/actor/onset.js';
import { type Decoder, type Decoding, decodeAll, decodersOf } from '../../support/decoders.js';
import { speak, type ScriptedSegment, type Spoken } from '../../support/spoken.js';
import { envelope, tonesAt, toInt16 } from '../../support/tones.js';
import { missingTool } from '../../support/tools.js';

await loadEncoders(limits);

const ENGINE_HZ = 24_000;
/** LAME's 576 samples and the 529 of every decoder. */
const MP3_DELAY_SAMPLES = 1_105;

/** Silence, then a second of tones. */
const soundAfter = (silenceMs: number): Int16Array =>
  toInt16(((silenceMs + 1_000) * ENGINE_HZ) / 1_000, (i) => {
    const seconds = i / ENGINE_HZ;
    const from = silenceMs / 1_000;
    return (
      envelope(seconds, from, from + 1, 0.002) * tonesAt({ hz: [440, 900], amplitude: 6_000 }, seconds - from)
    );
  });

const audioOf = (frames: readonly Frame[]) => frames.filter((frame) => frame.type === 'audio');

/** Places in what a decoder plays: the first sample of the first segment, and its first audible one. */
const placesOf = (frames: readonly Frame[]) => {
  let beforeMs = 0;
  const places: { firstMs?: number; audibleMs?: number } = {};
  for (const { onset } of audioOf(frames)) {
    if (onset?.firstMs !== undefined) places.firstMs ??= beforeMs + onset.firstMs;
    if (onset?.audibleMs !== undefined) places.audibleMs ??= beforeMs + onset.audibleMs;
    beforeMs += onset?.decodedMs ?? 0;
  }
  return places;
};

const formats: readonly (readonly [format: AudioFormat, decodedHz: number])[] = [
  [{ encoding: 'pcm', sampleRateHz: 24_000 }, 24_000],
  [{ encoding: 'pcm', sampleRateHz: 44_100 }, 44_100],
  [{ encoding: 'wav', sampleRateHz: 8_000 }, 8_000],
  [{ encoding: 'mulaw', sampleRateHz: 8_000 }, 8_000],
  [{ encoding: 'mp3', sampleRateHz: 16_000, bitrateKbps: 32 }, 16_000],
  [{ encoding: 'mp3', sampleRateHz: 32_000, bitrateKbps: 128 }, 32_000],
  [{ encoding: 'mp3', sampleRateHz: 48_000, bitrateKbps: 320 }, 48_000],
  [{ encoding: 'opus', sampleRateHz: 24_000, bitrateKbps: 32 }, 48_000],
  [{ encoding: 'opus', sampleRateHz: 48_000, bitrateKbps: 64 }, 48_000],
];

/** What a decoder must make of a file: how many samples, or where the first audible one is. */
interface Check extends Decoding {
  readonly name: string;
  readonly decodedHz: number;
  readonly samples?: number;
  readonly audibleMs?: number;
}

const folder = t.testdir();
let files = 0;

const fileOf = (encoding: string, bytes: Buffer): string => {
  const path = join(folder, `${files++}.${encoding}`);
  writeFileSync(path, bytes);
  return path;
};

/** Frame by frame, until the speech is heard: the samples that the bytes so far decode to. */
const checksOfFrames = (
  { chunks, frames }: Pick<Spoken, 'chunks' | 'frames'>,
  [{ encoding }, decodedHz]: (typeof formats)[number],
  decoders: readonly Decoder[],
): Check[] => {
  const checks: Check[] = [];
  let toldMs = 0;
  for (const [index, { onset }] of audioOf(frames).entries()) {
    if (onset === undefined) break;
    toldMs += onset.decodedMs;
    const path = fileOf(encoding, Buffer.concat(chunks.slice(0, index + 1)));
    const samples = Math.round((toldMs * decodedHz) / 1_000);
    for (const decoder of decoders)
      // ffmpeg refuses a file without a sample.
      if (toldMs > 0 || decoder.program !== 'ffmpeg')
        checks.push({
          name: `${encoding} at ${decodedHz} Hz, after ${index + 1} frames`,
          ...{ decodedHz, samples, decoder, path },
        });
  }
  return checks;
};

t.test(
  'the places are those that decoders find',
  { skip: missingTool('ffmpeg', 'mpg123', 'opusdec', 'sox') },
  async (t) => {
    const segments = [{ pcm: soundAfter(200) }];
    const checks: Check[] = [];
    for (const known of formats) {
      const [format, decodedHz] = known;
      const { encoding, sampleRateHz } = format;
      const decoders = decodersOf(encoding, decodedHz);
      for (const framing of ['stream', 'whole'] as const) {
        const spoken = await speak(format, framing, segments, { chunkSamplesMax: 2_000 });
        const name = `${encoding} at ${sampleRateHz} Hz, ${framing}`;
        const { audibleMs = Number.NaN, firstMs } = placesOf(spoken.frames);
        const delayMs =
          encoding === 'mp3' && framing === 'stream' ? (MP3_DELAY_SAMPLES * 1_000) / decodedHz : 0;
        t.ok(Math.abs(firstMs! - delayMs) < 0.1, `${name}: the first sample at ${firstMs} ms`);
        const path = fileOf(encoding, spoken.file);
        checks.push(...decoders.map((decoder) => ({ name, decodedHz, audibleMs, decoder, path })));
        if (framing === 'stream') checks.push(...checksOfFrames(spoken, known, decoders));
      }
    }
    for (const [i, decoded] of decodeAll(checks).entries()) {
      const { name, decodedHz, samples, audibleMs, decoder } = checks[i]!;
      if (samples !== undefined) t.equal(decoded.length, samples, `${decoder.program}: ${name}`);
      if (audibleMs === undefined) continue;
      const heardMs = (decoded.findIndex((sample) => Math.abs(sample) > AUDIBLE_SAMPLE) * 1_000) / decodedHz;
      t.ok(
        Math.abs(heardMs - audibleMs) < 5,
        `${name}: ${decoder.program} has the first audible sample at ${heardMs} ms, told ${audibleMs} ms`,
      );
    }
  },
);

const onsetsOf = async (format: AudioFormat, framing: Framing, segments: readonly ScriptedSegment[]) =>
  audioOf((await speak(format, framing, segments, { chunkSamplesMax: 2_000 })).frames);

t.test('after a flush, the next segment has an onset of its own', async (t) => {
  for (const [format] of formats) {
    const segments = [
      { pcm: soundAfter(0), flush: true },
      { pcm: soundAfter(100), flush: true },
    ];
    const frames = await onsetsOf(format, 'stream', segments);
    for (const segment of [0, 1]) {
      const own = frames.filter((frame) => frame.segment === segment);
      t.equal(own.filter(({ onset }) => onset?.firstMs !== undefined).length, 1, 'one first sample');
      t.equal(own.filter(({ onset }) => onset?.audibleMs !== undefined).length, 1, 'one audible sample');
      const { audibleMs = 0, firstMs = 0 } = placesOf(own);
      t.ok(
        Math.abs(audibleMs - firstMs - 100 * segment) < 1,
        `${format.encoding}: ${audibleMs - firstMs} ms`,
      );
    }
    t.ok(
      frames.filter(({ onset }) => onset !== undefined).length < frames.length / 2,
      'most frames have none',
    );
  }
});

t.test('silence has a first sample and no audible one', async (t) => {
  for (const [format] of formats) {
    const pcm = new Int16Array(ENGINE_HZ).fill(Math.floor(AUDIBLE_SAMPLE));
    const { audibleMs, firstMs } = placesOf(await onsetsOf(format, 'stream', [{ pcm }]));
    t.type(firstMs, 'number');
    t.equal(audibleMs, undefined);
  }
});

t.test('a segment that a codec holds back whole is told with the next', (t) => {
  const finder = new OnsetFinder(1_000, 50, 0);
  finder.beginSegment();
  finder.speech(Int16Array.of(0, 500));
  finder.beginSegment();
  finder.speech(new Int16Array(100).fill(500));
  t.strictSame(finder.decodable(40), { decodedMs: 40 });
  t.strictSame(finder.decodable(100), { decodedMs: 60, firstMs: 10, audibleMs: 11 });
  t.equal(finder.decodable(150), undefined);
  t.end();
});
