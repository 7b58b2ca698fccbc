/**
 * The graphs of a pack, each on the GPU (those of `GPU_GRAPHS`) or on the CPU.
 *
 * While a pack loads, each window of a graph runs on the GPU once at each size of a batch, because a driver may compile
 * shaders for it, and once on the CPU. A graph with other results on the GPU stays on the CPU. Windows that the load did not
 * run are for the CPU. If a run on the GPU fails, the CPU runs it again: the listeners get the same speech, later. The CPU
 * also runs it if another thread uses the GPU for too long.
 *
 * Steps of several segments may run as a batch: side by side, until each of them waits for a run. Then those runs become one
 * that have the same graph and equal windows, the earliest graph of a step first.
 */
import type { InferenceSession } from 'onnxruntime-node';
import { GpuBusyError } from '../../src/threads/gpu.js';
import type { Batches, EngineMeans, GpuMeans } from './engine.js';
import { firstLine } from './entries.js';
import { errorOf } from './steps.js';
import { type Feeds, type Made, type WindowedGraph, sizesTo, splitUp, stacked, windowOf } from './windows.js';

export type Run = (feeds: InferenceSession.FeedsType) => Promise<Made>;

/** Graphs by name. */
export interface Runs<Name extends string = string> {
  readonly run: Readonly<Record<Name, Run>>;
  /** Frees the models. Call it when none of them runs. */
  readonly release: () => Promise<void>;
}

/** The most that the results of the two devices may differ: absolute below 1, relative above. */
const tolerance = 1e-2;

export interface GpuSession extends Pick<InferenceSession, 'run' | 'release'> {
  /** Absent: its graph runs alone, on any window. */
  readonly windows?: WindowedGraph;
}

interface WaitingRun {
  readonly name: string;
  /** `null`: it runs alone. */
  readonly window: string | null;
  readonly feeds: Feeds;
  readonly resolve: (made: Made) => void;
  readonly reject: (error: unknown) => void;
}

const immediate = () => new Promise<void>((resolve) => setImmediate(resolve));

/** The placements are kept for the next load of the pack in this thread, which runs no windows. */
export interface PlacedParts
  extends
    Pick<GpuMeans, 'state' | 'graphs' | 'batchMax' | 'placements'>,
    Pick<EngineMeans, 'native' | 'log'> {
  readonly pack: string;
  /** The graph may run on the GPU. */
  readonly isForGpu: (name: string) => boolean;
  /** Takes the lock of the GPU. */
  readonly createGpu: (name: string) => Promise<GpuSession>;
  /** All graphs on the CPU. */
  readonly createCpu: () => Promise<Runs>;
}

const differenceOf = (expected: Made, made: Made): number => {
  let worst = 0;
  for (const [name, { data: other }] of Object.entries(made)) {
    const { data } = expected[name]!;
    if (other.length !== data.length) return Infinity;
    for (let i = 0; i < data.length; i++) {
      const value = Number(data[i]);
      const off = Math.abs(value - Number(other[i])) / Math.max(1, Math.abs(value));
      // Written so that it counts NaN, too.
      if (!(off <= worst)) worst = Number.isNaN(off) ? Infinity : off;
    }
  }
  return worst;
};

export class PlacedSessions implements Runs, Batches {
  readonly run: Runs['run'];
  readonly #parts: PlacedParts;
  /** In the order in which a step runs them. */
  readonly #names: readonly string[];
  readonly #gpu = new Map<string, GpuSession>();
  readonly #cpu: Runs;
  /** Graphs on the GPU whose windows the load runs. */
  readonly #loading = new Set<string>();
  /** Graphs with a window that the load should have run. */
  readonly #odd = new Set<string>();
  /** `null`: a step runs alone, and its runs at once. */
  #waiting: WaitingRun[] | null = null;

  private constructor(names: readonly string[], cpu: Runs, parts: PlacedParts) {
    this.run = Object.fromEntries(names.map((name) => [name, (feeds) => this.#run(name, feeds)]));
    this.#names = names;
    this.#cpu = cpu;
    this.#parts = parts;
  }

  /** @param names of the graphs, in the order in which a step runs them @throws if the CPU cannot load them either */
  static async load(names: readonly string[], parts: PlacedParts): Promise<PlacedSessions> {
    const made = new PlacedSessions(names, await parts.createCpu(), parts);
    for (const name of names) await made.#load(name);
    return made;
  }

  async #load(name: string): Promise<void> {
    const { createGpu, isForGpu, placements, graphs, state } = this.#parts;
    const key = this.#keyOf(name);
    const known = placements.get(key);
    if (known === undefined) placements.set(key, { device: 'cpu', windows: new Set() });
    const isWanted = isForGpu(name) && (graphs === 'all' || graphs.includes(key));
    if (!isWanted || known?.difference !== undefined || state.isLost) return;
    try {
      this.#gpu.set(name, await createGpu(name));
    } catch (error) {
      this.#lose(name, error);
      return;
    }
    if (known?.device === 'gpu') return;
    placements.set(key, { device: 'gpu', windows: new Set() });
    this.#loading.add(name);
  }

  get batchMax(): number {
    return this.#parts.state.isLost ? 1 : Math.max(1, ...[...this.#gpu.values()].map(this.#sizeOf));
  }

  /** The load has run every window. */
  settle(): void {
    this.#loading.clear();
  }

  readonly release = async (): Promise<void> => {
    for (const name of [...this.#gpu.keys()]) await this.#dropGpu(name);
    await this.#cpu.release();
  };

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

  /** @param feeds in memory of their own: other steps go on before they are run */
  async #run(name: string, feeds: Feeds): Promise<Made> {
    if (this.#waiting === null) {
      const [made] = await this.runAll(name, [feeds]);
      if (made instanceof Error) throw made;
      return made!;
    }
    const windows = this.#gpu.get(name)?.windows;
    const window = windows === undefined ? null : windowOf(feeds, windows);
    return new Promise((resolve, reject) => {
      this.#waiting!.push({ name, window, feeds, resolve, reject });
    });
  }

  /** The earliest graph: then more steps come to the later ones. */
  async #runNext(): Promise<void> {
    const waiting = this.#waiting!;
    const name = this.#names.find((known) => waiting.some((run) => run.name === known));
    if (name === undefined) return;
    const first = waiting.find((run) => run.name === name)!;
    const isWith = (run: WaitingRun) => first.window !== null && run.window === first.window;
    const group = waiting.filter((run) => run === first || (run.name === name && isWith(run)));
    this.#waiting = waiting.filter((run) => !group.includes(run));
    try {
      const made = await this.runAll(
        name,
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

  /** Runs a graph for each of these feeds, which have equal windows. An item that cannot run has an error. */
  async runAll(name: string, items: readonly Feeds[]): Promise<(Made | Error)[]> {
    const session = this.#gpu.get(name);
    if (session === undefined) return this.#runOnCpu(name, items);
    if (this.#parts.state.isLost) {
      await this.#dropGpu(name);
      return this.#runOnCpu(name, items);
    }
    if (this.#loading.has(name)) return [await this.#tried(name, session, items[0]!).catch(errorOf)];
    if (!this.#isKnown(name, session, items[0]!)) return this.#runOnCpu(name, items);
    try {
      const made: Made[] = [];
      const most = this.#sizeOf(session);
      for (let from = 0; from < items.length; from += most)
        made.push(...(await this.#runOnGpu(session, items.slice(from, from + most), true)));
      return made;
    } catch (error) {
      const made = await this.#runOnCpu(name, items);
      // If the CPU fails too, an input is at fault and not the GPU.
      const gpuIsAtFault = !(error instanceof GpuBusyError) && !made.some((own) => own instanceof Error);
      if (gpuIsAtFault) await this.#leaveGpu(name, error);
      return made;
    }
  }

  /** The largest batch of a graph. */
  readonly #sizeOf = ({ windows }: GpuSession): number =>
    windows === undefined ? 1 : sizesTo(this.#parts.batchMax).at(-1)!;

  #windowsRun(name: string): Set<string> {
    return this.#parts.placements.get(this.#keyOf(name))!.windows;
  }

  /** The load ran the window on the GPU. */
  #isKnown(name: string, { windows }: GpuSession, feeds: Feeds): boolean {
    if (windows === undefined) return true;
    const window = windowOf(feeds, windows);
    if (window === null || this.#windowsRun(name).has(window)) return window !== null;
    if (!this.#odd.has(name))
      this.#parts.log.warn(
        { graph: this.#keyOf(name), window },
        'the load did not run a window: the CPU runs it',
      );
    this.#odd.add(name);
    return false;
  }

  async #runOnCpu(name: string, items: readonly Feeds[]): Promise<(Made | Error)[]> {
    const made: (Made | Error)[] = [];
    for (const feeds of items) made.push(await this.#cpu.run[name]!(feeds).catch(errorOf));
    return made;
  }

  async #runOnGpu(session: GpuSession, items: readonly Feeds[], isStep: boolean): Promise<Made[]> {
    const { state, native } = this.#parts;
    const { windows } = session;
    if (windows === undefined) return [await state.hold(() => native(() => session.run(items[0]!)), isStep)];
    const size = sizesTo(this.#sizeOf(session)).find((known) => known >= items.length)!;
    const feeds = stacked(items, size, windows);
    const made = await state.hold(() => native(() => session.run(feeds)), isStep);
    return splitUp(made, items, windows);
  }

  /** A run while the pack loads. */
  async #tried(name: string, session: GpuSession, feeds: Feeds): Promise<Made> {
    const expected = await this.#cpu.run[name]!(feeds);
    const window = windowOf(feeds, session.windows ?? { shared: [] });
    const known = this.#windowsRun(name);
    if (window === null || known.has(window)) return expected;
    known.add(window);
    let difference = 0;
    try {
      for (const size of sizesTo(this.#sizeOf(session))) {
        const items = Array.from({ length: size }, () => feeds);
        for (const made of await this.#runOnGpu(session, items, false))
          difference = Math.max(difference, differenceOf(expected, made));
      }
    } catch (error) {
      await this.#leaveGpu(name, error);
      return expected;
    }
    // A graph that draws random numbers gives other results on the CPU, too.
    if (difference > tolerance && differenceOf(expected, await this.#cpu.run[name]!(feeds)) === 0) {
      const graph = this.#keyOf(name);
      this.#parts.log.warn({ graph, difference }, 'the GPU gives wrong results: the CPU runs the graph');
      this.#parts.placements.set(graph, { device: 'cpu', windows: new Set(), difference });
      await this.#dropGpu(name);
    }
    return expected;
  }

  /** Never rejects: if the GPU cannot release the graph, its memory stays until the process ends. */
  async #dropGpu(name: string): Promise<void> {
    const session = this.#gpu.get(name);
    if (session === undefined) return;
    this.#gpu.delete(name);
    const { state, native, log } = this.#parts;
    try {
      await state.hold(() => native(() => session.release()));
    } catch (error) {
      log.warn(
        { graph: this.#keyOf(name), reason: firstLine(error) },
        'the GPU keeps the memory of a graph until the service is restarted',
      );
    }
  }

  async #leaveGpu(name: string, error: unknown): Promise<void> {
    this.#lose(name, error);
    await this.#dropGpu(name);
  }

  #lose(name: string, error: unknown): void {
    const { log, state } = this.#parts;
    if (!state.lose()) return;
    log.warn(
      { graph: this.#keyOf(name), reason: firstLine(error) },
      'the GPU failed: the CPU runs all graphs until the service is restarted',
    );
  }

  #keyOf(name: string): string {
    return `${this.#parts.pack}/${name}`;
  }
}
