/** What `npm run torture` is made of: a scenario injects faults and tells, a row a fault, what came of them. */

export interface TortureOptions {
  /** All that a scenario draws by chance follows from it. */
  readonly seed: number;
  /** How often, or how many: what is counted is the scenario's to say. */
  readonly count: number;
  /** The line that is shown while it runs; each takes the place of the one before. */
  readonly progress: (text: string) => void;
}

/** One row of the table of faults. */
export interface TortureRow {
  readonly fault: string;
  /** How it was brought about. */
  readonly injected: string;
  readonly count: number;
  /** What was seen, in words and figures. */
  readonly outcome: string;
  /** Whether all that must hold did; `null`: it was not run here, and `outcome` says why. */
  readonly held: boolean | null;
}

/** A row of a fault that this machine, or this user, cannot bring about. */
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
