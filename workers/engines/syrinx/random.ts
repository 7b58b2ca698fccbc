/** Random numbers for a voice. Each is found by its seed and its place, so none depends on what was drawn before. */

/** Uniform numbers in [0, 1) from 32-bit state (mulberry32): fast, and good enough for a voice. */
const randomFrom = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value = (value + Math.imul(value ^ (value >>> 7), value | 61)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 0x1_0000_0000;
  };
};

/** Spreads similar seeds (0, 1, 2 ...) over the whole state. */
const scramble = (seed: number, salt: number): number => {
  let value = Math.imul((seed ^ Math.imul(salt, 0x9e3779b1)) >>> 0, 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
};

/** The numbers of one place. @param kind keeps the places of different things apart */
export const randomAt = (seed: number, kind: number, place = 0): (() => number) =>
  randomFrom(scramble(scramble(seed, kind), place));

/** Standard normal, limited to three deviations so that no sound becomes absurd. */
export const gaussian = (random: () => number): number => {
  const radius = Math.sqrt(-2 * Math.log(1 - random()));
  return Math.max(-3, Math.min(3, radius * Math.cos(2 * Math.PI * random())));
};

/**
 * The Cholesky factor of a correlation: multiplied by it, independent normal numbers are correlated so.
 * @returns its rows, each up to the diagonal; `null` if it is no correlation
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
