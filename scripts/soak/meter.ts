/** What the clients of a soak measure, in memory that does not grow with the length of the soak. */
import { createHistogram } from 'node:perf_hooks';
import type { LoopClock } from '../rig/loop-clock.js';
import type { Arrival } from '../rig/playback.js';
import { Counts, faultKinds, type Charges, type Fault, type FaultKind, type Quantiles } from './measures.js';

/** Faults of a kind that are reported; the others are only counted. */
const faultsReportedMax = 20;

/** In an overload, an admitted reply is spoilt by later first audio, or by a longer gap. */
const spoilt = { firstAudioMs: 300, dryMs: 100 } as const;

/** A player's own buffer covers a shorter gap. */
const toleranceMs = 20;
/** From the end of the text to its audio. */
const firstAudioMs = 200;

/** A reply that a listener hears; it counts as spoilt once. */
export interface Reply {
  /** Its client, and its context or request. */
  readonly where: string;
  /** When its text was complete; `null`: not yet. */
  completeMs: number | null;
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
    const { count, max } = this.#histogram;
    const ms = (percentile: number) => (count === 0 ? 0 : this.#histogram.percentile(percentile) / 1000);
    return { p50: ms(50), p95: ms(95), p99: ms(99), max: count === 0 ? 0 : max / 1000, count };
  }
}

const countNames = Object.keys(new Counts()) as (keyof Counts)[];
/** They go on after a reset. */
const gauges: readonly (keyof Counts)[] = ['sockets', 'streams'];

export class Meter extends Counts {
  readonly #firstAudio = new Durations();
  readonly #faults = new Map<Fault['kind'], number>();
  readonly #charges = new Map<string, { min: number; max: number }>();
  readonly #clock: LoopClock;
  readonly #onFault: (fault: Fault) => void;
  readonly #startedMs: number;
  /** Another program on the machine delays audio now: nothing late is judged. */
  isDisturbed = false;

  /**
   * @param clock of the clients' own process
   * @param onFault receives the first faults of each kind
   */
  constructor(startedMs: number, clock: LoopClock, onFault: (fault: Fault) => void) {
    super();
    this.#startedMs = startedMs;
    this.#clock = clock;
    this.#onFault = onFault;
  }

  get firstAudioMs(): Quantiles {
    return this.#firstAudio.quantiles();
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
    this.#firstAudio.reset();
    for (const name of countNames) if (!gauges.includes(name)) this[name] = 0;
    this.#faults.delete('underruns');
  }

  /** Counts it, and reports it if it is one of the first. */
  fault(kind: Fault['kind'], where: string, what: string): void {
    const count = (this.#faults.get(kind) ?? 0) + 1;
    this.#faults.set(kind, count);
    if (count <= faultsReportedMax)
      this.#onFault({ kind, atMs: Math.round(performance.now() - this.#startedMs), where, what });
  }

  /**
   * Audio of a reply has come.
   *
   * @param waitedMs for first audio, from the end of its text; `null` if the text was not complete
   */
  hear(
    reply: Reply,
    arrival: Arrival | null,
    nowMs: number,
    waitedMs = reply.completeMs === null ? null : nowMs - reply.completeMs,
  ): void {
    if (arrival?.kind === 'first') this.#first(reply, waitedMs);
    if (arrival?.kind === 'dry') this.#dry(reply, arrival.sinceMs, nowMs);
  }

  #first(reply: Reply, ms: number | null): void {
    this.heard++;
    if (this.isDisturbed) this.disturbed++;
    if (ms === null || this.isDisturbed) return;
    if (ms > spoilt.firstAudioMs) {
      this.#spoil(reply);
      this.fault('underruns', reply.where, `first audio came after ${ms.toFixed(0)} ms`);
    }
    this.#firstAudio.record(ms);
  }

  /** Its listener had nothing to play: an underrun, if the text was there in time and so were we. */
  #dry(reply: Reply, sinceMs: number, nowMs: number): void {
    if (reply.completeMs === null || nowMs - sinceMs <= toleranceMs) return;
    const lateMs = nowMs - Math.max(sinceMs, reply.completeMs + firstAudioMs);
    if (lateMs <= toleranceMs) return;
    this.dryMsMax = Math.max(this.dryMsMax, lateMs);
    if (this.isDisturbed || this.#clock.latenessMs(sinceMs, nowMs) >= lateMs - toleranceMs) {
      this.unjudged++;
      return;
    }
    this.underruns++;
    if (lateMs > spoilt.dryMs) this.#spoil(reply);
    this.fault('underruns', reply.where, `audio came ${lateMs.toFixed(0)} ms late`);
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
}
