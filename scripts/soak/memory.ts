/**
 * Whether the service's memory grows. Under load it is what its clients leave unread just then, tens of megabytes up
 * and down; so it is read at rest, when nobody speaks, and under load it is only looked at for what goes beyond that.
 */
import type { KeptByScript } from './collector.js';
import type { Step } from './series.js';
import { trendOf, troughs, type Point, type Trend } from './trend.js';

export const memoryBars = {
  slopeMBPerHour: 1,
  /** A slope over less says nothing. */
  minutesMin: 20,
  restsMin: 5,
} as const;

/** What the service keeps when nobody speaks. */
export interface AtRest {
  /** Since the load began. */
  readonly atMs: number;
  readonly pssBytes: number;
  /** Of it what scripts keep; what is beyond them are the C library's heaps, native code and pages that hold little. */
  readonly kept: KeptByScript;
}

const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

export const describeRest = ({ pssBytes, kept }: Omit<AtRest, 'atMs'>): string =>
  `at rest: PSS ${mb(pssBytes)}; scripts keep ${mb(kept.heapBytes)} in heaps, ${mb(kept.externalBytes)} outside of them`;

/** Of each of these the least figure counts: when garbage had just been collected, and little was in flight. */
const troughMs = 180_000;
/** After a rest, until slow readers have left as much unread as ever. */
const refillMs = 120_000;

/** A line through what is left in each few minutes. */
export const loadTrend = (
  steps: readonly Step[],
  rests: readonly AtRest[],
  pick: (step: Step) => number | null,
): { readonly trend: Trend | null; readonly minutes: number } => {
  const points = steps.flatMap((step): Point[] => {
    const value = pick(step);
    const isRefilling = rests.some(({ atMs }) => step.atMs >= atMs && step.atMs < atMs + refillMs);
    return value === null || isRefilling ? [] : [{ atMs: step.atMs, value: value / 1e6 }];
  });
  const minutes = points.length < 2 ? 0 : (points.at(-1)!.atMs - points[0]!.atMs) / 60_000;
  return { trend: trendOf(troughs(points, troughMs)), minutes };
};

/** @returns `null` for too few to tell how far off it is */
export const restTrend = (rests: readonly AtRest[]): Trend | null =>
  rests.length < memoryBars.restsMin
    ? null
    : trendOf(rests.map(({ atMs, pssBytes }) => ({ atMs, value: pssBytes / 1e6 })));

const slope = (trend: Trend | null): string =>
  trend === null
    ? 'not known'
    : `${trend.slopePerHour.toFixed(2)} ± ${trend.standardErrorPerHour.toFixed(2)} MB an hour`;

/** @returns `null` where the points scatter too much to tell, by twice what they leave open */
const staysFlat = ({ slopePerHour, standardErrorPerHour }: Trend): boolean | null => {
  const bar = memoryBars.slopeMBPerHour;
  if (standardErrorPerHour <= bar) return slopePerHour <= bar;
  if (slopePerHour - 2 * standardErrorPerHour > bar) return false;
  return slopePerHour + 2 * standardErrorPerHour <= bar ? true : null;
};

/**
 * @param steps under load, after warm-up
 * @returns passed `null` where it cannot be told; `found` says why
 */
export const judgeMemory = (
  steps: readonly Step[],
  rests: readonly AtRest[],
): { readonly passed: boolean | null; readonly found: string } => {
  const { trend: underLoad, minutes } = loadTrend(steps, rests, ({ pssBytes }) => pssBytes);
  const heap = loadTrend(steps, rests, ({ frontHeapBytes }) => frontHeapBytes).trend;
  const atRest = restTrend(rests);
  const rested =
    atRest === null ? '' : `at rest ${slope(atRest)} (${String(atRest.points)} rests), under load `;
  const found = `PSS ${rested}${slope(underLoad)}; the front thread's heap ${slope(heap)}`;
  if (minutes < memoryBars.minutesMin || underLoad === null)
    return {
      passed: null,
      found: `${found}; it takes ${String(memoryBars.minutesMin)} minutes under load to tell`,
    };
  const verdicts = [underLoad, ...(atRest === null ? [] : [atRest])].map(staysFlat);
  if (verdicts.includes(false)) return { passed: false, found };
  // Where there were rests, they tell; else only a load that hardly scatters does.
  if (verdicts.at(-1) === true) return { passed: true, found };
  return { passed: null, found: `${found}; the error of the slope is beyond the bar: a longer soak tells` };
};
