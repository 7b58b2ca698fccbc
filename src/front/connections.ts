/**
 * How many connections are open, and how many one more address may open.
 *
 * Listeners share a pool. Each has a reserve there, which the others leave to it. The strangers of an address, its
 * connections that have not shown a key, may have a quarter of what all others leave; or three quarters, if others from there
 * have shown one. Behind a proxy all callers come from its address: their connections bring a key at once, and then do not
 * count for it, but many may open in the same moment.
 */
import type { Socket } from 'node:net';
import type { Clock } from '../monotonic.js';
import type { RefusalReason } from '../refusals.js';
import { Strangers } from './strangers.js';

/** What the strangers of an address may have of what others leave. */
const PART_OF_ADDRESS = 1 / 4;
/** The same, once a key has come from there. */
const PART_OF_KNOWN_ADDRESS = 3 / 4;
/** They may have so many where that is less. */
const LEAST_OF_ADDRESS = 8;
/** The reserve of a listener. All together stay within the part that WebSockets leave to requests (`plan.ts`). */
const RESERVED_PART = 1 / 32;
/** An address that comes only once is forgotten after so many others at the latest. */
const ADDRESSES_BETWEEN_SEARCHES = 1_024;

export type ConnectionRefusal = RefusalReason & ('connectionPoolExhausted' | 'connectionsOfAddressExhausted');

export class ConnectionPool {
  readonly strangers: Strangers;
  readonly #max: number;
  readonly #members: Connections[] = [];
  #searchAt = ADDRESSES_BETWEEN_SEARCHES;

  constructor(max: number, clock: Clock) {
    this.#max = max;
    this.strangers = new Strangers(clock);
  }

  /** Connections of all listeners. */
  get open(): number {
    return this.#members.reduce((sum, { open }) => sum + open, 0);
  }

  /** @param max a smaller bound of this listener @returns the count of a listener, which gets a reserve */
  listener(max = this.#max): Connections {
    const member = new Connections(this, max);
    this.#members.push(member);
    return member;
  }

  /** How many more a listener may have. */
  leftFor(member: Connections): number {
    const reserve = Math.floor(this.#max * RESERVED_PART);
    const reserved = this.#members
      .filter((other) => other !== member)
      .reduce((sum, { open }) => sum + Math.max(0, reserve - open), 0);
    return Math.min(this.#max - this.open - reserved, member.max - member.open);
  }

  /** @param left how many connections are free @returns whether an address may have one more stranger */
  admits(address: string, left: number): boolean {
    this.#forget();
    const own = this.strangers.countOf(address);
    const part = this.strangers.isKnown(address) ? PART_OF_KNOWN_ADDRESS : PART_OF_ADDRESS;
    return own < Math.max(LEAST_OF_ADDRESS, Math.floor((left + own) * part));
  }

  #forget(): void {
    if (this.strangers.addresses < this.#searchAt) return;
    this.strangers.forgetGone();
    this.#searchAt = this.strangers.addresses + ADDRESSES_BETWEEN_SEARCHES;
  }
}

/** The connections of one listener. */
export class Connections {
  readonly max: number;
  readonly #pool: ConnectionPool;
  open = 0;

  constructor(pool: ConnectionPool, max: number) {
    this.#pool = pool;
    this.max = max;
  }

  get strangers(): Strangers {
    return this.#pool.strangers;
  }

  /** @returns why a connection from this address may not stay; `null`: it may */
  refusalOf(address: string): ConnectionRefusal | null {
    const left = this.#pool.leftFor(this);
    if (left <= 0) return 'connectionPoolExhausted';
    return this.#pool.admits(address, left) ? null : 'connectionsOfAddressExhausted';
  }

  /** Counts a connection of Node's, which shows no key, to its end. The caller has asked for a refusal. */
  watch(socket: Socket, address: string): void {
    const stranger = this.strangers.hold(address);
    this.open++;
    socket.once('close', () => {
      stranger.leave();
      this.open--;
    });
  }
}
