/**
 * What a second of speech costs, by voice and by encoding. Each is measured when it is loaded, so the first request finds a
 * figure. From then on the work itself is measured. A figure is a mean over the last speech, not over time: the first
 * sentences after a start, which run cold code and touch new pages, change it little.
 *
 * The figures of the last run are kept in a file. They come from real work, so they go before the measurement at the load,
 * unless the two differ so much that the voice or the machine is another one.
 */
import type { Encoding } from '../api/formats.js';
import { KeptFile } from '../kept-file.js';
import type { Effort } from '../threads/effort.js';
import type { VoiceCost } from '../threads/voices.js';

/** What nothing is known of, in CPU time: our own voice and mp3 on a machine of 2020. */
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

export class Costs {
  readonly #file: KeptFile | null;
  readonly #voices = new Map<string, Cost>();
  readonly #encodings = new Map<string, Cost>();

  private constructor(file: KeptFile | null) {
    this.#file = file;
  }

  /** They are not kept. */
  static unknown(): Costs {
    return new Costs(null);
  }

  /** @param path of the file that keeps the figures from run to run; one that cannot be read counts as absent */
  static async read(path: string): Promise<Costs> {
    const file = new KeptFile(path);
    const costs = new Costs(file);
    try {
      const kept = (await file.read()) as { voices?: Figures; encodings?: Figures } | null;
      for (const [table, figures] of [
        [costs.#voices, kept?.voices],
        [costs.#encodings, kept?.encodings],
      ] as const)
        for (const [name, figure] of Object.entries(figures ?? {}).slice(0, KEPT_MAX))
          if (isFigure(figure)) table.set(name, new Cost(figure));
    } catch {
      // The loads measure everything again.
    }
    return costs;
  }

  /** A load measured a voice. */
  measuredVoice(voiceId: string, cost: VoiceCost): void {
    this.#measured(this.#voices, voiceId, cost);
  }

  /** A load measured an encoding. @param cpu CPU time of a millisecond of speech, in milliseconds */
  measuredEncoding(encoding: Encoding, cpu: number): void {
    this.#measured(this.#encodings, encoding, { cpu, beginMs: 0 });
  }

  /** Counts what the threads did. @param voices of segments that were complete, for listeners; `null`: all work */
  add(voices: ReadonlyMap<string | null, Effort>, encodings: ReadonlyMap<Encoding, Effort>): void {
    this.#add(this.#voices, voices, UNKNOWN);
    this.#add(this.#encodings, encodings, UNKNOWN_ENCODING);
  }

  /** CPU time of a millisecond of speech, and of the first step of a segment, in milliseconds. */
  voice(voiceId: string): VoiceCost {
    return this.#voices.get(voiceId)?.figure ?? UNKNOWN;
  }

  /** CPU time of a millisecond of speech, in milliseconds. */
  encoding(encoding: Encoding): number {
    return (this.#encodings.get(encoding)?.figure ?? UNKNOWN_ENCODING).cpu;
  }

  /** Writes the file, once at a time. @throws if the disk refuses */
  async keep(): Promise<void> {
    const figures = (table: ReadonlyMap<string, Cost>) =>
      Object.fromEntries([...table].map(([name, { figure }]) => [name, figure]));
    await this.#file?.write({ voices: figures(this.#voices), encodings: figures(this.#encodings) });
  }

  #measured(table: Map<string, Cost>, name: string, cost: VoiceCost): void {
    if (!isFigure(cost)) return;
    const known = table.get(name);
    if (known === undefined || !agree(known.figure, cost)) table.set(name, new Cost(cost));
  }

  #add(table: Map<string, Cost>, efforts: ReadonlyMap<string | null, Effort>, unknown: VoiceCost): void {
    for (const [name, effort] of efforts) {
      if (name === null || effort.speechMs <= 0) continue;
      const cost = table.get(name) ?? new Cost(unknown);
      table.set(name, cost);
      cost.add(effort);
    }
  }
}
