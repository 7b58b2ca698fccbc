/** What the clients of a soak met with, in memory that does not grow with its length. */
import { createHistogram } from 'node:perf_hooks';
import type { DryVerdict } from './player.js';
import { faultKinds, type Charges, type Fault, type FaultKind, type Quantiles } from './protocol.js';

/** Of each kind that are told. */
export const faultsToldMax = 20;

/** Of milliseconds, to the microsecond. */
export class Durations {
  readonly #histogram = createHistogram({ figures: 3 });

  record(ms: number): void {
    this.#histogram.record(Math.max(1, Math.round(ms * 1000)));
  }

  reset(): void {
    this.#histogram.reset();
  }

  quantiles(): Quantiles {
    const { count } = this.#histogram;
    const ms = (percentile: number) => (count === 0 ? 0 : this.#histogram.percentile(percentile) / 1000);
    return {
      p50: ms(50),
      p95: ms(95),
      p99: ms(99),
      max: count === 0 ? 0 : this.#histogram.max / 1000,
      count,
    };
  }
}

export class Tally {
  readonly firstAudio = new Durations();
  readonly stepFirstAudio = new Durations();
  readonly stepLoopLate = new Durations();
  readonly #faults = new Map<FaultKind, number>();
  readonly #told = new Map<string, number>();
  readonly #charges = new Map<string, { min: number; max: number }>();
  readonly #onFault: (fault: Fault) => void;
  readonly #startedMs: number;
  sockets = 0;
  streams = 0;
  turns = 0;
  contexts = 0;
  lives = 0;
  requests = 0;
  frames = 0;
  audioMs = 0;
  underruns = 0;
  unjudged = 0;

  /** @param onFault gets the first of each kind */
  constructor(startedMs: number, onFault: (fault: Fault) => void) {
    this.#startedMs = startedMs;
    this.#onFault = onFault;
  }

  get faults(): Record<FaultKind, number> {
    const count = (kind: FaultKind) => [kind, this.#faults.get(kind) ?? 0] as const;
    return Object.fromEntries(faultKinds.map(count)) as Record<FaultKind, number>;
  }

  get charges(): Charges {
    return Object.fromEntries(this.#charges);
  }

  /** Measures only; gauges and faults stay. */
  reset(): void {
    this.firstAudio.reset();
    this.turns = this.contexts = this.lives = this.requests = this.frames = this.audioMs = 0;
    this.underruns = this.unjudged = 0;
    this.#told.delete('underruns');
  }

  fault(kind: FaultKind, where: string, what: string): void {
    this.#faults.set(kind, (this.#faults.get(kind) ?? 0) + 1);
    this.#tell(kind, where, what);
  }

  /** A player had nothing to play. */
  dry(where: string, { kind, lateMs }: DryVerdict): void {
    if (kind === 'unjudged') this.unjudged++;
    if (kind !== 'underrun') return;
    this.underruns++;
    this.#tell('underruns', where, `audio comes ${lateMs.toFixed(0)} ms late`);
  }

  heardFirst(ms: number): void {
    this.firstAudio.record(ms);
    this.stepFirstAudio.record(ms);
  }

  /** Text that the service may charge for. */
  sent(key: string, characters: number): void {
    this.#charge(key).max += characters;
  }

  /** Text that was spoken for certain, and so must be charged. */
  spoken(key: string, characters: number): void {
    this.#charge(key).min += characters;
  }

  #charge(key: string): { min: number; max: number } {
    let charge = this.#charges.get(key);
    if (charge === undefined) this.#charges.set(key, (charge = { min: 0, max: 0 }));
    return charge;
  }

  #tell(kind: FaultKind | 'underruns', where: string, what: string): void {
    const told = this.#told.get(kind) ?? 0;
    if (told >= faultsToldMax) return;
    this.#told.set(kind, told + 1);
    this.#onFault({ kind, atMs: Math.round(performance.now() - this.#startedMs), where, what });
  }
}
