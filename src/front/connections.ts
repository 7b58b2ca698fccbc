/**
 * How many connections are open, and how many one more address may open.
 *
 * Listeners share a pool. Each has a reserve there, which the others leave to it. The strangers of an address, its
 * connections that have not shown a key or that wait for a request, may have a quarter of what all others leave; or three
 * quarters, if others from there have shown one. Behind a proxy all callers come from its address: their connections bring a
 * key at once, and then do not count for it, but many may open in the same moment.
 *
 * The requests of an account may have half of what all others leave. In a crowd, when requests have more connections than are
 * free, each answer ends its connection. So no account is refused for connections that wait.
 */
import type { Socket } from 'node:net';
import type { Member } from '../byte-budget.js';
import { Latest } from '../latest.js';
import type { RefusalReason } from '../refusals.js';

/** What the strangers of an address may have of what others leave. */
const PART_OF_ADDRESS = 1 / 4;
/** The same, once a key has come from there. */
const PART_OF_KNOWN_ADDRESS = 3 / 4;
/** They may have so many where that is less. */
const LEAST_OF_ADDRESS = 8;
/** What an account may have of what others leave. */
const PART_OF_ACCOUNT = 1 / 2;
/** It may have so many where that is less: more than the slots of a key. */
const LEAST_OF_ACCOUNT = 16;
/** Addresses that are known: the last ones. */
const KNOWN_MAX = 4_096;
/** The reserve of a listener. All together stay within the part that WebSockets leave to requests (`plan.ts`). */
const RESERVED_PART = 1 / 32;

export type ConnectionRefusal = RefusalReason & ('connectionPoolExhausted' | 'connectionsOfAddressExhausted');

/** How many connections each has: an address, or an account. */
class Holders<M extends Member> {
  readonly #counts = new Map<M, number>();

  countOf(holder: M): number {
    return this.#counts.get(holder) ?? 0;
  }

  add(holder: M): void {
    this.#counts.set(holder, this.countOf(holder) + 1);
  }

  remove(holder: M): void {
    const left = this.countOf(holder) - 1;
    if (left > 0) this.#counts.set(holder, left);
    else this.#counts.delete(holder);
  }
}

export class ConnectionPool {
  /**
   * Connections without a key by address. The server library does not say which connection a request comes on. But it says when
   * one opens, when a request comes from an address, and, through a spare object of the last request (`uws.ts`), when one
   * ends that waits:
   *
   *   opened --> waits (1) --request--> asks (1) --key--> asks (0) --answered--> waits (1) --ended--> gone (0)
   */
  readonly strangers = new Holders<string>();
  /** Addresses from which a connection has shown a key. */
  readonly known = new Latest<string, true>(KNOWN_MAX);
  /** Connections with a request of an account. */
  readonly accounts = new Holders<Member>();
  readonly #max: number;
  readonly #members: Connections[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  /** Connections of all listeners. */
  get open(): number {
    return this.#members.reduce((sum, { open }) => sum + open, 0);
  }

  /** Requests have more connections than are free. WebSockets are bounded by themselves. */
  get isCrowded(): boolean {
    const { open } = this;
    return open - this.#members.reduce((sum, { sockets }) => sum + sockets, 0) > this.#max - open;
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
    const own = this.strangers.countOf(address);
    const part = this.known.get(address) ? PART_OF_KNOWN_ADDRESS : PART_OF_ADDRESS;
    return own < Math.max(LEAST_OF_ADDRESS, Math.floor((left + own) * part));
  }
}

/** The connections of one listener. */
export class Connections {
  readonly max: number;
  /** Those of all listeners. */
  readonly strangers: Holders<string>;
  readonly known: Latest<string, true>;
  readonly accounts: Holders<Member>;
  readonly #pool: ConnectionPool;
  open = 0;
  /** Those of them that are WebSockets. */
  sockets = 0;

  constructor(pool: ConnectionPool, max: number) {
    this.#pool = pool;
    this.max = max;
    ({ strangers: this.strangers, known: this.known, accounts: this.accounts } = pool);
  }

  /** @returns why a connection from this address may not stay; `null`: it may */
  refusalOf(address: string): ConnectionRefusal | null {
    const left = this.#pool.leftFor(this);
    if (left <= 0) return 'connectionPoolExhausted';
    return this.#pool.admits(address, left) ? null : 'connectionsOfAddressExhausted';
  }

  get isCrowded(): boolean {
    return this.#pool.isCrowded;
  }

  /** @returns whether an account's requests, counted already, may all stay */
  hasRoomFor(member: Member): boolean {
    const own = this.accounts.countOf(member);
    const part = Math.floor((this.#pool.leftFor(this) + own) * PART_OF_ACCOUNT);
    return own <= Math.max(LEAST_OF_ACCOUNT, part);
  }

  /** The connection of a WebSocket ended: the library reports that it opens, and not that it ends. */
  socketEnded(): void {
    this.open--;
    this.sockets--;
  }

  /** Counts a connection of Node's, which shows no key, to its end. The caller has asked for a refusal. */
  watch(socket: Socket, address: string): void {
    this.strangers.add(address);
    this.open++;
    socket.once('close', () => {
      this.strangers.remove(address);
      this.open--;
    });
  }
}
