/**
 * Whether the service's memory grows. Under load it swings by tens of megabytes with what clients leave unread; so it is
 * read at rest, when no client speaks, and under load only what goes beyond that counts.
 */
import type { AtRest, Step } from './measures.js';

interface Point {
  readonly atMs: number;
  readonly value: number;
}

interface Trend {
  readonly slopePerHour: number;
  /** Of the slope, by the scatter of the points. */
  readonly standardErrorPerHour: number;
}

const memoryBars = {
  slopeMBPerHour: 1,
  /** A slope over less time means nothing. */
  minutesMin: 20,
  restsMin: 5,
} as const;

const hourMs = 3_600_000;

/** A line through the points, by least squares. @returns `null` for fewer than three points */
const trendOf = (points: readonly Point[]): Trend | null => {
  const count = points.length;
  if (count < 3) return null;
  const mean = (pick: (point: Point) => number) =>
    points.reduce((sum, point) => sum + pick(point), 0) / count;
  const meanMs = mean(({ atMs }) => atMs);
  const meanValue = mean(({ value }) => value);
  const spread = mean(({ atMs }) => (atMs - meanMs) ** 2);
  const slope = mean(({ atMs, value }) => (atMs - meanMs) * (value - meanValue)) / spread;
  const scatter = mean(({ atMs, value }) => (value - meanValue - slope * (atMs - meanMs)) ** 2);
  const error = Math.sqrt(scatter / (count - 2) / spread);
  return { slopePerHour: slope * hourMs, standardErrorPerHour: error * hourMs };
};

/** Of each such period the least figure counts: garbage had just been collected, and little was in flight. */
const troughMs = 180_000;
/** After a rest, until slow readers have left as much unread as before. */
const refillMs = 120_000;

/** The trend under load. */
const loadTrend = (
  steps: readonly Step[],
  rests: readonly AtRest[],
  pick: (step: Step) => number | null,
): Trend | null => {
  const least: Point[] = [];
  const [first, last] = [steps[0]?.atMs ?? 0, steps.at(-1)?.atMs ?? 0];
  for (const step of steps) {
    const { atMs } = step;
    const bytes = pick(step);
    const isRefilling = rests.some((rest) => atMs >= rest.atMs && atMs < rest.atMs + refillMs);
    const period = Math.floor((atMs - first) / troughMs);
    // The last period may have no trough yet.
    const isWhole = first + (period + 1) * troughMs <= last;
    if (bytes === null || isRefilling || !isWhole) continue;
    const value = bytes / 1e6;
    if (value < (least[period]?.value ?? Infinity)) least[period] = { atMs, value };
  }
  return trendOf(least.filter(Boolean));
};

const describe = (trend: Trend | null): string =>
  trend === null
    ? 'unknown'
    : `${trend.slopePerHour.toFixed(2)} ± ${trend.standardErrorPerHour.toFixed(2)} MB an hour`;

/** @returns `null` where the points scatter too much: within two standard errors, both is possible */
const staysFlat = ({ slopePerHour, standardErrorPerHour }: Trend): boolean | null => {
  const bar = memoryBars.slopeMBPerHour;
  if (standardErrorPerHour <= bar) return slopePerHour <= bar;
  if (slopePerHour - 2 * standardErrorPerHour > bar) return false;
  return slopePerHour + 2 * standardErrorPerHour <= bar ? true : null;
};

/**
 * @param steps under load, after warm-up
 * @returns passed `null` where it cannot be judged; `found` says why
 */
export const judgeMemory = (
  steps: readonly Step[],
  rests: readonly AtRest[],
): { readonly passed: boolean | null; readonly found: string } => {
  const underLoad = loadTrend(steps, rests, ({ pssBytes }) => pssBytes);
  const heap = loadTrend(steps, rests, ({ frontHeapBytes }) => frontHeapBytes);
  const points = rests.map(({ atMs, pssBytes }) => ({ atMs, value: pssBytes / 1e6 }));
  const atRest = points.length < memoryBars.restsMin ? null : trendOf(points);
  const rested = atRest === null ? '' : `at rest ${describe(atRest)} (${points.length} rests), under load `;
  const found = `PSS ${rested}${describe(underLoad)}; the front thread's heap ${describe(heap)}`;
  const minutes = ((steps.at(-1)?.atMs ?? 0) - (steps[0]?.atMs ?? 0)) / 60_000;
  if (minutes < memoryBars.minutesMin || underLoad === null)
    return { passed: null, found: `${found}; judging takes ${memoryBars.minutesMin} minutes under load` };
  const verdicts = [underLoad, ...(atRest === null ? [] : [atRest])].map(staysFlat);
  if (verdicts.includes(false)) return { passed: false, found };
  // Rests decide where there were some; otherwise only a load that hardly scatters can.
  if (verdicts.at(-1) === true) return { passed: true, found };
  return {
    passed: null,
    found: `${found}; the error of the slope is beyond the bar: a longer soak can decide`,
  };
};
