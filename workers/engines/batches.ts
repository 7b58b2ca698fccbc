/**
 * Batches: steps of several segments whose runs of a graph become one run. The steps run side by side until each of them
 * waits for a run. Then those run as one that have the same graph and equal windows, the earliest graph of a step first.
 */
import { type InferenceSession, Tensor } from 'onnxruntime-node';
import type { BatchInputs } from './graph/batched.js';

export type Feeds = Record<string, Tensor>;
export type Made = InferenceSession.ReturnType;

/** How a graph makes a batch. */
export interface GraphBatch extends BatchInputs {
  /** Axes that may be longer than an item needs, by input: so that windows become equal. */
  readonly padded?: Readonly<Record<string, number>>;
}

/** Padded axes are a multiple of this. */
const paddedTo = 16;

type Data = Float32Array | BigInt64Array;

const immediate = () => new Promise<void>((resolve) => setImmediate(resolve));

const dimsOf = (name: string, { dims }: Tensor, { padded = {} }: GraphBatch): readonly number[] => {
  const axis = padded[name];
  return axis === undefined
    ? dims
    : dims.map((size, i) => (i === axis ? Math.ceil(size / paddedTo) * paddedTo : size));
};

const sizeOf = (dims: readonly number[]): number => dims.reduce((product, size) => product * size, 1);

/** The same for all windows that can run as one. */
export const windowOf = (feeds: Feeds, batch: GraphBatch): string =>
  Object.entries(feeds)
    .map(([name, tensor]) =>
      batch.shared.includes(name) ? String(tensor.data) : dimsOf(name, tensor, batch).join('x'),
    )
    .join(' ');

/** The sizes of batches, up to the largest. A batch has items without a listener if there are too few. */
export const sizesTo = (max: number): number[] => {
  const sizes = [1];
  while (2 * sizes.at(-1)! <= max) sizes.push(2 * sizes.at(-1)!);
  return sizes;
};

/** Copies an item, [..., length], into one whose padded axis is longer. */
const copyInto = (into: Data, at: number, tensor: Tensor, dims: readonly number[], axis: number): void => {
  const data = tensor.data as Data;
  const inner = sizeOf(tensor.dims.slice(axis));
  const wide = sizeOf(dims.slice(axis));
  for (let from = 0, to = at; from < data.length; from += inner, to += wide)
    into.set(data.subarray(from, from + inner) as never, to);
};

/** The feeds of one run for equal windows. @param size of the batch; the first item fills it up */
export const stacked = (items: readonly Feeds[], size: number, batch: GraphBatch): Feeds => {
  const [first] = items;
  const feeds: Feeds = {};
  for (const [name, tensor] of Object.entries(first!)) {
    if (batch.shared.includes(name)) {
      feeds[name] = tensor;
      continue;
    }
    const dims = dimsOf(name, tensor, batch);
    const length = sizeOf(dims);
    const data = new (tensor.data.constructor as new (length: number) => Data)(size * length);
    for (let item = 0; item < size; item++)
      copyInto(data, item * length, (items[item] ?? first!)[name]!, dims, batch.padded?.[name] ?? 0);
    feeds[name] = new Tensor(tensor.type, data, [size, ...dims]);
  }
  return feeds;
};

/** What a run made for each of the first `count` items. */
export const splitUp = (made: Made, count: number): Made[] =>
  Array.from({ length: count }, (_, item) => {
    const own: Record<string, Tensor> = {};
    for (const [name, { type, data, dims }] of Object.entries(made)) {
      const length = sizeOf(dims.slice(1));
      own[name] = new Tensor(type, (data as Data).slice(item * length, (item + 1) * length), dims.slice(1));
    }
    return own;
  });

/** Feeds of its own: those of a step are in buffers that the next step uses again. */
const copied = (feeds: Feeds): Feeds =>
  Object.fromEntries(
    Object.entries(feeds).map(([name, { type, data, dims }]) => [
      name,
      new Tensor(type, (data as Data).slice(), dims),
    ]),
  );

interface WaitingRun {
  readonly graph: number;
  /** `null`: it runs alone. */
  readonly window: string | null;
  readonly feeds: Feeds;
  readonly resolve: (made: Made) => void;
  readonly reject: (error: unknown) => void;
}

/** Where the runs happen. */
export interface BatchRunner {
  /** Runs a graph for each of these feeds, which have equal windows. */
  runAll(graph: string, items: readonly Feeds[]): Promise<Made[]>;
  /** How a graph makes a batch; `undefined`: it makes none. */
  batchOf(graph: string): GraphBatch | undefined;
  /** The most steps that are worth running together now; 1: none. */
  readonly batchMax: number;
}

export class Batches {
  readonly #graphs: readonly string[];
  readonly #runner: BatchRunner;
  /** `null`: a step runs alone, and its runs at once. */
  #waiting: WaitingRun[] | null = null;

  /** @param graphs in the order in which a step runs them */
  constructor(graphs: readonly string[], runner: BatchRunner) {
    this.#graphs = graphs;
    this.#runner = runner;
  }

  get max(): number {
    return this.#runner.batchMax;
  }

  async run(graph: string, feeds: Feeds): Promise<Made> {
    if (this.#waiting === null) return (await this.#runner.runAll(graph, [feeds]))[0]!;
    const batch = this.#runner.batchOf(graph);
    const window = batch === undefined ? null : windowOf(feeds, batch);
    const own = copied(feeds);
    return new Promise((resolve, reject) => {
      this.#waiting!.push({ graph: this.#graphs.indexOf(graph), window, feeds: own, resolve, reject });
    });
  }

  /** Runs steps side by side. Each one waits for nothing but runs. */
  async together<T>(steps: readonly (() => Promise<T>)[]): Promise<PromiseSettledResult<T>[]> {
    if (this.#waiting !== null) throw new Error('two batches at once');
    this.#waiting = [];
    try {
      let isOver = false;
      const all = Promise.allSettled(steps.map((step) => step())).finally(() => {
        isOver = true;
      });
      // After a turn of the event loop, each step is over or waits for a run.
      await immediate();
      while (!isOver) {
        await this.#runNext();
        await immediate();
      }
      return await all;
    } finally {
      this.#waiting = null;
    }
  }

  /** The earliest graph: then more steps come to the later ones. */
  async #runNext(): Promise<void> {
    const waiting = this.#waiting!;
    if (waiting.length === 0) return;
    const first = waiting.reduce((earliest, run) => (run.graph < earliest.graph ? run : earliest));
    const { graph, window } = first;
    const isWith = (run: WaitingRun) => run === first || (window !== null && run.window === window);
    const group = waiting.filter((run) => run.graph === graph && isWith(run));
    this.#waiting = waiting.filter((run) => !group.includes(run));
    try {
      const made = await this.#runner.runAll(
        this.#graphs[graph]!,
        group.map(({ feeds }) => feeds),
      );
      for (const [i, { resolve }] of group.entries()) resolve(made[i]!);
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  }
}
