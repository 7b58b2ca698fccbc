/** The contract of a scenario, and its table of faults. */

export interface TortureOptions {
  /** Every chance in a scenario follows from it. */
  readonly seed: number;
  /** How often a fault is injected, or how many: the scenario decides what it counts. */
  readonly count: number;
  /** Shows a line of progress, in place of the one before. */
  readonly progress: (text: string) => void;
}

/** One row of the table. */
export interface TortureRow {
  readonly fault: string;
  /** How the fault was caused. */
  readonly injected: string;
  readonly count: number;
  /** What was observed, in words and figures. */
  readonly outcome: string;
  /** Whether everything held that must hold; `null`: not run here, and `outcome` says why. */
  readonly held: boolean | null;
}

/** A fault that this machine or this user cannot cause. */
export const notRun = (fault: string, injected: string, why: string): TortureRow => ({
  fault,
  injected,
  count: 0,
  outcome: why,
  held: null,
});

export interface Scenario {
  readonly name: string;
  /** One line, for `--list`. */
  readonly about: string;
  readonly defaultCount: number;
  run(options: TortureOptions): Promise<readonly TortureRow[]>;
}

/** Bars and line ends would end the cell. */
const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ').trim();

const heldWords = (held: boolean | null): string => (held === null ? 'not run' : held ? 'yes' : '**no**');

/** The rows of all scenarios as one table of Markdown. */
export const formatFaults = (rows: readonly TortureRow[]): string => {
  const lines = rows.map(({ count, fault, held, injected, outcome }) =>
    [fault, injected, count.toLocaleString('en'), outcome, heldWords(held)].map(cell).join(' | '),
  );
  const head = ['fault | injected | count | outcome | held', '--- | --- | ---: | --- | ---'];
  return [...head, ...lines].map((line) => `| ${line} |\n`).join('');
};

/** A line for each row that did not hold, or was not run without permission. */
export const complaintsOf = (rows: readonly TortureRow[], allowSkips: boolean): string[] =>
  rows
    .filter(({ held }) => held === false || (held === null && !allowSkips))
    .map(({ fault, held, outcome }) =>
      held === null ? `${fault}: not run (--allow-skips): ${outcome}` : `${fault}: did not hold`,
    );
