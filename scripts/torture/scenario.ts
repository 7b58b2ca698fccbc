/** The contract of a scenario, and its table of faults. */

export interface TortureOptions {
  /** Every chance in a scenario follows from it. */
  readonly seed: number;
  /** How often a fault is injected, or how many: the scenario decides what it counts. */
  readonly count: number;
  /** Shows a line of progress, in place of the one before. */
  readonly progress: (text: string) => void;
}

export interface Named {
  readonly fault: string;
  /** How the fault was caused. */
  readonly injected: string;
}

/** What came of it. */
export interface Outcome {
  readonly count: number;
  /** What was observed, in words and figures. */
  readonly saw: string;
  /** What did not hold; empty: everything that must. */
  readonly wrong: readonly string[];
}

/** One row of the table. */
export interface TortureRow extends Named {
  readonly count: number;
  readonly outcome: string;
  /** Whether everything held that must hold; `null`: not run here, and `outcome` says why. */
  readonly held: boolean | null;
}

const wrongShownMax = 5;

export const rowOf = ({ fault, injected }: Named, { count, saw, wrong }: Outcome): TortureRow => {
  const found =
    wrong.length === 0 ? '' : `; ${wrong.length} WRONG: ${wrong.slice(0, wrongShownMax).join('; ')}`;
  return { fault, injected, count, outcome: saw + found, held: wrong.length === 0 };
};

/** A fault that this machine or this user cannot cause. */
export const notRun = ({ fault, injected }: Named, why: string): TortureRow => ({
  ...{ fault, injected, count: 0 },
  ...{ outcome: why, held: null },
});

/** @param conditions what must hold, in words @returns those that do not */
export const unmet = (conditions: Readonly<Record<string, boolean>>): string[] =>
  Object.entries(conditions).flatMap(([words, holds]) => (holds ? [] : [`not true: ${words}`]));

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
