/** Cuts models: the part of a graph between named values, and how nodes and values depend on each other. */
import { type Model, type Node, type Tensor, type ValueInfo, elementTypes } from './model.js';

/** A graph does not have the expected form. The message says where. */
export class GraphError extends Error {
  override readonly name = 'GraphError';
}

/** Names of all values that a node takes, also those that only its subgraphs use. */
export const usedBy = (node: Node): string[] => {
  const used = node.inputs.filter((name) => name !== '');
  for (const attribute of node.attributes.values())
    if (attribute.type === 'other') used.push(...attribute.uses);
  return used;
};

/** Which node makes a value, and which take it. */
export class Wiring {
  readonly maker: ReadonlyMap<string, Node>;
  readonly takers: ReadonlyMap<string, readonly Node[]>;
  readonly #nodes: readonly Node[];
  readonly #initialisers: Model['initialisers'];

  constructor({ nodes, initialisers }: Model) {
    this.#nodes = nodes;
    this.#initialisers = initialisers;
    this.maker = new Map(nodes.flatMap((node) => node.outputs.map((name) => [name, node])));
    const takers = new Map<string, Node[]>();
    for (const node of nodes)
      for (const name of new Set(usedBy(node))) {
        const known = takers.get(name);
        if (known === undefined) takers.set(name, [node]);
        else known.push(node);
      }
    this.takers = takers;
  }

  /** These values, and all values that depend on one of them. */
  after(names: Iterable<string>): Set<string> {
    const found = new Set(names);
    for (const node of this.#nodes)
      if (usedBy(node).some((name) => found.has(name))) for (const name of node.outputs) found.add(name);
    return found;
  }

  /** The nodes that these values depend on, in order. @param stops values that count as given */
  before(names: Iterable<string>, stops: ReadonlySet<string> = new Set()): Node[] {
    const needed = new Set([...names].filter((name) => !stops.has(name)));
    const found: Node[] = [];
    for (const node of this.#nodes.toReversed()) {
      if (!node.outputs.some((name) => needed.has(name))) continue;
      found.push(node);
      for (const name of usedBy(node)) if (!stops.has(name)) needed.add(name);
    }
    return found.reverse();
  }

  /** The integers of a constant: an initialiser, or the value of a `Constant`. `null` if the value is not a constant. */
  integersOf(name: string): number[] | null {
    let source = name;
    let maker = this.maker.get(source);
    while (maker?.op === 'Identity') {
      source = maker.inputs[0]!;
      maker = this.maker.get(source);
    }
    const value = maker?.op === 'Constant' ? maker.attributes.get('value') : undefined;
    const tensor = value?.type === 'tensor' ? value.value : this.#initialisers.get(source);
    if (tensor === undefined || !('held' in tensor.data)) return null;
    const { held } = tensor.data;
    const { type } = tensor;
    if (type === elementTypes.int64)
      return Array.from({ length: held.length / 8 }, (_, i) => Number(held.readBigInt64LE(8 * i)));
    if (type === elementTypes.int32)
      return Array.from({ length: held.length / 4 }, (_, i) => held.readInt32LE(4 * i));
    return null;
  }
}

/**
 * The nodes in an order in which they can run: the given one, if it is such. Code that follows values from node to node
 * relies on it: there is no circle.
 *
 * @param given names of values that no node may make
 * @throws {GraphError} if there is no such order, or a value is made twice
 */
export const ordered = (nodes: readonly Node[], given: Iterable<string>): Node[] => {
  const known = new Set(given);
  const makers = new Map<string, Node>();
  for (const node of nodes)
    for (const name of node.outputs) {
      if (name === '') continue;
      if (known.has(name)) throw new GraphError(`"${name}" is made twice`);
      known.add(name);
      makers.set(name, node);
    }
  const placed = new Set<Node>();
  for (const node of nodes) {
    const path = [node];
    const begun = new Set(path);
    for (let last: Node | undefined = node; last !== undefined; last = path.at(-1)) {
      const next: Node | undefined = placed.has(last) ? undefined : unplacedBefore(last, makers, placed);
      if (next === undefined) {
        placed.add(last);
        path.pop();
      } else if (begun.has(next)) throw new GraphError(`"${next.outputs[0]}" depends on itself`);
      else {
        begun.add(next);
        path.push(next);
      }
    }
  }
  return [...placed];
};

const unplacedBefore = (
  node: Node,
  makers: ReadonlyMap<string, Node>,
  placed: ReadonlySet<Node>,
): Node | undefined => {
  for (const name of usedBy(node)) {
    const maker = makers.get(name);
    if (maker !== undefined && !placed.has(maker)) return maker;
  }
  return undefined;
};

/** An inner value of a graph as an input or output. Its shape is not known. */
export const inner = (name: string, type: ValueInfo['type'] = elementTypes.float32): ValueInfo => ({
  name,
  type,
  dims: [],
});

const initialisersOf = (model: Model, nodes: readonly Node[]): Map<string, Tensor> =>
  new Map(
    nodes.flatMap(usedBy).flatMap((name) => {
      const tensor = model.initialisers.get(name);
      return tensor === undefined ? [] : [[name, tensor]];
    }),
  );

/**
 * The part of a model between values. Inputs of the model that it needs stay inputs.
 * @throws {GraphError} if an output cannot be made from the inputs
 */
export const extract = (
  model: Model,
  { inputs, outputs }: { readonly inputs: readonly ValueInfo[]; readonly outputs: readonly ValueInfo[] },
): Model => {
  const stops = new Set(inputs.map(({ name }) => name));
  const nodes = new Wiring(model).before(
    outputs.map(({ name }) => name),
    stops,
  );
  const made = new Set(nodes.flatMap(({ outputs: names }) => names));
  for (const { name } of outputs)
    if (!made.has(name) && !stops.has(name)) throw new GraphError(`it has no value "${name}"`);
  const used = new Set(nodes.flatMap(usedBy));
  const kept = model.inputs.filter(({ name }) => used.has(name) && !stops.has(name));
  return {
    ...model,
    nodes,
    inputs: [...inputs, ...kept],
    outputs,
    initialisers: initialisersOf(model, nodes),
  };
};

/** The integers of an attribute, or of one that is a single integer. */
export const attributeIntegers = (node: Node, name: string): readonly number[] | null => {
  const attribute = node.attributes.get(name);
  if (attribute?.type === 'ints') return attribute.value;
  return attribute?.type === 'int' ? [attribute.value] : null;
};
