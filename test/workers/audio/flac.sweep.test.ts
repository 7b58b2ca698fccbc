/** FLAC gives back the very samples, by two decoders of different origin: sounds that are easy and hard to predict, of any length. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { Dice } from '../../../scripts/rig/random.js';
import { FlacEncoder } from '../../../workers/audio/flac.js';
import { decodersOf } from '../../support/decoders.js';
import { missingTool } from '../../support/tools.js';

const SAMPLE_RATE_HZ = 24_000;
const BLOCK_SAMPLES = 1_152;

const dice = new Dice(1, 1);

const sounds: Readonly<Record<string, (index: number) => number>> = {
  silence: () => 0,
  'a tone': (i) => Math.round(20_000 * Math.sin(i / 10)),
  'loud noise': () => dice.between(-32_768, 32_767),
  'quiet noise': () => dice.between(-2, 2),
  'full swings': (i) => (i % 2 === 0 ? 32_767 : -32_768),
  'steps after silence': (i) => (i < 700 ? 0 : Math.floor(i / 100) % 2 === 0 ? 30_000 : -30_000),
};

/** More than 128 frames have longer numbers. */
const lengths = [1, 4, 5, BLOCK_SAMPLES, 140 * BLOCK_SAMPLES + 7];

/** The file of some samples, fed in pieces of any size. */
const encoded = (samples: Int16Array, isStream: boolean): Buffer => {
  const encoder = new FlacEncoder(SAMPLE_RATE_HZ);
  const frames: Uint8Array[] = [];
  for (let at = 0; at < samples.length;) {
    const end = at + dice.between(1, 4_000);
    frames.push(encoder.encode(samples.subarray(at, end)));
    at = end;
  }
  frames.push(encoder.finish());
  return Buffer.concat([isStream ? encoder.chunkHeader(0, true) : encoder.fileHeader(), ...frames]);
};

t.test('every sample comes back', { skip: missingTool('ffmpeg', 'sox') }, async (t) => {
  const path = join(t.testdir(), 'sound.flac');
  for (const [name, at] of Object.entries(sounds))
    for (const [index, length] of lengths.entries()) {
      const samples = Int16Array.from({ length }, (_, i) => at(i));
      writeFileSync(path, encoded(samples, index > 2));
      // Each sound goes through both.
      const [ffmpeg, sox] = decodersOf('flac', SAMPLE_RATE_HZ);
      const decoder = index % 2 === 0 ? ffmpeg! : sox!;
      const decoded = decoder.decode(path);
      t.ok(
        Buffer.from(decoded.buffer).equals(Buffer.from(samples.buffer)),
        `${name}, ${length}: ${decoder.program}`,
      );
    }
});

t.test('silence is small, and noise is hardly larger than its samples', async (t) => {
  const sizeOf = (name: string): number =>
    encoded(
      Int16Array.from({ length: 20 * BLOCK_SAMPLES }, (_, i) => sounds[name]!(i)),
      true,
    ).length;
  const pcmBytes = 40 * BLOCK_SAMPLES;
  t.ok(sizeOf('silence') < pcmBytes / 10);
  t.ok(sizeOf('a tone') < pcmBytes / 3);
  t.ok(sizeOf('loud noise') < pcmBytes * 1.02);
});
