/** The table that the benchmark prints. */
import type { Machine } from '../rig-old/machine.js';

export interface Row {
  readonly what: string;
  readonly figure: string;
  /** What it must be, in words; `null` where nothing is asked. */
  readonly bar: string | null;
  readonly passed: boolean | null;
}

export const row = (what: string, figure: string): Row => ({ what, figure, bar: null, passed: null });

export const barredRow = (what: string, figure: string, bar: string, passed: boolean): Row => ({
  what,
  figure,
  bar,
  passed,
});

export const formatReport = (machine: Machine, command: string, rows: readonly Row[]): string => {
  const { processor, cores, memoryGiB, system, node } = machine;
  const verdict = ({ passed }: Row) => (passed === null ? '' : passed ? 'met' : '**missed**');
  return [
    `\`${command}\` on ${String(cores)} cores (${processor}, ${String(memoryGiB)} GiB, ${system}, Node ${node}), load client included:`,
    '',
    '| | | asked for | |',
    '| --- | --- | --- | --- |',
    ...rows.map((entry) => `| ${entry.what} | ${entry.figure} | ${entry.bar ?? ''} | ${verdict(entry)} |`),
    '',
  ].join('\n');
};

export const readmeMarks = { begin: '<!-- bench:begin -->', end: '<!-- bench:end -->' } as const;

/** @throws if the README has lost its marks */
export const putIntoReadme = (readme: string, report: string): string => {
  const begin = readme.indexOf(readmeMarks.begin);
  const end = readme.indexOf(readmeMarks.end);
  if (begin < 0 || end < begin) throw new Error('README.md has no marks for the table');
  return `${readme.slice(0, begin + readmeMarks.begin.length)}\n\n${report}\n${readme.slice(end)}`;
};
