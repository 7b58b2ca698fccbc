/** The command line of the torture. */
import { parseCommandLine, UsageError } from '../../src/command-line.js';

export const usage = `Usage: npm run torture -- [NAME...] [--count N] [--seed S] [--allow-skips]

  NAME           a scenario (see --list), or a group of them: hosts stands for all hosts-...; without a name all run
  --count N      how often the fault of one scenario, or of each in a group, is injected (see --list for the defaults)
  --seed S       a whole number; the same seed gives the same faults (default: random, and printed)
  --allow-skips  a scenario that cannot run here, without a program or without root, is no failure
  --list         lists the scenarios and runs none

The table of results goes to standard output, the progress to standard error.
Exit codes: 0 every row held, 1 a row did not hold or was not run, 2 wrong usage.
`;

export interface TortureCommand {
  /** Names of scenarios; none: all. */
  readonly names: readonly string[];
  /** `null`: each scenario's default. */
  readonly count: number | null;
  /** `null`: random. */
  readonly seed: number | null;
  readonly allowSkips: boolean;
}

const whole = (name: string, text: string | undefined): number | null => {
  if (text === undefined) return null;
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`--${name} is a whole number below 1e9, not "${text}"`);
  return Number(text);
};

/**
 * @param known the names of all scenarios
 * @returns `list` for this option
 * @throws {UsageError}
 */
export const readOptions = (args: readonly string[], known: readonly string[]): TortureCommand | 'list' => {
  const { values, positionals } = parseCommandLine({
    args: [...args],
    allowPositionals: true,
    options: {
      count: { type: 'string' },
      seed: { type: 'string' },
      'allow-skips': { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
    },
  });
  const count = whole('count', values.count);
  if (count === 0) throw new UsageError('--count is at least 1');
  if (count !== null && positionals.length !== 1)
    throw new UsageError('--count goes with the name of one scenario or group');
  const names = positionals.flatMap((name) => {
    const meant = known.filter((each) => each === name || each.startsWith(`${name}-`));
    if (meant.length === 0) throw new UsageError(`there is no scenario "${name}": ${known.join(', ')}`);
    return meant;
  });
  const seed = whole('seed', values.seed);
  return values.list ? 'list' : { names, count, seed, allowSkips: values['allow-skips'] };
};
