/**
 * Breaks the service as it is, in every way that it must survive, and tells what came of it:
 *
 *   npm run torture [-- NAME...] [--count N] [--seed S] [--allow-skips] [--list]
 *
 * Without a name all scenarios run. The table is what is written to standard output. Exit codes: 0 every row held, 1 one
 * did not, or was not run (see --allow-skips), 2 the command was not understood.
 */
import type { Scenario, TortureRow } from './scenario.js';
import { scenarios } from './scenarios.js';
import { complaintsOf, formatFaults } from './fault-table.js';
import { readOptions, usage, type TortureCommand } from './options.js';
import { readArguments } from '../command.js';
import { formatTable } from '../table.js';

// So that what was started ends too.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

/** One line on a terminal; elsewhere one every few seconds. */
const lineEveryMs = 5_000;
let shownMs = Number.NEGATIVE_INFINITY;
const show = (text: string): void => {
  if (process.stderr.isTTY) {
    process.stderr.write(`\r\x1b[K${text.slice(0, process.stderr.columns - 1)}`);
    return;
  }
  if (performance.now() - shownMs < lineEveryMs) return;
  shownMs = performance.now();
  process.stderr.write(`${text}\n`);
};

const runScenario = async (
  scenario: Scenario,
  seed: number,
  count: number,
): Promise<readonly TortureRow[]> => {
  shownMs = Number.NEGATIVE_INFINITY;
  const startedMs = performance.now();
  const progress = (text: string): void => {
    const seconds = Math.round((performance.now() - startedMs) / 1000);
    show(`${scenario.name} ${String(seconds)} s: ${text}`);
  };
  progress('starting');
  try {
    return await scenario.run({ seed, count, progress });
  } catch (error) {
    const outcome = `the scenario broke off: ${error instanceof Error ? error.message : String(error)}`;
    process.stderr.write(`\n${error instanceof Error ? (error.stack ?? '') : ''}\n`);
    return [{ fault: scenario.name, injected: scenario.about, count: 0, outcome, held: false }];
  } finally {
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
  }
};

const listScenarios = (): string =>
  formatTable(
    [
      ['scenario', 'count', 'about'],
      ...scenarios.map(({ name, about, defaultCount }) => [name, String(defaultCount), about]),
    ],
    [1],
  );

/** @returns the exit code */
const runAll = async ({ names, count, seed, allowSkips }: TortureCommand): Promise<number> => {
  const seedUsed = seed ?? Math.floor(Math.random() * 1e9);
  process.stderr.write(`seed ${String(seedUsed)}\n`);
  const rows: TortureRow[] = [];
  for (const scenario of scenarios)
    if (names.length === 0 || names.includes(scenario.name))
      rows.push(...(await runScenario(scenario, seedUsed, count ?? scenario.defaultCount)));
  process.stdout.write(formatFaults(rows));
  const complaints = complaintsOf(rows, allowSkips);
  for (const complaint of complaints) process.stderr.write(`${complaint}\n`);
  return complaints.length === 0 ? 0 : 1;
};

const scenarioNames = scenarios.map(({ name }) => name);
const command = readArguments('torture', usage, (args) => readOptions(args, scenarioNames));
if (command === 'help') process.stdout.write(usage);
else if (command === 'list') process.stdout.write(listScenarios());
else process.exitCode = await runAll(command);
