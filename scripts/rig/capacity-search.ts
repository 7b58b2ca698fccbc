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

class Search {
  held = 0;
  failed: number | null = null;
  readonly #settings: SearchSettings;
  readonly #holds: (load: number) => Promise<boolean>;

  constructor(settings: SearchSettings, holds: (load: number) => Promise<boolean>) {
    this.#settings = settings;
    this.#holds = holds;
  }

  /** From the last load that held, or down from the first where none did. */
  async grow(): Promise<void> {
    const { first, growth, max } = this.#settings;
    let next = Math.min(first, max);
    while (next >= 1) {
      if (this.held > 0) next = Math.min(max, Math.ceil(this.held * growth));
      const isHeld = await this.#attempt(next);
      if (this.held > 0 && (!isHeld || this.held === max)) return;
      if (!isHeld) next = Math.floor(next / growth);
      else if (this.failed !== null) return;
    }
  }

  /** @returns true if every load below the failed one held */
  async refine(): Promise<boolean> {
    let isContradicted = this.held > 0;
    for (let i = 0; i < this.#settings.refinements && this.failed !== null && this.held > 0; i++) {
      const middle = Math.round((this.held + this.failed) / 2);
      if (middle === this.held || middle === this.failed) break;
      if (!(await this.#attempt(middle))) isContradicted = false;
    }
    return isContradicted;
  }

  /** @returns true if the failed load holds now */
  async reconsider(): Promise<boolean> {
    if (this.failed === null) return false;
    const doubted = this.failed;
    this.failed = null;
    return this.#attempt(doubted);
  }

  async #attempt(load: number): Promise<boolean> {
    for (let trial = 0; trial < this.#settings.trials; trial++)
      if (await this.#holds(load)) {
        this.held = load;
        return true;
      }
    this.failed = load;
    return false;
  }
}

/** @param holds one trial of a whole number of clients */
export const searchCapacity = async (
  settings: SearchSettings,
  holds: (load: number) => Promise<boolean>,
): Promise<SearchResult> => {
  const search = new Search(settings, holds);
  await search.grow();
  for (let thought = 0; (await search.refine()) && thought < settings.secondThoughts; thought++) {
    if (!(await search.reconsider())) break;
    if (search.held < settings.max) await search.grow();
  }
  return { held: search.held, failed: search.failed };
};
