/** What a stream of a graph is, and what nodes need so that they can run piece by piece. */
import { type Attribute, type Model, type Node, type Tensor, elementTypes } from './model.js';
import { GraphError, attributeIntegers } from './surgery.js';

/** A value that changes over time. */
export interface Stream {
  readonly channels: number;
  readonly rate: number;
  /** Samples by which it lags behind the frames. */
  readonly lag: number;
}

/** A state: an input of the graph, and the output that is its next value. */
export interface StreamState {
  readonly input: string;
  readonly output: string;
  readonly channels: number;
  /** Its length before the first run: zeros before the first frame. */
  readonly length: number;
  /** Its greatest length after a run. */
  readonly lengthMax: number;
}

export interface StreamedModel {
  readonly model: Model;
  readonly states: readonly StreamState[];
  /** Frames after a frame that its output depends on. The first run needs more frames than this. */
  readonly lookahead: number;
  /** Samples of output for a frame. */
  readonly rate: number;
  /** Multiplications for a frame. */
  readonly work: number;
}

/** The shape of a stream. */
export const streamDims = <C, L>(channels: C, length: L): readonly (C | L | 1)[] => [1, channels, 1, length];

/** An int64 input that has a number for each dimension of a stream: the last is 1 in the last run, else 0; the others are 1. */
export const lastInput = 'stream_last';

/** The last dimension of a stream. */
export const timeAxis = 3;

/** The input that has frames. It is [1, channels, frames], and becomes a stream. */
export interface StreamInput {
  readonly name: string;
  readonly channels: number;
}

/** Operators that work on each sample alone. */
export const unary = new Set([
  'LeakyRelu',
  'Relu',
  'Elu',
  'Tanh',
  'Sigmoid',
  'Exp',
  'Neg',
  'Identity',
  'Softplus',
  'Sqrt',
  'Erf',
]);
export const elementwise = new Set(['Add', 'Sub', 'Mul', 'Div', 'Pow']);

/** Attributes of a convolution that have a number for each axis. */
export const perAxis = ['kernel_shape', 'strides', 'dilations'];

/** Dimensions with one of size 1 before the last. */
export const widened = (dims: readonly number[]): number[] => [...dims.slice(0, -1), 1, ...dims.slice(-1)];

/** @param dims by default one dimension */
export const ints = (name: string, values: readonly number[], dims = [values.length]): Tensor => {
  const held = Buffer.alloc(8 * values.length);
  for (const [i, value] of values.entries()) held.writeBigInt64LE(BigInt(value), 8 * i);
  return { name, dims, type: elementTypes.int64, data: { held } };
};

export const floats = (name: string, values: readonly number[], dims: readonly number[]): Tensor => ({
  name,
  dims,
  type: elementTypes.float32,
  data: { held: Buffer.from(Float32Array.from(values).buffer) },
});

export const channelAxis = 1;

/** The node works along the channels, whatever the shape of its streams. */
export const alongChannels = (node: Node): Node => ({
  ...node,
  attributes: new Map(node.attributes).set('axis', { type: 'int', value: channelAxis }),
});

export interface PieceByPiece {
  /** Samples of its input that come before and after those that its output belongs to. */
  readonly before: number;
  readonly after: number;
  /** Samples of output for one of input. */
  readonly factor: number;
  /** Of the output. */
  readonly channels: number;
  /** Its attributes, for an input that has those samples. */
  readonly attributes: ReadonlyMap<string, Attribute>;
}

/**
 * @param dims of the weights
 * @throws {GraphError} unless it gives as many samples as its input has, times its stride
 */
export const pieceByPiece = (node: Node, dims: readonly number[]): PieceByPiece => {
  const integer = (name: string, otherwise: number) => attributeIntegers(node, name)?.[0] ?? otherwise;
  const kernel = integer('kernel_shape', dims[2]!);
  const stride = integer('strides', 1);
  const dilation = integer('dilations', 1);
  const group = integer('group', 1);
  const [padBefore = 0, padAfter = 0] = attributeIntegers(node, 'pads') ?? [];
  const isTransposed = node.op === 'ConvTranspose';
  const isSimple = isTransposed
    ? dilation === 1 && integer('output_padding', 0) === 0 && kernel - stride === padBefore + padAfter
    : stride === 1 && (kernel - 1) * dilation === padBefore + padAfter;
  if (
    !isSimple ||
    dims.length !== 3 ||
    group < 1 ||
    dims[0]! % group !== 0 ||
    node.attributes.has('auto_pad') ||
    node.attributes.has('output_shape')
  )
    throw new GraphError(`"${node.op}" (${node.name}) changes the number of frames in an unknown way`);
  const padded = (pads: readonly number[]) =>
    new Map(node.attributes).set('pads', { type: 'ints', value: pads });
  if (!isTransposed)
    return { before: padBefore, after: padAfter, factor: 1, channels: dims[0]!, attributes: padded([0, 0]) };
  const before = Math.ceil((kernel - padBefore) / stride) - 1;
  const after = Math.floor((stride - 1 + padBefore) / stride);
  return {
    before,
    after,
    factor: stride,
    channels: dims[1]! * group,
    // The output of the added input samples alone is cut off.
    attributes: padded([before * stride + padBefore, kernel - stride - padBefore + after * stride]),
  };
};
