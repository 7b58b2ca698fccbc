/** The parts of a Piper voice as functions of typed arrays, and what they pass from one piece of a sentence to the next. */
import { lastInput, streamDims } from '../graph/streams.js';
import type { Sessions } from '../onnx.js';
import { floatTensor, floatsIn, integerTensor } from '../tensors.js';
import type { Feeds } from '../windows.js';
import type { PiperPlan } from './cut.js';

/** The most segments that a thread speaks at once. */
export const segmentsAtOnceMax = 32;
/** Bytes that each keeps between its steps at least: the states of the convolutions, for a voice of 62 MB. */
const segmentBytesMin = 1024 * 1024;
/** Of a segment in a batch on a GPU. Measured with a voice of 62 MB: 31 MiB. Larger voices have shorter pieces. */
export const gpuItemBytes = 40 * 1024 * 1024;

export type StreamName = 'flow' | 'generator';
export type StreamPlan = PiperPlan[StreamName];

/** Bytes that all segments of a thread keep between their steps. The graph of a stranger may have convolutions of any reach. */
export const statesBytesOf = ({ flow, generator }: PiperPlan): number => {
  const values = [...flow.states, ...generator.states].reduce(
    (sum, state) => sum + state.channels * state.lengthMax,
    0,
  );
  return segmentsAtOnceMax * Math.max(segmentBytesMin, values * Float32Array.BYTES_PER_ELEMENT);
};

/** A sentence as the encoder sees it: what flow and generator speak. */
export interface Encoded {
  /** Frames of each id. */
  readonly durations: Float32Array;
  /** [ids, channels] */
  readonly means: Float32Array;
  readonly logDeviations: Float32Array;
}

export interface ReadingStyle {
  readonly speaker: number;
  readonly noiseScale: number;
  readonly lengthScale: number;
  readonly durationNoiseScale: number;
}

/**
 * Runs the next part of the encoder, which reads a sentence.
 * @returns the multiplications for an id; `encoded` is `null` until the last part
 */
export type Encoding = () => Promise<{ readonly work: number; readonly encoded: Encoded | null }>;

/**
 * Runs the flow or the generator for a further piece of a sentence.
 * @param piece [channels, frames]. The first piece is longer than the lookahead, unless it is the last
 */
export type Streaming = (piece: Float32Array, frames: number, isLast: boolean) => Promise<Float32Array>;

export class PiperGraphs {
  readonly plan: PiperPlan;
  readonly #run: Sessions['run'];
  readonly #first: Readonly<Record<StreamName, Feeds>>;

  constructor({ run }: Pick<Sessions, 'run'>, plan: PiperPlan) {
    this.plan = plan;
    this.#run = run;
    const firstOf = ({ states }: StreamPlan): Feeds =>
      Object.fromEntries(
        states.map(({ input, channels, length }) => [
          input,
          floatTensor(new Float32Array(channels * length), streamDims(channels, length)),
        ]),
      );
    this.#first = { flow: firstOf(plan.flow), generator: firstOf(plan.generator) };
  }

  /** @param noise two numbers for each id */
  encode(
    ids: readonly number[],
    { speaker, lengthScale, durationNoiseScale }: Omit<ReadingStyle, 'noiseScale'>,
    noise: Float32Array,
  ): Encoding {
    const { channels, encoder } = this.plan;
    const { parts, durations, means, logDeviations } = encoder;
    const feeds: Feeds = {
      input: integerTensor(ids, [1, ids.length]),
      input_lengths: integerTensor([ids.length]),
      // The first is the scale of the frames' noise, which is added here.
      scales: floatTensor(Float32Array.of(0, lengthScale, durationNoiseScale), [3]),
      sid: integerTensor([speaker]),
    };
    if (encoder.noise !== null) feeds[encoder.noise] = floatTensor(noise, [1, 2, ids.length]);
    let place = 0;
    return async () => {
      const { name, inputs, output, work } = parts[place++]!;
      const made = await this.#run[name]!(Object.fromEntries(inputs.map((input) => [input, feeds[input]!])));
      if (output !== null) {
        feeds[output] = made[output]!;
        return { work, encoded: null };
      }
      const encoded = {
        durations: floatsIn(made, durations, ids.length),
        means: floatsIn(made, means, ids.length * channels),
        logDeviations: floatsIn(made, logDeviations, ids.length * channels),
      };
      return { work, encoded };
    };
  }

  open(part: StreamName, speaker: number): Streaming {
    const { input, inputs, output, rate, states } = this.plan[part];
    const common: Feeds = { sid: integerTensor([speaker]) };
    const valuesOfFrame = (part === 'flow' ? this.plan.channels : 1) * rate;
    let kept = this.#first[part];
    /** Values that its frames make and that have not come: it lags. */
    let valuesDue = 0;
    return async (piece, frames, isLast) => {
      const feeds: Feeds = { ...kept };
      feeds[input] = floatTensor(piece, streamDims(piece.length / frames, frames));
      if (inputs.includes(lastInput)) feeds[lastInput] = integerTensor(streamDims(1, isLast ? 1 : 0));
      for (const name of inputs) feeds[name] ??= common[name]!;
      const made = await this.#run[part]!(feeds);
      if (!isLast) kept = Object.fromEntries(states.map((state) => [state.input, made[state.output]!]));
      const values = floatsIn(made, output);
      // A stranger's graph could make minutes of sound of a frame.
      valuesDue += frames * valuesOfFrame - values.length;
      if (valuesDue < 0) throw new Error(`${output} has more values than its frames make`);
      return values;
    };
  }
}
