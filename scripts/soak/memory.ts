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
  readonly points: number;
}

const hourMs = 3_600_000;

/** A line through the points, by least squares. @returns `null` for fewer than three points, or points of one moment */
export const trendOf = (points: readonly Point[]): Trend | null => {
  const count = points.length;
  if (count < 3) return null;
  const mean = (pick: (point: Point) => number) =>
    points.reduce((sum, point) => sum + pick(point), 0) / count;
  const meanMs = mean(({ atMs }) => atMs);
  const meanValue = mean(({ value }) => value);
  let [spread, product] = [0, 0];
  for (const { atMs, value } of points) {
    spread += (atMs - meanMs) ** 2;
    product += (atMs - meanMs) * (value - meanValue);
  }
  if (spread === 0) return null;
  const slope = product / spread;
  const squares = points.reduce(
    (sum, { atMs, value }) => sum + (value - meanValue - slope * (atMs - meanMs)) ** 2,
    0,
  );
  const error = Math.sqrt(squares / (count - 2) / spread);
  return { slopePerHour: slope * hourMs, standardErrorPerHour: error * hourMs, points: count };
};

/** The least value of each whole period: what is left after garbage collection. */
export const troughs = (points: readonly Point[], periodMs: number): Point[] => {
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined) return [];
  // The last period may have no trough yet; a point stands for the time up to the next.
  const stepMs = points.length < 2 ? 0 : (last.atMs - first.atMs) / (points.length - 1);
  const whole = Math.floor((last.atMs + stepMs - first.atMs) / periodMs + 1e-6);
  const least: Point[] = [];
  for (const point of points) {
    const period = Math.floor((point.atMs - first.atMs) / periodMs);
    if (period >= whole) break;
    const found = least[period];
    if (found === undefined || point.value < found.value) least[period] = point;
  }
  return least.filter(Boolean);
};

export const memoryBars = {
  slopeMBPerHour: 1,
  /** A slope over less time means nothing. */
  minutesMin: 20,
  restsMin: 5,
} as const;

const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

export const describeRest = ({ pssBytes, kept }: Omit<AtRest, 'atMs'>): string =>
  `at rest: PSS ${mb(pssBytes)}; scripts keep ${mb(kept.heapBytes)} in heaps, ${mb(kept.externalBytes)} outside`;

/** Of each such period the least figure counts: garbage had just been collected, and little was in flight. */
const troughMs = 180_000;
/** After a rest, until slow readers have left as much unread as before. */
const refillMs = 120_000;

/** The trend of the least value of each period. */
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

/** @returns `null` for too few rests */
export const restTrend = (rests: readonly AtRest[]): Trend | null =>
  rests.length < memoryBars.restsMin
    ? null
    : trendOf(rests.map(({ atMs, pssBytes }) => ({ atMs, value: pssBytes / 1e6 })));

const slope = (trend: Trend | null): string =>
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
  const { trend: underLoad, minutes } = loadTrend(steps, rests, ({ pssBytes }) => pssBytes);
  const heap = loadTrend(steps, rests, ({ frontHeapBytes }) => frontHeapBytes).trend;
  const atRest = restTrend(rests);
  const rested = atRest === null ? '' : `at rest ${slope(atRest)} (${atRest.points} rests), under load `;
  const found = `PSS ${rested}${slope(underLoad)}; the front thread's heap ${slope(heap)}`;
  if (minutes < memoryBars.minutesMin || underLoad === null)
    return {
      passed: null,
      found: `${found}; judging takes ${memoryBars.minutesMin} minutes under load`,
    };
  const verdicts = [underLoad, ...(atRest === null ? [] : [atRest])].map(staysFlat);
  if (verdicts.includes(false)) return { passed: false, found };
  // Rests decide where there were some; otherwise only a load that hardly scatters can.
  if (verdicts.at(-1) === true) return { passed: true, found };
  return {
    passed: null,
    found: `${found}; the error of the slope is beyond the bar: a longer soak can decide`,
  };
};
