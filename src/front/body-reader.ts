/**
 * Reads the body of a request within bounds: its size, its time, and the bytes of all bodies that are arriving.
 *
 *   collecting --last piece--> onBody
 *   collecting --too large--> discarding --last piece, or too much of it--> 413
 *
 * A body that is too large is read for a while longer: closing the connection of a client that is still sending destroys
 * the answer before the client reads it.
 */
import type { Exchange } from './exchange.js';
import { replyError, replyUnavailable } from './reply.js';
import type { RequestHead } from './request-head.js';
import type { Pulsed } from './services.js';

const FIRST_CAPACITY_BYTES = 4 * 1024;

class BodyReader implements Pulsed {
  readonly #exchange: Exchange;
  readonly #onBody: (bytes: Uint8Array) => void;
  readonly #startMs: number;
  /** Doubles as it grows; the budget counts its capacity. */
  #buffer = new Uint8Array(0);
  #length = 0;
  #discardedBytes = 0;
  #discarding: boolean;
  #lastRearmMs: number;

  constructor(exchange: Exchange, head: RequestHead, onBody: (bytes: Uint8Array) => void) {
    const { clock, bounds } = exchange.services;
    this.#exchange = exchange;
    this.#onBody = onBody;
    this.#startMs = this.#lastRearmMs = clock();
    this.#discarding = (head.contentLength ?? 0) > bounds.bodyBytesMax;
    if ((head.contentLength ?? 0) > bounds.bodyDiscardBytesMax) this.#refuseTooLarge();
    else exchange.onData((piece, isLast) => this.#take(piece, isLast));
    if (exchange.isOver) return;
    exchange.services.pulse.add(this);
    exchange.onOver(() => this.#release());
  }

  beat(nowMs: number): void {
    const { bounds } = this.#exchange.services;
    if (nowMs - this.#startMs > bounds.bodyReceiveMsMax) {
      this.#exchange.drop('body-late');
      return;
    }
    // The library's own timer demands 16 kB/s, which a slow uplink does not reach.
    if (nowMs - this.#lastRearmMs < bounds.stallRearmMs) return;
    this.#lastRearmMs = nowMs;
    this.#exchange.rearm();
  }

  #take(piece: ArrayBuffer, isLast: boolean): void {
    const { bounds } = this.#exchange.services;
    if (!this.#discarding && this.#length + piece.byteLength > bounds.bodyBytesMax) {
      this.#discarding = true;
      this.#discardedBytes = this.#length;
      this.#giveBackBuffer();
    }
    if (this.#discarding) {
      this.#discardedBytes += piece.byteLength;
      if (isLast || this.#discardedBytes > bounds.bodyDiscardBytesMax) this.#refuseTooLarge();
      return;
    }
    if (!this.#append(new Uint8Array(piece))) {
      replyUnavailable(this.#exchange, 'bodyPoolExhausted', { close: true });
      return;
    }
    if (!isLast) return;
    const body = this.#buffer.subarray(0, this.#length);
    this.#release();
    this.#onBody(body);
  }

  #refuseTooLarge(): void {
    replyError(this.#exchange, 'bodyTooLarge', { close: true });
  }

  /** Copies: the library empties the piece when the callback returns. */
  #append(piece: Uint8Array): boolean {
    const neededBytes = this.#length + piece.length;
    if (neededBytes > this.#buffer.length && !this.#grow(neededBytes)) return false;
    this.#buffer.set(piece, this.#length);
    this.#length = neededBytes;
    return true;
  }

  #grow(neededBytes: number): boolean {
    const { bounds, bodyBudget } = this.#exchange.services;
    const doubledBytes = Math.max(FIRST_CAPACITY_BYTES, 2 * this.#buffer.length, neededBytes);
    const capacityBytes = Math.min(doubledBytes, bounds.bodyBytesMax);
    if (!bodyBudget.take(capacityBytes - this.#buffer.length)) return false;
    const grown = new Uint8Array(capacityBytes);
    grown.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = grown;
    return true;
  }

  /** Nothing arrives any more, or it is not needed. Idempotent. */
  #release(): void {
    this.#exchange.services.pulse.delete(this);
    this.#giveBackBuffer();
  }

  #giveBackBuffer(): void {
    this.#exchange.services.bodyBudget.giveBack(this.#buffer.length);
    this.#buffer = new Uint8Array(0);
  }
}

/**
 * @param onBody called once with the whole body, empty if there is none; not called if the exchange was answered here
 * (413, 503), was dropped because the body is late, or was aborted by the client
 */
export const readBody = (
  exchange: Exchange,
  head: RequestHead,
  onBody: (bytes: Uint8Array) => void,
): void => {
  new BodyReader(exchange, head, onBody);
};
