/**
 * Lets a graph run on a window that is longer than what it holds. A net pads with zeros at the edges of an item. Beyond the
 * item the window has other values, so this multiplies them by zero wherever the graph pads. What the graph makes for the
 * item is then the same; what it makes beyond is of no use.
 */
import type { Attribute, Model, Node } from './model.js';
import { elementTypes } from './model.js';
import { farEnd } from './stream-nodes.js';
import { ints } from './streams.js';
import { Wiring, attributeIntegers } from './surgery.js';

/** How a graph's values lie in time. */
export interface Mask {
  /** The input with the item. Values that do not depend on it have no edges. */
  readonly data: string;
  /** Of inner values. */
  readonly rank: number;
  readonly axis: number;
  /** Inner values lose equally many places at both ends; otherwise their ends belong together. */
  readonly isCentred: boolean;
}

/** The input with ones where the item is, for values with so many places for one of the window. */
export const maskInput = (rate: number): string => `mask_${rate}`;

export const maskDims = <Length>({ rank, axis }: Mask, length: Length): (Length | 1)[] =>
  Array.from({ length: rank }, (_, i) => (i === axis ? length : 1));

/** Inputs of a node beside which it puts zeros. */
const paddedInputs = (node: Node, { axis, rank }: Mask, isMasked: (name: string) => boolean): number[] => {
  const { op, inputs } = node;
  const places = inputs.flatMap((name, place) => (isMasked(name) ? [place] : []));
  if (op === 'Pad') return places.filter((place) => place === 0);
  if (op === 'Conv') {
    const pads = attributeIntegers(node, 'pads') ?? [];
    return pads.at(-1) === 0 || pads.length === 0 ? [] : places.filter((place) => place === 0);
  }
  const along = attributeIntegers(node, 'axis')?.[0] ?? 0;
  // What joins only values of the item joins no zeros.
  return op === 'Concat' && (along + rank) % rank === axis && places.length < inputs.length ? places : [];
};

/** @returns the model, with a mask for each of these rates */
export const masked = (model: Model, mask: Mask): { readonly model: Model; readonly rates: number[] } => {
  const after = new Wiring(model).after([mask.data]);
  const rates = new Map([[mask.data, 1]]);
  const used = new Set<number>();
  const initialisers = new Map(model.initialisers);
  const nodes: Node[] = [];
  const made = new Map<string, string>();

  const add = (op: string, inputs: readonly string[], attributes: [string, Attribute][] = []): string => {
    const output = `masked_${nodes.length}`;
    const name = `mask/${output}`;
    nodes.push({ name, op, domain: '', inputs, outputs: [output], attributes: new Map(attributes) });
    return output;
  };
  const constant = (value: number): string => {
    const name = `mask_constant_${value}`;
    initialisers.set(name, ints(name, [value]));
    return name;
  };
  const lengthOf = (value: string): string =>
    add('Slice', [add('Shape', [value]), constant(mask.axis), constant(mask.axis + 1)]);
  const maskedOf = (value: string): string => {
    const known = made.get(value);
    if (known !== undefined) return known;
    const rate = rates.get(value) ?? 1;
    used.add(rate);
    const whole = maskInput(rate);
    const length = lengthOf(value);
    const beside = mask.isCentred ? add('Sub', [lengthOf(whole), length]) : undefined;
    const start = beside === undefined ? add('Neg', [length]) : add('Div', [beside, constant(2)]);
    const end = beside === undefined ? constant(farEnd) : add('Add', [start, length]);
    const own = add('Slice', [whole, start, end, constant(mask.axis)]);
    const product = add('Mul', [value, own]);
    made.set(value, product);
    return product;
  };

  for (const node of model.nodes) {
    const places = paddedInputs(node, mask, (name) => after.has(name));
    nodes.push({
      ...node,
      inputs: node.inputs.map((name, place) => (places.includes(place) ? maskedOf(name) : name)),
    });
    const rate = node.inputs.map((name) => rates.get(name)).find((known) => known !== undefined);
    if (rate === undefined || node.op === 'Shape') continue;
    const factor = node.op === 'ConvTranspose' ? (attributeIntegers(node, 'strides')?.at(-1) ?? 1) : 1;
    for (const name of node.outputs) rates.set(name, rate * factor);
  }
  const inputs = [...used].map((rate) => ({
    ...{ name: maskInput(rate), type: elementTypes.float32, dims: maskDims(mask, `places ${rate}`) },
  }));
  return { model: { ...model, nodes, initialisers, inputs: [...model.inputs, ...inputs] }, rates: [...used] };
};
