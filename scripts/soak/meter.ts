/** What the clients of a soak measure, in memory that does not grow with the length of the soak. */
import { createHistogram } from 'node:perf_hooks';
import { faultKinds, type Charges, type Fault, type FaultKind, type Quantiles } from './measures.js';
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

export class Meter {
  readonly firstAudio = new Durations();
  readonly stepFirstAudio = new Durations();
  readonly #faults = new Map<FaultKind, number>();
  readonly #reported = new Map<string, number>();
  readonly #charges = new Map<string, { min: number; max: number }>();
  readonly #onFault: (fault: Fault) => void;
  readonly #startedMs: number;
  sockets = 0;
  streams = 0;
  replies = 0;
  contexts = 0;
  lives = 0;
  requests = 0;
  frames = 0;
  audioMs = 0;
  underruns = 0;
  unjudged = 0;
  /** Utterances and requests that the service refused because it was full. */
  refusals = 0;
  /** Another program on the machine delays audio now: nothing late is judged. */
  isDisturbed = false;
  /** Replies that listeners began to hear. */
  heard = 0;
  /** Replies whose first audio was not judged. */
  disturbed = 0;
  /** Those with late first audio or a long gap: what spoils a reply in an overload. */
  spoilt = 0;
  /** Utterances that failed, where they may. */
  failures = 0;
  /** The longest gap. */
  dryMsMax = 0;
  /** See `LoadTick`. */
  moved = 0;
  cut = 0;

  /** @param onFault receives the first faults of each kind */
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

  /** Sets counts and measures to zero, except gauges and faults. */
  reset(): void {
    this.firstAudio.reset();
    this.replies = this.contexts = this.lives = this.requests = this.frames = this.audioMs = 0;
    this.underruns = this.unjudged = this.refusals = this.heard = this.spoilt = this.moved = this.cut = 0;
    this.disturbed = 0;
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
