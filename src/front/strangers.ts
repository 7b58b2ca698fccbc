/**
 * Connections that have not shown a key, by their address.
 *
 * The server library does not say which connection a request comes on, nor which one ends between two requests. So a
 * connection is counted by what it does, which the library does say:
 *
 *   opened --> resting --request--> held --answered--> resting --(REST_MS)--> gone;  held --key shown, aborted--> gone
 *
 * The count of an address is exact, except that a request with a key may come on a connection that has shown it before: then
 * one that rests counts no more, of an address that has a key.
 */
import type { Clock } from '../monotonic.js';

/** The longest that the library keeps a connection without a request, whether bytes trickle on it or not. */
const REST_MS = 12_000;

/** Addresses that are known to have shown a key: the last ones. */
const KNOWN_MAX = 4_096;

interface OfAddress {
  /** When the connections that rest have ended at the latest, in the order of time. */
  readonly restsUntilMs: number[];
  held: number;
}

/** A connection of a stranger that asks for something, or whose end is known. After the first call they do nothing. */
export interface Stranger {
  /** It has shown a key. */
  known(): void;
  /** It has ended. */
  leave(): void;
  /** It was answered, and stays open. */
  rest(): void;
}

export class Strangers {
  readonly #clock: Clock;
  readonly #byAddress = new Map<string, OfAddress>();
  readonly #known = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  countOf(address: string): number {
    const found = this.#byAddress.get(address);
    if (found === undefined) return 0;
    this.#tidy(address, found);
    return found.held + found.restsUntilMs.length;
  }

  /** Addresses that are counted. */
  get addresses(): number {
    return this.#byAddress.size;
  }

  /** Whether a connection from there has shown a key lately. */
  isKnown(address: string): boolean {
    return this.#known.has(address);
  }

  /** A connection is open and has sent no request. */
  rest(address: string): void {
    this.#of(address).restsUntilMs.push(this.#clock() + REST_MS);
  }

  /** A connection that rested has ended, or sends a request. */
  stir(address: string): void {
    const found = this.#byAddress.get(address);
    if (found === undefined) return;
    found.restsUntilMs.shift();
    this.#tidy(address, found);
  }

  hold(address: string): Stranger {
    const found = this.#of(address);
    found.held++;
    let isOver = false;
    const end = (isResting: boolean): void => {
      if (isOver) return;
      isOver = true;
      found.held--;
      if (isResting) this.rest(address);
      else this.#tidy(address, found);
    };
    const known = (): void => {
      end(false);
      this.#know(address);
    };
    return { known, leave: () => end(false), rest: () => end(true) };
  }

  /** Forgets addresses whose connections have all ended: an address can come once and never again. */
  forgetGone(): void {
    for (const [address, found] of this.#byAddress) this.#tidy(address, found);
  }

  #know(address: string): void {
    if (this.#known.has(address)) return;
    this.#known.add(address);
    const [first] = this.#known;
    if (this.#known.size > KNOWN_MAX && first !== undefined) this.#known.delete(first);
  }

  #of(address: string): OfAddress {
    const found = this.#byAddress.get(address) ?? { restsUntilMs: [], held: 0 };
    this.#byAddress.set(address, found);
    return found;
  }

  #tidy(address: string, { held, restsUntilMs }: OfAddress): void {
    const nowMs = this.#clock();
    while (restsUntilMs[0] !== undefined && restsUntilMs[0] <= nowMs) restsUntilMs.shift();
    if (held === 0 && restsUntilMs.length === 0) this.#byAddress.delete(address);
  }
}
