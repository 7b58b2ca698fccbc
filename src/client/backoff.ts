/** How long to wait before the next try: doubled each time up to a cap, with jitter so that not all come at once. */

export interface Backoff {
  /** Milliseconds before the second try, at most. */
  readonly firstMs: number;
  /** Milliseconds that no wait goes over. */
  readonly capMs: number;
}

/** What the service asks of its clients after a 429 or a lost connection. */
export const advisedBackoff: Backoff = { firstMs: 200, capMs: 5_000 };

/**
 * @param failures tries that failed in a row, from 1
 * @param random from 0 to below 1
 * @returns milliseconds: from half of what the doubling gives to all of it
 */
export const backoffMs = (
  failures: number,
  { firstMs, capMs }: Backoff = advisedBackoff,
  random: () => number = Math.random,
): number => {
  const fullMs = Math.min(capMs, firstMs * 2 ** (failures - 1));
  return fullMs / 2 + (fullMs / 2) * random();
};
