import t from 'tap';
import { sharpened, sharpenRows } from '../../../workers/engines/syrinx/segment.js';

const width = 2;
/** Rows of two equal bands, each of which lacks as much. */
const rowsOf = (values: readonly number[], { voiced = 1, lack = 0 } = {}) => ({
  voicing: new Float32Array(values.length).fill(voiced),
  bands: Float32Array.from(values.flatMap((value) => [value, value, lack, lack])),
});
const firstBand = (bands: Float32Array) => [...bands.filter((_, at) => at % width === 0)];
const rise = (from: number, to: number) => Array.from({ length: 20 }, (_, row) => (row < 10 ? from : to));

void t.test('a band that does not move stays as it is', (t) => {
  const still = sharpened(rowsOf(Array<number>(20).fill(-3)), width, 1);
  t.equal(still.length, (20 - 2 * sharpenRows) * width);
  t.ok(still.every((value) => Math.abs(value + 3) < 1e-6));
  t.end();
});

void t.test('a band is fainter before a rise and louder after it', (t) => {
  const made = firstBand(sharpened(rowsOf(rise(-8, -4), { voiced: 0 }), width, 1));
  const before = made[9 - sharpenRows]!;
  const after = made[10 - sharpenRows]!;
  // Of the nine rows around the last one before the rise, four are louder by 4.
  t.ok(Math.abs(before - (-8 - (0.4 * 16) / 9)) < 1e-5, `${before}`);
  t.ok(Math.abs(after - (-4 + (0.4 * 16) / 9)) < 1e-5, `${after}`);
  t.end();
});

void t.test('what changes from row to row alone goes from voiced rows of a voice that wants it', (t) => {
  const jitter = Array.from({ length: 20 }, (_, row) => (row % 2 ? -3 : -5));
  // Of nine rows, one more is of the kind of the middle one.
  firstBand(sharpened(rowsOf(jitter), width, 1)).forEach((value, at) =>
    t.ok(Math.abs(value - (-4 + ((at % 2 ? -1 : 1) * 0.4) / 9)) < 1e-5, `${value}`),
  );
  for (const [voiced, fine] of [
    [0, 1],
    [1, 0],
  ] as const) {
    const kept = firstBand(sharpened(rowsOf(jitter, { voiced }), width, fine));
    t.ok(Math.abs(kept[1]! - kept[0]!) > 2, `${kept[0]}, then ${kept[1]}`);
  }
  t.end();
});

void t.test('a row gets what it lacks as far as it is voiced, by the share of its voice', (t) => {
  for (const [voiced, fine, expected] of [
    [1, 1, -3.5],
    [1, 0.5, -3.25],
    [0.5, 1, -3.25],
    [0, 1, -3],
  ] as const) {
    const made = sharpened(rowsOf(Array<number>(20).fill(-3), { voiced, lack: -0.5 }), width, fine);
    t.ok(made.every((value) => Math.abs(value - expected) < 1e-6));
  }
  t.end();
});

void t.test('a loud band does not become louder, and none above the limit is cut', (t) => {
  const made = firstBand(sharpened(rowsOf(rise(-4, 0.3)), width, 1));
  t.ok(Math.abs(Math.max(...made) - 0.3) < 1e-6, `${Math.max(...made)}`);
  const below = firstBand(sharpened(rowsOf(rise(-4, -0.8)), width, 1));
  t.equal(Math.max(...below), -0.5);
  t.end();
});

void t.test('a window has the same rows as the whole', (t) => {
  const voicing = Float32Array.from({ length: 60 }, (_, row) => Math.abs(Math.sin(row)));
  const bands = Float32Array.from({ length: 60 * 2 * width }, (_, at) => -5 + 3 * Math.sin(at * at));
  const whole = sharpened({ voicing, bands }, width, 1);
  const [from, to] = [17, 47];
  const window = {
    voicing: voicing.subarray(from, to),
    bands: bands.subarray(from * 2 * width, to * 2 * width),
  };
  const part = sharpened(window, width, 1);
  const same = whole.subarray(from * width, from * width + part.length);
  t.ok(part.every((value, at) => Math.abs(value - same[at]!) < 1e-6));
  t.end();
});
