/** The parts of a Piper voice as functions of typed arrays, and what they pass from one piece of a sentence to the next. */
import { strict as assert } from 'node:assert';
import { Tensor } from 'onnxruntime-node';
import { lastInput } from '../graph/stream.js';
import type { Sessions } from '../onnx.js';
import type { PiperParts, PiperStream } from './cut.js';

/** Segments that a thread speaks at once. */
export const segmentsAtOnceMax = 32;
/** What each keeps between its steps: the states of the convolutions, for a voice of 62 MB. */
export const segmentBytes = 1024 * 1024;

export type PartName = 'encoder' | 'flow' | 'generator';

/** What of a cut graph is needed to run it: the graphs themselves are in files. */
export interface PiperPlan {
  readonly encoder: Omit<PiperParts['encoder'], 'model'> & { readonly inputs: readonly string[] };
  readonly flow: StreamPlan;
  readonly generator: StreamPlan;
  readonly channels: number;
}

export interface StreamPlan extends Omit<PiperStream, 'model'> {
  readonly inputs: readonly string[];
}

export const planOf = (parts: PiperParts): PiperPlan => {
  const inputsOf = ({ model }: Pick<PiperStream, 'model'>) => model.inputs.map(({ name }) => name);
  const streamOf = (stream: PiperStream): StreamPlan => {
    const { input, output, states, lookahead, rate, work } = stream;
    return { input, output, states, lookahead, rate, work, inputs: inputsOf(stream) };
  };
  const { noise, durations, means, logDeviations, work } = parts.encoder;
  return {
    encoder: { noise, durations, means, logDeviations, work, inputs: inputsOf(parts.encoder) },
    flow: streamOf(parts.flow),
    generator: streamOf(parts.generator),
    channels: parts.channels,
  };
};

type Feeds = Record<string, Tensor>;
type Run = (feeds: Feeds) => Promise<Readonly<Record<string, Tensor>>>;

const float = (data: Float32Array, dims: readonly number[]) => new Tensor('float32', data, dims);
const integers = (values: readonly number[], dims: readonly number[] = [values.length]) =>
  new Tensor('int64', BigInt64Array.from(values, BigInt), dims);
const floatsOf = (tensor: Tensor | undefined): Float32Array => {
  assert(tensor?.data instanceof Float32Array, 'a graph of the voice lacks an output');
  return tensor.data;
};

/** A sentence as the encoder sees it: what flow and generator speak. */
export interface Encoded {
  /** Frames of each id. */
  readonly durations: Float32Array;
  /** [ids, channels] */
  readonly means: Float32Array;
  readonly logDeviations: Float32Array;
}

export interface EncoderFeeds {
  readonly ids: readonly number[];
  readonly speaker: number;
  readonly lengthScale: number;
  readonly durationNoiseScale: number;
  /** Two numbers for each id. */
  readonly noise: Float32Array;
}

/** Frames of the flow or of the generator: a graph, and its states between two pieces. */
export class StreamRun {
  readonly #run: Run;
  readonly #plan: StreamPlan;
  readonly #common: Feeds;
  #states: Feeds;

  constructor(run: Run, plan: StreamPlan, first: Feeds, common: Feeds) {
    this.#run = run;
    this.#plan = plan;
    this.#states = first;
    this.#common = common;
  }

  /** @param piece [channels, frames]. The first piece is longer than the lookahead, unless it is the last */
  async push(piece: Float32Array, frames: number, isLast: boolean): Promise<Float32Array> {
    const { input, inputs, output, states } = this.#plan;
    const feeds: Feeds = { ...this.#states };
    feeds[input] = float(piece, [1, piece.length / frames, frames]);
    if (inputs.includes(lastInput)) feeds[lastInput] = integers([1, 1, isLast ? 1 : 0]);
    for (const name of inputs) feeds[name] ??= this.#common[name]!;
    const made = await this.#run(feeds);
    this.#states = Object.fromEntries(states.map((state) => [state.input, made[state.output]!]));
    return floatsOf(made[output]);
  }
}

export class PiperGraphs {
  readonly plan: PiperPlan;
  readonly #run: Sessions<PartName>['run'];
  readonly #first: Readonly<Record<'flow' | 'generator', Feeds>>;

  constructor({ run }: Sessions<PartName>, plan: PiperPlan) {
    this.plan = plan;
    this.#run = run;
    const firstOf = ({ states }: StreamPlan): Feeds =>
      Object.fromEntries(
        states.map(({ input, channels, length }) => [
          input,
          float(new Float32Array(channels * length), [1, channels, length]),
        ]),
      );
    this.#first = { flow: firstOf(plan.flow), generator: firstOf(plan.generator) };
  }

  async encode({ ids, speaker, lengthScale, durationNoiseScale, noise }: EncoderFeeds): Promise<Encoded> {
    const { encoder } = this.plan;
    const feeds: Feeds = {
      input: integers(ids, [1, ids.length]),
      input_lengths: integers([ids.length]),
      // The first is the scale of the frames' noise, which is added here.
      scales: float(Float32Array.of(0, lengthScale, durationNoiseScale), [3]),
      sid: integers([speaker]),
    };
    if (encoder.noise !== null) feeds[encoder.noise] = float(noise, [1, 2, ids.length]);
    const made = await this.#run.encoder(
      Object.fromEntries(encoder.inputs.map((name) => [name, feeds[name]!])),
    );
    return {
      durations: floatsOf(made[encoder.durations]),
      means: floatsOf(made[encoder.means]),
      logDeviations: floatsOf(made[encoder.logDeviations]),
    };
  }

  open(part: 'flow' | 'generator', speaker: number): StreamRun {
    return new StreamRun(this.#run[part], this.plan[part], this.#first[part], {
      sid: integers([speaker]),
    });
  }
}
