/** Whether something grows: a line through points, by least squares. */

export interface Point {
  readonly atMs: number;
  readonly value: number;
}

export interface Trend {
  readonly slopePerHour: number;
  /** Of the slope: how far off it may be for the scatter of the points. */
  readonly standardErrorPerHour: number;
  readonly points: number;
}

const hourMs = 3_600_000;

/** @returns `null` for fewer than three points, or points of one moment */
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

/** The least value of each whole period: what is left when garbage has been collected. */
export const troughs = (points: readonly Point[], periodMs: number): Point[] => {
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined) return [];
  // A period that has only begun may have no trough yet; a point stands for the time up to the next.
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
