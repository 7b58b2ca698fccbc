/**
 * Makes a convolutional graph speak piece by piece. Every convolution keeps the end of its input for the next run, so no
 * sample is computed twice and nothing is approximated: the pieces joined are what one run over all frames gives.
 *
 * A value that changes over time is a stream. It has a number of samples for each frame of the graph's input (`rate`),
 * and lags behind it by some samples, because convolutions need the samples after. A stream that is ahead of another that
 * it is added to waits in a state. In the last run zeros take the place of what would come after.
 *
 * The streams can have a fourth dimension of size 1, [1, channels, 1, samples]. onnxruntime has its fast convolutions
 * for that shape only. They keep a copy of the weights in each session.
 */
import { type Model, type Node, type Tensor, type ValueInfo, elementTypes } from './model.js';
import {
  type Stream,
  type StreamInput,
  type StreamRank,
  type StreamState,
  type StreamedModel,
  alongChannels,
  channelAxis,
  elementwise,
  ints,
  lastInput,
  perAxis,
  pieceByPiece,
  product,
  streamDims,
  unary,
  widened,
} from './streams.js';
import { GraphError, Wiring, attributeIntegers, constantIntegers, inner, usedBy } from './surgery.js';

const farEnd = 2 ** 31 - 1;

class Streamer {
  readonly nodes: Node[] = [];
  readonly initialisers: Map<string, Tensor>;
  readonly states: StreamState[] = [];
  readonly #model: Model;
  readonly #wiring: Wiring;
  readonly #rank: StreamRank;
  readonly #timeAxis: number;
  readonly #ones: ReadonlySet<string>;
  readonly #streams: Map<string, Stream>;
  /** Shapes of streams, which differ from run to run. */
  readonly #shapes = new Set<string>();
  /** Values made once: constants, and what several nodes share. */
  readonly #made = new Map<string, string>();
  work = 0;

  constructor(model: Model, input: StreamInput, ones: readonly string[]) {
    this.#model = model;
    this.#wiring = new Wiring(model);
    this.#rank = input.rank;
    this.#timeAxis = input.rank - 1;
    this.#ones = new Set(ones);
    this.#streams = new Map([[input.name, { channels: input.channels, rate: 1, lag: 0 }]]);
    this.initialisers = new Map(model.initialisers);
  }

  streamOf(name: string): Stream {
    const stream = this.#streams.get(name);
    if (stream === undefined) throw new GraphError(`"${name}" does not depend on the frames`);
    return stream;
  }

  add(node: Node): void {
    if (usedBy(node).some((name) => this.#shapes.has(name))) {
      this.#addFilled(node);
      return;
    }
    if (!usedBy(node).some((name) => this.#streams.has(name))) return void this.nodes.push(node);
    const { op } = node;
    if (op === 'Shape') return void this.#shapes.add(node.outputs[0]!);
    if (op === 'Conv' || op === 'ConvTranspose') {
      this.#addConvolution(node);
      return;
    }
    if (unary.has(op)) {
      this.#emit(node, this.streamOf(node.inputs[0]!));
      return;
    }
    if (elementwise.has(op)) {
      this.#addElementwise(node);
      return;
    }
    if (op === 'Concat' && this.#isAlongChannels(node)) {
      this.#addConcat(node);
      return;
    }
    if (op === 'Split' && this.#isAlongChannels(node)) {
      this.#addSplit(node);
      return;
    }
    if (op === 'Slice') {
      this.#addSlice(node);
      return;
    }
    if (op === 'Gather' && this.#isAlongChannels(node)) {
      this.#addGather(node);
      return;
    }
    throw new GraphError(`"${op}" (${node.name}) cannot be run piece by piece`);
  }

  #emit(node: Node, stream: Stream): void {
    this.nodes.push(node);
    for (const name of node.outputs) this.#streams.set(name, stream);
  }

  /** Zeros or ones in the shape of a stream: one number is enough, because it is only added or multiplied. */
  #addFilled(node: Node): void {
    if (node.op !== 'ConstantOfShape')
      throw new GraphError(`"${node.op}" (${node.name}) depends on the number of frames`);
    const value = node.attributes.get('value');
    const tensor = value?.type === 'tensor' ? value.value : undefined;
    const name = node.outputs[0]!;
    this.initialisers.set(name, {
      name,
      dims: [1],
      type: tensor?.type ?? elementTypes.float32,
      data: tensor?.data ?? { held: Buffer.alloc(4) },
    });
  }

  #addConvolution(node: Node): void {
    const [input = '', weights = ''] = node.inputs;
    const stream = this.streamOf(input);
    const dims = this.#weightDims(weights);
    const { before, after, factor, channels, attributes } = pieceByPiece(node, dims);
    this.work += dims[0]! * dims[1]! * dims[2]! * stream.rate;
    const name = before + after === 0 ? input : this.#extended(node.name, input, before, after);
    this.#emit(this.#convolution({ ...node, inputs: [name, ...node.inputs.slice(1)], attributes }, dims), {
      channels,
      rate: stream.rate * factor,
      lag: (stream.lag + after) * factor,
    });
  }

  /** A convolution along the last of as many axes as streams have. */
  #convolution(node: Node, dims: readonly number[]): Node {
    if (this.#rank === 3) return node;
    const [input = '', weights = '', ...rest] = node.inputs;
    const attributes = new Map(node.attributes);
    for (const name of perAxis) {
      const value = attributeIntegers(node, name);
      if (value !== null) attributes.set(name, { type: 'ints', value: [1, ...value] });
    }
    const [before = 0, after = 0] = attributeIntegers(node, 'pads') ?? [];
    attributes.set('pads', { type: 'ints', value: [0, before, 0, after] });
    return { ...node, inputs: [input, this.#reshaped(weights, widened(dims)), ...rest], attributes };
  }

  /** A value that is not a stream, in another shape. */
  #reshaped(name: string, dims: readonly number[]): string {
    return this.#once(`reshaped ${name} ${dims.join(' ')}`, () => {
      const tensor = this.initialisers.get(name);
      if (tensor === undefined) return this.#node('Reshape', [name, this.#constant(dims)]);
      const reshaped = `${name}/reshaped`;
      this.initialisers.set(reshaped, { ...tensor, name: reshaped, dims });
      return reshaped;
    });
  }

  /** Something that is added to a stream or multiplied with it: one number, or one for each channel, [1, channels, 1]. */
  #perChannel(name: string): string {
    if (this.#rank === 3 || this.#streams.has(name)) return name;
    const tensor = this.initialisers.get(name);
    if (tensor !== undefined && product(tensor.dims) === 1) return name;
    if (tensor !== undefined && tensor.dims.length !== 3)
      throw new GraphError(`"${name}" does not have one number for each channel`);
    return this.#reshaped(name, tensor === undefined ? [1, -1, 1, 1] : widened(tensor.dims));
  }

  /** A stream with what was before it, and in the last run zeros after it. */
  #extended(label: string, name: string, before: number, after: number): string {
    return this.#once(`extended ${name} ${before} ${after}`, () => {
      const { channels } = this.streamOf(name);
      const state = this.#state(channels, before);
      const pieces =
        after === 0 ? [state.input, name] : [state.input, name, this.#zerosAfter(channels, after)];
      const joined = this.#node(
        'Concat',
        pieces,
        new Map([['axis', { type: 'int', value: this.#timeAxis }]]),
        label,
      );
      this.#slice(joined, this.#constant([-before - after]), this.#constant([farEnd]), state.output);
      return joined;
    });
  }

  #zerosAfter(channels: number, count: number): string {
    return this.#once(`zeros ${channels} ${count}`, () => {
      const dims = this.#constant(streamDims(this.#rank, channels, count));
      const shape = this.#node('Mul', [dims, lastInput]);
      return this.#node('ConstantOfShape', [shape]);
    });
  }

  #addElementwise(node: Node): void {
    const given = node.inputs.filter((name) => !this.#ones.has(name));
    // A mask of ones.
    if (node.op === 'Mul' && given.length === 1) {
      const name = given[0]!;
      this.#emit({ ...node, op: 'Identity', inputs: [name] }, this.streamOf(name));
      return;
    }
    const streams = node.inputs.flatMap((name) => this.#streams.get(name) ?? []);
    const inputs = this.#aligned(node.inputs.map((name) => this.#perChannel(name)));
    this.#emit(
      { ...node, inputs },
      {
        channels: Math.max(...streams.map(({ channels }) => channels)),
        ...this.#latest(node, streams),
      },
    );
  }

  #latest(node: Node, streams: readonly Stream[]): Pick<Stream, 'rate' | 'lag'> {
    const { rate } = streams[0]!;
    if (streams.some((stream) => stream.rate !== rate))
      throw new GraphError(`"${node.op}" (${node.name}) joins streams of different rates`);
    return { rate, lag: Math.max(...streams.map(({ lag }) => lag)) };
  }

  /** Makes streams wait for the one that is furthest behind. */
  #aligned(names: readonly string[]): string[] {
    const lag = Math.max(...names.map((name) => this.#streams.get(name)?.lag ?? 0));
    const last = names.find((name) => this.#streams.get(name)?.lag === lag)!;
    return names.map((name) => {
      const stream = this.#streams.get(name);
      if (stream === undefined || stream.lag === lag) return name;
      return this.#once(`delayed ${name} ${lag}`, () => {
        const state = this.#state(stream.channels, 0);
        const joined = this.#node(
          'Concat',
          [state.input, name],
          new Map([['axis', { type: 'int', value: this.#timeAxis }]]),
        );
        const length = this.#lengthOf(last);
        this.#slice(joined, length, this.#constant([farEnd]), state.output);
        const delayed = this.#slice(joined, this.#constant([0]), length);
        this.#streams.set(delayed, { ...stream, lag });
        return delayed;
      });
    });
  }

  #lengthOf(name: string): string {
    const { rate, lag } = this.streamOf(name);
    return this.#once(`length ${rate} ${lag}`, () =>
      this.#slice(
        this.#node('Shape', [name]),
        this.#constant([this.#timeAxis]),
        this.#constant([this.#timeAxis + 1]),
        undefined,
        0,
      ),
    );
  }

  #addConcat(node: Node): void {
    const streams = node.inputs.map((name) => this.streamOf(name));
    const inputs = this.#aligned(node.inputs);
    const channels = streams.reduce((sum, stream) => sum + stream.channels, 0);
    this.#emit({ ...alongChannels(node), inputs }, { channels, ...this.#latest(node, streams) });
  }

  #addSplit(node: Node): void {
    const stream = this.streamOf(node.inputs[0]!);
    const listed =
      node.inputs[1] === undefined ? null : constantIntegers(this.#model, this.#wiring, node.inputs[1]);
    const sizes = listed ?? attributeIntegers(node, 'split');
    this.nodes.push(alongChannels(node));
    for (const [i, name] of node.outputs.entries())
      this.#streams.set(name, { ...stream, channels: sizes?.[i] ?? stream.channels / node.outputs.length });
  }

  #addSlice(node: Node): void {
    const [input = '', ...rest] = node.inputs;
    const stream = this.streamOf(input);
    const [starts, ends, axes, steps] = rest.map((name) => constantIntegers(this.#model, this.#wiring, name));
    const axis = axes?.[0];
    const step = steps?.[0] ?? 1;
    const [start, end] = [starts?.[0], ends?.[0]];
    if (axes?.length !== 1 || start === undefined || end === undefined || Math.abs(step) !== 1)
      throw new GraphError(`"Slice" (${node.name}) has an unknown form`);
    if ((axis === 2 || axis === -1) && start === 0 && end >= farEnd && step === 1) {
      this.#emit({ ...node, op: 'Identity', inputs: [input] }, stream);
      return;
    }
    if (axis !== 1 && axis !== -2) throw new GraphError(`"Slice" (${node.name}) is not along the channels`);
    const place = (value: number) =>
      Math.max(-1, Math.min(stream.channels, value < 0 ? value + stream.channels : value));
    const channels = (place(end) - place(start)) * step;
    const inputs = node.inputs.map((name, place) => (place === 3 ? this.#constant([channelAxis]) : name));
    this.#emit({ ...node, inputs }, { ...stream, channels });
  }

  #addGather(node: Node): void {
    const indices = constantIntegers(this.#model, this.#wiring, node.inputs[1]!);
    if (indices === null) throw new GraphError(`"Gather" (${node.name}) has an unknown form`);
    this.#emit(alongChannels(node), { ...this.streamOf(node.inputs[0]!), channels: indices.length });
  }

  #isAlongChannels(node: Node): boolean {
    const axis = attributeIntegers(node, 'axis')?.[0] ?? 0;
    return axis === 1 || axis === -2;
  }

  /** Weights can be computed from others: a norm that the exporter did not fold. Their shape is that of an ancestor. */
  #weightDims(name: string): readonly number[] {
    const dims = this.#model.initialisers.get(name)?.dims;
    if (dims !== undefined) return dims;
    const ancestors = this.#wiring.before([name]).flatMap(usedBy);
    const found = ancestors.flatMap((ancestor) => this.#model.initialisers.get(ancestor) ?? []);
    const largest = found.toSorted((a, b) => product(b.dims) - product(a.dims))[0];
    if (largest?.dims.length !== 3) throw new GraphError(`the weights "${name}" have no known shape`);
    return largest.dims;
  }

  #state(channels: number, length: number): StreamState {
    const number = this.states.length;
    const state = { input: `state_${number}`, output: `next_${number}`, channels, length };
    this.states.push(state);
    return state;
  }

  #slice(name: string, from: string, to: string, output?: string, axis = this.#timeAxis): string {
    return this.#node('Slice', [name, from, to, this.#constant([axis])], new Map(), 'stream', output);
  }

  #constant(values: readonly number[]): string {
    return this.#once(`constant ${values.join(' ')}`, () => {
      const name = `stream_constant_${this.#made.size}`;
      this.initialisers.set(name, ints(name, values));
      return name;
    });
  }

  #once(key: string, make: () => string): string {
    const known = this.#made.get(key);
    if (known !== undefined) return known;
    const name = make();
    this.#made.set(key, name);
    return name;
  }

  #node(
    op: string,
    inputs: readonly string[],
    attributes: Node['attributes'] = new Map(),
    label = 'stream',
    output = `stream_${this.nodes.length}`,
  ): string {
    this.nodes.push({ name: `${label}/${output}`, op, domain: '', inputs, outputs: [output], attributes });
    return output;
  }
}

/**
 * @param model with one output, [1, channels, samples]
 * @param ones names of values that are one for every frame: masks
 * @throws {GraphError} if an operator cannot be run piece by piece
 */
export const streamed = (model: Model, input: StreamInput, ones: readonly string[]): StreamedModel => {
  const streamer = new Streamer(model, input, ones);
  for (const node of model.nodes) streamer.add(node);
  const { rate, lag } = streamer.streamOf(model.outputs[0]!.name);
  const { nodes, states } = streamer;
  const used = new Set(nodes.flatMap(usedBy));
  const inputs: ValueInfo[] = [
    ...model.inputs.filter(({ name }) => used.has(name)),
    inner(lastInput, elementTypes.int64),
    ...states.map((state) => ({
      name: state.input,
      type: elementTypes.float32,
      dims: streamDims<number | null>(input.rank, state.channels, null),
    })),
  ];
  return {
    model: {
      ...model,
      nodes,
      inputs: inputs.filter(({ name }) => used.has(name)),
      outputs: [...model.outputs, ...states.map((state) => inner(state.output))],
      initialisers: new Map([...streamer.initialisers].filter(([name]) => used.has(name))),
    },
    states,
    lookahead: Math.ceil(lag / rate),
    rate,
    work: streamer.work,
    rank: input.rank,
  };
};
