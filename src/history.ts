/**
 * What the live page of the console shows of the past: points over the last hour, day and week, and one for each day. A file
 * keeps them from run to run.
 */
import typia, { type tags } from 'typia';
import { faultPlace, InvariantError } from './fault.js';
import { KeptFile } from './kept-file.js';
import type { Bounds } from './limits.js';
import type { Log } from './log.js';
import type { RefusalReason } from './refusals.js';

/** What a point shows. */
const series = [
  'atMs',
  'seconds',
  'streams',
  'capacityRatio',
  'p50Ms',
  'p95Ms',
  'p99Ms',
  'requests',
  'refusals',
  'failures',
] as const;
type Series = (typeof series)[number];

/**
 * `atMs` ends its period, of which the service saw `seconds`. Streams and capacity are the most that a sample saw. Times are
 * of first audio, and `null` without a request. Where the service did not run, there is a point without figures.
 */
export type HistoryPoint = Readonly<Record<Exclude<Series, 'atMs'>, number | null>> & {
  readonly atMs: number;
};

/** By series, the oldest first. */
export type HistoryView = Readonly<Record<Series, readonly (number | null)[]>>;

/** `days` are those of UTC. */
export type HistoryRange = 'hour' | 'day' | 'week' | 'days';

const DAY_POINT_MS = 300_000;
const WEEK_POINT_MS = 3_600_000;
const DAYS_POINT_MS = 86_400_000;

export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** A time falls into a class, which is a fiftieth wider than the one before. */
const CLASS_GROWTH = Math.log(1.02);
const FIRST_CLASS_MS = 0.1;
/** A longer time counts as ten minutes. */
const CLASSES = Math.round(Math.log(600_000 / FIRST_CLASS_MS) / CLASS_GROWTH);

/** Counts of times by class, from which percentiles are read. Unlike those of Node, they can be kept in a file. */
class Times {
  readonly #counts = new Map<number, number>();

  /** @param entries as `entries` made them */
  constructor(entries: readonly (readonly [number, number])[] = []) {
    for (const [index, count] of entries) if (index <= CLASSES) this.#add(index, count);
  }

  record(ms: number): void {
    const index = Math.round(Math.log(Math.max(ms, FIRST_CLASS_MS) / FIRST_CLASS_MS) / CLASS_GROWTH);
    this.#add(Math.min(CLASSES, index), 1);
  }

  add(other: Times): void {
    for (const [index, count] of other.#counts) this.#add(index, count);
  }

  /** The classes that have a time, and how many. */
  entries(): [number, number][] {
    return [...this.#counts].sort(([one], [other]) => one - other);
  }

  get percentiles(): Percentiles | null {
    const entries = this.entries();
    const all = entries.reduce((sum, [, count]) => sum + count, 0);
    if (all === 0) return null;
    const at = (part: number): number => {
      let below = 0;
      const [index] = entries.find(([, count]) => (below += count) >= part * all)!;
      return Math.round(FIRST_CLASS_MS * Math.exp(index * CLASS_GROWTH) * 100) / 100;
    };
    return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
  }

  #add(index: number, count: number): void {
    this.#counts.set(index, (this.#counts.get(index) ?? 0) + count);
  }
}

/** Of a time in which the service did not run. */
const nothing = Object.fromEntries(series.map((name) => [name, null])) as unknown as HistoryPoint;

/** What a period has seen so far. */
class Gathered {
  times = new Times();
  startMs = 0;
  seconds = 0;
  streams = 0;
  capacityRatio = 0;
  requests = 0;
  refusals = 0;
  failures = 0;

  add(other: Gathered): void {
    this.times.add(other.times);
    this.seconds += other.seconds;
    this.streams = Math.max(this.streams, other.streams);
    this.capacityRatio = Math.max(this.capacityRatio, other.capacityRatio);
    this.requests += other.requests;
    this.refusals += other.refusals;
    this.failures += other.failures;
  }

  pointAt(atMs: number): HistoryPoint {
    const { failures, refusals, requests, seconds, streams } = this;
    const { p50 = null, p95 = null, p99 = null } = this.times.percentiles ?? {};
    return {
      ...{ atMs, seconds, streams, requests, refusals, failures },
      capacityRatio: Math.round(this.capacityRatio * 1_000) / 1_000,
      ...{ p50Ms: p50, p95Ms: p95, p99Ms: p99 },
    };
  }

  toJSON(): KeptGathered {
    const { times, ...figures } = this;
    return { ...figures, times: times.entries() };
  }

  static from({ times, ...figures }: KeptGathered): Gathered {
    return Object.assign(new Gathered(), figures, { times: new Times(times) });
  }
}

interface KeptGathered extends Pick<
  Gathered,
  'startMs' | 'seconds' | 'streams' | 'capacityRatio' | 'requests' | 'refusals' | 'failures'
> {
  /** Classes, and how many times fell into each. */
  readonly times: readonly (readonly [number & tags.Type<'uint32'>, number & tags.Type<'uint32'>])[];
}

interface KeptLine {
  readonly points: readonly HistoryPoint[];
  readonly current: KeptGathered;
}
const isKept = typia.createEquals<Readonly<Record<HistoryRange, KeptLine>>>();

/** The points of one range. */
class Line {
  readonly #pointMs: number;
  readonly #pointsMax: number;
  #points: HistoryPoint[] = [];
  /** Of the point that comes next, and of the last one. */
  current = new Gathered();
  before = new Gathered();
  #nowMs = 0;
  #view: HistoryView | null = null;

  constructor(pointMs: number, pointsMax: number) {
    this.#pointMs = pointMs;
    this.#pointsMax = pointsMax;
  }

  get last(): HistoryPoint | null {
    return this.#points.at(-1) ?? null;
  }

  /** @returns whether a point has ended */
  add(sample: Gathered, sampleMs: number, nowMs: number): boolean {
    // Its middle says to which period it belongs.
    const startMs = Math.floor((nowMs - sampleMs / 2) / this.#pointMs) * this.#pointMs;
    const isOver = this.current.seconds > 0 && this.current.startMs !== startMs;
    if (isOver) this.#end(this.current.startMs + this.#pointMs);
    this.current.startMs = startMs;
    this.current.add(sample);
    if (this.#pointMs <= sampleMs) this.#end(nowMs);
    this.#nowMs = nowMs;
    this.#view = null;
    return isOver;
  }

  /** Kept until the next sample: many pages may be opened at once. With the point that is not over. */
  get view(): HistoryView {
    return (this.#view ??= this.#read());
  }

  toJSON(): KeptLine {
    return { points: this.#points, current: this.current.toJSON() };
  }

  restore({ current, points }: KeptLine, nowMs: number): void {
    this.#points = points.filter(({ atMs }) => atMs <= nowMs).slice(-this.#pointsMax);
    if (current.startMs <= nowMs) this.current = Gathered.from(current);
    this.#nowMs = nowMs;
  }

  #end(atMs: number): void {
    const lastMs = this.last?.atMs ?? atMs;
    if (atMs - lastMs >= 2 * this.#pointMs) this.#push({ ...nothing, atMs: lastMs + this.#pointMs });
    this.#push(this.current.pointAt(atMs));
    this.before = this.current;
    this.current = new Gathered();
  }

  #push(point: HistoryPoint): void {
    this.#points.push(point);
    if (this.#points.length > this.#pointsMax) this.#points.shift();
  }

  #read(): HistoryView {
    const points = [...this.#points];
    if (this.current.seconds > 0) points.push(this.current.pointAt(this.#nowMs));
    const columns = series.map((name) => [name, points.map((point) => point[name])] as const);
    return Object.fromEntries(columns) as unknown as HistoryView;
  }
}

export class History {
  readonly #sampleMs: number;
  readonly #lines: Readonly<Record<HistoryRange, Line>>;
  readonly #refusals = new Map<RefusalReason, number>();
  readonly #file: KeptFile;
  readonly #log: Log;
  #sample = new Gathered();
  #sampledMs: number | null = null;
  #timer: NodeJS.Timeout | undefined;

  private constructor(bounds: Bounds, path: string, log: Log) {
    this.#sampleMs = bounds.historySampleMs;
    this.#lines = {
      hour: new Line(bounds.historySampleMs, bounds.historyHourPointsMax),
      day: new Line(DAY_POINT_MS, bounds.historyDayPointsMax),
      week: new Line(WEEK_POINT_MS, bounds.historyWeekPointsMax),
      days: new Line(DAYS_POINT_MS, bounds.historyDaysMax),
    };
    this.#file = new KeptFile(path);
    this.#log = log;
  }

  /** @param path of the file that keeps the points; one that is damaged counts as absent */
  static async open(bounds: Bounds, path: string, log: Log, nowMs = Date.now()): Promise<History> {
    const history = new History(bounds, path, log);
    try {
      const kept = await history.#file.read();
      if (kept === null) return history;
      if (!isKept(kept)) throw new InvariantError('the file is not as a history is written');
      for (const [range, line] of Object.entries(history.#lines))
        line.restore(kept[range as HistoryRange], nowMs);
    } catch (error) {
      log.warn(
        { path, reason: faultPlace(error) },
        'the past of the live page cannot be read: it begins empty',
      );
    }
    return history;
  }

  /** From now on takes samples. */
  watch(read: () => { readonly streams: ReadonlyMap<string, number>; readonly capacityRatio: number }): void {
    this.#sampledMs = Date.now();
    this.#timer ??= setInterval(() => {
      const { capacityRatio, streams } = read();
      let open = 0;
      for (const count of streams.values()) open += count;
      // A crash loses as much as a point of the day.
      if (this.sample(open, capacityRatio, Date.now())) void this.#keep();
    }, this.#sampleMs).unref();
  }

  /** Writes the file. Idempotent, and never rejects. */
  async close(): Promise<void> {
    if (this.#timer !== undefined) this.sample(0, 0, Date.now());
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#keep();
  }

  firstAudio(ms: number): void {
    this.#sample.times.record(ms);
  }

  /** A request, or a context of a WebSocket, is over. */
  ended(): void {
    this.#sample.requests++;
  }

  refused(reason: RefusalReason): void {
    this.#sample.refusals++;
    this.#refusals.set(reason, (this.#refusals.get(reason) ?? 0) + 1);
  }

  failed(): void {
    this.#sample.failures++;
  }

  /** @returns whether a point of the day has ended */
  sample(streams: number, capacityRatio: number, nowMs: number): boolean {
    const sample = this.#sample;
    this.#sample = new Gathered();
    const sinceMs = nowMs - (this.#sampledMs ?? nowMs - this.#sampleMs);
    this.#sampledMs = nowMs;
    Object.assign(sample, {
      seconds: Math.min(Math.max(1, sinceMs), 2 * this.#sampleMs) / 1_000,
      streams,
      capacityRatio,
    });
    const { day, days, hour, week } = this.#lines;
    for (const line of [hour, week, days]) line.add(sample, this.#sampleMs, nowMs);
    return day.add(sample, this.#sampleMs, nowMs);
  }

  /** First audio over the last five to ten minutes; `null` without a request. */
  get firstAudioMs(): Percentiles | null {
    const all = new Times();
    const { before, current } = this.#lines.day;
    for (const { times } of [this.#sample, current, before]) all.add(times);
    return all.percentiles;
  }

  /** By reason, since the start. */
  get refusals(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#refusals);
  }

  /** The newest point of the hour. */
  get last(): HistoryPoint | null {
    return this.#lines.hour.last;
  }

  view(range: HistoryRange): HistoryView {
    return this.#lines[range].view;
  }

  #keep(): Promise<void> {
    return this.#file.write(this.#lines).catch((error: unknown) => {
      const { code } = error as NodeJS.ErrnoException;
      this.#log.warn({ reason: code ?? faultPlace(error) }, 'the past of the live page could not be written');
    });
  }
}
