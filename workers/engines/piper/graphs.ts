/** The parts of a Piper voice as functions of typed arrays, and what they pass from one piece of a sentence to the next. */
import { lastInput, streamDims } from '../graph/streams.js';
import type { Sessions } from '../onnx.js';
import type { Model } from '../graph/model.js';
import type { Run } from '../placed.js';
import { floatTensor, floatsIn, integerTensor } from '../tensors.js';
import type { Feeds } from '../windows.js';
import type { PiperParts } from './cut.js';

/** The most segments that a thread speaks at once. */
export const segmentsAtOnceMax = 32;
/** Bytes that each keeps between its steps at least: the states of the convolutions, for a voice of 62 MB. */
const segmentBytesMin = 1024 * 1024;
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

const withoutModel = <Part extends { readonly model: Model }>({ model, ...plan }: Part) => ({
  ...plan,
  inputs: model.inputs.map(({ name }) => name),
});

/** What is needed to run a cut graph. The graphs themselves are in files. */
export const planOf = ({ encoder, flow, generator, channels }: PiperParts) => ({
  encoder: { ...encoder, parts: encoder.parts.map(withoutModel) },
  flow: withoutModel(flow),
  generator: withoutModel(generator),
  channels,
});
export type PiperPlan = ReturnType<typeof planOf>;
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

/** The encoder while it reads a sentence. */
export class EncoderRun {
  readonly #run: Sessions<PartName>['run'];
  readonly #plan: PiperPlan['encoder'];
  readonly #feeds: Feeds;
  readonly #sizes: { readonly ids: number; readonly channels: number };
  #place = 0;

  constructor(
    run: Sessions<PartName>['run'],
    plan: PiperPlan['encoder'],
    feeds: Feeds,
    sizes: { readonly ids: number; readonly channels: number },
  ) {
    this.#run = run;
    this.#plan = plan;
    this.#feeds = feeds;
    this.#sizes = sizes;
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
    const { ids, channels } = this.#sizes;
    const encoded = {
      durations: floatsIn(made, durations, ids),
      means: floatsIn(made, means, ids * channels),
      logDeviations: floatsIn(made, logDeviations, ids * channels),
    };
    return { work, encoded };
  }
}

/** The flow or the generator while it speaks: a graph, and its states between two pieces. */
export class StreamRun {
  readonly #run: Run;
  readonly #plan: StreamPlan;
  readonly #common: Feeds;
  readonly #valuesOfFrame: number;
  #states: Feeds;
  /** Values that its frames make and that have not come: it lags. */
  #valuesDue = 0;

  /** @param channels of its output */
  constructor(run: Run, plan: StreamPlan, first: Feeds, common: Feeds, channels: number) {
    this.#run = run;
    this.#plan = plan;
    this.#states = first;
    this.#common = common;
    this.#valuesOfFrame = channels * plan.rate;
  }

  /** @param piece [channels, frames]. The first piece is longer than the lookahead, unless it is the last */
  async push(piece: Float32Array, frames: number, isLast: boolean): Promise<Float32Array> {
    const { input, inputs, output, states } = this.#plan;
    const feeds: Feeds = { ...this.#states };
    feeds[input] = floatTensor(piece, streamDims(piece.length / frames, frames));
    if (inputs.includes(lastInput)) feeds[lastInput] = integerTensor(streamDims(1, isLast ? 1 : 0));
    for (const name of inputs) feeds[name] ??= this.#common[name]!;
    const made = await this.#run(feeds);
    if (!isLast) this.#states = Object.fromEntries(states.map((state) => [state.input, made[state.output]!]));
    const values = floatsIn(made, output);
    // A stranger's graph could make minutes of sound of a frame.
    this.#valuesDue += frames * this.#valuesOfFrame - values.length;
    if (this.#valuesDue < 0) throw new Error(`${output} has more values than its frames make`);
    return values;
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
  ): EncoderRun {
    const { channels, encoder } = this.plan;
    const feeds: Feeds = {
      input: integerTensor(ids, [1, ids.length]),
      input_lengths: integerTensor([ids.length]),
      // The first is the scale of the frames' noise, which is added here.
      scales: floatTensor(Float32Array.of(0, lengthScale, durationNoiseScale), [3]),
      sid: integerTensor([speaker]),
    };
    if (encoder.noise !== null) feeds[encoder.noise] = floatTensor(noise, [1, 2, ids.length]);
    return new EncoderRun(this.#run, encoder, feeds, { ids: ids.length, channels });
  }

  open(part: StreamName, speaker: number): StreamRun {
    const common = { sid: integerTensor([speaker]) };
    const channels = part === 'flow' ? this.plan.channels : 1;
    return new StreamRun(this.#run[part]!, this.plan[part], this.#first[part], common, channels);
  }
}
