import { isDeepStrictEqual } from 'node:util';
import t from 'tap';
import { loadResampler, Resampler } from '../../workers/audio/resampler.js';
import { seededRandom } from '../../scripts/rig/random.js';

const FROM_HZ = 24_000;

await loadResampler();

const tone = (hz: number, rateHz: number, samples: number) =>
  Int16Array.from({ length: samples }, (_, i) =>
    Math.round(12_000 * Math.sin((2 * Math.PI * hz * i) / rateHz)),
  );

const convert = (input: Int16Array, toHz: number, cuts: (left: number) => number): Int16Array => {
  const resampler = new Resampler(FROM_HZ, toHz);
  const parts: Int16Array[] = [];
  for (let at = 0; at < input.length;) {
    const length = Math.max(1, Math.min(input.length - at, cuts(input.length - at)));
    parts.push(resampler.process(input.subarray(at, at + length)).slice());
    at += length;
  }
  parts.push(resampler.finish().slice());
  resampler.dispose();
  resampler.dispose();
  return Int16Array.from(parts.flatMap((part) => [...part]));
};

for (const toHz of [8_000, 11_025, 12_345, 16_000, 22_050, 24_000, 32_000, 44_100, 47_999, 48_000])
  t.test(`24000 to ${toHz} Hz: exact length, independent of the cuts, the tone in its place`, async (t) => {
    const input = tone(1_000, FROM_HZ, 36_001);
    const random = seededRandom(toHz);
    const whole = convert(input, toHz, (left) => left);
    const pieces = convert(input, toHz, () => 1 + Math.floor(random() * 3_000));
    t.equal(whole.length, Math.round((input.length * toHz) / FROM_HZ));
    t.ok(isDeepStrictEqual(pieces, whole));
    const ideal = tone(1_000, toHz, whole.length);
    const margin = Math.round(toHz / 50);
    let errorPower = 0;
    let power = 0;
    for (let i = margin; i < whole.length - margin; i++) {
      errorPower += ((whole[i] ?? 0) - (ideal[i] ?? 0)) ** 2;
      power += (ideal[i] ?? 0) ** 2;
    }
    const errorDb = 10 * Math.log10(errorPower / power);
    t.ok(errorDb < -60, `error ${errorDb.toFixed(0)} dB: no delay, no gain, no alias`);
  });

t.test('full scale does not wrap', async (t) => {
  const square = Int16Array.from({ length: 4_800 }, (_, i) =>
    Math.floor(i / 40) % 2 === 0 ? 32_767 : -32_768,
  );
  const made = convert(square, 48_000, () => 700);
  const wrapped: number[] = [];
  for (let i = 200; i < made.length - 200; i++) {
    const before = square[Math.floor((i - 12) / 2)] ?? 0;
    const after = square[Math.floor((i + 12) / 2)] ?? 0;
    if (before === after && Math.sign(made[i] ?? 0) !== Math.sign(before)) wrapped.push(i);
    if ((i & 1023) === 0) t.ok(Math.abs(made[i] ?? 0) > 20_000);
  }
  t.same(wrapped, []);
});
