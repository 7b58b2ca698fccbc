/**
 * Every encoding at its lowest, default and highest rate and bitrate, streamed and whole, decoded by independent
 * programs: tones come out at the same level, place and length, without a click at any seam.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { AudioFormat } from '../../../src/api/formats.js';
import { limits } from '../../../src/limits.js';
import type { Framing } from '../../../src/threads/messages.js';
import { loadEncoders } from '../../../workers/audio/encoders.js';
import { type Decoder, decodeAll, decodersOf } from '../../support/decoders.js';
import { speak } from '../../support/spoken.js';
import { amplitudeOf, envelope, signalToNoise, tonesAt, toInt16 } from '../../support/tones.js';
import { missingTool } from '../../support/tools.js';

const ENGINE_HZ = 24_000;
const SECONDS = 1.5;
/** What a decoder plays before the audio. Of mp3 LAME's 576 samples and the 529 of every decoder: the header of a file makes it skip them. */
const delayOf = ({ encoding }: AudioFormat, framing: Framing): number => {
  if (encoding === 'aac') return 1_024;
  return encoding === 'mp3' && framing === 'stream' ? 1_105 : 0;
};
const frameSamplesOf = ({ encoding }: AudioFormat, decodedHz: number): number => {
  if (encoding === 'aac') return 1_024;
  return decodedHz < 32_000 ? 576 : 1_152;
};

await loadEncoders(limits);

const tones = { hz: [440, 2_700], amplitude: 6_000 };
const soundAt = (seconds: number) => envelope(seconds, 0.2, 1.3) * tonesAt(tones, seconds);
const sound = toInt16(ENGINE_HZ * SECONDS, (i) => soundAt(i / ENGINE_HZ));
const segments = [{ pcm: sound.slice(0, 20_000) }, { pcm: sound.slice(20_000) }];

/** The required signal-to-noise ratio: of the whole audio, and of each 20 ms. */
interface Quality {
  readonly db: number;
  readonly worstDb: number;
}

const exact: Quality = { db: 80, worstDb: 78 };
const g711: Quality = { db: 36, worstDb: 35 };

type Case = readonly [format: AudioFormat, decodedHz: number, quality: Quality];

const mp3 = (sampleRateHz: number, bitrateKbps: number, quality: Quality, decodedHz = sampleRateHz): Case => [
  { encoding: 'mp3', sampleRateHz, bitrateKbps },
  decodedHz,
  quality,
];

const opus = (sampleRateHz: number, bitrateKbps: number, quality: Quality): Case => [
  { encoding: 'opus', sampleRateHz, bitrateKbps },
  48_000,
  quality,
];

const aac = (sampleRateHz: number, bitrateKbps: number, quality: Quality): Case => [
  { encoding: 'aac', sampleRateHz, bitrateKbps },
  sampleRateHz,
  quality,
];

const fine: Quality = { db: 60, worstDb: 46 };
const modest: Quality = { db: 50, worstDb: 42 };

const cases: readonly Case[] = [
  mp3(16_000, 32, modest),
  mp3(32_000, 32, modest),
  mp3(48_000, 32, { db: 30, worstDb: 24 }),
  ...[16_000, 32_000, 48_000].flatMap((hz) => [mp3(hz, 128, fine), mp3(hz, 320, fine)]),
  ...[22_050, 24_000, 44_100].map((hz) => mp3(hz, 128, fine)),
  // Rates and bitrates that MPEG does not have.
  mp3(17_001, 100, fine, 16_000),
  mp3(28_000, 145, fine, 32_000),
  mp3(47_999, 300, fine, 48_000),
  ...[8_000, 48_000].flatMap((hz) => [
    opus(hz, 32, { db: 29, worstDb: 27 }),
    opus(hz, 64, { db: 39, worstDb: 37 }),
    opus(hz, 192, { db: 41, worstDb: 38 }),
  ]),
  ...[12_000, 16_000, 24_000].map((hz) => opus(hz, 64, { db: 35, worstDb: 33 })),
  aac(24_000, 32, modest),
  ...[8_000, 24_000, 44_100, 48_000].map((hz) => aac(hz, 96, fine)),
  [{ encoding: 'mulaw', sampleRateHz: 8_000 }, 8_000, g711],
  [{ encoding: 'alaw', sampleRateHz: 8_000 }, 8_000, g711],
  ...(['wav', 'pcm', 'linear16', 'flac'] as const).flatMap((encoding) =>
    [8_000, 32_000, 48_000].map((sampleRateHz): Case => [{ encoding, sampleRateHz }, sampleRateHz, exact]),
  ),
];

const checkLength = (t: Test, decoded: number, format: AudioFormat, framing: Framing, decodedHz: number) => {
  const samples = Math.round(SECONDS * decodedHz);
  const delay = delayOf(format, framing);
  if (delay === 0) {
    t.equal(decoded, samples, 'exact length');
    return;
  }
  const frame = frameSamplesOf(format, decodedHz);
  t.equal(decoded % frame, 0, 'whole frames');
  const more = decoded - samples - delay;
  t.ok(more >= 0 && more < 2 * frame, `${more} samples more than audio and delay`);
};

/** A case in one framing, as a file. */
interface Sound {
  readonly name: string;
  readonly framing: Framing;
  readonly path: string;
  readonly chunks: readonly Buffer[];
  readonly decoders: readonly Decoder[];
}

const folder = t.testdir();

const record = async ([format]: Case, framing: Framing, seed: number): Promise<Sound> => {
  const { chunks, file } = await speak(format, framing, segments, { seed });
  // Each chunk of linear16 is a file: a player of the stream drops all headers but the first.
  const isRepeated = format.encoding === 'linear16' && framing === 'stream';
  const bytes = isRepeated ? Buffer.concat(chunks.map((chunk, i) => chunk.subarray(i === 0 ? 0 : 44))) : file;
  if (isRepeated) bytes.writeUInt32LE(bytes.length - 44, 40);
  const ending = format.encoding === 'linear16' ? 'wav' : format.encoding;
  const path = join(folder, `${seed}-${framing}.${ending}`);
  writeFileSync(path, bytes);
  const bitrate = 'bitrateKbps' in format ? `, ${format.bitrateKbps} kbps` : '';
  const name = `${format.encoding} at ${format.sampleRateHz} Hz${bitrate}, ${framing}`;
  return { name, framing, path, chunks, decoders: decodersOf(format.encoding, format.sampleRateHz) };
};

const checkDecoded = (
  t: Test,
  [format, decodedHz, quality]: Case,
  framing: Framing,
  program: string,
  decoded: Int16Array,
) => {
  const delay = delayOf(format, framing);
  // Here the tones are at full level, and more than a frame from their ends.
  const from = Math.round(0.3 * decodedHz) + delay;
  const to = Math.round(1.2 * decodedHz) + delay;
  checkLength(t, decoded.length, format, framing, decodedHz);
  const heard = decoded.subarray(from, to);
  const { db, worstDb } = signalToNoise(
    heard,
    (i) => soundAt((from + i - delay) / decodedHz),
    Math.round(decodedHz / 50),
  );
  t.ok(db >= quality.db, `${program}: ${db.toFixed(1)} dB over noise`);
  t.ok(worstDb >= quality.worstDb, `${program}: ${worstDb.toFixed(1)} dB in the worst 20 ms`);
  for (const hz of tones.hz) {
    const levelDb = 20 * Math.log10(amplitudeOf(heard, decodedHz, hz) / tones.amplitude);
    t.ok(Math.abs(levelDb) < 0.15, `${program}: ${hz} Hz at ${levelDb.toFixed(2)} dB`);
  }
  const silence = decoded.subarray(0, Math.round(0.15 * decodedHz) + delay);
  t.ok(
    silence.every((sample) => Math.abs(sample) < 200),
    `${program}: silence before the audio`,
  );
};

const programs = ['ffmpeg', 'mpg123', 'opusdec', 'sox'];
t.test('every encoding decodes to its input', { skip: missingTool(...programs) }, async (t) => {
  const recordings: { testCase: Case; sound: Sound }[] = [];
  for (const [seed, testCase] of cases.entries())
    for (const framing of ['stream', 'whole'] as const)
      recordings.push({ testCase, sound: await record(testCase, framing, seed) });
  const decoded = decodeAll(
    recordings.flatMap(({ sound }) => sound.decoders.map((decoder) => ({ decoder, path: sound.path }))),
  ).values();
  for (const { testCase, sound } of recordings)
    await t.test(sound.name, (t) => {
      const { chunks, decoders, framing } = sound;
      if (framing === 'stream') t.ok(chunks.length > 5, `${chunks.length} chunks`);
      for (const { program } of decoders) checkDecoded(t, testCase, framing, program, decoded.next().value!);
      t.end();
    });
});
