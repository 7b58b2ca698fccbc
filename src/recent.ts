/** First audio of the last minutes, and the last refusals, for the live view of the console. */
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';

/** Times of the last minutes, in parts of a minute each; a part is dropped as a whole when it is too old. */
const PART_MS = 60_000;
const PARTS = 5;
/** Longer times count as this. Two digits of each are kept. */
const TIME_MS_MAX = 600_000;
const REFUSALS_KEPT_MAX = 100;

export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

const newHistogram = (): RecordableHistogram =>
  createHistogram({ lowest: 1, highest: TIME_MS_MAX, figures: 2 });

/** Percentiles over the last four to five minutes, in memory that does not depend on the number of times. */
export class RecentTimes {
  /** By the minute in which it began; the newest last. */
  readonly #parts: { readonly minute: number; readonly times: RecordableHistogram }[] = [];

  record(ms: number, nowMs: number): void {
    const minute = this.#forget(nowMs);
    let newest = this.#parts.at(-1);
    if (newest?.minute !== minute) {
      newest = { minute, times: newHistogram() };
      this.#parts.push(newest);
    }
    newest.times.record(Math.min(TIME_MS_MAX, Math.max(1, Math.round(ms))));
  }

  /** @returns `null` if there is no time */
  percentiles(nowMs: number): Percentiles | null {
    this.#forget(nowMs);
    const all = newHistogram();
    for (const { times } of this.#parts) all.add(times);
    if (all.count === 0) return null;
    return { p50: all.percentile(50), p95: all.percentile(95), p99: all.percentile(99) };
  }

  /** @returns the minute of now */
  #forget(nowMs: number): number {
    const minute = Math.floor(nowMs / PART_MS);
    while (this.#parts[0] !== undefined && this.#parts[0].minute <= minute - PARTS) this.#parts.shift();
    return minute;
  }
}

export interface RecentRefusal {
  readonly atMs: number;
  readonly reason: string;
  readonly route: string;
}

/** The last refusals, and their number by reason. */
export class RecentRefusals {
  readonly #counts = new Map<string, number>();
  readonly #last: RecentRefusal[] = [];

  add(refusal: RecentRefusal): void {
    this.#counts.set(refusal.reason, (this.#counts.get(refusal.reason) ?? 0) + 1);
    this.#last.push(refusal);
    if (this.#last.length > REFUSALS_KEPT_MAX) this.#last.shift();
  }

  /** By reason, since the start. */
  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts);
  }

  /** The newest first. */
  get last(): readonly RecentRefusal[] {
    return this.#last.toReversed();
  }
}
