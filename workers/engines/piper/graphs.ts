/** The parts of a Piper voice as functions of typed arrays, and what they pass from one piece of a sentence to the next. */
import { strict as assert } from 'node:assert';
import { Tensor } from 'onnxruntime-node';
import { lastInput, streamDims } from '../graph/streams.js';
import type { Sessions } from '../onnx.js';
import type { Model } from '../graph/model.js';
import type { EncoderPart, PiperParts, PiperStream } from './cut.js';

/** The most segments that a thread speaks at once. */
export const segmentsAtOnceMax = 32;
/** Bytes that each keeps between its steps: the states of the convolutions, for a voice of 62 MB. */
export const segmentBytes = 1024 * 1024;
/** Of a segment in a batch on a GPU. Measured with a voice of 62 MB: 31 MiB. Larger voices have shorter pieces. */
export const gpuItemBytes = 40 * 1024 * 1024;

/** `flow`, `generator`, and the parts of the encoder. */
export type PartName = string;
export type StreamName = 'flow' | 'generator';

/** The name of a part of the encoder, which run one after the other. */
const encoderName = (place: number): PartName => `encoder_${place}`;

/** The graphs of a voice, as they are written to files. */
export const modelsOf = ({ encoder, flow, generator }: PiperParts): Readonly<Record<PartName, Model>> => ({
  ...Object.fromEntries(encoder.parts.map(({ model }, place) => [encoderName(place), model])),
  flow: flow.model,
  generator: generator.model,
});

/** What is needed to run a cut graph. The graphs themselves are in files. */
export interface PiperPlan {
  readonly encoder: Omit<PiperParts['encoder'], 'parts'> & { readonly parts: readonly EncoderPlan[] };
  readonly flow: StreamPlan;
  readonly generator: StreamPlan;
  readonly channels: number;
}

export interface EncoderPlan extends Omit<EncoderPart, 'model'> {
  readonly inputs: readonly string[];
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
  const encoderParts = parts.encoder.parts.map((part) => {
    const { output, work } = part;
    return { output, work, inputs: inputsOf(part) };
  });
  return {
    encoder: { ...parts.encoder, parts: encoderParts },
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

/** The encoder while it reads a sentence. */
export class EncoderRun {
  readonly #run: Sessions<PartName>['run'];
  readonly #plan: PiperPlan['encoder'];
  readonly #feeds: Feeds;
  #place = 0;

  constructor(run: Sessions<PartName>['run'], plan: PiperPlan['encoder'], feeds: Feeds) {
    this.#run = run;
    this.#plan = plan;
    this.#feeds = feeds;
  }

  /** Runs the next part. @returns the multiplications for an id; `encoded` is `null` until the last part */
  async advance(): Promise<{ readonly work: number; readonly encoded: Encoded | null }> {
    const { parts, durations, means, logDeviations } = this.#plan;
    const { inputs, output, work } = parts[this.#place]!;
    const run = this.#run[encoderName(this.#place++)]!;
    const made = await run(Object.fromEntries(inputs.map((name) => [name, this.#feeds[name]!])));
    if (output !== null) {
      this.#feeds[output] = made[output]!;
      return { work, encoded: null };
    }
    const encoded = {
      durations: floatsOf(made[durations]),
      means: floatsOf(made[means]),
      logDeviations: floatsOf(made[logDeviations]),
    };
    return { work, encoded };
  }
}

/** The flow or the generator while it speaks: a graph, and its states between two pieces. */
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
    feeds[input] = float(piece, streamDims(piece.length / frames, frames));
    if (inputs.includes(lastInput)) feeds[lastInput] = integers(streamDims(1, isLast ? 1 : 0));
    for (const name of inputs) feeds[name] ??= this.#common[name]!;
    const made = await this.#run(feeds);
    if (!isLast) this.#states = Object.fromEntries(states.map((state) => [state.input, made[state.output]!]));
    return floatsOf(made[output]);
  }
}

export class PiperGraphs {
  readonly plan: PiperPlan;
  readonly #run: Sessions<PartName>['run'];
  readonly #first: Readonly<Record<StreamName, Feeds>>;

  constructor({ run }: Pick<Sessions<PartName>, 'run'>, plan: PiperPlan) {
    this.plan = plan;
    this.#run = run;
    const firstOf = ({ states }: StreamPlan): Feeds =>
      Object.fromEntries(
        states.map(({ input, channels, length }) => [
          input,
          float(new Float32Array(channels * length), streamDims(channels, length)),
        ]),
      );
    this.#first = { flow: firstOf(plan.flow), generator: firstOf(plan.generator) };
  }

  encode({ ids, speaker, lengthScale, durationNoiseScale, noise }: EncoderFeeds): EncoderRun {
    const { encoder } = this.plan;
    const feeds: Feeds = {
      input: integers(ids, [1, ids.length]),
      input_lengths: integers([ids.length]),
      // The first is the scale of the frames' noise, which is added here.
      scales: float(Float32Array.of(0, lengthScale, durationNoiseScale), [3]),
      sid: integers([speaker]),
    };
    if (encoder.noise !== null) feeds[encoder.noise] = float(noise, [1, 2, ids.length]);
    return new EncoderRun(this.#run, encoder, feeds);
  }

  open(part: StreamName, speaker: number): StreamRun {
    return new StreamRun(this.#run[part]!, this.plan[part], this.#first[part], {
      sid: integers([speaker]),
    });
  }
}
