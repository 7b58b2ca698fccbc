/** The correlation of the random numbers of a style. */

/**
 * The Cholesky factor of a correlation: multiplied by it, independent normal numbers have this correlation.
 * @returns its rows, each up to the diagonal; `null` if it is not a correlation
 */
export const mixingOf = (correlation: readonly (readonly number[])[]): number[][] | null => {
  const factor: number[][] = [];
  for (const [i, row] of correlation.entries()) {
    const made: number[] = [];
    for (let j = 0; j <= i; j++) {
      if (Math.abs(row[j]! - correlation[j]![i]!) > 1e-6) return null;
      let rest = row[j]!;
      for (let k = 0; k < j; k++) rest -= made[k]! * (j === i ? made : factor[j]!)[k]!;
      if (j < i) made.push(rest / factor[j]![j]!);
      else if (Math.abs(row[i]! - 1) > 1e-6 || rest < 1e-6) return null;
      else made.push(Math.sqrt(rest));
    }
    factor.push(made);
  }
  return factor;
};
