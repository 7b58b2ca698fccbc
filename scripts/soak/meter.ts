/** What the clients of a soak measure, in memory that does not grow with the length of the soak. */
import { createHistogram } from 'node:perf_hooks';
import { Counts, faultKinds, type Charges, type Fault, type FaultKind, type Quantiles } from './measures.js';
import type { DryVerdict } from './plausible.js';

/** Faults of a kind that are reported; the others are only counted. */
export const faultsReportedMax = 20;

/** In an overload, an admitted reply is spoilt by later first audio, or by a longer gap. */
const spoilt = { firstAudioMs: 300, dryMs: 100 } as const;

/** A reply, which counts as spoilt once. */
export interface Reply {
  isSpoilt: boolean;
}

/** A histogram of milliseconds, exact to the microsecond. */
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

const countNames = Object.keys(new Counts()) as (keyof Counts)[];
/** They go on after a reset. */
const gauges: readonly (keyof Counts)[] = ['sockets', 'streams'];

export class Meter extends Counts {
  readonly firstAudio = new Durations();
  readonly stepFirstAudio = new Durations();
  readonly #faults = new Map<FaultKind, number>();
  readonly #reported = new Map<string, number>();
  readonly #charges = new Map<string, { min: number; max: number }>();
  readonly #onFault: (fault: Fault) => void;
  readonly #startedMs: number;
  /** Another program on the machine delays audio now: nothing late is judged. */
  isDisturbed = false;

  /** @param onFault receives the first faults of each kind */
  constructor(startedMs: number, onFault: (fault: Fault) => void) {
    super();
    this.#startedMs = startedMs;
    this.#onFault = onFault;
  }

  get faults(): Record<FaultKind, number> {
    const count = (kind: FaultKind) => [kind, this.#faults.get(kind) ?? 0] as const;
    return Object.fromEntries(faultKinds.map(count)) as Record<FaultKind, number>;
  }

  get counts(): Record<keyof Counts, number> {
    return Object.fromEntries(countNames.map((name) => [name, this[name]])) as Record<keyof Counts, number>;
  }

  get charges(): Charges {
    return Object.fromEntries(this.#charges);
  }

  /** Sets counts and measures to zero, except gauges and faults. */
  reset(): void {
    this.firstAudio.reset();
    for (const name of countNames) if (!gauges.includes(name)) this[name] = 0;
    this.#reported.delete('underruns');
  }

  fault(kind: FaultKind, where: string, what: string): void {
    this.#faults.set(kind, (this.#faults.get(kind) ?? 0) + 1);
    this.#report(kind, where, what);
  }

  /** A listener had nothing to play. */
  dry(where: string, { kind, lateMs }: DryVerdict, reply: Reply): void {
    this.dryMsMax = Math.max(this.dryMsMax, lateMs);
    const isUnjudged = kind === 'unjudged' || (kind === 'underrun' && this.isDisturbed);
    if (isUnjudged) this.unjudged++;
    if (kind !== 'underrun' || isUnjudged) return;
    this.underruns++;
    if (lateMs > spoilt.dryMs) this.#spoil(reply);
    this.#report('underruns', where, `audio came ${lateMs.toFixed(0)} ms late`);
  }

  /** @param ms from the end of the reply's text; `null` if the text was not complete */
  heardFirst(where: string, ms: number | null, reply: Reply): void {
    this.heard++;
    if (this.isDisturbed) this.disturbed++;
    if (ms === null || this.isDisturbed) return;
    if (ms > spoilt.firstAudioMs) {
      this.#spoil(reply);
      this.#report('underruns', where, `first audio came after ${ms.toFixed(0)} ms`);
    }
    this.firstAudio.record(ms);
    this.stepFirstAudio.record(ms);
  }

  /** Text that the service may charge for. */
  sent(key: string, characters: number): void {
    this.#charge(key).max += characters;
  }

  /** Text that was refused, so that the service must not charge for it. */
  unsent(key: string, characters: number): void {
    this.#charge(key).max -= characters;
  }

  /** Text that has been spoken, so that the service must charge for it. */
  spoken(key: string, characters: number): void {
    this.#charge(key).min += characters;
  }

  #spoil(reply: Reply): void {
    if (!reply.isSpoilt) this.spoilt++;
    reply.isSpoilt = true;
  }

  #charge(key: string): { min: number; max: number } {
    let charge = this.#charges.get(key);
    if (charge === undefined) this.#charges.set(key, (charge = { min: 0, max: 0 }));
    return charge;
  }

  #report(kind: FaultKind | 'underruns', where: string, what: string): void {
    const reported = this.#reported.get(kind) ?? 0;
    if (reported >= faultsReportedMax) return;
    this.#reported.set(kind, reported + 1);
    this.#onFault({ kind, atMs: Math.round(performance.now() - this.#startedMs), where, what });
  }
}
