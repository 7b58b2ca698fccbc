/**
 * Slows down clients that call too often, or that guess passwords or links. Each address, user and name of a user has a
 * bucket of attempts that fills again with time. No user is locked out:
 *
 * - A browser in which the user has signed in before has a bucket of its own, which guesses from elsewhere do not use up.
 *   It also has places of its own among the passwords that wait (`Passwords`), and so has the machine itself.
 * - Each address has a few attempts to spare for when guesses from elsewhere have used up the bucket of the name.
 * - Attempts from the machine itself do not count for the name.
 * - `npm run console -- link` gives an operator a new password.
 */
import { handleOf } from '../accounts/checks.js';
import { Buckets } from '../buckets.js';
import type { Bounds } from '../limits.js';
import type { Clock } from '../monotonic.js';
import type { Exchange } from '../front/exchange.js';
import { forwardedAddress, type RequestHead } from '../front/request-head.js';
import { networkOf } from '../network.js';
import { ConsoleRefusal } from './refusal.js';

/** The client's address: the one that the proxy saw, or the one of the connection. */
export const addressOf = (exchange: Exchange, head: Pick<RequestHead, 'forwardedFor'>): string =>
  (exchange.services.isBehindProxy && forwardedAddress(head)) || exchange.peer;

export const isLoopback = (address: string): boolean =>
  /^127\.|^(?:0*:)*0*1$|^::1$|^(?:0*:){5}ffff:7f|^::ffff:127\./i.test(address);

type ThrottleBounds = Pick<
  Bounds,
  | 'consoleCallsAtOnceMax'
  | 'consoleCallsPerSecond'
  | 'consoleAttemptsAtOnceMax'
  | 'consoleAttemptMs'
  | 'consoleAttemptsOfNameMax'
  | 'consoleAttemptOfNameMs'
  | 'consoleSpareAttemptsMax'
  | 'consoleSpareAttemptMs'
  | 'consoleCountedMax'
>;

/** Who attempts to sign in. */
export interface Attempt {
  readonly address: string;
  /** `null` for a one-time link. */
  readonly name: string | null;
  /** The user has signed in before in this browser. */
  readonly isKnownDevice: boolean;
}

const tooMany = (retryAfterMs: number): ConsoleRefusal => {
  const seconds = Math.ceil(retryAfterMs / 1_000);
  const when = `${seconds} ${seconds === 1 ? 'second' : 'seconds'}`;
  return new ConsoleRefusal('tooManyAttempts', `Too many attempts. Try again in ${when}.`, { retryAfterMs });
};

export class Throttle {
  readonly #calls: Buckets;
  readonly #ofAddress: Buckets;
  readonly #ofName: Buckets;
  readonly #spare: Buckets;

  constructor(bounds: ThrottleBounds, clock: Clock) {
    const buckets = (atOnceMax: number, everyMs: number): Buckets =>
      new Buckets({ atOnceMax, everyMs, countedMax: bounds.consoleCountedMax, clock });
    this.#calls = buckets(bounds.consoleCallsAtOnceMax, 1_000 / bounds.consoleCallsPerSecond);
    this.#ofAddress = buckets(bounds.consoleAttemptsAtOnceMax, bounds.consoleAttemptMs);
    this.#ofName = buckets(bounds.consoleAttemptsOfNameMax, bounds.consoleAttemptOfNameMs);
    this.#spare = buckets(bounds.consoleSpareAttemptsMax, bounds.consoleSpareAttemptMs);
  }

  /** Counts a call. @param caller an address, or the name of a user @throws {ConsoleRefusal} `tooManyAttempts` */
  call(caller: string): void {
    this.#takeFrom([[this.#calls, networkOf(caller)]]);
  }

  /** Counts an attempt, whether it will succeed or not. @throws {ConsoleRefusal} `tooManyAttempts` */
  attempt({ address, isKnownDevice, name }: Attempt): void {
    const user = name === null ? null : handleOf(name);
    if (isKnownDevice && user !== null) {
      this.#takeFrom([[this.#ofAddress, `device of ${user}`]]);
      return;
    }
    const network = networkOf(address);
    const taken: [Buckets, string][] = [[this.#ofAddress, network]];
    if (user !== null && !isLoopback(address)) {
      const isSpare = this.#ofName.waitMs(user) > 0 && this.#spare.waitMs(network) === 0;
      taken.push(isSpare ? [this.#spare, network] : [this.#ofName, user]);
    }
    this.#takeFrom(taken);
  }

  /** From all, or from none. */
  #takeFrom(taken: readonly (readonly [buckets: Buckets, name: string])[]): void {
    const waitMs = Math.max(...taken.map(([buckets, name]) => buckets.waitMs(name)));
    if (waitMs > 0) throw tooMany(waitMs);
    for (const [buckets, name] of taken) buckets.take(name);
  }
}
