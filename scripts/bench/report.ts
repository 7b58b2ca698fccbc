/** The benchmark's table. */
import { describeMachine } from '../rig/machine.js';
import { median, percentile } from '../rig/statistics.js';

export interface Row {
  readonly what: string;
  readonly figure: string;
  /** What the figure must be, in words; `null`: anything. */
  readonly bar: string | null;
  readonly passed: boolean | null;
}

/** @param bar what is asked for, in words; without it the figure may be anything */
export const row = (
  what: string,
  figure: string,
  bar: string | null = null,
  passed: boolean | null = null,
): Row => ({ what, figure: figure.includes('NaN') ? 'not known on this system' : figure, bar, passed });

/** A figure in words. */
export const ms = (value: number, digits = 1): string => `${value.toFixed(digits)} ms`;
export const count = (value: number): string => value.toLocaleString('en');
export const spread = (times: readonly number[], digits = 1): string =>
  `p50 ${ms(median(times), digits)}, p95 ${ms(percentile(times, 0.95), digits)}`;

export const formatReport = (command: string, rows: readonly Row[]): string => {
  const { processor, cores, memoryGiB, system, node } = describeMachine();
  const verdict = ({ passed }: Row) => (passed === null ? '' : passed ? 'met' : '**missed**');
  return [
    `\`${command}\` on ${cores} cores (${processor}, ${memoryGiB} GiB, ${system}, Node ${node}), load client included:`,
    '',
    '| | | asked for | |',
    '| --- | --- | --- | --- |',
    ...rows.map((entry) => `| ${entry.what} | ${entry.figure} | ${entry.bar ?? ''} | ${verdict(entry)} |`),
    '',
  ].join('\n');
};

const readmePlace = { begin: '<!-- bench:begin -->', end: '<!-- bench:end -->' } as const;

/** @throws if the README has no place for the table */
export const putIntoReadme = (readme: string, report: string): string => {
  const begin = readme.indexOf(readmePlace.begin);
  const end = readme.indexOf(readmePlace.end);
  if (begin < 0 || end < begin) throw new Error('README.md has no place for the table');
  return `${readme.slice(0, begin + readmePlace.begin.length)}\n\n${report}\n${readme.slice(end)}`;
};
