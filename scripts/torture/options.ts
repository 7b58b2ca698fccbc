/** The command line of the torture. */
import { parseCommandLine, UsageError } from '../command.js';

export const usage = `Usage: npm run torture -- [NAME...] [--count N] [--seed S] [--allow-skips]

  NAME           a scenario, of those that --list tells; without one all are run
  --count N      how often its fault is injected, for one scenario (--list tells the defaults)
  --seed S       a whole number; the same seed gives the same faults (without: another one each time, which is told)
  --allow-skips  what cannot be run here, for want of a program or of root, is told in the table and is no failure
  --list         tells the scenarios, runs none

The table of what came of it goes to standard output, the progress to standard error.
Exit codes: 0 every row held, 1 one did not or was not run, 2 the command was not understood.
`;

export interface TortureCommand {
  /** Of scenarios that there are; none: all. */
  readonly names: readonly string[];
  /** `null`: each scenario's own. */
  readonly count: number | null;
  /** `null`: whatever comes. */
  readonly seed: number | null;
  readonly allowSkips: boolean;
}

const whole = (name: string, text: string | undefined): number | null => {
  if (text === undefined) return null;
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`--${name} is a whole number below 1e9, not "${text}"`);
  return Number(text);
};

const parse = (args: readonly string[]) =>
  parseCommandLine({
    args: [...args],
    allowPositionals: true,
    options: {
      count: { type: 'string' },
      seed: { type: 'string' },
      'allow-skips': { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });

/**
 * @param known the names of all scenarios
 * @returns `help` or `list` when that is asked for
 * @throws {UsageError} in words for a terminal
 */
export const readOptions = (
  args: readonly string[],
  known: readonly string[],
): TortureCommand | 'help' | 'list' => {
  const { values, positionals: names } = parse(args);
  if (values.help) return 'help';
  for (const name of names)
    if (!known.includes(name)) throw new UsageError(`there is no scenario "${name}": ${known.join(', ')}`);
  const count = whole('count', values.count);
  if (count === 0) throw new UsageError('--count is at least 1');
  if (count !== null && names.length !== 1)
    throw new UsageError('--count goes with the name of one scenario');
  const seed = whole('seed', values.seed);
  return values.list ? 'list' : { names, count, seed, allowSkips: values['allow-skips'] };
};
