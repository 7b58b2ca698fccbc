/**
 * The state that a graph of Pocket TTS takes and gives back: tensors whose names, types and shapes are read from the graph,
 * because they differ from export to export.
 */
import { Tensor } from 'onnxruntime-node';
import { product } from '../graph/model.js';
import { copyRows } from '../tensors.js';

/** The arrays of values, and the names of their types in files of voices. */
export const stateTypes = {
  float32: { array: Float32Array, stored: ['F32'] },
  int64: { array: BigInt64Array, stored: ['I64'] },
  bool: { array: Uint8Array, stored: ['BOOL', 'U8'] },
} as const;

export type StateType = keyof typeof stateTypes;

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

/** The beginning of a tensor along one dimension. The rest has the value of `fill`. */
export interface Corner {
  readonly dims: readonly number[];
  readonly values: Values;
}

/** Values of a tensor without a fixed size, unless it begins with more. In exports that were seen its length is the number of positions. */
const openValuesMax = 16_384;

const valuesMaxOf = ({ dims, isOpen }: Pick<StateSpec, 'dims' | 'isOpen'>): number =>
  Math.max(product(dims), isOpen ? openValuesMax : 0);

export const bytesOf = (specs: readonly StateSpec[]): number =>
  specs.reduce((sum, spec) => sum + stateTypes[spec.type].array.BYTES_PER_ELEMENT * valuesMaxOf(spec), 0);

const filled = ({ type, dims, fill }: StateSpec): Values => {
  const values = new stateTypes[type].array(product(dims));
  return fill === 0 ? values : values.fill((type === 'int64' ? BigInt(fill) : fill) as never);
};

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
        const axis = Math.max(
          0,
          dims.findIndex((size, i) => size !== corner.dims[i]),
        );
        if (corner.dims.length === dims.length) copyRows(corner.values, corner.dims, values, dims, axis);
        else if (corner.values.length === values.length)
          (values as Float32Array).set(corner.values as Float32Array);
      }
      return [spec.input, new Tensor(spec.type as 'float32', values as Float32Array, dims)];
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
      copyRows(values, dims, corner, small, axis);
      return [spec.input, { dims: small, values: corner }];
    }),
  );
