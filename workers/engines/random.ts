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
