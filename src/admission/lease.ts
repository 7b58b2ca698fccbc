/**
 * The right to speak: one slot of a key and a reservation of its account's credit. Reserve, then settle or refund,
 * exactly once.
 */
import type { Credit } from './credit.js';
import type { EntryKind } from './entries.js';
import type { LedgerQueue } from './ledger.js';
import type { Slots } from './slots.js';
import type { ActiveKey } from './store.js';

export interface Lease {
  readonly keyId: number;
  /** Charges part of the reservation, when its audio is handed to the listener. */
  settle(characters: number): void;
  /** Frees the slot and refunds what was not settled. Idempotent: a lease is closed once. */
  close(): void;
  /** As `close`, but takes back what was settled too: a synchronous request that fails is free. */
  void(): void;
}

export interface LeaseParts {
  readonly key: ActiveKey;
  readonly requestId: string;
  readonly characters: number;
  readonly creditsPerCharacter: number;
  readonly credit: Credit;
  readonly slots: Slots;
  readonly ledger: LedgerQueue;
  /** Wall clock. */
  readonly nowMs: () => number;
}

/** Its slot was taken and its credits were reserved by admission; it gives both back. Never throws. */
export class CreditLease implements Lease {
  readonly #parts: LeaseParts;
  /** Reserved characters, not settled yet. */
  #reservedCharacters: number;
  /** Settled, and not yet an entry; still reserved, so that it cannot be promised twice. */
  #owedCharacters = 0;
  /** Credits of the entries made. */
  #chargedAmount = 0;
  #closed = false;

  constructor(parts: LeaseParts) {
    this.#parts = parts;
    this.#reservedCharacters = parts.characters;
  }

  get keyId(): number {
    return this.#parts.key.keyId;
  }

  /** Beyond the reservation, and after the close, nothing is charged. */
  settle(characters: number): void {
    const settled = Math.min(characters, this.#reservedCharacters);
    if (this.#closed || !(settled > 0)) return;
    this.#reservedCharacters -= settled;
    this.#owedCharacters += settled;
    // A full queue gets one entry a lease, at its close, however long it goes on: that bounds the queue.
    if (!this.#parts.ledger.full) this.#charge();
  }

  close(): void {
    if (this.#closed) return;
    this.#charge();
    this.#end();
  }

  void(): void {
    if (this.#closed) return;
    if (this.#chargedAmount > 0) this.#append('refund', this.#chargedAmount);
    this.#end();
  }

  #charge(): void {
    const amount = this.#toCredits(this.#owedCharacters);
    this.#owedCharacters = 0;
    if (amount === 0) return;
    this.#append('usage', -amount);
    this.#chargedAmount += amount;
    this.#parts.credit.release(this.#parts.key.accountId, amount);
  }

  #end(): void {
    this.#closed = true;
    const { credit, key, slots } = this.#parts;
    credit.release(key.accountId, this.#toCredits(this.#reservedCharacters + this.#owedCharacters));
    slots.give(key.keyId);
  }

  #append(kind: EntryKind, amount: number): void {
    const { credit, key, nowMs, requestId } = this.#parts;
    credit.append({ accountId: key.accountId, keyId: key.keyId, requestId, kind, amount, atMs: nowMs() });
  }

  #toCredits(characters: number): number {
    return characters * this.#parts.creditsPerCharacter;
  }
}
