/** Milliseconds on a clock that all threads share (`performance.now` starts at 0 in each thread). */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/** A source of monotonic milliseconds: the real clock, or a fake one in tests. */
export type Clock = () => number;

/**
 * The time that this thread saw pass. Deadlines of clients and of other threads use it: a suspend of the machine, or a long
 * block of this thread, must not count against them.
 */
export class SeenClock {
  readonly #clock: Clock;
  readonly #stepMsMax: number;
  #lookedMs: number;
  #seenMs = 0;

  /** @param lookMs between two calls of `look`; a late one counts as two at most */
  constructor(lookMs: number, clock: Clock) {
    this.#clock = clock;
    this.#stepMsMax = 2 * lookMs;
    this.#lookedMs = clock();
  }

  readonly now: Clock = () => this.#seenMs + Math.min(this.#clock() - this.#lookedMs, this.#stepMsMax);

  /** Call it regularly while a deadline runs. */
  look(): void {
    this.#seenMs = this.now();
    this.#lookedMs = this.#clock();
  }
}
