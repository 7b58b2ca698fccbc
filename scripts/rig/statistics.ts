/** The value below which a share (0 to 1) of the values lies, by nearest rank. */
export const percentile = (values: readonly number[], share: number): number => {
  if (values.length === 0) throw new RangeError('no values');
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!;
};

export const median = (values: readonly number[]): number => percentile(values, 0.5);

export const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

export const mean = (values: readonly number[]): number => sumOf(values) / values.length;
