/** One kind of flood: what it does to a service at rest, and what must be true afterwards. */
import type { TortureService } from '../service.js';

export interface FloodParts {
  readonly service: TortureService;
  readonly voice: string;
  /** About how many connections; each flood makes of it what is much for its kind. */
  readonly count: number;
  /** What is drawn by chance follows from it. */
  readonly seed: number;
  /** As many new keys. */
  readonly keys: (count: number) => Promise<string[]>;
  readonly progress: (text: string) => void;
}

export interface FloodResult {
  readonly count: number;
  readonly outcome: string;
  readonly held: boolean;
}

export interface Flood {
  readonly fault: string;
  readonly injected: string;
  /** Whether somebody listens meanwhile: by default. */
  readonly hasNeighbours?: boolean;
  run(parts: FloodParts): Promise<FloodResult>;
}

/** `429 × 4,990, 200 × 10` */
export const formatCounts = (counts: ReadonlyMap<string, number>): string =>
  [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([name, count]) => `${name} × ${count.toLocaleString('en')}`)
    .join(', ') || 'nothing';

export const countOne = (counts: Map<string, number>, name: string): void => {
  counts.set(name, (counts.get(name) ?? 0) + 1);
};
