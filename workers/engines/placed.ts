/**
 * The graphs of a pack, each on the GPU or on the CPU.
 *
 *   measured --settle--> on the GPU --(the GPU is lost)--> on the CPU
 *                    \-> on the CPU
 *
 * While a pack loads, each run happens on both devices. A graph stays on the GPU if it is faster there and its results are
 * those of the CPU. If a run on the GPU fails, the CPU runs it again: the listener gets the same speech, later.
 */
import type { InferenceSession } from 'onnxruntime-node';
import type { GpuGraphs } from '../../src/config.js';
import type { Clock } from '../../src/monotonic.js';
import { type GpuState, type Placement, GpuLostError } from '../../src/threads/gpu.js';
import type { NativeGuard } from '../../src/threads/vitals.js';
import type { EngineLog } from './engine.js';
import { firstLine } from './entries.js';

type Feeds = InferenceSession.FeedsType;
type Made = InferenceSession.ReturnType;

export type Run = (feeds: Feeds) => Promise<Made>;

/** Graphs by name. */
export interface Runs<Name extends string = string> {
  readonly run: Readonly<Record<Name, Run>>;
  /** Frees the models. Call it when none of them runs. */
  readonly release: () => Promise<void>;
}

/** A graph stays on the GPU if it takes less than this part of its time on the CPU. */
const worthPart = 0.8;
/** The most that the results of the two devices may differ: absolute below 1, relative above. */
const tolerance = 1e-2;
/** A graph that took this long on the GPU, and ten times as long as on the CPU, is measured no further. */
const hopelessMs = 500;

export type GpuSession = Pick<InferenceSession, 'run' | 'release'>;

/** What is known of a graph that is being measured. */
interface Measure {
  gpuMs: number;
  cpuMs: number;
  difference: number;
  /** Two runs on the CPU differ: the graph draws random numbers. */
  isRandom: boolean;
}

export interface PlacedParts {
  readonly pack: string;
  readonly state: GpuState;
  readonly native: NativeGuard;
  readonly log: EngineLog;
  readonly graphs: GpuGraphs;
  /** By `PACK/GRAPH`. Kept for the next load of the pack in this thread. */
  readonly placements: Map<string, Placement>;
  /** Takes the lock of the GPU. */
  readonly createGpu: (name: string) => Promise<GpuSession>;
  /** Of the measurements. */
  readonly clock: Clock;
  /** All graphs on the CPU. */
  readonly createCpu: (isInStep: boolean) => Promise<Runs>;
}

const differenceOf = (expected: Made, made: Made): number => {
  let worst = 0;
  for (const [name, { data }] of Object.entries(expected)) {
    const other = made[name]!.data;
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

const rounded = (ms: number): number => Math.round(10 * ms) / 10;

const placementOf = ({ gpuMs, cpuMs, difference, isRandom }: Measure): Placement => {
  const isWrong = !isRandom && difference > tolerance;
  const isWorth = gpuMs > 0 && gpuMs < worthPart * cpuMs;
  const device = isWorth && !isWrong ? 'gpu' : 'cpu';
  return { device, gpuMs: rounded(gpuMs), cpuMs: rounded(cpuMs), ...(isWrong && { difference }) };
};

export class PlacedSessions {
  readonly #parts: PlacedParts;
  readonly #gpu = new Map<string, GpuSession>();
  /** Graphs that are being measured. */
  readonly #measures = new Map<string, Measure>();
  /** Graphs that have compiled their shaders. */
  readonly #hasRun = new Set<string>();
  #cpu: Promise<Runs> | null = null;

  private constructor(parts: PlacedParts) {
    this.#parts = parts;
  }

  /** @throws if the CPU cannot load the graphs either */
  static async load(names: readonly string[], parts: PlacedParts): Promise<PlacedSessions> {
    const made = new PlacedSessions(parts);
    try {
      await made.#load(names);
    } catch (error) {
      await made.release();
      throw error;
    }
    return made;
  }

  async #load(names: readonly string[]): Promise<void> {
    const { state, createGpu, placements, graphs } = this.#parts;
    for (const name of names) {
      const key = this.#keyOf(name);
      const known = placements.get(key)?.device;
      const wanted = graphs === 'measured' ? known : graphs === 'all' || graphs.includes(key) ? 'gpu' : 'cpu';
      if (wanted === 'cpu' || state.isLost) continue;
      try {
        this.#gpu.set(name, await createGpu(name));
      } catch (error) {
        this.#lose(name, error);
        break;
      }
      if (wanted === undefined)
        this.#measures.set(name, { gpuMs: 0, cpuMs: 0, difference: 0, isRandom: false });
    }
    for (const name of names) if (!this.#measures.has(name)) this.#place(name);
    if (this.#gpu.size < names.length || this.#measures.size > 0) await this.#onCpu(false);
  }

  runOf(name: string): Run {
    return (feeds) => this.#run(name, feeds);
  }

  /** The load has run every graph: chooses their devices, and frees what is not needed. Idempotent. */
  async settle(): Promise<void> {
    const { log, placements } = this.#parts;
    for (const [name, measure] of this.#measures) {
      const placement = placementOf(measure);
      const { device, difference } = placement;
      const graph = this.#keyOf(name);
      if (difference !== undefined)
        log.warn({ graph, difference }, 'the GPU gives wrong results: the CPU runs the graph');
      placements.set(graph, placement);
      if (device === 'cpu') await this.#dropGpu(name);
    }
    const isAllOnGpu =
      this.#measures.size > 0 && [...this.#measures.keys()].every((name) => this.#gpu.has(name));
    this.#measures.clear();
    if (!isAllOnGpu || this.#parts.state.isLost) return;
    const cpu = this.#cpu;
    this.#cpu = null;
    await (await cpu)?.release();
  }

  async release(): Promise<void> {
    for (const name of [...this.#gpu.keys()]) await this.#dropGpu(name);
    const cpu = this.#cpu;
    this.#cpu = null;
    await (await cpu?.catch(() => null))?.release();
  }

  async #run(name: string, feeds: Feeds): Promise<Made> {
    const measure = this.#measures.get(name);
    const session = this.#gpu.get(name);
    if (session === undefined) return (await this.#onCpu()).run[name]!(feeds);
    if (this.#parts.state.isLost) {
      await this.#dropGpu(name);
      this.#place(name);
      return (await this.#onCpu()).run[name]!(feeds);
    }
    if (measure !== undefined) return this.#runOnBoth(name, measure, feeds);
    try {
      return await this.#runOnGpu(name, session, feeds);
    } catch (error) {
      // If the CPU fails too, the input is at fault and not the GPU.
      const made = await (await this.#onCpu()).run[name]!(feeds);
      await this.#dropGpu(name);
      this.#lose(name, error);
      this.#place(name);
      return made;
    }
  }

  async #runOnGpu(name: string, session: GpuSession, feeds: Feeds): Promise<Made> {
    const { state, native } = this.#parts;
    const made = await state.hold(!this.#hasRun.has(name), () => native(() => session.run(feeds)));
    this.#hasRun.add(name);
    return made;
  }

  async #runOnBoth(name: string, measure: Measure, feeds: Feeds): Promise<Made> {
    const run = (await this.#onCpu()).run[name]!;
    const first = await this.#timed(() => run(feeds));
    const second = await this.#timed(() => run(feeds));
    const cpuMs = Math.min(first.ms, second.ms);
    if (measure.gpuMs > hopelessMs && measure.gpuMs > 10 * measure.cpuMs) return second.made;
    const session = this.#gpu.get(name)!;
    try {
      // The first run of a size compiles its shaders.
      await this.#runOnGpu(name, session, feeds);
      const { made, ms } = await this.#timed(() => this.#runOnGpu(name, session, feeds));
      measure.gpuMs += ms;
      measure.cpuMs += cpuMs;
      measure.isRandom ||= differenceOf(first.made, second.made) > 0;
      measure.difference = Math.max(measure.difference, differenceOf(second.made, made));
    } catch (error) {
      this.#measures.delete(name);
      await this.#dropGpu(name);
      this.#lose(name, error);
      this.#place(name);
    }
    return second.made;
  }

  async #timed(run: () => Promise<Made>): Promise<{ made: Made; ms: number }> {
    const startMs = this.#parts.clock();
    const made = await run();
    return { made, ms: this.#parts.clock() - startMs };
  }

  /** @param isInStep a step waits for it; otherwise each graph is loaded in a step of its own */
  #onCpu(isInStep = true): Promise<Runs> {
    this.#cpu ??= this.#parts.createCpu(isInStep).catch((error: unknown) => {
      // The next run tries again.
      this.#cpu = null;
      throw error;
    });
    return this.#cpu;
  }

  async #dropGpu(name: string): Promise<void> {
    const session = this.#gpu.get(name);
    if (session === undefined) return;
    this.#gpu.delete(name);
    const { state, native } = this.#parts;
    try {
      await state.hold(false, () => native(() => session.release()));
    } catch (error) {
      // Its memory stays until the process ends: a thread hangs with the GPU.
      if (!(error instanceof GpuLostError)) throw error;
    }
  }

  #lose(name: string, error: unknown): void {
    const { log, state } = this.#parts;
    state.lose();
    log.warn(
      { graph: this.#keyOf(name), reason: firstLine(error) },
      'the GPU failed: the CPU runs all graphs until the voices are reloaded',
    );
  }

  #place(name: string): void {
    const device = this.#gpu.has(name) ? 'gpu' : 'cpu';
    this.#parts.placements.set(this.#keyOf(name), { device, gpuMs: 0, cpuMs: 0 });
  }

  #keyOf(name: string): string {
    return `${this.#parts.pack}/${name}`;
  }
}
