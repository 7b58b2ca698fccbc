/** How far the spectrum of a sound is from that of its source, whatever their sample rates. */

export interface Sound {
  readonly samples: Int16Array;
  readonly sampleRateHz: number;
}

const WINDOW_MS = 40;
const HOP_MS = 20;
/** Bins are 25 Hz apart at any rate: from 50 Hz to 11 kHz. */
const FIRST_BIN = 2;
const LAST_BIN = 440;
/** What is weaker in a bin counts as this much: nobody hears it. */
const FLOOR = 10 ** (-90 / 20);
/** Frames below it are pauses. */
const SPEECH_RMS = 10 ** (-50 / 20);

interface Spectrum {
  readonly re: Float64Array;
  readonly im: Float64Array;
}

/** The unit circle in `length` steps, clockwise. */
const circle = (length: number): Spectrum => ({
  re: Float64Array.from({ length }, (_, i) => Math.cos((2 * Math.PI * i) / length)),
  im: Float64Array.from({ length }, (_, i) => -Math.sin((2 * Math.PI * i) / length)),
});
const circles = new Map<number, Spectrum>();

/** The discrete Fourier transform of every `step`-th value from `first` on: halves while it can, then sums directly. */
const fourier = (values: Float64Array, first = 0, step = 1): Spectrum => {
  const length = values.length / step;
  const turns = circles.get(length) ?? circle(length);
  circles.set(length, turns);
  const re = new Float64Array(length);
  const im = new Float64Array(length);
  if (length % 2 === 1) {
    for (let k = 0; k < length; k++)
      for (let i = 0; i < length; i++) {
        const value = values[first + i * step]!;
        re[k]! += value * turns.re[(k * i) % length]!;
        im[k]! += value * turns.im[(k * i) % length]!;
      }
    return { re, im };
  }
  const even = fourier(values, first, 2 * step);
  const odd = fourier(values, first + step, 2 * step);
  for (let k = 0; k < length / 2; k++) {
    const [cos, sin] = [turns.re[k]!, turns.im[k]!];
    const [oddRe, oddIm] = [odd.re[k]! * cos - odd.im[k]! * sin, odd.re[k]! * sin + odd.im[k]! * cos];
    re[k] = even.re[k]! + oddRe;
    im[k] = even.im[k]! + oddIm;
    re[k + length / 2] = even.re[k]! - oddRe;
    im[k + length / 2] = even.im[k]! - oddIm;
  }
  return { re, im };
};

interface Frame {
  readonly rms: number;
  /** Levels of the bins, in dB. */
  readonly levels: Float64Array;
}

const frameAt = ({ samples, sampleRateHz }: Sound, index: number): Frame => {
  const start = (index * HOP_MS * sampleRateHz) / 1000;
  const length = (WINDOW_MS * sampleRateHz) / 1000;
  let power = 0;
  const windowed = Float64Array.from({ length }, (_, i) => {
    const value = (samples[start + i] ?? 0) / 32_768;
    power += value * value;
    return value * (0.5 - 0.5 * Math.cos((2 * Math.PI * (i + 0.5)) / length));
  });
  const { re, im } = fourier(windowed);
  const levels = Float64Array.from({ length: LAST_BIN - FIRST_BIN + 1 }, (_, i) => {
    const amplitude = (4 / length) * Math.hypot(re[FIRST_BIN + i]!, im[FIRST_BIN + i]!);
    return 20 * Math.log10(Math.max(amplitude, FLOOR));
  });
  return { rms: Math.sqrt(power / length), levels };
};

/**
 * The log-spectral distance: the root mean square over frequency of the differences between levels, averaged over the
 * frames with speech.
 *
 * @param sound must be aligned with `source`; the rates of both must be multiples of 1000 Hz
 */
export const spectralDistanceDb = (source: Sound, sound: Sound): number => {
  const frames = Math.floor(((source.samples.length / source.sampleRateHz) * 1000 - WINDOW_MS) / HOP_MS);
  let sum = 0;
  let count = 0;
  for (let index = 0; index < frames; index++) {
    const wanted = frameAt(source, index);
    if (wanted.rms < SPEECH_RMS) continue;
    const { levels } = frameAt(sound, index);
    const squares = levels.reduce((total, level, i) => total + (level - wanted.levels[i]!) ** 2, 0);
    sum += Math.sqrt(squares / levels.length);
    count++;
  }
  return sum / count;
};
