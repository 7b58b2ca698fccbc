/**
 * A lease: one slot of a key and a reservation of credit, of its account and of its own limit. It is settled segment by
 * segment and closed exactly once.
 *
 * Settled characters are charged at once (they can never be spoken again on the same credit), but become entries of the
 * ledger in steps: most requests are one entry, at their close. A kill of the process loses what was settled since the
 * last step: less than `leaseStepCharacters` for each lease.
 *
 * A segment is settled with its first audio, before its duration is known. So an entry has the audio that was handed over
 * since the entry before it, and the close adds what is left: over a lease, the sum is exact.
 */
import type { Bounds } from '../limits.js';
import type { LedgerQueue } from '../store/ledger.js';
import type { ActiveKey, EntryKind } from '../store/store.js';
import type { Credit } from './credit.js';

/** Whose speech counts together: a key, by its id, or an address of clients that have no keys. */
export type SlotHolder = number | string;

/** Concurrency slots by holder. They are kept in memory, because requests in flight end with the process. */
export class Slots {
  readonly #perHolderMax: number;
  readonly #taken = new Map<SlotHolder, number>();

  constructor(perHolderMax: number) {
    this.#perHolderMax = perHolderMax;
  }

  hasFree(holder: SlotHolder): boolean {
    return (this.#taken.get(holder) ?? 0) < this.#perHolderMax;
  }

  /** @returns false if the holder has no slot left */
  take(holder: SlotHolder): boolean {
    if (!this.hasFree(holder)) return false;
    this.#taken.set(holder, (this.#taken.get(holder) ?? 0) + 1);
    return true;
  }

  /** Frees a slot that was taken. */
  give(holder: SlotHolder): void {
    const taken = this.#taken.get(holder);
    if (taken === undefined) throw new Error('a slot was freed that was not taken');
    if (taken === 1) this.#taken.delete(holder);
    else this.#taken.set(holder, taken - 1);
  }

  /** Slots taken over all holders. */
  get taken(): number {
    let sum = 0;
    for (const taken of this.#taken.values()) sum += taken;
    return sum;
  }
}

export interface Lease {
  /** The name of the account that pays. */
  readonly account: string;
  /** Charges part of the reservation, when its audio is handed over to be sent. @param voice its id */
  settle(characters: number, voice: string): void;
  /** Counts audio that was handed over, for the record of use: it costs nothing by itself. */
  delivered(durationMs: number, voice: string): void;
  /** Frees the slot and refunds what was not settled. Idempotent. */
  close(): void;
  /** Like `close`, but refunds what was settled too: a synchronous request that fails is free. */
  void(): void;
}

/** A lease whose text arrives in parts. */
export interface GrowingLease extends Lease {
  /** Reserves the credit of more text. @returns `null`, or why nothing was reserved */
  reserve(characters: number): 'creditExhausted' | 'unavailable' | null;
  /** Ends the reservation of text that will not be spoken. */
  refund(characters: number): void;
}

export type LeaseBounds = Pick<Bounds, 'leaseStepCharacters' | 'leaseStepMs'>;

export interface LeaseParts {
  readonly key: ActiveKey;
  readonly requestId: string;
  readonly characters: number;
  readonly creditsPerCharacter: number;
  readonly credit: Credit;
  readonly slots: Slots;
  readonly slotsOf: SlotHolder;
  readonly ledger: LedgerQueue;
  readonly bounds: LeaseBounds;
  /** Wall clock. */
  readonly nowMs: () => number;
  /** Reserves more credit. @returns `null`, or why nothing was reserved */
  readonly reserve: (characters: number) => 'creditExhausted' | 'unavailable' | null;
}

interface Owed {
  characters: number;
  audioMs: number;
}

/** Takes the whole milliseconds of what is owed; the fraction stays for the next entry. */
const wholeMs = (owed: Owed): number => {
  const audioMs = Math.round(owed.audioMs);
  owed.audioMs -= audioMs;
  return audioMs;
};

/** Admission took its slot and reserved its credits; the lease gives both back. Settling and closing never throw. */
export class CreditLease implements GrowingLease {
  readonly #parts: LeaseParts;
  /** Characters reserved and not settled yet. */
  #reservedCharacters: number;
  /** What is settled and not yet in an entry, by voice: only a WebSocket has several. Its credit stays reserved. */
  readonly #owed = new Map<string, Owed>();
  #owedCharacters = 0;
  /** Time when the first of them was settled. */
  #owedSinceMs = 0;
  /** Characters in entries, by voice. */
  readonly #charged = new Map<string, number>();
  #closed = false;

  constructor(parts: LeaseParts) {
    this.#parts = parts;
    this.#reservedCharacters = parts.characters;
  }

  get account(): string {
    return this.#parts.key.account;
  }

  reserve(characters: number): 'creditExhausted' | 'unavailable' | null {
    if (this.#closed) throw new Error('a closed lease cannot grow');
    const refusal = this.#parts.reserve(characters);
    if (refusal === null) this.#reservedCharacters += characters;
    return refusal;
  }

  /** Refunds no more than is reserved, and nothing after the close. */
  refund(characters: number): void {
    const refunded = Math.min(characters, this.#reservedCharacters);
    if (this.#closed || !(refunded > 0)) return;
    this.#reservedCharacters -= refunded;
    this.#parts.credit.release(this.#parts.key, this.#toCredits(refunded));
  }

  /** Charges no more than is reserved, and nothing after the close. */
  settle(characters: number, voice: string): void {
    const settled = Math.min(characters, this.#reservedCharacters);
    if (this.#closed || !(settled > 0)) return;
    const { ledger, nowMs } = this.#parts;
    if (this.#owedCharacters === 0) this.#owedSinceMs = nowMs();
    this.#reservedCharacters -= settled;
    this.#owedCharacters += settled;
    this.#owedOf(voice).characters += settled;
    // A full queue gets one entry for each lease, at its close, however long the lease lasts: that bounds the queue.
    if (this.#isStep() && !ledger.full) this.#charge();
  }

  delivered(durationMs: number, voice: string): void {
    if (!this.#closed) this.#owedOf(voice).audioMs += durationMs;
  }

  close(): void {
    if (this.#closed) return;
    this.#charge();
    this.#chargeRest();
    this.#end();
  }

  void(): void {
    if (this.#closed) return;
    for (const [voice, characters] of this.#charged)
      if (this.#toCredits(characters) > 0) this.#append('refund', characters, voice, 0);
    this.#end();
  }

  #owedOf(voice: string): Owed {
    const known = this.#owed.get(voice);
    if (known !== undefined) return known;
    const owed: Owed = { characters: 0, audioMs: 0 };
    this.#owed.set(voice, owed);
    return owed;
  }

  #isStep(): boolean {
    const { bounds, nowMs } = this.#parts;
    return (
      this.#owedCharacters >= bounds.leaseStepCharacters || nowMs() - this.#owedSinceMs >= bounds.leaseStepMs
    );
  }

  /** Speech that costs nothing becomes an entry too: the ledger is also the record of use. */
  #charge(): void {
    this.#owedCharacters = 0;
    for (const [voice, owed] of this.#owed) {
      const { characters } = owed;
      if (characters === 0) continue;
      owed.characters = 0;
      this.#append('usage', characters, voice, wholeMs(owed));
      this.#charged.set(voice, (this.#charged.get(voice) ?? 0) + characters);
      this.#parts.credit.release(this.#parts.key, this.#toCredits(characters));
    }
  }

  /** The audio since the last entry of a voice, whose characters are charged already. */
  #chargeRest(): void {
    for (const voice of this.#charged.keys()) {
      const audioMs = wholeMs(this.#owedOf(voice));
      if (audioMs > 0) this.#append('usage', 0, voice, audioMs);
    }
  }

  #end(): void {
    this.#closed = true;
    const { credit, key, slots, slotsOf } = this.#parts;
    credit.release(key, this.#toCredits(this.#reservedCharacters + this.#owedCharacters));
    slots.give(slotsOf);
  }

  #append(kind: Exclude<EntryKind, 'grant'>, characters: number, voice: string, audioMs: number): void {
    const { credit, key, nowMs, requestId } = this.#parts;
    const credits = this.#toCredits(characters);
    credit.append({
      accountId: key.accountId,
      keyId: key.keyId,
      requestId,
      kind,
      amount: kind === 'usage' ? 0 - credits : credits,
      characters,
      voice,
      audioMs,
      beginsRequest: kind === 'usage' && this.#charged.size === 0,
      atMs: nowMs(),
    });
  }

  #toCredits(characters: number): number {
    return characters * this.#parts.creditsPerCharacter;
  }
}
