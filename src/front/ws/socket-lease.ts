/**
 * The right to speak of one WebSocket: no lease while it is idle, one while it generates, whatever the number of its
 * contexts.
 *
 *   idle --cover (slot and credit)--> held --more text: its credit--> held --give back--> idle
 *
 * Each context has a share: the characters that it may still have to be charged for. A lease is taken for those of
 * all shares; giving it back refunds what is unspoken, which is reserved anew when it is taken again.
 */
import type { Admission } from '../../accounts/admission.js';
import type { GrowingLease, Lease } from '../../accounts/lease.js';
import type { ActiveKey } from '../../store/store.js';
import type { SocketErrorCode } from '../../errors.js';
import type { ByteBudget } from '../../byte-budget.js';

/** Why text is refused. */
export type LeaseRefusal = Extract<
  SocketErrorCode,
  'creditExhausted' | 'slotsExhausted' | 'unavailable' | 'textExhausted'
>;

export interface SocketLeaseParts {
  readonly admission: Pick<Admission, 'admit'>;
  readonly key: ActiveKey;
  readonly requestId: string;
  /** Characters of one socket that may wait. */
  readonly charactersMax: number;
  /** The same over all sockets. */
  readonly textBudget: ByteBudget;
}

export class SocketLease {
  readonly #parts: SocketLeaseParts;
  #lease: GrowingLease | null = null;
  #unspoken = 0;
  #settled = 0;

  constructor(parts: SocketLeaseParts) {
    this.#parts = parts;
  }

  get isHeld(): boolean {
    return this.#lease !== null;
  }

  /** Characters charged so far. */
  get settledCharacters(): number {
    return this.#settled;
  }

  get keyId(): number {
    return this.#parts.key.keyId;
  }

  /** A share for a new context, which closes it at its release. */
  share(): LeaseShare {
    return new LeaseShare(this);
  }

  /** Takes the lease, unless it is held, for all that is unspoken. */
  cover(): LeaseRefusal | null {
    return this.#lease === null ? this.#admit(0) : null;
  }

  /**
   * Counts text as unspoken, with its credit reserved; `null`, or why it cannot be.
   *
   * @param isSpeech whether the lease has to be held for it: text that is blank waits for words
   */
  add(characters: number, isSpeech: boolean): LeaseRefusal | null {
    const { charactersMax, textBudget } = this.#parts;
    if (this.#unspoken + characters > charactersMax || !textBudget.take(characters)) return 'textExhausted';
    const refusal = this.#reserve(characters, isSpeech);
    if (refusal === null) this.#unspoken += characters;
    else textBudget.giveBack(characters);
    return refusal;
  }

  /** Unspoken text was spoken. */
  settle(characters: number): void {
    this.#remove(characters);
    this.#settled += characters;
    this.#lease?.settle(characters);
  }

  /** Unspoken text will not be spoken. */
  drop(characters: number): void {
    this.#remove(characters);
    this.#lease?.refund(characters);
  }

  /** Frees the slot and refunds what is unspoken. Idempotent. */
  giveBack(): void {
    this.#lease?.close();
    this.#lease = null;
  }

  #reserve(characters: number, isSpeech: boolean): LeaseRefusal | null {
    if (this.#lease !== null) return this.#lease.reserve(characters);
    return isSpeech ? this.#admit(characters) : null;
  }

  #admit(more: number): LeaseRefusal | null {
    const { admission, key, requestId } = this.#parts;
    const admitted = admission.admit(key, this.#unspoken + more, requestId);
    if (!admitted.ok) return admitted.code;
    this.#lease = admitted.lease;
    return null;
  }

  #remove(characters: number): void {
    this.#unspoken -= characters;
    this.#parts.textBudget.giveBack(characters);
  }
}

/** One context's part in the lease of its socket. Never charges or refunds more than was added to it. */
export class LeaseShare implements Lease {
  readonly #socket: SocketLease;
  #unspoken = 0;

  constructor(socket: SocketLease) {
    this.#socket = socket;
  }

  get keyId(): number {
    return this.#socket.keyId;
  }

  /** @see SocketLease.add */
  add(characters: number, isSpeech: boolean): LeaseRefusal | null {
    const refusal = this.#socket.add(characters, isSpeech);
    if (refusal === null) this.#unspoken += characters;
    return refusal;
  }

  settle(characters: number): void {
    this.#socket.settle(this.#take(characters));
  }

  drop(characters: number): void {
    this.#socket.drop(this.#take(characters));
  }

  /** The context is over: what it did not speak is refunded. Idempotent. */
  close(): void {
    this.drop(this.#unspoken);
  }

  void(): void {
    this.close();
  }

  #take(characters: number): number {
    const taken = Math.min(characters, this.#unspoken);
    this.#unspoken -= taken;
    return taken;
  }
}
