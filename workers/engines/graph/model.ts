/**
 * An ONNX model as data: nodes and values by name, weights as byte ranges of their file. It shows what onnxruntime hides
 * (metadata, inner values), and allows graphs to be cut and rewritten.
 */

/** Element types of tensors, by the numbers of ONNX. */
export const elementTypes = {
  float32: 1,
  uint8: 2,
  int8: 3,
  uint16: 4,
  int16: 5,
  int32: 6,
  int64: 7,
  bool: 9,
  float16: 10,
  float64: 11,
  uint32: 12,
  uint64: 13,
  bfloat16: 16,
} as const;

export type ElementType = (typeof elementTypes)[keyof typeof elementTypes];

/** Bytes of an element. */
export const elementBytes: Readonly<Record<ElementType, number>> = {
  1: 4,
  2: 1,
  3: 1,
  4: 2,
  5: 2,
  6: 4,
  7: 8,
  9: 1,
  10: 2,
  11: 8,
  12: 4,
  13: 8,
  16: 2,
};

/** The elements of a tensor, little-endian: in memory, or a range of a file. */
export type TensorData =
  | { readonly held: Buffer }
  | { readonly file: string; readonly offset: number; readonly bytes: number };

export interface Tensor {
  readonly name: string;
  readonly dims: readonly number[];
  readonly type: ElementType;
  readonly data: TensorData;
}

export type Attribute =
  | { readonly type: 'int'; readonly value: number }
  | { readonly type: 'ints'; readonly value: readonly number[] }
  | { readonly type: 'float'; readonly value: number }
  | { readonly type: 'floats'; readonly value: readonly number[] }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'tensor'; readonly value: Tensor }
  /** Kept as it is. @property uses names of outer values that a subgraph needs */
  | { readonly type: 'other'; readonly bytes: Buffer; readonly uses: readonly string[] };

export interface Node {
  readonly name: string;
  readonly op: string;
  /** '' for operators of ONNX itself. */
  readonly domain: string;
  /** '' for an optional input that is left out. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: ReadonlyMap<string, Attribute>;
}

/** An input or output of a graph. */
export interface ValueInfo {
  readonly name: string;
  readonly type: ElementType;
  /** A size, the name of a size that may differ from run to run, or `null` for one without a name. */
  readonly dims: readonly (number | string | null)[];
}

export interface Model {
  readonly irVersion: number;
  /** Versions of operators, by domain. */
  readonly opsets: ReadonlyMap<string, number>;
  readonly metadata: ReadonlyMap<string, string>;
  /** In an order in which they can run. */
  readonly nodes: readonly Node[];
  readonly inputs: readonly ValueInfo[];
  readonly outputs: readonly ValueInfo[];
  readonly initialisers: ReadonlyMap<string, Tensor>;
  /** Shapes of inner values, to be written. */
  readonly values?: readonly ValueInfo[];
  /** Functions of the model, as they are. */
  readonly functions: readonly Buffer[];
}

/** A file to read a model from. `HeldFile` is one. */
export interface ModelFile {
  /** Path to show in messages. */
  readonly path: string;
  readonly openPath: string;
}

export const product = (dims: readonly number[]): number => dims.reduce((all, size) => all * size, 1);

export const sizeOf = ({ dims, type }: Pick<Tensor, 'dims' | 'type'>): number =>
  elementBytes[type] * product(dims);
