/** The last values as a line, the newest at the right end. `length` values fill its width. */
export const Sparkline = ({
  values,
  length,
}: {
  readonly values: readonly number[];
  readonly length: number;
}) => {
  const max = Math.max(...values, Number.MIN_VALUE);
  const start = length - values.length;
  const points = values.map((value, index) => `${start + index},${(23 - (22 * value) / max).toFixed(1)}`);
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${length - 1} 24`}
      width="100%"
      height="1.75rem"
      fill="none"
      stroke="currentcolor"
      stroke-width={1.5}
      overflow="visible"
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <polyline points={points.join(' ')} vector-effect="non-scaling-stroke" />
    </svg>
  );
};
