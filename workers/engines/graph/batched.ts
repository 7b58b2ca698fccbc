/**
 * Gives a graph a batch dimension: the first one of its inputs, of all values that depend on them, and of its outputs. One
 * run then computes, with the same weights, what a run for each item of the batch would compute.
 *
 * Inputs that decide shapes are shared: they have no batch dimension, and are equal for all items.
 */
import { GraphEdit, farEnd } from './edit.js';
import type { Attribute, Model, Node } from './model.js';
import { Ranks, broadcasting, listOf, rankKeeping } from './ranks.js';
import { GraphError, Wiring, attributeIntegers, usedBy } from './surgery.js';

/** Operators with one axis as an attribute. @property their default */
const axisDefaults: Readonly<Record<string, number>> = {
  Concat: 0,
  Gather: 0,
  LayerNormalization: -1,
  Softmax: -1,
  Split: 0,
};

const shifted = (axis: number): number => (axis < 0 ? axis : axis + 1);

const int = (value: number): Attribute => ({ type: 'int', value });
const withAttribute = (node: Node, name: string, value: Attribute): Node => ({
  ...node,
  attributes: new Map(node.attributes).set(name, value),
});

class Batcher extends GraphEdit {
  readonly #model: Model;
  readonly #wiring: Wiring;
  readonly #ranks: Ranks;
  readonly #batched: Set<string>;

  constructor(model: Model, shared: readonly string[]) {
    super(model.initialisers, 'batch');
    this.#model = model;
    this.#wiring = new Wiring(model);
    this.#ranks = new Ranks(model, this.#wiring);
    this.#batched = new Set(model.inputs.flatMap(({ name }) => (shared.includes(name) ? [] : [name])));
  }

  isBatched(name: string): boolean {
    return this.#batched.has(name);
  }

  add(node: Node): void {
    if (!usedBy(node).some((name) => this.isBatched(name))) {
      this.nodes.push(node);
      return;
    }
    const { op, inputs } = node;
    if (op === 'Shape') {
      this.#addShape(node);
      return;
    }
    if (broadcasting.has(op)) this.#emit(node, this.#aligned(node));
    else if (op === 'MatMul') this.#addMatMul(node);
    else if (op === 'Concat')
      this.#emit(
        this.#alongAxis(node),
        inputs.map((name) => this.#expanded(name)),
      );
    else if (op === 'Gather' && this.isBatched(inputs[1]!)) this.#addGather(node);
    // Inputs beyond the first say how: they must be the same for all items.
    else if (inputs.slice(1).some((name) => this.isBatched(name))) this.#refuse(node);
    else this.#addPlain(node);
  }

  #refuse({ op, name }: Node): never {
    throw new GraphError(`"${op}" (${name}) cannot run for several items at once`);
  }

  #addPlain(node: Node): void {
    const { op, inputs } = node;
    const [data = '', ...rest] = inputs;
    if (op in axisDefaults) this.#emit(this.#alongAxis(node));
    else if (op === 'Conv' || op === 'ConvTranspose') this.#addConvolution(node);
    else if (op === 'Unsqueeze' || op === 'Squeeze' || op.startsWith('Reduce')) this.#addAxes(node);
    else if (op === 'Reshape') this.#emit(node, [data, this.#withBatch(rest[0]!, 0)]);
    else if (op === 'Flatten') this.#addFlatten(node);
    else if (op === 'Transpose') {
      const perm = attributeIntegers(node, 'perm') ?? this.#refuse(node);
      this.#emit(withAttribute(node, 'perm', { type: 'ints', value: [0, ...perm.map(shifted)] }));
    } else if (op === 'Slice') {
      const axes = this.#constantOf(node, 3);
      const steps = rest[3] === undefined ? [] : [rest[3]];
      this.#emit(node, [data, rest[0]!, rest[1]!, this.constant(axes.map(shifted)), ...steps]);
    } else if (op === 'CumSum')
      this.#emit(node, [data, this.constant(this.#constantOf(node, 1).map(shifted))]);
    else if (op === 'Pad') this.#addPad(node);
    else if (rankKeeping.has(op)) this.#emit(node);
    else this.#refuse(node);
  }

  #emit(node: Node, inputs = node.inputs): void {
    this.nodes.push({ ...node, inputs });
    for (const name of node.outputs) this.#batched.add(name);
  }

  #constantOf(node: Node, input: number): readonly number[] {
    return this.#wiring.integersOf(node.inputs[input] ?? '') ?? this.#refuse(node);
  }

  /** The size of the batch, a vector. */
  get #size(): string {
    return this.once('size', () => {
      const { name } = this.#model.inputs.find((input) => this.isBatched(input.name))!;
      return this.slice(this.node('Shape', [name]), 0, 1, 0);
    });
  }

  /** The shape of an item. */
  #addShape(node: Node): void {
    if (node.attributes.size > 0) this.#refuse(node);
    const whole = this.node('Shape', node.inputs);
    const inputs = [whole, this.constant([1]), this.constant([farEnd])];
    this.nodes.push({ ...node, op: 'Slice', inputs });
  }

  /** Puts the batch dimension before a shape: 0, which Reshape takes from its input, or another size. */
  #withBatch(shape: string, size: number): string {
    const values = this.#wiring.integersOf(shape);
    if (values !== null) return this.constant([size, ...values]);
    return this.node('Concat', [this.constant([size]), shape], [['axis', int(0)]]);
  }

  #alongAxis(node: Node): Node {
    const axis = attributeIntegers(node, 'axis')?.[0] ?? axisDefaults[node.op]!;
    return withAttribute(node, 'axis', int(shifted(axis)));
  }

  /** Items with dimensions of size 1 before the others, so that they broadcast with values of a higher rank. */
  #aligned({ inputs }: Node): string[] {
    const rank = Math.max(...inputs.map((name) => this.#ranks.of(name)));
    return inputs.map((name) => {
      const missing = rank - this.#ranks.of(name);
      if (!this.isBatched(name) || missing === 0) return name;
      const axes = Array.from({ length: missing }, (_, i) => i + 1);
      return this.once(`aligned ${name} ${rank}`, () => this.node('Unsqueeze', [name, this.constant(axes)]));
    });
  }

  #addMatMul(node: Node): void {
    const ranks = node.inputs.map((name) => this.#ranks.of(name));
    // A vector would count as a matrix with its batch.
    if (Math.min(...ranks) < 2) this.#refuse(node);
    this.#emit(node, this.#aligned(node));
  }

  /** A value that is the same for all items, once for each. */
  #expanded(name: string): string {
    if (this.isBatched(name)) return name;
    return this.once(`expanded ${name}`, () => {
      const ones = Array.from({ length: this.#ranks.of(name) }, () => 1);
      const shape = this.node('Concat', [this.#size, this.constant(ones)], [['axis', int(0)]]);
      return this.node('Expand', [name, shape]);
    });
  }

  /** Each item has indices of its own. */
  #addGather(node: Node): void {
    const [data = '', indices = ''] = node.inputs;
    const axis = attributeIntegers(node, 'axis')?.[0] ?? 0;
    if (!this.isBatched(data)) {
      if (axis !== 0) this.#refuse(node);
      this.#emit(node);
      return;
    }
    // All items in one row of entries: the entries of an item begin at its number times their count.
    const rank = this.#ranks.of(data);
    if (axis < 0 || this.#ranks.of(indices) !== 1) this.#refuse(node);
    const others = Array.from({ length: rank }, (_, i) => i).filter((i) => i !== axis);
    const perm = [0, axis + 1, ...others.map(shifted)];
    const front =
      axis === 0 ? data : this.node('Transpose', [data], [['perm', { type: 'ints', value: perm }]]);
    const shape = this.node('Shape', [front]);
    const count = this.slice(shape, 1, 2, 0);
    const rest = this.slice(shape, 2, farEnd, 0);
    const joinedShape = this.node('Concat', [this.constant([-1]), rest], [['axis', int(0)]]);
    const joined = this.node('Reshape', [front, joinedShape]);
    const scalar = (vector: string) => this.node('Squeeze', [vector, this.constant([0])]);
    const limit = this.node('Mul', [this.#size, count]);
    const starts = this.node('Range', [this.constant([0], []), scalar(limit), scalar(count)]);
    const column = this.node('Reshape', [starts, this.constant([-1, 1])]);
    const within = this.node('Mod', [indices, count]);
    const places = this.node('Add', [within, column]);
    if (axis === 0) {
      this.#emit({ ...node, inputs: [joined, places] });
      return;
    }
    const found = this.node('Gather', [joined, places], [['axis', int(0)]]);
    const back = [0, ...Array.from({ length: rank }, (_, i) => 1 + [axis, ...others].indexOf(i))];
    this.#emit({
      ...node,
      op: 'Transpose',
      inputs: [found],
      attributes: new Map([['perm', { type: 'ints', value: back }]]),
    });
  }

  /** Convolutions have a batch dimension. That of an item has the size 1. */
  #addConvolution(node: Node): void {
    const [data = '', ...rest] = node.inputs;
    const batch = this.node('Squeeze', [data, this.constant([1])]);
    const output = `batch_${this.nodes.length}`;
    this.nodes.push({ ...node, inputs: [batch, ...rest], outputs: [output] });
    const inputs = [output, this.constant([1])];
    this.#emit({ ...node, name: `${node.name}/items`, op: 'Unsqueeze', inputs, attributes: new Map() });
  }

  #addAxes(node: Node): void {
    const axes = listOf(node, 'axes', 1, this.#wiring) ?? this.#refuse(node);
    if (node.inputs.length > 1) this.#emit(node, [node.inputs[0]!, this.constant(axes.map(shifted))]);
    else this.#emit(withAttribute(node, 'axes', { type: 'ints', value: axes.map(shifted) }));
  }

  #addFlatten(node: Node): void {
    const axis = attributeIntegers(node, 'axis')?.[0] ?? 1;
    if (axis !== 0 && axis !== 1) this.#refuse(node);
    const inputs = [node.inputs[0]!, this.constant([0, axis === 0 ? 1 : 0, -1])];
    this.#emit({ ...node, op: 'Reshape', inputs, attributes: new Map() });
  }

  /** Pads are two numbers for each axis: first all before, then all after. */
  #addPad(node: Node): void {
    const [data = '', pads = '', ...rest] = node.inputs;
    if (rest.length > 1) this.#refuse(node);
    const rows = this.node('Reshape', [pads, this.constant([2, -1])]);
    const more = this.node('Concat', [this.constant([0, 0], [2, 1]), rows], [['axis', int(1)]]);
    this.#emit(node, [data, this.node('Reshape', [more, this.constant([-1])]), ...rest]);
  }
}

/** @param shared names of inputs @throws {GraphError} if an operator cannot run for several items at once */
export const batched = (model: Model, shared: readonly string[]): Model => {
  if ((model.opsets.get('') ?? 0) < 13) throw new GraphError('its operators are older than version 13');
  const batcher = new Batcher(model, shared);
  for (const node of model.nodes) batcher.add(node);
  const unbatched = model.outputs.find(({ name }) => !batcher.isBatched(name));
  if (unbatched !== undefined) throw new GraphError(`"${unbatched.name}" is the same for all items`);
  const withBatch = <T extends { readonly name: string; readonly dims: readonly unknown[] }>(value: T): T =>
    batcher.isBatched(value.name) && value.dims.length > 0
      ? { ...value, dims: ['batch', ...value.dims] }
      : value;
  return {
    ...model,
    nodes: batcher.nodes,
    inputs: model.inputs.map(withBatch),
    outputs: model.outputs.map((value) => ({ ...value, dims: [] })),
    values: (model.values ?? []).map(withBatch),
    initialisers: batcher.initialisers,
  };
};
