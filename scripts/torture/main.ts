/**
 * Breaks the service as it is, in every way that it must survive, and tells what came of it:
 *
 *   npm run torture [-- NAME...] [--count N] [--seed S] [--allow-skips] [--list]
 *
 * Without a name all scenarios run. The table is what is written to standard output; exit code 1: a row did not hold,
 * or was not run for want of a program or of root; with --allow-skips that is told in the table, and is no failure.
 */
import { parseArgs } from 'node:util';
import type { Scenario, TortureRow } from './scenario.js';
import { scenarios } from './scenarios.js';
import { complaintsOf, formatFaults } from './fault-table.js';
import { formatTable } from '../table.js';

// So that what was started ends too.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    count: { type: 'string' },
    seed: { type: 'string' },
    'allow-skips': { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
  },
});

const usage = (message: string): never => {
  process.stderr.write(`torture: ${message}\n`);
  process.exit(2);
};

const wholeNumber = (name: string, text: string | undefined): number | undefined => {
  if (text === undefined) return undefined;
  return /^\d{1,9}$/.test(text) ? Number(text) : usage(`--${name} takes a whole number, not ${text}`);
};

const count = wholeNumber('count', values.count);
if (count === 0) usage('--count is at least 1');
const seed = wholeNumber('seed', values.seed) ?? Math.floor(Math.random() * 1e9);
const names = scenarios.map(({ name }) => name).join(', ');
const wanted = positionals.map(
  (name) => scenarios.find((scenario) => scenario.name === name) ?? usage(`there is no ${name}: ${names}`),
);
if (count !== undefined && wanted.length !== 1) usage('--count goes with the name of one scenario');

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

const runScenario = async (scenario: Scenario): Promise<readonly TortureRow[]> => {
  shownMs = Number.NEGATIVE_INFINITY;
  const startedMs = performance.now();
  const progress = (text: string): void => {
    const seconds = Math.round((performance.now() - startedMs) / 1000);
    show(`${scenario.name} ${String(seconds)} s: ${text}`);
  };
  progress('starting');
  try {
    return await scenario.run({ seed, count: count ?? scenario.defaultCount, progress });
  } catch (error) {
    const outcome = `the scenario broke off: ${error instanceof Error ? error.message : String(error)}`;
    process.stderr.write(`\n${error instanceof Error ? (error.stack ?? '') : ''}\n`);
    return [{ fault: scenario.name, injected: scenario.about, count: 0, outcome, held: false }];
  } finally {
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
  }
};

if (values.list) {
  const list = scenarios.map(({ name, about, defaultCount }) => [name, String(defaultCount), about]);
  process.stdout.write(formatTable([['scenario', 'count', 'about'], ...list], [1]));
} else {
  process.stderr.write(`seed ${String(seed)}\n`);
  const rows: TortureRow[] = [];
  for (const scenario of wanted.length > 0 ? wanted : scenarios) rows.push(...(await runScenario(scenario)));
  process.stdout.write(formatFaults(rows));
  const complaints = complaintsOf(rows, values['allow-skips']);
  for (const complaint of complaints) process.stderr.write(`${complaint}\n`);
  process.exitCode = complaints.length === 0 ? 0 : 1;
}
