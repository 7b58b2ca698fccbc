/** Tensors of onnxruntime from numbers, and numbers from what a graph made. */
import { Tensor } from 'onnxruntime-node';

export const floatTensor = (data: Float32Array, dims: readonly number[]): Tensor =>
  new Tensor('float32', data, dims);

export const integerTensor = (values: readonly number[], dims: readonly number[] = [values.length]): Tensor =>
  new Tensor('int64', BigInt64Array.from(values, BigInt), dims);

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
