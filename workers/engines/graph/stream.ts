/**
 * Makes a convolutional graph speak piece by piece. Every convolution, or a region of them, keeps the end of
 * its input for the next run. Nothing is approximated: the pieces joined are what one run over all frames gives.
 *
 * A value that changes over time is a stream. It has a number of samples for each frame of the graph's input (`rate`),
 * and lags behind it by some samples, because convolutions need the samples after. A stream that is ahead of another that
 * it is added to waits in a state. In the last run zeros take the place of what would come after.
 *
 * Streams have a dimension of size 1 more than in the model, [1, channels, 1, samples]: onnxruntime has its fast
 * convolutions for four dimensions only.
 */
import { elementTypes, type Model, type Node, product, type ValueInfo } from './model.js';
import { GraphEdit, farEnd } from './edit.js';
import {
  alongChannels,
  channelAxis,
  elementwise,
  floats,
  lastInput,
  perAxis,
  pieceByPiece,
  type Stream,
  streamDims,
  type StreamedModel,
  type StreamInput,
  type StreamState,
  timeAxis,
  unary,
  widened,
} from './streams.js';
import { attributeIntegers, GraphError, inner, usedBy, Wiring } from './surgery.js';

/**
 * Regions: parts of a graph with many convolutions whose reach is short beside a piece. A region as a whole keeps the end of
 * its input, and computes a few samples at the edges again. That costs less than to keep the end of the input of each
 * convolution: between them nothing is copied, and no values change their order.
 */

/** What a region computes twice in a run, in frames. */
const repeatedFramesMax = 2;

interface Region {
  /** The stream that it takes, and the one that it makes. */
  readonly start: string;
  readonly end: string;
  readonly nodes: ReadonlySet<Node>;
  /** Samples before and after a sample that its output depends on. */
  readonly before: number;
  readonly after: number;
}

type Reach = Pick<Region, 'before' | 'after'>;

/** The region of a node, with the name of its input and the state that keeps its end. */
interface Within {
  readonly region: Region;
  readonly entry: string;
  readonly state: StreamState;
}

/** Names the length of streams in the region that starts there. */
const lengthIn = (start: string): string => `samples of ${start}`;

class Streamer extends GraphEdit {
  readonly states: StreamState[] = [];
  /** Shapes of inner values. */
  readonly values: ValueInfo[] = [];
  readonly #model: Model;
  readonly #wiring: Wiring;
  readonly #ones: ReadonlySet<string>;
  /** Values that depend on the frames. */
  readonly #framed: ReadonlySet<string>;
  readonly #streams: Map<string, Stream>;
  /** Shapes of streams, which differ from run to run. */
  readonly #shapes = new Set<string>();
  readonly #regions = new Map<Node, Within>();
  work = 0;

  constructor(model: Model, input: StreamInput, ones: readonly string[]) {
    super(model.initialisers, 'stream');
    this.#model = model;
    this.#wiring = new Wiring(model);
    this.#ones = new Set(ones);
    this.#framed = this.#wiring.after([input.name]);
    this.#streams = new Map([[input.name, { channels: input.channels, rate: 1, lag: 0 }]]);
  }

  streamOf(name: string): Stream {
    const stream = this.#streams.get(name);
    if (stream === undefined) throw new GraphError(`"${name}" does not depend on the frames`);
    return stream;
  }

  add(node: Node): void {
    const within = this.#regions.get(node);
    const used = usedBy(node);
    const { op } = node;
    if (used.some((name) => this.#shapes.has(name))) this.#addFilled(node);
    else if (!used.some((name) => this.#streams.has(name))) this.nodes.push(node);
    else if (within !== undefined) this.#addWithin(node, within);
    else if (op === 'Shape') this.#shapes.add(node.outputs[0]!);
    else if (op === 'Conv' || op === 'ConvTranspose') {
      this.#addConvolution(node);
      if (op === 'ConvTranspose') this.#enterRegion(node.outputs[0]!);
    } else if (unary.has(op)) this.#emit(node, this.streamOf(node.inputs[0]!));
    else if (elementwise.has(op)) this.#addElementwise(node);
    else if (op === 'Slice') this.#addSlice(node);
    else this.#addAlongChannels(node);
  }

  #addAlongChannels(node: Node): void {
    const { op } = node;
    const axis = attributeIntegers(node, 'axis')?.[0] ?? 0;
    const isAlong = axis === channelAxis || axis === -2;
    if (isAlong && op === 'Concat') this.#addConcat(node);
    else if (isAlong && op === 'Split') this.#addSplit(node);
    else if (isAlong && op === 'Gather') this.#addGather(node);
    else throw new GraphError(`"${op}" (${node.name}) cannot be run piece by piece`);
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

  /** From a stream to where the number of samples changes next; `null` if there is no region. */
  #regionFrom(start: string): Region | null {
    const after = this.#wiring.after([start]);
    const isAfter = (name: string | undefined) => name !== undefined && name !== start && after.has(name);
    const next = this.#model.nodes.find(({ op, outputs }) => op === 'ConvTranspose' && isAfter(outputs[0]));
    const end = next?.inputs[0] ?? this.#model.outputs[0]!.name;
    const before = this.#wiring.before([end], new Set([start]));
    const nodes = new Set(before.filter(({ outputs }) => isAfter(outputs[0])));
    const reaches = new Map<string, Reach>([[start, { before: 0, after: 0 }]]);
    for (const node of nodes) {
      const reach = this.#reachOf(node, reaches);
      if (reach === null) return null;
      reaches.set(node.outputs[0]!, reach);
    }
    const reach = reaches.get(end);
    if (reach === undefined || reach.after === 0) return null;
    if (reach.before + reach.after > repeatedFramesMax * this.streamOf(start).rate) return null;
    const takersOf = (name: string) => (name === end ? [] : (this.#wiring.takers.get(name) ?? []));
    const takers = [...nodes].flatMap(({ outputs }) => outputs.flatMap(takersOf));
    // Nothing else takes what is made inside.
    return takers.every((taker) => nodes.has(taker)) ? { start, end, nodes, ...reach } : null;
  }

  #reachOf(node: Node, reaches: ReadonlyMap<string, Reach>): Reach | null {
    const { op, inputs } = node;
    // Other values are the same in every run.
    const isFixed = (name: string) => !this.#framed.has(name) && !this.#ones.has(name);
    if (!usedBy(node).every((name) => reaches.has(name) || isFixed(name))) return null;
    const given = inputs.flatMap((name) => reaches.get(name) ?? []);
    const [before, after] = [Math.max(...given.map((r) => r.before)), Math.max(...given.map((r) => r.after))];
    if (unary.has(op) || elementwise.has(op)) return { before, after };
    if (op !== 'Conv' || !reaches.has(inputs[0]!)) return null;
    const more = pieceByPiece(node, this.#weightDims(inputs[1]!));
    return { before: before + more.before, after: after + more.after };
  }

  /** Begins the region of a stream, if it has one. */
  #enterRegion(start: string): void {
    const region = this.#regionFrom(start);
    if (region === null) return;
    const { channels } = this.streamOf(start);
    const kept = region.before + region.after;
    const state = this.#state(channels, 0, kept);
    const joined = this.#joined([state.input, start]);
    this.slice(joined, -kept, farEnd, timeAxis, state.output);
    const entry = this.#inFastOrder(joined, channels);
    this.#streams.set(entry, this.streamOf(start));
    this.#equallyLong(entry, channels, lengthIn(start));
    for (const node of region.nodes) this.#regions.set(node, { region, entry, state });
  }

  #addWithin(node: Node, { region, entry, state }: Within): void {
    const { start, end, after } = region;
    const { rate, lag } = this.streamOf(start);
    const output = node.outputs[0]!;
    let inputs = node.inputs.map((name) => (name === start ? entry : name));
    let { channels } = this.streamOf(inputs.find((name) => this.#streams.has(name))!);
    const isEnd = output === end;
    const outputs = [isEnd ? `${end}/whole` : output];
    if (node.op === 'Conv') {
      const dims = this.#weightDims(inputs[1]!);
      this.work += product(dims) * rate;
      channels = dims[0]!;
      this.#emit(this.#convolution({ ...node, inputs, outputs }, dims), { channels, rate, lag });
    } else {
      if (elementwise.has(node.op)) inputs = inputs.map((name) => this.#perChannel(name));
      if (node.op === 'LeakyRelu') inputs = [this.#inFastOrder(inputs[0]!, channels)];
      this.#emit({ ...node, inputs, outputs }, { channels, rate, lag });
    }
    this.#equallyLong(outputs[0]!, channels, lengthIn(start));
    if (!isEnd) return;
    // The output for the newest samples must wait, unless this is the last run. They were kept, so from the second run on
    // the output for what comes before them was made already.
    const old = this.slice(state.input, 0, -after, timeAxis);
    const isLast = this.slice(lastInput, timeAxis, timeAxis + 1, 0);
    const beyond = this.node('Mul', [isLast, this.constant([farEnd])]);
    const until = this.node('Add', [beyond, this.constant([-after])]);
    this.slice(outputs[0]!, this.#lengthOf(old), until, timeAxis, end);
    this.#streams.set(end, { channels, rate, lag: lag + after });
  }

  /** A stream with what was before it, and in the last run zeros after it. */
  #extended(label: string, name: string, before: number, after: number): string {
    return this.once(`extended ${name} ${before} ${after}`, () => {
      const { channels } = this.streamOf(name);
      const state = this.#state(channels, before, after);
      const pieces =
        after === 0 ? [state.input, name] : [state.input, name, this.#zerosAfter(channels, after)];
      const joined = this.#joined(pieces, label);
      this.slice(joined, -before - after, farEnd, timeAxis, state.output);
      return joined;
    });
  }

  #zerosAfter(channels: number, count: number): string {
    return this.once(`zeros ${channels} ${count}`, () => {
      const dims = this.constant(streamDims(channels, count));
      const shape = this.node('Mul', [dims, lastInput]);
      return this.node('ConstantOfShape', [shape]);
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
      return this.once(`delayed ${name} ${lag}`, () => {
        const state = this.#state(stream.channels, 0, lag - stream.lag);
        const joined = this.#joined([state.input, name]);
        const { rate } = this.streamOf(last);
        const length = this.once(`length ${rate} ${lag}`, () => this.#lengthOf(last));
        this.slice(joined, length, farEnd, timeAxis, state.output);
        const delayed = this.slice(joined, 0, length, timeAxis);
        this.#streams.set(delayed, { ...stream, lag });
        return delayed;
      });
    });
  }

  #addConcat(node: Node): void {
    const streams = node.inputs.map((name) => this.streamOf(name));
    const inputs = this.#aligned(node.inputs);
    const channels = streams.reduce((sum, stream) => sum + stream.channels, 0);
    this.#emit({ ...alongChannels(node), inputs }, { channels, ...this.#latest(node, streams) });
  }

  #addSplit(node: Node): void {
    const stream = this.streamOf(node.inputs[0]!);
    const listed = node.inputs[1] === undefined ? null : this.#wiring.integersOf(node.inputs[1]);
    const sizes = listed ?? attributeIntegers(node, 'split');
    this.nodes.push(alongChannels(node));
    for (const [i, name] of node.outputs.entries())
      this.#streams.set(name, { ...stream, channels: sizes?.[i] ?? stream.channels / node.outputs.length });
  }

  #addSlice(node: Node): void {
    const [input = '', ...rest] = node.inputs;
    const stream = this.streamOf(input);
    const [starts, ends, axes, steps] = rest.map((name) => this.#wiring.integersOf(name));
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
    const inputs = node.inputs.map((name, place) => (place === 3 ? this.constant([channelAxis]) : name));
    this.#emit({ ...node, inputs }, { ...stream, channels });
  }

  #addGather(node: Node): void {
    const indices = this.#wiring.integersOf(node.inputs[1]!);
    if (indices === null) throw new GraphError(`"Gather" (${node.name}) has an unknown form`);
    this.#emit(alongChannels(node), { ...this.streamOf(node.inputs[0]!), channels: indices.length });
  }

  /** @param length before the first run @param more samples that it also keeps after a run */
  #state(channels: number, length: number, more: number): StreamState {
    const number = this.states.length;
    const names = { input: `state_${number}`, output: `next_${number}` };
    const state = { ...names, channels, length, lengthMax: length + more };
    this.states.push(state);
    return state;
  }

  /** Streams one after the other in time. */
  #joined(names: readonly string[], label?: string): string {
    return this.node('Concat', names, [['axis', { type: 'int', value: timeAxis }]], label);
  }

  /** The samples that a stream has in this run. */
  #lengthOf(name: string): string {
    const shape = this.node('Shape', [name]);
    return this.slice(shape, timeAxis, timeAxis + 1, 0);
  }

  /**
   * Declares that streams have equally many samples. onnxruntime must know this of two streams that it adds within a convolution.
   * @param length its name
   */
  #equallyLong(name: string, channels: number, length: string): void {
    this.values.push({
      name,
      type: elementTypes.float32,
      dims: streamDims(channels, length),
    });
  }

  /** A value that is not a stream, in another shape. */
  #reshaped(name: string, dims: readonly number[]): string {
    return this.once(`reshaped ${name} ${dims.join(' ')}`, () => {
      const tensor = this.initialisers.get(name);
      if (tensor === undefined) return this.node('Reshape', [name, this.constant(dims)]);
      const reshaped = `${name}/reshaped`;
      this.initialisers.set(reshaped, { ...tensor, name: reshaped, dims });
      return reshaped;
    });
  }

  /** Something that is added to a stream or multiplied with it: a stream, one number, or one for each channel, [1, channels, 1]. */
  #perChannel(name: string): string {
    if (this.#streams.has(name)) return name;
    const tensor = this.initialisers.get(name);
    if (tensor === undefined) return this.#reshaped(name, [1, -1, 1, 1]);
    if (tensor.dims.every((size) => size === 1)) return name;
    if (tensor.dims.length !== 3) throw new GraphError(`"${name}" does not have one number for each channel`);
    return this.#reshaped(name, widened(tensor.dims));
  }

  /** A convolution along the last axis of streams. @param dims of its weights */
  #convolution(node: Node, dims: readonly number[]): Node {
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

  /**
   * The same stream in the order of values that fast convolutions want. onnxruntime keeps that order from convolution to
   * convolution, and through nodes that it can join with one. So this adds a convolution that changes nothing.
   */
  #inFastOrder(name: string, channels: number): string {
    const weights = `stream_ones_${channels}`;
    this.initialisers.set(weights, floats(weights, Array<number>(channels).fill(1), [channels, 1, 1, 1]));
    return this.node('Conv', [name, weights], [['group', { type: 'int', value: channels }]]);
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
  const { nodes, states, values, initialisers } = streamer;
  const used = new Set(nodes.flatMap(usedBy));
  const inputs: ValueInfo[] = [
    ...model.inputs.map((value) =>
      value.name === input.name ? { ...value, dims: streamDims(input.channels, null) } : value,
    ),
    inner(lastInput, elementTypes.int64),
    ...states.map((state) => ({
      name: state.input,
      type: elementTypes.float32,
      dims: streamDims(state.channels, null),
    })),
  ];
  return {
    model: {
      ...model,
      nodes,
      inputs: inputs.filter(({ name }) => used.has(name)),
      values,
      outputs: [...model.outputs, ...states.map((state) => inner(state.output))],
      initialisers: new Map([...initialisers].filter(([name]) => used.has(name))),
    },
    states,
    lookahead: Math.ceil(lag / rate),
    rate,
    work: streamer.work,
  };
};
