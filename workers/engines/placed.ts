/**
 * The graphs of a pack, each on the GPU or on the CPU.
 *
 *   measured --settle--> on the GPU --(the GPU is lost)--> on the CPU
 *                    \-> on the CPU
 *
 * While a pack loads, each window runs on both devices, and on the GPU at each size of a batch. A graph stays on the GPU if it
 * is faster there and gives the results of the CPU. Its other windows run on the CPU: for one that is new, a driver may
 * compile shaders. If a run on the GPU fails, the CPU runs it again: the listeners get the same speech, later. The CPU also
 * runs it if other threads use the GPU for too long.
 */
import type { InferenceSession } from 'onnxruntime-node';
import type { GpuGraphs } from '../../src/config.js';
import type { Clock } from '../../src/monotonic.js';
import { type GpuState, type Placement, GpuBusyError, GpuLostError } from '../../src/threads/gpu.js';
import type { NativeGuard } from '../../src/threads/vitals.js';
import type { EngineLog } from './engine.js';
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

/** A graph stays on the GPU if it takes less than this part of its time on the CPU. */
const worthPart = 0.8;
/** A larger batch is used if it takes less than this part of two runs of half its size. */
const largerWorthPart = 0.9;
/** The longest run of a batch, in milliseconds: a new listener may have to wait for one. */
const batchMsMax = 50;
/** The most that the results of the two devices may differ: absolute below 1, relative above. */
const tolerance = 1e-2;
/** A graph that took this long on the GPU, and ten times as long as on the CPU, is measured no further. */
const hopelessMs = 500;

export interface GpuSession extends Pick<InferenceSession, 'run' | 'release'> {
  /** Absent: its graph runs alone, on any window. */
  readonly windows?: WindowedGraph;
}

/** What is known of a graph while its pack loads. */
interface Measure {
  /** It runs on the GPU in any case. */
  readonly isChosen: boolean;
  /** By size of the batch, over all runs. */
  readonly gpuMs: Map<number, number>;
  cpuMs: number;
  difference: number;
  /** Two runs on the CPU differ: the graph draws random numbers. */
  isRandom: boolean;
  /** The largest batch that is worth it. */
  size: number;
  readonly windows: Set<string>;
}

interface TimedRun {
  /** For each item. */
  readonly made: Made[];
  readonly ms: number;
}

export interface PlacedParts {
  readonly pack: string;
  readonly state: GpuState;
  readonly native: NativeGuard;
  readonly log: EngineLog;
  readonly graphs: GpuGraphs;
  readonly batchMax: number;
  /** Threads that take turns on the GPU, and would all run the graphs on the CPU. */
  readonly threads: number;
  /** By `PACK/GRAPH`. Kept for the next load of the pack, in this thread or another one of its pool. */
  readonly placements: Map<string, Placement>;
  /** The graph may run on the GPU. */
  readonly isForGpu: (name: string) => boolean;
  /** Takes the lock of the GPU. */
  readonly createGpu: (name: string) => Promise<GpuSession>;
  /** All graphs on the CPU. */
  readonly createCpu: () => Promise<Runs>;
  /** Of the measurements. */
  readonly clock: Clock;
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

const windowKey = (feeds: Feeds, windows: WindowedGraph | undefined): string | null =>
  windowOf(feeds, windows ?? { shared: [] });

const rounded = (ms: number): number => Math.round(10 * ms) / 10;

const placementOf = (measure: Measure, threads: number): Placement => {
  const { isChosen, cpuMs, difference, isRandom, size } = measure;
  const gpuMs = measure.gpuMs.get(1) ?? 0;
  const itemMs = (measure.gpuMs.get(size) ?? 0) / size;
  const isWrong = !isRandom && difference > tolerance;
  const isWorth = itemMs > 0 && threads * itemMs < worthPart * cpuMs;
  const device = isChosen || (isWorth && !isWrong) ? 'gpu' : 'cpu';
  const times = { gpuMs: rounded(gpuMs), itemMs: rounded(itemMs), cpuMs: rounded(cpuMs) };
  const windows = device === 'gpu' ? [...measure.windows] : [];
  return { device, batch: device === 'gpu' ? size : 1, windows, ...times, ...(isWrong && { difference }) };
};

export class PlacedSessions {
  readonly #parts: PlacedParts;
  readonly #gpu = new Map<string, GpuSession>();
  readonly #cpu: Runs;
  /** Graphs that are being measured. */
  readonly #measures = new Map<string, Measure>();
  /** Graphs with a window that the load should have run. */
  readonly #odd = new Set<string>();
  readonly #names: readonly string[];
  readonly #epoch: number;

  private constructor(names: readonly string[], cpu: Runs, parts: PlacedParts) {
    this.#names = names;
    this.#epoch = parts.state.epoch;
    this.#cpu = cpu;
    this.#parts = parts;
  }

  /** @throws if the CPU cannot load the graphs either */
  static async load(names: readonly string[], parts: PlacedParts): Promise<PlacedSessions> {
    const made = new PlacedSessions(names, await parts.createCpu(), parts);
    try {
      await made.#load();
    } catch (error) {
      await made.release();
      throw error;
    }
    return made;
  }

  async #load(): Promise<void> {
    const { createGpu, isForGpu, placements, graphs, batchMax } = this.#parts;
    for (const name of this.#names) {
      const key = this.#keyOf(name);
      const known = placements.get(key);
      const isChosen = graphs !== 'measured';
      const isWanted = isChosen ? graphs === 'all' || graphs.includes(key) : known?.device !== 'cpu';
      if (!isWanted || !isForGpu(name) || this.#isLost) continue;
      try {
        const session = await createGpu(name);
        this.#gpu.set(name, session);
        if (known?.device === 'gpu') continue;
        const none = { gpuMs: new Map<number, number>(), cpuMs: 0, difference: 0, isRandom: false };
        const size = session.windows === undefined ? 1 : sizesTo(batchMax).at(-1)!;
        this.#measures.set(name, { isChosen, ...none, size, windows: new Set() });
      } catch (error) {
        this.#lose(name, error);
        break;
      }
    }
    for (const name of this.#names) if (!this.#gpu.has(name)) this.#place(name);
  }

  /** Also after a reload that tries the GPU again: these sessions stay on the CPU. */
  get #isLost(): boolean {
    const { state } = this.#parts;
    return state.isLost || state.epoch !== this.#epoch;
  }

  /** The most steps that are worth running together. */
  get batchMax(): number {
    let max = 1;
    if (this.#isLost) return max;
    for (const name of this.#gpu.keys()) max = Math.max(max, this.#sizeOf(name));
    return max;
  }

  /** `undefined`: the graph makes no batches. */
  windowsOf(name: string): WindowedGraph | undefined {
    return this.#gpu.get(name)?.windows;
  }

  /** The load has run every window: chooses the devices of the graphs. Idempotent. */
  async settle(): Promise<void> {
    const { log, placements, threads } = this.#parts;
    for (const [name, measure] of this.#measures) {
      const placement = placementOf(measure, threads);
      const { device, difference } = placement;
      const graph = this.#keyOf(name);
      if (difference !== undefined)
        log.warn({ graph, difference }, 'the GPU gives wrong results: the CPU runs the graph');
      placements.set(graph, placement);
      if (device === 'cpu') await this.#dropGpu(name);
    }
    this.#measures.clear();
  }

  async release(): Promise<void> {
    for (const name of [...this.#gpu.keys()]) await this.#dropGpu(name);
    await this.#cpu.release();
  }

  /** Runs a graph for each of these feeds, which have equal windows. An item that cannot run has an error. */
  async runAll(name: string, items: readonly Feeds[]): Promise<(Made | Error)[]> {
    const measure = this.#measures.get(name);
    const session = this.#gpu.get(name);
    if (session === undefined) return this.#runOnCpu(name, items);
    if (this.#isLost) {
      await this.#dropGpu(name);
      this.#place(name);
      return this.#runOnCpu(name, items);
    }
    if (measure !== undefined)
      return [await this.#measured(name, session, measure, items[0]!).catch(errorOf)];
    if (!this.#isKnown(name, session, items[0]!)) return this.#runOnCpu(name, items);
    try {
      const made: Made[] = [];
      const most = this.#sizeOf(name);
      for (let from = 0; from < items.length; from += most)
        made.push(...(await this.#runOnGpu(session, items.slice(from, from + most), most)).made);
      return made;
    } catch (error) {
      const made = await this.#runOnCpu(name, items);
      // If the CPU fails too, an input is at fault and not the GPU.
      const gpuIsAtFault = !(error instanceof GpuBusyError) && !made.some((own) => own instanceof Error);
      if (gpuIsAtFault) await this.#leaveGpu(name, error);
      return made;
    }
  }

  #placement(name: string): Placement | undefined {
    return this.#parts.placements.get(this.#keyOf(name));
  }

  #sizeOf(name: string): number {
    return this.#placement(name)?.batch ?? 1;
  }

  /** The load ran the window on the GPU. */
  #isKnown(name: string, { windows }: GpuSession, feeds: Feeds): boolean {
    if (windows === undefined) return true;
    const window = windowOf(feeds, windows);
    if (window === null || this.#placement(name)?.windows.includes(window) === true) return window !== null;
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

  /** @param most the largest batch that is used */
  async #runOnGpu(session: GpuSession, items: readonly Feeds[], most: number): Promise<TimedRun> {
    const { state, native, clock } = this.#parts;
    const { windows } = session;
    const size = sizesTo(most).find((known) => known >= items.length)!;
    return state.hold(async () => {
      // Another thread lost it meanwhile.
      if (this.#isLost) throw new GpuLostError('the GPU is lost');
      // The time includes the copies, but not the wait for other threads.
      const startMs = clock();
      const feeds = windows === undefined ? items[0]! : stacked(items, size, windows);
      const all = await native(() => session.run(feeds));
      const made = windows === undefined ? [all] : splitUp(all, items, windows);
      return { made, ms: clock() - startMs };
    });
  }

  /** A run while the pack loads. */
  async #measured(name: string, session: GpuSession, measure: Measure, feeds: Feeds): Promise<Made> {
    const { state } = this.#parts;
    const window = windowKey(feeds, session.windows);
    const runOnCpu = () => this.#cpu.run[name]!(feeds);
    if (window === null || measure.windows.has(window)) return runOnCpu();
    let expected: Made | undefined;
    if (!measure.isChosen) {
      const { clock } = this.#parts;
      const startMs = clock();
      const first = await runOnCpu();
      const middleMs = clock();
      expected = await runOnCpu();
      const cpuMs = Math.min(middleMs - startMs, clock() - middleMs);
      if ((measure.gpuMs.get(1) ?? 0) > Math.max(hopelessMs, 10 * measure.cpuMs)) return expected;
      measure.cpuMs += cpuMs;
      measure.isRandom ||= differenceOf(first, expected) > 0;
    }
    try {
      let made: Made | undefined;
      let halfMs = Infinity;
      for (const size of sizesTo(measure.size)) {
        const items = Array.from({ length: size }, () => feeds);
        const run = () => state.whenFree(() => this.#runOnGpu(session, items, size));
        // The first run of a size compiles its shaders.
        const first = await run();
        made ??= first.made[0]!;
        if (expected === undefined) continue;
        const timed = await run();
        measure.gpuMs.set(size, (measure.gpuMs.get(size) ?? 0) + timed.ms);
        for (const own of timed.made)
          measure.difference = Math.max(measure.difference, differenceOf(expected, own));
        if (size > 1 && (timed.ms > batchMsMax || timed.ms > largerWorthPart * 2 * halfMs)) {
          measure.size = size / 2;
          break;
        }
        halfMs = timed.ms;
      }
      measure.windows.add(window);
      return expected ?? made!;
    } catch (error) {
      // If the CPU fails too, the input is at fault and not the GPU.
      expected ??= await runOnCpu();
      this.#measures.delete(name);
      await this.#leaveGpu(name, error);
      return expected;
    }
  }

  /** Never rejects: if the GPU cannot release the graph, its memory stays until the process ends. */
  async #dropGpu(name: string): Promise<void> {
    const session = this.#gpu.get(name);
    if (session === undefined) return;
    this.#gpu.delete(name);
    const { state, native, log } = this.#parts;
    try {
      await state.whenFree(() => state.hold(() => native(() => session.release())), this.#epoch);
    } catch (error) {
      log.warn(
        { graph: this.#keyOf(name), reason: firstLine(error) },
        'the GPU keeps the memory of a graph until the service is restarted',
      );
    }
  }

  async #leaveGpu(name: string, error: unknown): Promise<void> {
    this.#lose(name, error);
    this.#place(name);
    await this.#dropGpu(name);
  }

  #lose(name: string, error: unknown): void {
    const { log, state } = this.#parts;
    if (!state.lose(this.#epoch)) return;
    log.warn(
      { graph: this.#keyOf(name), reason: firstLine(error) },
      'the GPU failed: the CPU runs all graphs until the voices are reloaded',
    );
  }

  /** The CPU runs a graph without a measurement. */
  #place(name: string): void {
    const known = this.#placement(name);
    const times = known ?? { gpuMs: 0, itemMs: 0, cpuMs: 0 };
    this.#parts.placements.set(this.#keyOf(name), { ...times, device: 'cpu', batch: 1, windows: [] });
  }

  #keyOf(name: string): string {
    return `${this.#parts.pack}/${name}`;
  }
}
