import t from 'tap';
import { sharpened, sharpenRows } from '../../../workers/engines/syrinx/segment.js';

const width = 2;
/** Rows of two equal bands. */
const rowsOf = (values: readonly number[]) => Float32Array.from(values.flatMap((value) => [value, value]));
const firstBand = (bands: Float32Array) => [...bands.filter((_, at) => at % width === 0)];

void t.test('a band that does not move stays as it is', (t) => {
  const still = sharpened(rowsOf(Array<number>(20).fill(-3)), width);
  t.equal(still.length, (20 - 2 * sharpenRows) * width);
  t.ok(still.every((value) => Math.abs(value + 3) < 1e-6));
  t.end();
});

void t.test('a band is fainter before a rise and louder after it', (t) => {
  const bands = rowsOf(Array.from({ length: 20 }, (_, row) => (row < 10 ? -8 : -4)));
  const made = sharpened(bands, width);
  const before = firstBand(made)[9 - sharpenRows]!;
  const after = firstBand(made)[10 - sharpenRows]!;
  // Of the nine rows around the last one before the rise, four are louder by 4.
  t.ok(Math.abs(before - (-8 - (0.4 * 16) / 9)) < 1e-5, `${before}`);
  t.ok(Math.abs(after - (-4 + (0.4 * 16) / 9)) < 1e-5, `${after}`);
  t.end();
});

void t.test('a loud band does not become louder, and none above the limit is cut', (t) => {
  const made = firstBand(
    sharpened(rowsOf([...Array<number>(10).fill(-4), ...Array<number>(10).fill(0.3)]), width),
  );
  t.ok(Math.abs(Math.max(...made) - 0.3) < 1e-6, `${Math.max(...made)}`);
  const below = firstBand(
    sharpened(rowsOf([...Array<number>(10).fill(-4), ...Array<number>(10).fill(-0.8)]), width),
  );
  t.equal(Math.max(...below), -0.5);
  t.end();
});

void t.test('a window has the same rows as the whole', (t) => {
  const bands = Float32Array.from({ length: 60 * width }, (_, at) => -5 + 3 * Math.sin(at * at));
  const whole = sharpened(bands, width);
  const from = 17;
  const part = sharpened(bands.subarray(from * width, (from + 30) * width), width);
  const same = whole.subarray(from * width, from * width + part.length);
  t.ok(part.every((value, at) => Math.abs(value - same[at]!) < 1e-6));
  t.end();
});
