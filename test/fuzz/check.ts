/** Runs properties, each day on other values: what fails once fails again until it is mended. The seed is in the report. */
import fc from 'fast-check';
import type { Test } from 'tap';

/** `SYRINX_FUZZ_SEED` repeats a run; `SYRINX_FUZZ_TIMES` makes it as many times as long. */
const seedWanted = process.env['SYRINX_FUZZ_SEED'];
export const times = Number(process.env['SYRINX_FUZZ_TIMES'] ?? 1);
/** `npm run nightly` tries in full what other runs sample. */
export const isNight = times > 1;

export const seedOfRun = (): number => Number(seedWanted ?? Math.floor(Date.now() / 86_400_000));

/** @returns one of `parts` of a sweep, each day another one; by night all of it */
export const partOfToday = <T>(cases: readonly T[], parts: number): readonly T[] =>
  isNight ? cases : cases.filter((_, place) => place % parts === seedOfRun() % parts);

/** Any code point but a surrogate. The unit `binary` of fast-check, which is the same, makes a table of all for each string. */
const codePoint = fc
  .integer({ min: 0, max: 0x10_f7_ff })
  .map((place) => String.fromCodePoint(place < 0xd8_00 ? place : place + 0x8_00));

/** @param maxLength in code points */
export const anyText = (maxLength?: number): fc.Arbitrary<string> =>
  fc.string({ unit: codePoint, ...(maxLength !== undefined && { maxLength }) });

/** @param runs unless SYRINX_FUZZ_TIMES changes them @returns the number of runs */
export const check = async <T>(t: Test, property: fc.IRawProperty<T>, runs: number): Promise<number> => {
  const seed = seedOfRun();
  const result = await fc.check(property, {
    numRuns: Math.round(runs * times),
    seed,
    includeErrorInReport: true,
  });
  if (result.failed) t.fail(`seed ${seed}\n${fc.defaultReportMessage(result) ?? ''}`);
  else t.pass(`${result.numRuns} runs, seed ${seed}`);
  return result.numRuns;
};
