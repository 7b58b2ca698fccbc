/** The benchmark's table. */
import type { Machine } from '../rig/machine.js';

export interface Row {
  readonly what: string;
  readonly figure: string;
  /** What the figure must be, in words; `null`: anything. */
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

/** A figure in words. */
export const ms = (value: number): string => `${value.toFixed(1)} ms`;
export const count = (value: number): string => value.toLocaleString('en');

export const formatReport = (machine: Machine, command: string, rows: readonly Row[]): string => {
  const { processor, cores, memoryGiB, system, node } = machine;
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
