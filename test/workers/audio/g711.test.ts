/**
 * G.711 compared with the tables of the Recommendation, built here as printed: samples between two decision values share
 * a character signal, and decoders return the value in the middle.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ALawEncoder, MuLawEncoder } from '../../../workers/audio/samples.js';
import { decodersOf } from '../../support/decoders.js';
import { missingTool } from '../../support/tools.js';

/** Decision values from segments, each given by its end and the width of its intervals. */
const decisionValues = (
  first: readonly number[],
  segments: readonly (readonly [end: number, width: number])[],
) => {
  const values = [...first];
  for (const [end, width] of segments)
    for (let value = (values.at(-1) ?? 0) + width; value <= end; value += width) values.push(value);
  return values;
};

interface Law {
  readonly encoding: 'mulaw' | 'alaw';
  readonly encode: (samples: Int16Array) => Uint8Array;
  /** 129: the ends of 128 intervals. */
  readonly decisions: readonly number[];
  /** The Recommendation's unit, in 16-bit samples. */
  readonly unit: number;
  /** The signal of interval n, counted from 0. */
  readonly character: (n: number, isNegative: boolean) => number;
}

const laws: readonly Law[] = [
  {
    encoding: 'mulaw',
    encode: (samples) => new MuLawEncoder().encode(samples),
    decisions: decisionValues(
      [0, 1],
      [
        [31, 2],
        [95, 4],
        [223, 8],
        [479, 16],
        [991, 32],
        [2_015, 64],
        [4_063, 128],
        [8_159, 256],
      ],
    ),
    unit: 4,
    character: (n, isNegative) => (isNegative ? 127 : 255) - n,
  },
  {
    encoding: 'alaw',
    encode: (samples) => new ALawEncoder().encode(samples),
    decisions: decisionValues(
      [0],
      [
        [64, 2],
        [128, 4],
        [256, 8],
        [512, 16],
        [1_024, 32],
        [2_048, 64],
        [4_096, 128],
      ],
    ),
    unit: 8,
    // The even bits of the printed signals are inverted on the line.
    character: (n, isNegative) => ((isNegative ? 0 : 128) + n) ^ 0b0101_0101,
  },
];

const everySample = Int16Array.from({ length: 65_536 }, (_, i) => i - 32_768);

for (const { encoding, encode, decisions, unit, character } of laws) {
  t.test(`${encoding}: every sample lies in the interval of its character signal`, async (t) => {
    t.equal(decisions.length, 129);
    const made = encode(everySample);
    t.equal(made.length, everySample.length);
    const wrong: string[] = [];
    everySample.forEach((sample, i) => {
      const magnitude = Math.abs(sample) / unit;
      const isNegative = sample < 0;
      // A negative sample equal to a decision value belongs to the interval nearer to zero.
      const n = decisions.findLastIndex((value) => (isNegative ? value < magnitude : value <= magnitude));
      const expected = character(Math.min(n, 127), isNegative);
      if (made[i] !== expected) wrong.push(`${sample}: ${made[i]} for ${expected}`);
    });
    t.strictSame(wrong.slice(0, 10), []);
    t.equal(new Set(made).size, 256, 'every character signal is used');
  });

  for (const { program, ...decoder } of decodersOf(encoding, 8_000))
    t.test(
      `${encoding}: ${program} decodes every character signal to the middle of its interval`,
      { skip: missingTool(program) },
      async (t) => {
        const middles = decisions.slice(1).map((end, n) => {
          const start = decisions[n] ?? 0;
          // The innermost interval of mu-law and its mirror image form one interval around zero.
          return encoding === 'mulaw' && n === 0 ? 0 : ((start + end) / 2) * unit;
        });
        const path = join(t.testdir(), 'characters');
        const values = [false, true].flatMap((isNegative) =>
          middles.map((middle, n) => [character(n, isNegative), isNegative ? -middle : middle] as const),
        );
        writeFileSync(
          path,
          Uint8Array.from(values, ([byte]) => byte),
        );
        t.strictSame(
          [...decoder.decode(path)],
          values.map(([, value]) => value + 0),
        );
        // So a second pass through the codec changes nothing.
        t.strictSame(
          [...encode(Int16Array.from(values, ([, value]) => value))].map((byte) =>
            byte === 0x7f ? 0xff : byte,
          ),
          values.map(([byte]) => (byte === 0x7f ? 0xff : byte)),
        );
      },
    );
}
