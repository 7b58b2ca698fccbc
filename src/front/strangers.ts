/**
 * Connections that have not shown a key, by their address.
 *
 * The count of an address is exact, except that a request with a key may come on a connection that has shown it before: then
 * one that rests counts no more, of an address that has a key.
 */
import { Holders, type Held } from './holders.js';

/** Addresses that are known to have shown a key: the last ones. */
const KNOWN_MAX = 4_096;

export interface Stranger extends Held {
  /** It has shown a key. */
  known(): void;
}

export class Strangers extends Holders<string> {
  readonly #known = new Set<string>();

  /** Whether a connection from there has shown a key lately. */
  isKnown(address: string): boolean {
    return this.#known.has(address);
  }

  override hold(address: string): Stranger {
    const held = super.hold(address);
    const known = (): void => {
      held.leave();
      this.#know(address);
    };
    return { ...held, known };
  }

  #know(address: string): void {
    if (this.#known.has(address)) return;
    this.#known.add(address);
    const [first] = this.#known;
    if (this.#known.size > KNOWN_MAX && first !== undefined) this.#known.delete(first);
  }
}
