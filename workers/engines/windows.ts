/**
 * Windows: the shapes of the runs of a graph on a GPU. The load runs each of them, at each size of a batch, and no other is
 * run there later: a driver may compile shaders for a new one, while listeners wait. What an item has is brought to a
 * window: zeros fill the rest, and a mask keeps them from changing the item's output.
 */
import { type InferenceSession, Tensor } from 'onnxruntime-node';
import { type Mask, maskDims, maskInput } from './graph/masked.js';
import { product } from './graph/model.js';
import { copyRows } from './tensors.js';

export type Feeds = Record<string, Tensor>;
export type Made = InferenceSession.ReturnType;

/** How an item fills a window. */
export interface Fit {
  /** Places along the window's time axis, and those of the item: so many, from here on. */
  readonly length: number;
  readonly from: number;
  readonly count: number;
  /** The time axis of inputs, by name. One that is not named is the same in every window. */
  readonly axes: Readonly<Record<string, number>>;
  /** Inputs with another length than the window's. */
  readonly lengths?: Readonly<Record<string, number>>;
  /** Inputs that the window decides. */
  readonly own?: Feeds;
  /** Outputs: values at the end of this axis that are not the item's. */
  readonly surplus: Readonly<Record<string, { readonly axis: number; readonly count: number }>>;
  /** Outputs that are of no use. */
  readonly useless?: readonly string[];
}

/** How a graph runs on a GPU. */
export interface GraphWindows {
  /** Inputs that are equal for all items of a batch. */
  readonly shared: readonly string[];
  /** The graph pads with zeros at the edges of an item: then a window needs a mask. */
  readonly mask?: Mask;
  /** Inner values have up to so many more places than the window. */
  readonly innerPlaces?: number;
  /** Absent: all items are windows as they are. @returns `null`: it fits none */
  readonly fit?: (feeds: Feeds) => Fit | null;
}

/** What is known of a graph that was loaded for windows. */
export interface WindowedGraph extends GraphWindows {
  /** Places of inner values for a place of the window, of each mask. */
  readonly rates: readonly number[];
}

type Data = Float32Array | BigInt64Array;

const dimsOf = (name: string, { dims }: Tensor, fit: Fit | undefined): readonly number[] => {
  const axis = fit?.axes[name];
  return axis === undefined ? dims : dims.with(axis, fit!.lengths?.[name] ?? fit!.length);
};

/** The same for all items that can run as one. `null`: the item fits no window. */
export const windowOf = (feeds: Feeds, { shared, fit: fitOf }: GraphWindows): string | null => {
  const fit = fitOf?.(feeds);
  if (fit === null) return null;
  return Object.entries({ ...feeds, ...fit?.own })
    .map(([name, tensor]) =>
      shared.includes(name) ? String(tensor.data) : dimsOf(name, tensor, fit).join('x'),
    )
    .join(' ');
};

/** The sizes of batches, up to the largest. A batch has items without a listener if there are too few. */
export const sizesTo = (max: number): number[] => {
  const sizes = [1];
  while (2 * sizes.at(-1)! <= max) sizes.push(2 * sizes.at(-1)!);
  return sizes;
};

const masksOf = ({ mask, rates, innerPlaces = 0 }: WindowedGraph, fit: Fit): Feeds => {
  const masks: Feeds = {};
  for (const rate of rates) {
    const ones = new Float32Array((fit.length + innerPlaces) * rate).fill(1);
    ones.fill(0, 0, fit.from * rate);
    ones.fill(0, ones.length - (fit.length - fit.from - fit.count) * rate);
    masks[maskInput(rate)] = new Tensor('float32', ones, maskDims(mask!, ones.length));
  }
  return masks;
};

/** The feeds of one run for items of one window. @param size of the batch; the first item fills it up */
export const stacked = (items: readonly Feeds[], size: number, graph: WindowedGraph): Feeds => {
  const given = items.map((feeds) => {
    const fit = graph.fit?.(feeds) ?? undefined;
    return { fit, feeds: fit === undefined ? feeds : { ...feeds, ...fit.own, ...masksOf(graph, fit) } };
  });
  const first = given[0]!;
  const all: Feeds = {};
  for (const [name, tensor] of Object.entries(first.feeds)) {
    if (graph.shared.includes(name)) {
      all[name] = tensor;
      continue;
    }
    const dims = dimsOf(name, tensor, first.fit);
    const length = product(dims);
    const data = new (tensor.data.constructor as new (length: number) => Data)(size * length);
    for (let item = 0; item < size; item++) {
      const { feeds, fit } = given[item] ?? first;
      const axis = fit?.axes[name];
      // An input with a length of its own begins with the item.
      const from = axis === undefined || fit?.lengths?.[name] !== undefined ? 0 : fit!.from;
      const own = feeds[name]!;
      const at = item * length + from * product(dims.slice((axis ?? 0) + 1));
      copyRows(own.data as Data, own.dims, data.subarray(at, (item + 1) * length), dims, axis ?? 0);
    }
    all[name] = new Tensor(tensor.type, data, [size, ...dims]);
  }
  return all;
};

/** All values but so many at the end of an axis. */
const withoutEnd = ({ type, data, dims }: Tensor, axis: number, count: number): Tensor => {
  const kept = dims.with(axis, dims[axis]! - count);
  const own = new (data.constructor as new (length: number) => Data)(product(kept));
  copyRows(data as Data, dims, own, kept, axis);
  return new Tensor(type, own, kept);
};

/** What a run made for each of these items. */
export const splitUp = (made: Made, items: readonly Feeds[], { fit: fitOf }: GraphWindows): Made[] =>
  items.map((feeds, item) => {
    const { surplus = {}, useless = [] } = fitOf?.(feeds) ?? {};
    const own: Record<string, Tensor> = {};
    for (const [name, { type, data, dims }] of Object.entries(made)) {
      if (useless.includes(name)) continue;
      const length = product(dims.slice(1));
      const tensor = new Tensor(
        type,
        (data as Data).slice(item * length, (item + 1) * length),
        dims.slice(1),
      );
      const { axis = 0, count = 0 } = surplus[name] ?? {};
      own[name] = count === 0 ? tensor : withoutEnd(tensor, axis, count);
    }
    return own;
  });
