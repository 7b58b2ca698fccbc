/** What a convolution needs so that it can run piece by piece. */
import type { Attribute, Node } from './model.js';
import { GraphError, attributeIntegers } from './surgery.js';

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
 * @throws {GraphError} if it gives another number of samples than its stride times those of its input
 */
export const pieceByPiece = (node: Node, dims: readonly number[]): PieceByPiece => {
  const integer = (name: string, otherwise: number) => attributeIntegers(node, name)?.[0] ?? otherwise;
  const kernel = integer('kernel_shape', dims[2]!);
  const stride = integer('strides', 1);
  const dilation = integer('dilations', 1);
  const [padBefore = 0, padAfter = 0] = attributeIntegers(node, 'pads') ?? [];
  const isTransposed = node.op === 'ConvTranspose';
  const isSimple = isTransposed
    ? dilation === 1 && integer('output_padding', 0) === 0 && kernel - stride === padBefore + padAfter
    : stride === 1 && (kernel - 1) * dilation === padBefore + padAfter;
  if (
    !isSimple ||
    dims.length !== 3 ||
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
    channels: dims[1]! * integer('group', 1),
    // What those samples alone would add is cut off.
    attributes: padded([before * stride + padBefore, kernel - stride - padBefore + after * stride]),
  };
};
