/**
 * Lets a graph run on a window that is longer than what it holds. A net pads with zeros at the edges of an item. Beyond the
 * item the window has other values, so this multiplies them by zero wherever the graph pads. What the graph makes for the
 * item is then the same; what it makes beyond is of no use.
 */
import { GraphEdit, farEnd } from './edit.js';
import type { Model, Node } from './model.js';
import { elementTypes } from './model.js';
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
  const edit = new GraphEdit(model.initialisers, 'masked');
  const add = (op: string, ...inputs: readonly string[]): string => edit.node(op, inputs);
  const lengthOf = (value: string): string => edit.slice(add('Shape', value), mask.axis, mask.axis + 1, 0);
  const maskedOf = (value: string): string =>
    edit.once(`masked ${value}`, () => {
      const rate = rates.get(value) ?? 1;
      used.add(rate);
      const whole = maskInput(rate);
      const length = lengthOf(value);
      const beside = mask.isCentred ? add('Sub', lengthOf(whole), length) : undefined;
      const start = beside === undefined ? add('Neg', length) : add('Div', beside, edit.constant([2]));
      const end = beside === undefined ? farEnd : add('Add', start, length);
      return add('Mul', value, edit.slice(whole, start, end, mask.axis));
    });

  for (const node of model.nodes) {
    const places = paddedInputs(node, mask, (name) => after.has(name));
    // The nodes of its masks come before it.
    const inputs = node.inputs.map((name, place) => (places.includes(place) ? maskedOf(name) : name));
    edit.nodes.push({ ...node, inputs });
    const rate = node.inputs.map((name) => rates.get(name)).find((known) => known !== undefined);
    if (rate === undefined || node.op === 'Shape') continue;
    const factor = node.op === 'ConvTranspose' ? (attributeIntegers(node, 'strides')?.at(-1) ?? 1) : 1;
    for (const name of node.outputs) rates.set(name, rate * factor);
  }
  const inputs = [...used].map((rate) => ({
    ...{ name: maskInput(rate), type: elementTypes.float32, dims: maskDims(mask, `places ${rate}`) },
  }));
  const { nodes, initialisers } = edit;
  return { model: { ...model, nodes, initialisers, inputs: [...model.inputs, ...inputs] }, rates: [...used] };
};
