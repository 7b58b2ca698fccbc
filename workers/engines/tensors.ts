/** Tensors of onnxruntime from numbers, and numbers from what a graph made. */
import { Tensor } from 'onnxruntime-node';
import { product } from './graph/model.js';

export const floatTensor = (data: Float32Array, dims: readonly number[]): Tensor =>
  new Tensor('float32', data, dims);

export const integerTensor = (values: readonly number[], dims: readonly number[] = [values.length]): Tensor =>
  new Tensor('int64', BigInt64Array.from(values, BigInt), dims);

type Values = Float32Array | BigInt64Array | Uint8Array;

/** Copies as much as fits of each row along an axis: the other dimensions of the two are equal. */
export const copyRows = (
  from: Values,
  fromDims: readonly number[],
  to: Values,
  toDims: readonly number[],
  axis: number,
): void => {
  const [fromRow, toRow] = [fromDims, toDims].map((dims) => product(dims.slice(axis))) as [number, number];
  const length = Math.min(fromRow, toRow);
  for (let at = 0, place = 0; at < from.length && place < to.length; at += fromRow, place += toRow)
    to.set(from.subarray(at, at + length) as never, place);
};

/** The values of an output. @param size how many there must be */
export const floatsIn = (
  made: Readonly<Record<string, Tensor>>,
  name: string,
  size?: number,
): Float32Array => {
  const data = made[name]?.data;
  if (!(data instanceof Float32Array)) throw new Error(`the graph gave no ${name}`);
  if (size !== undefined && data.length !== size)
    throw new Error(`${name} has ${data.length} values, not ${size}`);
  return data;
};
