/**
 * The state that a graph of Pocket TTS takes and gives back: tensors whose names, types and shapes are read from the graph,
 * because they differ from export to export.
 */
import { Tensor } from 'onnxruntime-node';
import { product } from '../graph/model.js';

export type StateType = 'float32' | 'int64' | 'bool';

/** One tensor of a state. */
export interface StateSpec {
  readonly input: string;
  readonly output: string;
  readonly type: StateType;
  readonly dims: readonly number[];
  /** A size of it may change. */
  readonly isOpen: boolean;
  /** The value of all its elements before the first run. */
  readonly fill: number;
  /** Its name in files of voices; absent: not known. */
  readonly path?: string;
}

export type State = Readonly<Record<string, Tensor>>;

type Values = Float32Array | BigInt64Array | Uint8Array;

/** The beginning of a tensor along every dimension. The rest has the value of `fill`. */
export interface Corner {
  readonly dims: readonly number[];
  readonly values: Values;
}

const elementBytes: Readonly<Record<StateType, number>> = { float32: 4, int64: 8, bool: 1 };

/** Values of a tensor without a fixed size, unless it begins with more. In exports that were seen its length is the number of positions. */
const openValuesMax = 16_384;

const valuesMaxOf = ({ dims, isOpen }: Pick<StateSpec, 'dims' | 'isOpen'>): number =>
  Math.max(product(dims), isOpen ? openValuesMax : 0);

export const bytesOf = (specs: readonly StateSpec[]): number =>
  specs.reduce((sum, spec) => sum + elementBytes[spec.type] * valuesMaxOf(spec), 0);

const filled = ({ type, dims, fill }: StateSpec): Values => {
  const size = product(dims);
  if (type === 'float32') return fill === 0 ? new Float32Array(size) : new Float32Array(size).fill(fill);
  if (type === 'int64') return new BigInt64Array(size).fill(BigInt(fill));
  return new Uint8Array(size).fill(fill);
};

/** Copies the common corner of two arrays of the same rank. */
const copyCorner = (
  from: Values,
  fromDims: readonly number[],
  to: Values,
  toDims: readonly number[],
): void => {
  const strideOf = (dims: readonly number[], dim: number) => product(dims.slice(dim + 1));
  const copy = (dim: number, fromAt: number, toAt: number): void => {
    const count = Math.min(fromDims[dim]!, toDims[dim]!);
    // From here on both are contiguous and of equal shape.
    const isWhole = fromDims.slice(dim + 1).every((size, i) => size === toDims[dim + 1 + i]);
    if (isWhole) {
      const length = count * strideOf(fromDims, dim);
      (to as Float32Array).set((from as Float32Array).subarray(fromAt, fromAt + length), toAt);
      return;
    }
    for (let i = 0; i < count; i++)
      copy(dim + 1, fromAt + i * strideOf(fromDims, dim), toAt + i * strideOf(toDims, dim));
  };
  if (fromDims.length === 0) (to as Float32Array).set(from as Float32Array);
  else copy(0, 0, 0);
};

const tensorOf = ({ type, dims }: Pick<StateSpec, 'type' | 'dims'>, values: Values): Tensor =>
  type === 'float32'
    ? new Tensor('float32', values as Float32Array, dims)
    : type === 'int64'
      ? new Tensor('int64', values as BigInt64Array, dims)
      : new Tensor('bool', values as Uint8Array, dims);

/** @param corners the known parts of it; the rest is as in a new state */
export const stateFrom = (
  specs: readonly StateSpec[],
  corners: ReadonlyMap<string, Corner> = new Map(),
): State =>
  Object.fromEntries(
    specs.map((spec) => {
      const corner = corners.get(spec.input);
      // The shape of a tensor without a fixed size is information in itself.
      const dims = corner !== undefined && spec.isOpen && product(spec.dims) === 0 ? corner.dims : spec.dims;
      const values = filled({ ...spec, dims });
      if (corner !== undefined) {
        if (corner.dims.length === dims.length) copyCorner(corner.values, corner.dims, values, dims);
        else if (corner.values.length === values.length)
          (values as Float32Array).set(corner.values as Float32Array);
      }
      return [spec.input, tensorOf({ type: spec.type, dims }, values)];
    }),
  );

/** The state for the next run, from the outputs of one. */
export const stateAfter = (specs: readonly StateSpec[], outputs: Readonly<Record<string, Tensor>>): State =>
  Object.fromEntries(
    specs.map(({ dims, input, isOpen, output }) => {
      const tensor = outputs[output];
      if (tensor === undefined) throw new Error(`the graph gave no ${output}`);
      const { length } = tensor.data;
      if (!isOpen && length !== product(dims))
        throw new Error(`${output} has ${length} values, not ${product(dims)}`);
      const valuesMax = valuesMaxOf({ dims, isOpen });
      if (isOpen && length > valuesMax)
        throw new Error(`${output} has ${length} values, and without a fixed size at most ${valuesMax}`);
      return [input, tensor];
    }),
  );

const isFill = (value: number, fill: number): boolean => value === fill || (value !== value && fill !== fill);

/** The longest dimension: that of time, in a cache. */
const longestOf = (dims: readonly number[]): number => dims.indexOf(Math.max(...dims));

/** @returns the steps along the longest dimension up to the last with a value other than `fill` */
const usedOf = (values: Float32Array, dims: readonly number[], fill: number): number => {
  const axis = longestOf(dims);
  const size = dims[axis]!;
  const stride = product(dims.slice(axis + 1));
  let used = 0;
  for (let block = 0; block < values.length; block += size * stride)
    for (let step = size - 1; step >= used; step--) {
      const at = block + step * stride;
      if (values.subarray(at, at + stride).every((value) => isFill(value, fill))) continue;
      used = step + 1;
      break;
    }
  return used;
};

/** A copy without the rest that is only filled: after a prompt, a cache of a thousand steps has a hundred in use. */
export const compactOf = (specs: readonly StateSpec[], state: State): ReadonlyMap<string, Corner> =>
  new Map(
    specs.map((spec) => {
      const { data, dims } = state[spec.input]!;
      const values = data as Values;
      const isCache = spec.type === 'float32' && dims.length > 1 && values.length > 0;
      if (!isCache) return [spec.input, { dims, values: values.slice() }];
      const axis = longestOf(dims);
      const used = usedOf(values as Float32Array, dims, spec.fill);
      const small = dims.map((size, i) => (i === axis ? used : size));
      const corner = new Float32Array(product(small));
      copyCorner(values, dims, corner, small);
      return [spec.input, { dims: small, values: corner }];
    }),
  );
