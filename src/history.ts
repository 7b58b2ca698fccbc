/** What the live page of the console shows of the past: points over the last hour, and coarser ones over two days. */
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import type { RefusalReason } from './refusals.js';

export interface HistoryBounds {
  readonly historyPointMs: number;
  readonly historyPointsMax: number;
  readonly historyLongPointMs: number;
  readonly historyLongPointsMax: number;
}

/** What a point shows. Times are of first audio, and `null` without a request. */
const series = [
  'atMs',
  'streams',
  'capacityRatio',
  'p50Ms',
  'p95Ms',
  'p99Ms',
  'refusals',
  'failures',
] as const;
type Series = (typeof series)[number];

/** `atMs` ends its period. Streams and capacity are the most that a sample saw, refusals and failures are those of a second. */
export type HistoryPoint = Readonly<
  Record<'atMs' | 'streams' | 'capacityRatio' | 'refusals' | 'failures', number>
> &
  Readonly<Record<'p50Ms' | 'p95Ms' | 'p99Ms', number | null>>;

/** By series, the oldest first. */
export type HistoryView = Readonly<Record<Series, readonly (number | null)[]>>;

export type HistoryRange = 'hour' | 'days';

export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** Times are kept in tenths of a millisecond, to two digits. */
const TENTHS = 10;
/** A longer time counts as ten minutes. */
const TIME_MS_MAX = 600_000;

const newHistogram = (): RecordableHistogram =>
  createHistogram({ lowest: 1, highest: TIME_MS_MAX * TENTHS, figures: 2 });

const percentilesOf = (times: RecordableHistogram): Percentiles | null => {
  if (times.count === 0) return null;
  const ms = (percent: number): number => times.percentile(percent) / TENTHS;
  return { p50: ms(50), p95: ms(95), p99: ms(99) };
};

/** What a period has seen so far. */
class Gathered {
  readonly times = newHistogram();
  streams = 0;
  capacityRatio = 0;
  refusals = 0;
  failures = 0;

  add(other: Gathered): void {
    if (other.times.count > 0) this.times.add(other.times);
    this.streams = Math.max(this.streams, other.streams);
    this.capacityRatio = Math.max(this.capacityRatio, other.capacityRatio);
    this.refusals += other.refusals;
    this.failures += other.failures;
  }

  pointAt(atMs: number, periodMs: number): HistoryPoint {
    const { p50 = null, p95 = null, p99 = null } = percentilesOf(this.times) ?? {};
    return {
      atMs,
      streams: this.streams,
      capacityRatio: Math.round(this.capacityRatio * 1_000) / 1_000,
      ...{ p50Ms: p50, p95Ms: p95, p99Ms: p99 },
      refusals: (this.refusals * 1_000) / periodMs,
      failures: (this.failures * 1_000) / periodMs,
    };
  }
}

/** The points of one range. They are kept as numbers, 64 bytes a point; NaN stands for `null`. */
class Line {
  readonly #numbers: Float64Array;
  readonly #pointsMax: number;
  #count = 0;
  #view: HistoryView | null = null;
  last: HistoryPoint | null = null;

  constructor(pointsMax: number) {
    this.#pointsMax = pointsMax;
    this.#numbers = new Float64Array(pointsMax * series.length);
  }

  add(point: HistoryPoint): void {
    const place = (this.#count++ % this.#pointsMax) * series.length;
    for (const [index, name] of series.entries()) this.#numbers[place + index] = point[name] ?? Number.NaN;
    this.last = point;
    this.#view = null;
  }

  /** Kept until the next point: many pages may be opened at once. */
  get view(): HistoryView {
    return (this.#view ??= this.#read());
  }

  #read(): HistoryView {
    const kept = Math.min(this.#count, this.#pointsMax);
    const valueAt = (point: number, index: number): number | null => {
      const value = this.#numbers[((this.#count - kept + point) % this.#pointsMax) * series.length + index];
      return value === undefined || Number.isNaN(value) ? null : value;
    };
    const columns = series.map(
      (name, index) => [name, Array.from({ length: kept }, (_, point) => valueAt(point, index))] as const,
    );
    return Object.fromEntries(columns) as unknown as HistoryView;
  }
}

export class History {
  readonly #bounds: HistoryBounds;
  readonly #lines: Readonly<Record<HistoryRange, Line>>;
  readonly #refusals = new Map<RefusalReason, number>();
  /** Of the point of the hour that comes next, of the days, and of the one of the days before that. */
  #short = new Gathered();
  #long = new Gathered();
  #longBefore = new Gathered();
  #samplesOfLong = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(bounds: HistoryBounds) {
    this.#bounds = bounds;
    this.#lines = { hour: new Line(bounds.historyPointsMax), days: new Line(bounds.historyLongPointsMax) };
  }

  /** From now on takes a sample for each point of the hour. */
  watch(read: () => { readonly streams: ReadonlyMap<string, number>; readonly capacityRatio: number }): void {
    this.#timer ??= setInterval(() => {
      const { capacityRatio, streams } = read();
      let open = 0;
      for (const count of streams.values()) open += count;
      this.sample(open, capacityRatio, Date.now());
    }, this.#bounds.historyPointMs).unref();
  }

  /** Idempotent. */
  close(): void {
    clearInterval(this.#timer);
  }

  firstAudio(ms: number): void {
    this.#short.times.record(Math.min(TIME_MS_MAX * TENTHS, Math.max(1, Math.round(ms * TENTHS))));
  }

  refused(reason: RefusalReason): void {
    this.#short.refusals++;
    this.#refusals.set(reason, (this.#refusals.get(reason) ?? 0) + 1);
  }

  failed(): void {
    this.#short.failures++;
  }

  /** Ends a point of the hour, and one of the days when it has all of its samples. */
  sample(streams: number, capacityRatio: number, nowMs: number): void {
    const { historyLongPointMs, historyPointMs } = this.#bounds;
    const short = this.#short;
    short.streams = streams;
    short.capacityRatio = capacityRatio;
    this.#short = new Gathered();
    this.#lines.hour.add(short.pointAt(nowMs, historyPointMs));
    this.#long.add(short);
    if (++this.#samplesOfLong * historyPointMs < historyLongPointMs) return;
    this.#samplesOfLong = 0;
    this.#lines.days.add(this.#long.pointAt(nowMs, historyLongPointMs));
    this.#longBefore = this.#long;
    this.#long = new Gathered();
  }

  /** First audio over the last five to ten minutes; `null` without a request. */
  get firstAudioMs(): Percentiles | null {
    const all = newHistogram();
    for (const { times } of [this.#short, this.#long, this.#longBefore]) if (times.count > 0) all.add(times);
    return percentilesOf(all);
  }

  /** By reason, since the start. */
  get refusals(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#refusals);
  }

  /** The newest points. */
  get last(): Readonly<Record<HistoryRange, HistoryPoint | null>> {
    return { hour: this.#lines.hour.last, days: this.#lines.days.last };
  }

  view(range: HistoryRange): HistoryView {
    return this.#lines[range].view;
  }
}
