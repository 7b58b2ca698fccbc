/**
 * What a second of speech costs, by voice and by encoding. Each is measured when it is loaded, so the first request finds a
 * figure. From then on the work itself is measured. A figure is a mean over the last speech, not over time: the first
 * sentences after a start, which run cold code and touch new pages, change it little.
 *
 * The figures of the last run are kept in a file. They come from real work, so they go before the measurement at the load,
 * unless the two differ so much that the voice or the machine is another one.
 */
import { KeptFile } from '../kept-file.js';
import type { Effort } from '../threads/effort.js';
import type { VoiceCost } from '../threads/voices.js';

/** What nothing is known of: our own voice and mp3 on a machine of 2020. */
const UNKNOWN: VoiceCost = { cpu: 0.02, beginMs: 8 };
const UNKNOWN_ENCODING: VoiceCost = { cpu: 0.005, beginMs: 0 };

/** Speech over which the mean is taken, in milliseconds: half of a figure's weight is on so much. */
const HALF_SPEECH_MS = 20_000;
/** The same for first steps, in steps. */
const HALF_BEGUN = 20;
/** The file and the load disagree if one has more than so many times the other. */
const AGREES = 2;
/** Figures that the file keeps: packs come and go. */
const KEPT_MAX = 10_000;

/** A mean in which older work weighs less. */
class Mean {
  readonly #half: number;
  #amount: number;
  #per: number;

  constructor(value: number, half: number) {
    this.#half = half;
    this.#amount = value * half;
    this.#per = half;
  }

  get value(): number {
    return this.#amount / this.#per;
  }

  add(amount: number, per: number): void {
    if (per <= 0) return;
    const kept = 0.5 ** (per / this.#half);
    this.#amount = this.#amount * kept + amount;
    this.#per = this.#per * kept + per;
  }
}

class Cost {
  readonly #cpu: Mean;
  readonly #begin: Mean;

  constructor({ cpu, beginMs }: VoiceCost) {
    this.#cpu = new Mean(cpu, HALF_SPEECH_MS);
    this.#begin = new Mean(beginMs, HALF_BEGUN);
  }

  get figure(): VoiceCost {
    return { cpu: this.#cpu.value, beginMs: this.#begin.value };
  }

  add({ cpuMs, speechMs, begun, beginMs }: Effort): void {
    this.#cpu.add(cpuMs, speechMs);
    this.#begin.add(beginMs, begun);
  }
}

type Figures = Readonly<Record<string, VoiceCost>>;

const isFigure = (value: unknown): value is VoiceCost => {
  const { cpu, beginMs } = (value ?? {}) as Partial<Record<keyof VoiceCost, unknown>>;
  return [cpu, beginMs].every((ms) => typeof ms === 'number' && Number.isFinite(ms) && ms >= 0) && cpu !== 0;
};

const agree = (a: VoiceCost, b: VoiceCost): boolean => a.cpu <= b.cpu * AGREES && b.cpu <= a.cpu * AGREES;

class CostTable {
  readonly #unknown: VoiceCost;
  readonly #costs = new Map<string, Cost>();

  /** @param unknown what is assumed of what was never measured */
  constructor(unknown: VoiceCost) {
    this.#unknown = unknown;
  }

  of(name: string): VoiceCost {
    return this.#costs.get(name)?.figure ?? this.#unknown;
  }

  /** A load measured it. */
  measured(name: string, cost: VoiceCost): void {
    if (!isFigure(cost)) return;
    const known = this.#costs.get(name);
    if (known === undefined || !agree(known.figure, cost)) this.#costs.set(name, new Cost(cost));
  }

  /** Counts what a thread did. What made no speech, such as a flush alone, is no cost of speech. */
  add(name: string, effort: Effort): void {
    if (effort.speechMs <= 0) return;
    const cost = this.#costs.get(name) ?? new Cost(this.#unknown);
    this.#costs.set(name, cost);
    cost.add(effort);
  }

  toJSON(): Figures {
    return Object.fromEntries([...this.#costs].map(([name, { figure }]) => [name, figure]));
  }
}

export class Costs {
  readonly voices = new CostTable(UNKNOWN);
  readonly encodings = new CostTable(UNKNOWN_ENCODING);
  readonly #file: KeptFile | null;

  /** @param file without one they are not kept */
  constructor(file: KeptFile | null = null) {
    this.#file = file;
  }

  /** @param path of the file that keeps the figures from run to run; one that cannot be read counts as absent */
  static async read(path: string): Promise<Costs> {
    const costs = new Costs(new KeptFile(path));
    // The loads measure everything again.
    const kept = (await costs.#file!.read().catch(() => null)) as Partial<Record<string, Figures>> | null;
    for (const table of ['voices', 'encodings'] as const)
      for (const [name, figure] of Object.entries(kept?.[table] ?? {}).slice(0, KEPT_MAX))
        costs[table].measured(name, figure);
    return costs;
  }

  /** Writes the file, once at a time. @throws if the disk refuses */
  async keep(): Promise<void> {
    await this.#file?.write({ voices: this.voices, encodings: this.encodings });
  }
}
