/** The ranks of a graph's values, and the lengths of its vectors: as much as a rewrite must know. */
import type { Model, Node, Tensor } from './model.js';
import { type Wiring, GraphError, attributeIntegers } from './surgery.js';

/** Operators that combine values element by element, after they have broadcast them. */
export const broadcasting = new Set(
  'Add Sub Mul Div Pow Mod Min Max Equal Less LessOrEqual Greater GreaterOrEqual And Or Xor Where'.split(' '),
);
/** Operators whose output has the rank of their first input. */
export const rankKeeping = new Set(
  (
    'Identity Cast Clip LeakyRelu Relu Elu Tanh Sigmoid Exp Log Neg Abs Sqrt Reciprocal Softplus Erf Sin Cos Atan Floor ' +
    'Ceil Round Not Sign Softmax LayerNormalization CumSum Pad Slice Conv ConvTranspose Concat Split Transpose'
  ).split(' '),
);

/** The integers that an operator has as an attribute or, in later versions, as an input. `null` if it has none. */
export const listOf = (
  node: Node,
  attribute: string,
  input: number,
  wiring: Wiring,
): readonly number[] | null => {
  const name = node.inputs[input] ?? '';
  if (name === '') return attributeIntegers(node, attribute);
  const values = wiring.integersOf(name);
  if (values === null) throw new GraphError(`"${node.op}" (${node.name}) has ${attribute} that change`);
  return values;
};

export class Ranks {
  readonly #wiring: Wiring;
  readonly #ranks = new Map<string, number>();
  /** Of vectors. */
  readonly #lengths = new Map<string, number>();

  constructor(model: Model, wiring: Wiring) {
    this.#wiring = wiring;
    for (const { name, dims } of model.inputs) if (dims.length > 0) this.#ranks.set(name, dims.length);
    for (const [name, tensor] of model.initialisers) this.#addTensor(name, tensor);
    for (const node of model.nodes) this.#add(node);
  }

  /** @throws {GraphError} if it is not known */
  of(name: string): number {
    const rank = this.#ranks.get(name);
    if (rank === undefined) throw new GraphError(`the rank of "${name}" is not known`);
    return rank;
  }

  #addTensor(name: string, { dims }: Tensor): void {
    this.#ranks.set(name, dims.length);
    if (dims.length === 1) this.#lengths.set(name, dims[0]!);
  }

  #add(node: Node): void {
    const rank = this.#rankOf(node);
    const length = this.#vectorLengthOf(node);
    for (const name of node.outputs) {
      if (rank !== undefined) this.#ranks.set(name, rank);
      if (length !== undefined) this.#lengths.set(name, length);
    }
  }

  #rankOf(node: Node): number | undefined {
    const { op, inputs } = node;
    const [first, second] = [this.#ranks.get(inputs[0] ?? ''), this.#ranks.get(inputs[1] ?? '')];
    if (op === 'Constant') {
      const value = node.attributes.get('value');
      return value?.type === 'tensor' ? value.value.dims.length : undefined;
    }
    if (op === 'Shape' || op === 'Range') return 1;
    if (op === 'Flatten') return 2;
    if (op === 'ConstantOfShape') return this.#lengths.get(inputs[0]!);
    if (op === 'Reshape') return this.#lengths.get(inputs[1]!);
    if (first === undefined) return undefined;
    if (rankKeeping.has(op)) return first;
    if (op === 'Unsqueeze') return first + (this.#axesOf(node)?.length ?? 1);
    if (op === 'Squeeze') return first - (this.#axesOf(node)?.length ?? 0);
    if (op.startsWith('Reduce')) {
      if (attributeIntegers(node, 'keepdims')?.[0] !== 0) return first;
      return first - (this.#axesOf(node)?.length ?? first);
    }
    if (broadcasting.has(op) || op === 'MatMul') {
      const ranks = inputs.map((name) => this.#ranks.get(name));
      return ranks.some((rank) => rank === undefined) ? undefined : Math.max(...ranks.map((rank) => rank!));
    }
    if (op === 'Gather' && second !== undefined) return first - 1 + second;
    return undefined;
  }

  #axesOf(node: Node): readonly number[] | null {
    return listOf(node, 'axes', 1, this.#wiring);
  }

  #vectorLengthOf(node: Node): number | undefined {
    const { op, inputs } = node;
    const lengths = inputs.map((name) => this.#lengths.get(name));
    if (op === 'Constant') {
      const value = node.attributes.get('value');
      return value?.type === 'tensor' && value.value.dims.length === 1 ? value.value.dims[0] : undefined;
    }
    if (op === 'Shape') return this.#ranks.get(inputs[0]!);
    if (op === 'Cast' || op === 'Identity') return lengths[0];
    if (op === 'Unsqueeze') return this.#ranks.get(inputs[0]!) === 0 ? 1 : undefined;
    // One that is known and longer than 1 is that of all.
    if (broadcasting.has(op)) return lengths.find((length) => length !== undefined && length > 1);
    if (op === 'Concat')
      return lengths.some((length) => length === undefined)
        ? undefined
        : lengths.reduce<number>((sum, length) => sum + length!, 0);
    if (op === 'Slice' && lengths[0] !== undefined) {
      const [from, to] = [1, 2].map((place) => this.#wiring.integersOf(inputs[place]!)?.[0]);
      if (from === undefined || to === undefined || (inputs[4] ?? '') !== '') return undefined;
      const size = lengths[0];
      const place = (value: number) => Math.max(0, Math.min(size, value < 0 ? value + size : value));
      return Math.max(0, place(to) - place(from));
    }
    return undefined;
  }
}
