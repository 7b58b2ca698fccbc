/**
 * Regions: parts of a graph with many convolutions whose reach is short beside a piece. A region as a whole keeps the end of
 * its input, and computes a few samples at the edges again. That costs less than to keep the end of the input of each
 * convolution: between them nothing is copied, and no values change their order.
 */
import type { Model, Node } from './model.js';
import { type PieceByPiece, elementwise, pieceByPiece, unary } from './streams.js';
import { type Wiring, usedBy } from './surgery.js';

/** What a region computes twice in a run, in frames. */
const repeatedFramesMax = 2;

export interface Region {
  /** The stream that it takes, and the one that it makes. */
  readonly start: string;
  readonly end: string;
  readonly nodes: ReadonlySet<Node>;
  /** Samples before and after a sample that its output depends on. */
  readonly before: number;
  readonly after: number;
}

type Reach = Pick<Region, 'before' | 'after'>;

/** What is known where a region may start. */
export interface RegionSurroundings {
  readonly model: Model;
  readonly wiring: Wiring;
  /** The shape of weights. */
  readonly dimsOf: (weights: string) => readonly number[];
  /** The value is the same in every run. */
  readonly isFixed: (name: string) => boolean;
}

/** From a stream to where the number of samples changes next; `null` if there is no region. @param rate samples of a frame */
export const regionFrom = (
  start: string,
  rate: number,
  { model, wiring, dimsOf, isFixed }: RegionSurroundings,
): Region | null => {
  const after = wiring.after([start]);
  const isAfter = (name: string | undefined) => name !== undefined && name !== start && after.has(name);
  const next = model.nodes.find(({ op, outputs }) => op === 'ConvTranspose' && isAfter(outputs[0]));
  const end = next?.inputs[0] ?? model.outputs[0]!.name;
  const nodes = wiring.before([end], new Set([start])).filter(({ outputs }) => isAfter(outputs[0]));
  const reaches = new Map<string, Reach>([[start, { before: 0, after: 0 }]]);
  for (const node of nodes) {
    const reach = reachOf(node, reaches, isFixed, dimsOf);
    if (reach === null) return null;
    reaches.set(node.outputs[0]!, reach);
  }
  const reach = reaches.get(end);
  if (reach === undefined || reach.after === 0 || reach.before + reach.after > repeatedFramesMax * rate)
    return null;
  const region = { start, end, nodes: new Set(nodes), ...reach };
  return isClosed(region, wiring) ? region : null;
};

const reachOf = (
  node: Node,
  reaches: ReadonlyMap<string, Reach>,
  isFixed: (name: string) => boolean,
  dimsOf: (weights: string) => readonly number[],
): Reach | null => {
  const { op, inputs } = node;
  if (!usedBy(node).every((name) => reaches.has(name) || isFixed(name))) return null;
  const given = inputs.flatMap((name) => reaches.get(name) ?? []);
  const [before, after] = [Math.max(...given.map((r) => r.before)), Math.max(...given.map((r) => r.after))];
  if (unary.has(op) || elementwise.has(op)) return { before, after };
  if (op !== 'Conv' || !reaches.has(inputs[0]!)) return null;
  const more: PieceByPiece = pieceByPiece(node, dimsOf(inputs[1]!));
  return { before: before + more.before, after: after + more.after };
};

/** Nothing else takes what is made inside. */
const isClosed = ({ nodes, end }: Region, wiring: Wiring): boolean =>
  [...nodes]
    .flatMap(({ outputs }) => outputs)
    .every((name) => name === end || (wiring.takers.get(name) ?? []).every((taker) => nodes.has(taker)));
