/**
 * Connections by who holds them: an address, or an account.
 *
 * The server library does not say which connection a request comes on, nor which one ends between two requests. So a
 * connection is counted by what it does, which the library does say:
 *
 *   opened --> resting --request--> held --answered--> resting --(REST_MS)--> gone;  held --ended--> gone
 */
import type { Member } from '../byte-budget.js';
import type { Clock } from '../monotonic.js';

/** The longest that the library keeps a connection without a request, whether bytes trickle on it or not. */
const REST_MS = 12_000;

interface OfHolder {
  /** When the connections that rest have ended at the latest, in the order of time. */
  readonly restsUntilMs: number[];
  held: number;
}

/** A connection that asks for something, or whose end is known. After the first call they do nothing. */
export interface Held {
  /** It has ended, or counts for another holder. */
  leave(): void;
  /** It was answered, and stays open. */
  rest(): void;
}

export class Holders<M extends Member> {
  readonly #clock: Clock;
  readonly #byHolder = new Map<M, OfHolder>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  countOf(holder: M): number {
    const found = this.#byHolder.get(holder);
    if (found === undefined) return 0;
    this.#tidy(holder, found);
    return found.held + found.restsUntilMs.length;
  }

  /** Holders that are counted. */
  get size(): number {
    return this.#byHolder.size;
  }

  /** A connection is open and has no request. */
  rest(holder: M): void {
    this.#of(holder).restsUntilMs.push(this.#clock() + REST_MS);
  }

  /** A connection that rested has ended, or sends a request. */
  stir(holder: M): void {
    const found = this.#byHolder.get(holder);
    if (found === undefined) return;
    found.restsUntilMs.shift();
    this.#tidy(holder, found);
  }

  hold(holder: M): Held {
    const found = this.#of(holder);
    found.held++;
    let isOver = false;
    const end = (isResting: boolean): void => {
      if (isOver) return;
      isOver = true;
      found.held--;
      if (isResting) this.rest(holder);
      else this.#tidy(holder, found);
    };
    return { leave: () => end(false), rest: () => end(true) };
  }

  /** Forgets holders whose connections have all ended: an address can come once and never again. */
  forgetGone(): void {
    for (const [holder, found] of this.#byHolder) this.#tidy(holder, found);
  }

  #of(holder: M): OfHolder {
    const found = this.#byHolder.get(holder) ?? { restsUntilMs: [], held: 0 };
    this.#byHolder.set(holder, found);
    return found;
  }

  #tidy(holder: M, { held, restsUntilMs }: OfHolder): void {
    const nowMs = this.#clock();
    while (restsUntilMs[0] !== undefined && restsUntilMs[0] <= nowMs) restsUntilMs.shift();
    if (held === 0 && restsUntilMs.length === 0) this.#byHolder.delete(holder);
  }
}
