/** A graph that speaks piece by piece, while it is made: its nodes, weights and states. */
import { type Node, type Tensor, type ValueInfo, elementTypes } from './model.js';
import { GraphEdit } from './edit.js';
import { type StreamState, floats, perAxis, streamDims, timeAxis, widened } from './streams.js';
import { GraphError, attributeIntegers } from './surgery.js';

export const farEnd = 2 ** 31 - 1;

export class StreamNodes extends GraphEdit {
  readonly states: StreamState[] = [];
  /** Shapes of inner values. */
  readonly values: ValueInfo[] = [];

  constructor(initialisers: ReadonlyMap<string, Tensor>) {
    super(initialisers, 'stream');
  }

  /** @param length before the first run @param more samples that it also keeps after a run */
  state(channels: number, length: number, more: number): StreamState {
    const number = this.states.length;
    const names = { input: `state_${number}`, output: `next_${number}` };
    const state = { ...names, channels, length, lengthMax: length + more };
    this.states.push(state);
    return state;
  }

  slice(name: string, from: string, to: string, output?: string, axis = timeAxis): string {
    return this.node('Slice', [name, from, to, this.constant([axis])], [], 'stream', output);
  }

  /** Streams one after the other in time. */
  joined(names: readonly string[], label?: string): string {
    return this.node('Concat', names, [['axis', { type: 'int', value: timeAxis }]], label);
  }

  /** The samples that a stream has in this run. */
  lengthOf(name: string): string {
    const shape = this.node('Shape', [name]);
    return this.slice(shape, this.constant([timeAxis]), this.constant([timeAxis + 1]), undefined, 0);
  }

  /**
   * Declares that streams have equally many samples. onnxruntime must know this of two streams that it adds within a convolution.
   * @param length its name
   */
  equallyLong(name: string, channels: number, length: string): void {
    this.values.push({
      name,
      type: elementTypes.float32,
      dims: streamDims(channels, length),
    });
  }

  /** A value that is not a stream, in another shape. */
  reshaped(name: string, dims: readonly number[]): string {
    return this.once(`reshaped ${name} ${dims.join(' ')}`, () => {
      const tensor = this.initialisers.get(name);
      if (tensor === undefined) return this.node('Reshape', [name, this.constant(dims)]);
      const reshaped = `${name}/reshaped`;
      this.initialisers.set(reshaped, { ...tensor, name: reshaped, dims });
      return reshaped;
    });
  }

  /** Something that is added to a stream or multiplied with it: one number, or one for each channel, [1, channels, 1]. */
  perChannel(name: string): string {
    const tensor = this.initialisers.get(name);
    if (tensor === undefined) return this.reshaped(name, [1, -1, 1, 1]);
    if (tensor.dims.every((size) => size === 1)) return name;
    if (tensor.dims.length !== 3) throw new GraphError(`"${name}" does not have one number for each channel`);
    return this.reshaped(name, widened(tensor.dims));
  }

  /** A convolution along the last axis of streams. @param dims of its weights */
  convolution(node: Node, dims: readonly number[]): Node {
    const [input = '', weights = '', ...rest] = node.inputs;
    const attributes = new Map(node.attributes);
    for (const name of perAxis) {
      const value = attributeIntegers(node, name);
      if (value !== null) attributes.set(name, { type: 'ints', value: [1, ...value] });
    }
    const [before = 0, after = 0] = attributeIntegers(node, 'pads') ?? [];
    attributes.set('pads', { type: 'ints', value: [0, before, 0, after] });
    return { ...node, inputs: [input, this.reshaped(weights, widened(dims)), ...rest], attributes };
  }

  /**
   * The same stream in the order of values that fast convolutions want. onnxruntime keeps that order from convolution to
   * convolution, and through nodes that it can join with one. So this adds a convolution that changes nothing.
   */
  inFastOrder(name: string, channels: number): string {
    const weights = `stream_ones_${channels}`;
    this.initialisers.set(weights, floats(weights, Array<number>(channels).fill(1), [channels, 1, 1, 1]));
    return this.node('Conv', [name, weights], [['group', { type: 'int', value: channels }]]);
  }
}
