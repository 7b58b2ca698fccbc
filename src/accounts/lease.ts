/**
 * The right to speak: one slot of a key and a reservation of its account's credit. Reserve, then settle or refund,
 * exactly once.
 *
 * What is settled is charged at once (it can never be spoken again on the same credit), but becomes an entry of the
 * ledger in steps only: most requests are one entry, at their close. What a kill of the process can lose is what was
 * settled since the last step: less than `leaseStepCharacters` a lease.
 */
import type { Credit } from './credit.js';
import type { EntryKind } from '../store/sqlite/entries.js';
import type { LedgerQueue } from '../store/sqlite/ledger.js';
import type { Slots } from './slots.js';
import type { ActiveKey } from '../store/sqlite/store.js';

export interface Lease {
  readonly keyId: number;
  /** Charges part of the reservation, when its audio is handed to the listener. */
  settle(characters: number): void;
  /** Frees the slot and refunds what was not settled. Idempotent: a lease is closed once. */
  close(): void;
  /** As `close`, but takes back what was settled too: a synchronous request that fails is free. */
  void(): void;
}

/** A lease whose text comes bit by bit. */
export interface GrowingLease extends Lease {
  /** Reserves the credit of more text; `null` when it is reserved, else nothing changed. */
  reserve(characters: number): 'creditExhausted' | 'unavailable' | null;
  /** Gives back the credit of text that is reserved and will not be spoken. */
  refund(characters: number): void;
}

export interface LeaseLimits {
  readonly leaseStepCharacters: number;
  readonly leaseStepMs: number;
}

export interface LeaseParts {
  readonly key: ActiveKey;
  readonly requestId: string;
  readonly characters: number;
  readonly creditsPerCharacter: number;
  readonly credit: Credit;
  readonly slots: Slots;
  readonly ledger: LedgerQueue;
  readonly limits: LeaseLimits;
  /** Wall clock. */
  readonly nowMs: () => number;
  /** Reserves more credit of the account, or tells why it cannot. */
  readonly reserve: (characters: number) => 'creditExhausted' | 'unavailable' | null;
}

/** Its slot was taken and its credits were reserved by admission; it gives both back. Never throws. */
export class CreditLease implements GrowingLease {
  readonly #parts: LeaseParts;
  /** Reserved characters, not settled yet. */
  #reservedCharacters: number;
  /** Settled, and not yet an entry; still reserved, so that it cannot be promised twice. */
  #owedCharacters = 0;
  /** When the first of them was settled. */
  #owedSinceMs = 0;
  /** Of the entries made. */
  #chargedCharacters = 0;
  #closed = false;

  constructor(parts: LeaseParts) {
    this.#parts = parts;
    this.#reservedCharacters = parts.characters;
  }

  get keyId(): number {
    return this.#parts.key.keyId;
  }

  reserve(characters: number): 'creditExhausted' | 'unavailable' | null {
    if (this.#closed) throw new Error('a closed lease cannot grow');
    const refusal = this.#parts.reserve(characters);
    if (refusal === null) this.#reservedCharacters += characters;
    return refusal;
  }

  /** No more than is reserved; after the close, nothing. */
  refund(characters: number): void {
    const refunded = Math.min(characters, this.#reservedCharacters);
    if (this.#closed || !(refunded > 0)) return;
    this.#reservedCharacters -= refunded;
    this.#parts.credit.release(this.#parts.key.accountId, this.#toCredits(refunded));
  }

  /** Beyond the reservation, and after the close, nothing is charged. */
  settle(characters: number): void {
    const settled = Math.min(characters, this.#reservedCharacters);
    if (this.#closed || !(settled > 0)) return;
    const { ledger, nowMs } = this.#parts;
    if (this.#owedCharacters === 0) this.#owedSinceMs = nowMs();
    this.#reservedCharacters -= settled;
    this.#owedCharacters += settled;
    // A full queue gets one entry a lease, at its close, however long it goes on: that bounds the queue.
    if (this.#isStep() && !ledger.full) this.#charge();
  }

  close(): void {
    if (this.#closed) return;
    this.#charge();
    this.#end();
  }

  void(): void {
    if (this.#closed) return;
    if (this.#toCredits(this.#chargedCharacters) > 0) this.#append('refund', this.#chargedCharacters);
    this.#end();
  }

  #isStep(): boolean {
    const { limits, nowMs } = this.#parts;
    return (
      this.#owedCharacters >= limits.leaseStepCharacters || nowMs() - this.#owedSinceMs >= limits.leaseStepMs
    );
  }

  /** Speech that costs nothing is an entry too: the ledger is also the record of use. */
  #charge(): void {
    const characters = this.#owedCharacters;
    if (characters === 0) return;
    this.#owedCharacters = 0;
    this.#append('usage', characters);
    this.#chargedCharacters += characters;
    this.#parts.credit.release(this.#parts.key.accountId, this.#toCredits(characters));
  }

  #end(): void {
    this.#closed = true;
    const { credit, key, slots } = this.#parts;
    credit.release(key.accountId, this.#toCredits(this.#reservedCharacters + this.#owedCharacters));
    slots.give(key.keyId);
  }

  #append(kind: Exclude<EntryKind, 'grant'>, characters: number): void {
    const { credit, key, nowMs, requestId } = this.#parts;
    const credits = this.#toCredits(characters);
    credit.append({
      accountId: key.accountId,
      keyId: key.keyId,
      requestId,
      kind,
      amount: kind === 'usage' ? 0 - credits : credits,
      characters,
      beginsRequest: kind === 'usage' && this.#chargedCharacters === 0,
      atMs: nowMs(),
    });
  }

  #toCredits(characters: number): number {
    return characters * this.#parts.creditsPerCharacter;
  }
}
