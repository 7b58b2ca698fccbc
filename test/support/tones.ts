/** Test sounds, and what can be measured of a sound that was made of them. */

/** A sum of sines from the first sample on. */
export interface Tones {
  readonly hz: readonly number[];
  /** Of each. */
  readonly amplitude: number;
}

export const tonesAt = ({ hz, amplitude }: Tones, seconds: number): number =>
  hz.reduce((sum, f) => sum + amplitude * Math.sin(2 * Math.PI * f * seconds), 0);

/** 0 to 1 and back within the first and last `fade` of a span: sound that starts at full level is a click by itself. */
export const envelope = (seconds: number, from: number, to: number, fade = 0.01): number => {
  const inside = Math.min(seconds - from, to - seconds);
  if (inside <= 0) return 0;
  return inside >= fade ? 1 : 0.5 - 0.5 * Math.cos((Math.PI * inside) / fade);
};

export const toInt16 = (samples: number, at: (index: number) => number): Int16Array =>
  Int16Array.from({ length: samples }, (_, i) => Math.max(-32768, Math.min(32767, Math.round(at(i)))));

const power = (values: Iterable<number>): number => {
  let sum = 0;
  for (const value of values) sum += value * value;
  return sum;
};

/** Of `samples` against what they should be, over windows: the worst one tells of clicks, all of them of noise. */
export const signalToNoise = (
  samples: Int16Array,
  expected: (index: number) => number,
  windowSamples: number,
) => {
  let worstDb = Infinity;
  let signal = 0;
  let noise = 0;
  for (let start = 0; start + windowSamples <= samples.length; start += windowSamples) {
    const ideal = Float64Array.from({ length: windowSamples }, (_, i) => expected(start + i));
    const windowNoise = power(ideal.map((value, i) => (samples[start + i] ?? 0) - value));
    const windowSignal = power(ideal);
    signal += windowSignal;
    noise += windowNoise;
    worstDb = Math.min(worstDb, 10 * Math.log10(windowSignal / windowNoise));
  }
  return { db: 10 * Math.log10(signal / noise), worstDb };
};

/** Amplitude of one frequency (Hann window). */
export const amplitudeOf = (samples: Int16Array, sampleRateHz: number, hz: number): number => {
  let re = 0;
  let im = 0;
  let weights = 0;
  samples.forEach((sample, i) => {
    const weight = 0.5 - 0.5 * Math.cos((2 * Math.PI * (i + 0.5)) / samples.length);
    const phase = (2 * Math.PI * hz * i) / sampleRateHz;
    re += weight * sample * Math.cos(phase);
    im += weight * sample * Math.sin(phase);
    weights += weight;
  });
  return (2 * Math.hypot(re, im)) / weights;
};

/** Where a sound rises over `level` after silence: sample offsets of its onsets, and of the ends. */
export const spansOver = (samples: Int16Array, level: number, silenceSamples: number) => {
  const spans: { start: number; end: number }[] = [];
  samples.forEach((sample, i) => {
    if (Math.abs(sample) < level) return;
    const last = spans.at(-1);
    if (last === undefined || i - last.end > silenceSamples) spans.push({ start: i, end: i + 1 });
    else last.end = i + 1;
  });
  return spans;
};
