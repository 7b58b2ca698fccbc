/** The rows of all scenarios as one table of Markdown. */
import type { TortureRow } from './scenario.js';

/** A bar or a line's end would end the cell. */
const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ').trim();

export const formatFaults = (rows: readonly TortureRow[]): string => {
  const lines = rows.map(({ fault, injected, count, outcome, held }) =>
    [fault, injected, count.toLocaleString('en'), outcome, held ? 'yes' : '**no**'].map(cell).join(' | '),
  );
  const head = ['fault | injected | count | outcome | held', '--- | --- | ---: | --- | ---'];
  return [...head, ...lines].map((line) => `| ${line} |\n`).join('');
};
