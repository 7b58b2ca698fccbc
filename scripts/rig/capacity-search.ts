/**
 * The search for the greatest load that holds: it grows by a factor until one fails, then halves the gap. A machine has
 * noisy moments: a load fails only when several trials in a row do, and a failure that every trial below contradicts is
 * tried again.
 */

export interface SearchSettings {
  readonly first: number;
  /** From one load to the next, while they hold. */
  readonly growth: number;
  /** Halvings of the gap between the last load that held and the first that did not. */
  readonly refinements: number;
  readonly max: number;
  /** A load fails when so many trials in a row do. */
  readonly trials: number;
  /** How often the search goes on where it took a noisy moment for the limit. */
  readonly secondThoughts: number;
}

export interface SearchResult {
  /** The greatest load that held; 0: not even 1 did. */
  readonly held: number;
  /** The least load that failed above it; `null`: the greatest that was allowed held. */
  readonly failed: number | null;
}

/** @param holds one trial of a whole number of clients */
export const searchCapacity = async (
  { first, growth, max, refinements, secondThoughts, trials }: SearchSettings,
  holds: (load: number) => Promise<boolean>,
): Promise<SearchResult> => {
  let held = 0;
  let failed = null as number | null;

  const attempt = async (load: number): Promise<boolean> => {
    for (let trial = 0; trial < trials; trial++)
      if (await holds(load)) {
        held = load;
        return true;
      }
    failed = load;
    return false;
  };

  /** From the last load that held, or down from the first where none did. */
  const grow = async (): Promise<void> => {
    for (let next = Math.min(first, max); held === 0 && next >= 1; next = Math.floor(next / growth))
      await attempt(next);
    while (held > 0 && held < max && failed === null) await attempt(Math.min(max, Math.ceil(held * growth)));
  };

  /** @returns true if every load below the failed one held */
  const refine = async (): Promise<boolean> => {
    let isContradicted = held > 0;
    for (let i = 0; i < refinements && failed !== null && held > 0; i++) {
      const middle = Math.round((held + failed) / 2);
      if (middle === held || middle === failed) break;
      if (!(await attempt(middle))) isContradicted = false;
    }
    return isContradicted;
  };

  await grow();
  for (let thought = 0; (await refine()) && thought < secondThoughts && failed !== null; thought++) {
    const doubted = failed;
    failed = null;
    if (!(await attempt(doubted))) break;
    await grow();
  }
  return { held, failed };
};
