/**
 * Connections that have not shown a key, or that wait for a request, by their address.
 *
 * The server library does not say which connection a request comes on. But it says when one opens, when a request comes from
 * an address, and, through the spare object of its last request (`routes.ts`), when one ends that waits. So the count is exact:
 *
 *   opened --> waiting (1) --request--> asks (1) --key--> asks (0) --answered--> waiting (1) --ended--> gone (0)
 */
import { Latest } from '../latest.js';
import { Holders } from './holders.js';

/** Addresses that are known to have shown a key: the last ones. */
const KNOWN_MAX = 4_096;

export class Strangers extends Holders<string> {
  readonly #known = new Latest<string>(KNOWN_MAX);

  /** Whether a connection from there has shown a key lately. */
  isKnown(address: string): boolean {
    return this.#known.has(address);
  }

  /** A connection from there has shown a key. */
  know(address: string): void {
    this.#known.add(address);
  }
}
