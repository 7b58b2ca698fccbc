/**
 * Reads the body of a request within bounds: its size, its time, and the bytes of all bodies that are arriving.
 *
 *   collecting --last piece--> (waits for the turn of its account) --> onBody
 *   discarding (too large) --last piece--> 413
 *
 * While its account is above its part of this thread, the rest of the body is read later.
 *
 * A body that is too large is read for a while longer: closing the connection of a client that is still sending destroys
 * the answer before the client reads it.
 */
import type { KeyedRefusal, Member } from '../byte-budget.js';
import type { Exchange } from './exchange.js';
import { replyError, replyUnavailable } from './reply.js';
import type { RequestHead } from './request-head.js';
import type { Pulsed } from './services.js';
import type { Inlet, AccountTurn, Waiting } from './turns.js';

const FIRST_CAPACITY_BYTES = 4 * 1024;

/** One buffer of the largest size stays for the next one: on some machines new pages take longer than the parsing. */
let spare: ArrayBuffer | null = null;

const takeLargest = (bytes: number): ArrayBuffer => {
  const largest = spare?.byteLength === bytes ? spare : new ArrayBuffer(bytes);
  spare = null;
  return largest;
};

class BodyReader implements Pulsed, Inlet, Waiting {
  readonly #exchange: Exchange;
  readonly #onBody: (bytes: Uint8Array) => void;
  readonly #member: Member;
  readonly #turn: AccountTurn;
  /** The start of the body's time. It moves by the time in which the service did not read. */
  #startMs: number;
  /** Doubles as it grows; the budget counts its capacity. */
  #buffer = new Uint8Array(0);
  #length = 0;
  readonly #isTooLarge: boolean;
  #lastRearmMs: number;
  /** When it was stopped: `seenMs` for the body's time, `atMs` for the metric. */
  #paused: { readonly seenMs: number; readonly atMs: number } | null = null;
  /** The connection is not being read. */
  #isStopped = false;
  /** The whole body was handed on. */
  #isWhole = false;

  constructor(exchange: Exchange, head: RequestHead, member: Member, onBody: (bytes: Uint8Array) => void) {
    const { bounds, pulse, turns } = exchange.services;
    this.#exchange = exchange;
    this.#onBody = onBody;
    this.#member = member;
    this.#turn = turns.of(member);
    this.#startMs = this.#lastRearmMs = pulse.seenClock();
    this.#isTooLarge = head.contentLength > bounds.bodyBytesMax;
    if (head.contentLength > bounds.bodyDiscardBytesMax) this.#refuseTooLarge();
    else exchange.onData((piece, isLast) => this.#take(piece, isLast));
    if (exchange.isOver) return;
    pulse.add(this);
    this.#turn.open(this);
    exchange.onOver(() => this.#release());
  }

  beat(nowMs: number): void {
    const { bounds } = this.#exchange.services;
    if (this.#paused !== null && !this.#isWhole) return;
    if (!this.#isWhole && nowMs - this.#startMs > bounds.bodyReceiveMsMax) {
      this.#exchange.drop('body-late');
      return;
    }
    // The library's own timer demands 16 kB/s, which a slow uplink does not reach.
    if (nowMs - this.#lastRearmMs < bounds.stallRearmMs) return;
    this.#lastRearmMs = nowMs;
    this.#exchange.rearm();
  }

  pause(): void {
    this.#paused = this.#now();
    this.#isStopped = true;
    this.#exchange.pause();
  }

  resume(): void {
    const nowMs = this.#exchange.services.pulse.seenClock();
    if (this.#paused !== null) this.#startMs += nowMs - this.#paused.seenMs;
    this.#paused = null;
    this.#lastRearmMs = nowMs;
    this.#isStopped = false;
    this.#exchange.resume();
  }

  get nextBytes(): number {
    return this.#length;
  }

  piece(): boolean {
    this.#exchange.guard(() => this.#handOn());
    return false;
  }

  #now(): { readonly seenMs: number; readonly atMs: number } {
    const { clock, pulse } = this.#exchange.services;
    return { seenMs: pulse.seenClock(), atMs: clock() };
  }

  #take(piece: ArrayBuffer, isLast: boolean): void {
    if (this.#isTooLarge) {
      if (isLast) this.#refuseTooLarge();
      return;
    }
    const turn = this.#turn;
    const refusal = turn.time(piece.byteLength, () => this.#append(new Uint8Array(piece)));
    if (refusal !== null) {
      const reason = refusal === 'pool' ? 'bodyPoolExhausted' : 'bodiesOfAccountExhausted';
      replyUnavailable(this.#exchange, reason, { close: true });
      return;
    }
    if (!isLast) {
      if (!turn.isFree) turn.pause(this);
      if (turn.isFarBehind) turn.pauseAll();
    } else if (turn.isFree) turn.run(this.#length, () => this.#handOn());
    else {
      this.#exchange.services.pulse.delete(this);
      this.#paused ??= this.#now();
      turn.wait(this);
    }
  }

  #handOn(): void {
    const { clock, metrics } = this.#exchange.services;
    if (this.#paused !== null) metrics.readLater(this.#exchange.route, clock() - this.#paused.atMs);
    const body = this.#buffer.subarray(0, this.#length);
    this.#release();
    if (this.#isStopped) this.#readOn();
    this.#onBody(body);
  }

  /**
   * The body is whole, but the connection is still stopped: its end, and the next request, must be noticed. Resuming
   * starts the library's timer, which would end a long response: it is put off until the exchange is over.
   */
  #readOn(): void {
    const { pulse } = this.#exchange.services;
    this.#isWhole = true;
    this.#isStopped = false;
    this.#lastRearmMs = pulse.seenClock();
    this.#exchange.resume();
    pulse.add(this);
    this.#exchange.onOver(() => pulse.delete(this));
  }

  #refuseTooLarge(): void {
    replyError(this.#exchange, 'bodyTooLarge', { close: true });
  }

  /** Copies: the library empties the piece when the callback returns. */
  #append(piece: Uint8Array): KeyedRefusal | null {
    const neededBytes = this.#length + piece.length;
    const refusal = neededBytes > this.#buffer.length ? this.#grow(neededBytes) : null;
    if (refusal !== null) return refusal;
    this.#buffer.set(piece, this.#length);
    this.#length = neededBytes;
    return null;
  }

  #grow(neededBytes: number): KeyedRefusal | null {
    const { bounds, bodyBudget } = this.#exchange.services;
    const doubledBytes = Math.max(FIRST_CAPACITY_BYTES, 2 * this.#buffer.length, neededBytes);
    const capacityBytes = Math.min(doubledBytes, bounds.bodyBytesMax);
    const refusal = bodyBudget.take(this.#member, capacityBytes - this.#buffer.length);
    if (refusal !== null) return refusal;
    const isLargest = capacityBytes === bounds.bodyBytesMax;
    const grown = new Uint8Array(isLargest ? takeLargest(capacityBytes) : new ArrayBuffer(capacityBytes));
    grown.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = grown;
    return null;
  }

  /** Nothing arrives any more, or it is not needed. Idempotent. */
  #release(): void {
    this.#exchange.services.pulse.delete(this);
    this.#turn.drop(this);
    this.#turn.close(this);
    this.#giveBackBuffer();
  }

  #giveBackBuffer(): void {
    const { bodyBudget, bounds } = this.#exchange.services;
    bodyBudget.giveBack(this.#member, this.#buffer.length);
    if (this.#buffer.length === bounds.bodyBytesMax) spare = this.#buffer.buffer;
    this.#buffer = new Uint8Array(0);
  }
}

/**
 * @param member whose part of the budget the body takes
 * @param onBody called once with the whole body, empty if there is none, valid until it returns; not called if the exchange was answered here
 * (413, 503), was dropped because the body is late, or was aborted by the client
 */
export const readBody = (
  exchange: Exchange,
  head: RequestHead,
  member: Member,
  onBody: (bytes: Uint8Array) => void,
): void => {
  new BodyReader(exchange, head, member, onBody);
};
