/**
 * Sends a body of known length no faster than its reader takes it: `tryEnd` accepts what fits in the socket and says
 * how much that was.
 */
import type { Exchange } from './exchange.js';
import type { Pulsed } from './pulse.js';
import type { HttpResponse } from './uws.js';

/** The bytes to send, a piece at a time; none is empty. */
export interface LengthSource {
  readonly byteLength: number;
  /** The next piece: asked for when the one before it was accepted, and exactly until `byteLength` is reached. */
  next(): Uint8Array | Promise<Uint8Array>;
}

export const piecesSource = (pieces: readonly Uint8Array[]): LengthSource => {
  let at = 0;
  const filled = pieces.filter((piece) => piece.length > 0);
  return {
    byteLength: filled.reduce((sum, piece) => sum + piece.length, 0),
    next: () => filled[at++]!,
  };
};

export interface LengthHead {
  readonly status: number;
  readonly contentType: string | null;
  readonly headers?: readonly (readonly [string, string])[] | undefined;
}

/** One call's bytes, and those of one tick: others' frames wait for no more than this. */
const SLICE_BYTES = 64 * 1024;
const TICK_BYTES = 256 * 1024;

export class LengthSender implements Pulsed {
  readonly #exchange: Exchange;
  readonly #head: LengthHead;
  readonly #source: LengthSource;
  readonly #pumpGuarded: () => void;
  /** What is left of the piece in hand. */
  #piece: Uint8Array | null = null;
  #slice: Uint8Array | null = null;
  #sentBytes = 0;
  #waitingForSource = false;
  #done = false;
  #lastProgressMs = 0;
  #lastRearmMs = 0;

  constructor(exchange: Exchange, head: LengthHead, source: LengthSource) {
    this.#exchange = exchange;
    this.#head = head;
    this.#source = source;
    this.#pumpGuarded = exchange.guarded(() => this.#pump());
  }

  start(): void {
    const { pulse, tick, clock } = this.#exchange.services;
    this.#lastProgressMs = this.#lastRearmMs = clock();
    pulse.add(this);
    this.#exchange.onOver(() => pulse.delete(this));
    this.#exchange.onWritable(this.#pumpGuarded);
    tick.add(this.#pumpGuarded);
  }

  beat(nowMs: number): void {
    const { bounds } = this.#exchange.services;
    if (nowMs - this.#lastRearmMs < bounds.stallRearmMs) return;
    this.#lastRearmMs = nowMs;
    if (this.#exchange.hasBegun) this.#exchange.rearm();
    // Bytes may fit long before the kernel calls the socket writable: that takes a third of its buffer.
    this.#pumpGuarded();
    if (nowMs - this.#lastProgressMs > bounds.readerStallMsMax) this.#exchange.drop('reader-stalled');
  }

  #pump(): void {
    const tickEndBytes = this.#sentBytes + TICK_BYTES;
    while (!this.#waitingForSource && !this.#done) {
      if (this.#sentBytes >= tickEndBytes) {
        this.#exchange.services.tick.add(this.#pumpGuarded);
        return;
      }
      if (this.#piece === null && !this.#fetch()) return;
      if (!this.#sendSlice()) return;
    }
  }

  /** @returns whether a piece is in hand now */
  #fetch(): boolean {
    const next = this.#source.next();
    if (next instanceof Uint8Array) {
      this.#piece = next;
      return true;
    }
    this.#waitingForSource = true;
    next.then(
      this.#exchange.guarded((piece: Uint8Array) => {
        this.#waitingForSource = false;
        this.#lastProgressMs = this.#exchange.services.clock();
        this.#piece = piece;
        this.#pump();
      }),
      (error: unknown) => this.#exchange.fail(error),
    );
    return false;
  }

  /** @returns whether the socket takes more */
  #sendSlice(): boolean {
    const piece = this.#piece!;
    const leftBytes = this.#source.byteLength - this.#sentBytes;
    let sliceBytes = Math.min(piece.length, SLICE_BYTES);
    // The last byte goes alone: that it is accepted says that the kernel has all the others. After it, the library
    // gives a reader ten seconds and then drops what it still holds.
    if (sliceBytes === leftBytes && leftBytes > 1) sliceBytes -= 1;
    this.#slice = piece.subarray(0, sliceBytes);
    const beforeBytes = this.#sentBytes;
    this.#exchange.corked(this.#writeSlice);
    const acceptedBytes = this.#sentBytes - beforeBytes;
    if (acceptedBytes > 0) this.#lastProgressMs = this.#exchange.services.clock();
    this.#piece = acceptedBytes < piece.length ? piece.subarray(acceptedBytes) : null;
    if (this.#done) this.#exchange.finish();
    return acceptedBytes === sliceBytes;
  }

  readonly #writeSlice = (res: HttpResponse): void => {
    const { status, contentType, headers } = this.#head;
    if (!this.#exchange.hasBegun) this.#exchange.writeHead(status, contentType, headers);
    const [, done] = res.tryEnd(this.#slice!, this.#source.byteLength);
    this.#done = done;
    this.#sentBytes = done ? this.#source.byteLength : res.getWriteOffset();
  };
}
