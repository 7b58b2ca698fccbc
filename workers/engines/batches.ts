/**
 * Batches: steps of several segments whose runs of a graph become one run. The steps run side by side until each of them
 * waits for a run. Then those run as one that have the same graph and equal windows, the earliest graph of a step first.
 */
import { type Feeds, type GraphWindows, type Made, windowOf } from './windows.js';

const immediate = () => new Promise<void>((resolve) => setImmediate(resolve));

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
  /** Runs a graph for each of these feeds, which have equal windows. An item that cannot run has an error. */
  runAll(graph: string, items: readonly Feeds[]): Promise<(Made | Error)[]>;
  /** `undefined`: it makes no batches. */
  windowsOf(graph: string): GraphWindows | undefined;
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

  /** The most steps that run together now. */
  get batchMax(): number {
    return this.#runner.batchMax;
  }

  /** @param feeds in memory of their own: other steps go on before they are run */
  async run(graph: string, feeds: Feeds): Promise<Made> {
    if (this.#waiting === null) {
      const [made] = await this.#runner.runAll(graph, [feeds]);
      if (made instanceof Error) throw made;
      return made!;
    }
    const windows = this.#runner.windowsOf(graph);
    const window = windows === undefined ? null : windowOf(feeds, windows);
    return new Promise((resolve, reject) => {
      this.#waiting!.push({ graph: this.#graphs.indexOf(graph), window, feeds, resolve, reject });
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
      for (const [i, { resolve, reject }] of group.entries()) {
        const own = made[i]!;
        if (own instanceof Error) reject(own);
        else resolve(own);
      }
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  }
}
