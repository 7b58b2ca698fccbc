/**
 * The lease of one WebSocket: none while it is idle, one while it generates, whatever the number of its contexts.
 *
 *   idle --cover (slot and credit)--> held --more text: its credit--> held --give back--> idle
 *
 * Each context has a share: the characters that may still be charged to it. A lease covers all shares. Giving it back
 * refunds what is unspoken; taking it again reserves that once more.
 */
import type { Admission } from '../../accounts/admission.js';
import type { GrowingLease, Lease, SlotHolder } from '../../accounts/lease.js';
import type { Waiting } from '../../store/reservations.js';
import type { SocketErrorCode } from '../../errors.js';
import type { PartOfAccount } from '../../byte-budget.js';
import { codePointCount } from '../../text/code-points.js';
import type { KeyUse } from '../keys-in-use.js';

/** Why text is refused. */
export type LeaseRefusal = Extract<
  SocketErrorCode,
  'creditExhausted' | 'slotsExhausted' | 'unavailable' | 'textExhausted'
>;

export interface SocketLeaseParts {
  readonly admission: Pick<Admission, 'admit' | 'waitForCredit'>;
  readonly use: Pick<KeyUse, 'key'>;
  /** Whose slot it takes: by default the key's. */
  readonly slotsOf?: SlotHolder;
  readonly requestId: string;
  /** Unspoken characters that one socket may have. */
  readonly charactersMax: number;
  /** The same for all sockets together, and its part of the key. */
  readonly textBudget: PartOfAccount;
  /** It is held now, or not any more. */
  readonly onHeld: (isHeld: boolean) => void;
}

export class SocketLease {
  readonly #parts: SocketLeaseParts;
  #lease: GrowingLease | null = null;
  #unspoken = 0;
  /** Taken of the budget for the marks of unspoken text. */
  #marked = 0;
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

  get account(): string {
    return this.#parts.use.key.account;
  }

  /** A share for a new context, which closes it when it is released. */
  share(): LeaseShare {
    return new LeaseShare(this);
  }

  /**
   * Waits until the database has reserved credit. @returns `null`: `add` and `cover` decide now
   *
   * @param text that `add` will get; `null`: `cover` will be called
   * @param isSpeech see `add`
   * @param decide called once, later, unless the wait is cancelled
   */
  wait(text: string | null, isSpeech: boolean, decide: () => void): Waiting | null {
    const { admission, use, slotsOf = use.key.keyId } = this.#parts;
    const isHeld = this.#lease !== null;
    if (admission.waitForCredit === undefined || !(text === null ? !isHeld : isHeld || isSpeech)) return null;
    const more = text === null ? 0 : codePointCount(text);
    const characters = isHeld ? more : this.#unspoken + more;
    return admission.waitForCredit(use.key, characters, isHeld ? null : slotsOf, true, decide);
  }

  /** Takes the lease for all unspoken text, unless it is held. */
  cover(): LeaseRefusal | null {
    return this.#lease === null ? this.#admit(0) : null;
  }

  /**
   * Counts text as unspoken and reserves its credit. @returns `null`, or why not
   *
   * @param isSpeech the text needs the lease; blank text waits for words
   * @param marked characters of text that would take as much memory as its marks
   */
  add(characters: number, isSpeech: boolean, marked = 0): LeaseRefusal | null {
    const { charactersMax, textBudget } = this.#parts;
    const all = this.#unspoken + characters + this.#marked + marked;
    if (all > charactersMax || !textBudget.take(characters + marked)) return 'textExhausted';
    const refusal = this.#reserve(characters, isSpeech);
    if (refusal === null) {
      this.#unspoken += characters;
      this.#marked += marked;
    } else textBudget.giveBack(characters + marked);
    return refusal;
  }

  /** So many unspoken characters are spoken now. */
  settle(characters: number, voice: string): void {
    this.#remove(characters);
    this.#settled += characters;
    this.#lease?.settle(characters, voice);
  }

  /** @see Lease.delivered */
  delivered(durationMs: number, voice: string): void {
    this.#lease?.delivered(durationMs, voice);
  }

  /** So many unspoken characters will not be spoken. */
  drop(characters: number): void {
    this.#remove(characters);
    this.#lease?.refund(characters);
  }

  /** Gives back what marks took of the budget. */
  unmark(marked: number): void {
    this.#marked -= marked;
    this.#parts.textBudget.giveBack(marked);
  }

  /** Frees the slot and refunds unspoken text. Idempotent. */
  giveBack(): void {
    if (this.#lease === null) return;
    this.#lease.close();
    this.#lease = null;
    this.#parts.onHeld(false);
  }

  #reserve(characters: number, isSpeech: boolean): LeaseRefusal | null {
    if (this.#lease !== null) return this.#lease.reserve(characters);
    return isSpeech ? this.#admit(characters) : null;
  }

  #admit(more: number): LeaseRefusal | null {
    const { admission, requestId, slotsOf, use } = this.#parts;
    const admitted = admission.admit(use.key, this.#unspoken + more, requestId, slotsOf);
    if (!admitted.ok) return admitted.code;
    this.#lease = admitted.lease;
    this.#parts.onHeld(true);
    return null;
  }

  #remove(characters: number): void {
    this.#unspoken -= characters;
    this.#parts.textBudget.giveBack(characters);
  }
}

/** One context's part of its socket's lease. It never charges or refunds more than was added to it. */
export class LeaseShare implements Lease {
  readonly #socket: SocketLease;
  #unspoken = 0;
  /** Taken of the budget for its marks. It is given back when no text is left: marks are not matched with their text. */
  #marked = 0;

  constructor(socket: SocketLease) {
    this.#socket = socket;
  }

  get account(): string {
    return this.#socket.account;
  }

  /** @see SocketLease.add */
  add(characters: number, isSpeech: boolean, marked = 0): LeaseRefusal | null {
    const refusal = this.#socket.add(characters, isSpeech, marked);
    if (refusal !== null) return refusal;
    this.#unspoken += characters;
    this.#marked += marked;
    return null;
  }

  settle(characters: number, voice: string): void {
    this.#socket.settle(this.#take(characters), voice);
  }

  delivered(durationMs: number, voice: string): void {
    this.#socket.delivered(durationMs, voice);
  }

  drop(characters: number): void {
    this.#socket.drop(this.#take(characters));
  }

  /** The context is over: refunds its unspoken text. Idempotent. */
  close(): void {
    this.drop(this.#unspoken);
  }

  void(): void {
    this.close();
  }

  #take(characters: number): number {
    const taken = Math.min(characters, this.#unspoken);
    this.#unspoken -= taken;
    if (this.#unspoken === 0) {
      this.#socket.unmark(this.#marked);
      this.#marked = 0;
    }
    return taken;
  }
}
