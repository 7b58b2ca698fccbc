/** The rows of all scenarios as one table of Markdown, and what they come to. */
import type { TortureRow } from './scenario.js';

/** A bar or a line's end would end the cell. */
const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ').trim();

const heldWords = (held: boolean | null): string => (held === null ? 'not run' : held ? 'yes' : '**no**');

export const formatFaults = (rows: readonly TortureRow[]): string => {
  const lines = rows.map(({ fault, injected, count, outcome, held }) =>
    [fault, injected, count.toLocaleString('en'), outcome, heldWords(held)].map(cell).join(' | '),
  );
  const head = ['fault | injected | count | outcome | held', '--- | --- | ---: | --- | ---'];
  return [...head, ...lines].map((line) => `| ${line} |\n`).join('');
};

/** What did not hold, or was not run and had to be: in words, a line each; none when all is well. */
export const complaintsOf = (rows: readonly TortureRow[], allowSkips: boolean): string[] =>
  rows
    .filter(({ held }) => held === false || (held === null && !allowSkips))
    .map(({ fault, outcome, held }) =>
      held === null ? `${fault}: not run (--allow-skips): ${outcome}` : `${fault}: did not hold`,
    );
