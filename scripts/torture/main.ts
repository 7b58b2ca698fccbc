/**
 * Breaks the service in every way that it must survive, and prints a table of the results:
 *
 *   npm run torture [-- NAME...] [--count N] [--seed S] [--allow-skips] [--list]
 *
 * Without a name all scenarios run. The table goes to standard output. Exit codes: 0 every row held, 1 a row did not hold
 * or was not run (see --allow-skips), 2 wrong usage.
 */
import { endWithReader, readArguments } from '../../src/command-line.js';
import { formatTable } from '../table.js';
import { drains } from './drains.js';
import { slowReaders } from './floods/slow-readers.js';
import { fuzz } from './fuzz/fuzz.js';
import { greedy } from './greedy/greedy.js';
import { severalHosts } from './hosts/hosts.js';
import { kills } from './kills/kills.js';
import { damagedStore } from './store/damaged-store.js';
import { clock } from './surroundings/clock.js';
import { fullDisk } from './surroundings/full-disk.js';
import { threads } from './threads/threads.js';
import { voices } from './voices/voices.js';
import { readOptions, usage, type TortureCommand } from './options.js';
import { formatFaults, rowOf, type Scenario, type TortureRow } from './scenario.js';

/** In the order in which they run. */
const scenarios: readonly Scenario[] = [
  fuzz,
  slowReaders,
  ...greedy,
  threads,
  drains,
  kills,
  ...severalHosts,
  damagedStore,
  voices,
  fullDisk,
  clock,
];

// An exit also ends the processes that were started.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

/** On a terminal one line is painted again; elsewhere a line comes every five seconds. */
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
    show(`${scenario.name} ${seconds} s: ${text}`);
  };
  progress('starting');
  try {
    return await scenario.run({ seed, count, progress });
  } catch (error) {
    const { message, stack } = error as Error;
    process.stderr.write(`\n${stack ?? ''}\n`);
    const named = { fault: scenario.name, injected: scenario.about };
    return [rowOf(named, { count: 0, saw: 'the scenario broke off', wrong: [message] })];
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
  process.stderr.write(`seed ${seedUsed}\n`);
  const rows: TortureRow[] = [];
  for (const scenario of scenarios)
    if (names.length === 0 || names.includes(scenario.name))
      rows.push(...(await runScenario(scenario, seedUsed, count ?? scenario.defaultCount)));
  process.stdout.write(formatFaults(rows));
  const bad = rows.filter(({ held }) => held === false || (held === null && !allowSkips));
  for (const { fault, held, outcome } of bad)
    process.stderr.write(
      `${fault}: ${held === null ? `not run (--allow-skips): ${outcome}` : 'did not hold'}\n`,
    );
  return bad.length === 0 ? 0 : 1;
};

const scenarioNames = scenarios.map(({ name }) => name);
endWithReader();
const command = await readArguments('torture', usage, (args) => readOptions(args, scenarioNames));
if (command === 'list') process.stdout.write(listScenarios());
else process.exitCode = await runAll(command);
