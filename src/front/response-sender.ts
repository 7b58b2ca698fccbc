/**
 * Sends the body of a response no faster than its reader takes it: chunked as records come, or of a known length.
 *
 * Rules of the library, each found by losing data:
 * - One `write` in a cork, smaller than the 16 KiB cork buffer; otherwise bytes vanish under backpressure.
 * - `write` accepts everything, and returns false if the socket was full before: one write late. Our next write or an
 *   empty cork flushes what the library holds back; the writable event does not.
 * - From a failed write to the next writable event a timer of ten seconds runs. It closes the connection however much the
 *   reader takes meanwhile, so the pulse re-arms it.
 * - `tryEnd` accepts what fits in the socket. After the end, the library gives the reader ten seconds and drops the rest,
 *   so the last bytes wait until the socket has taken all others.
 */
import type { Exchange } from './exchange.js';
import { Lane, Sender, StallTimer } from './sender.js';
import type { Pulsed } from './services.js';
import type { HttpResponse } from './uws.js';

/** The bytes of a body of known length, a piece at a time; no piece is empty. */
export interface LengthSource {
  readonly byteLength: number;
  /** The next piece. Called when the socket has all of the one before, until `byteLength` is reached. */
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

export interface ResponseHead {
  readonly status: number;
  readonly contentType: string | null;
  readonly headers?: readonly (readonly [string, string])[] | undefined;
  /** A chunked body consists of units of so many bytes, and no chunk ends inside one. */
  readonly unitBytes?: number;
  /** The socket has the head and the first bytes of the body. */
  readonly onBegun?: () => void;
}

/** Bytes that the first write leaves for status line and headers, which share its cork. */
export const HEAD_BYTES_MAX = 1024;
/** Bytes of one `tryEnd`, and of one tick. */
const SLICE_BYTES = 64 * 1024;
const TICK_BYTES = 256 * 1024;
/** Bytes of a write to a full socket, to learn whether it takes more. Small, because the library holds it back. */
const PROBE_BYTES_MAX = 1024;
/** Probes that the queued bytes must last for: one for each re-arm before a reader counts as stalled. */
const PROBES_MIN = 16;
/** The last bytes of a response, which wait until the socket has taken all others. */
const TAIL_BYTES = PROBES_MIN;

export class ResponseSender extends Sender implements Pulsed {
  readonly #exchange: Exchange;
  readonly #head: ResponseHead;
  /** `null` for a chunked body. */
  readonly #source: LengthSource | null;
  readonly #lane = new Lane();
  readonly #timer: StallTimer;
  #isFull = false;
  #isFetching = false;
  #fetchedBytes = 0;
  /** Of a body of known length. */
  #sentBytes = 0;
  #isDone = false;
  #piece: Uint8Array = new Uint8Array(0);

  constructor(exchange: Exchange, head: ResponseHead, source: LengthSource | null = null) {
    const { bounds, pulse, tick } = exchange.services;
    super(tick);
    this.#exchange = exchange;
    this.#head = head;
    this.#source = source;
    this.#timer = new StallTimer(bounds, pulse.seenClock());
    pulse.add(this);
    if (source === null) exchange.sender = this;
    exchange.onOver(() => {
      pulse.delete(this);
      this.close();
    });
    exchange.onWritable(() => this.#onWritable());
    if (source !== null) this.schedule();
  }

  /** Queues a record of a chunked body; pieces of a source are bounded where they are collected. */
  write(bytes: Uint8Array, onHanded: (() => void) | null = null): void {
    this.send(this.#lane, bytes, onHanded);
    // The backpressure gate keeps it far below.
    if (this.queuedBytes > this.#exchange.services.bounds.senderQueueBytesMax)
      this.#exchange.fail('the backpressure gate let too much through');
  }

  beat(nowMs: number): void {
    this.#exchange.guard(() => this.#beat(nowMs));
  }

  protected override guard(callback: () => void): void {
    this.#exchange.guard(callback);
  }

  protected override get tickBytesMax(): number {
    return TICK_BYTES;
  }

  protected override get isFull(): boolean {
    return this.#isFull;
  }

  protected override pieceBytes(leftBytes: number): number {
    if (this.#isFull) {
      const sparingly = Math.max(1, Math.floor(this.queuedBytes / PROBES_MIN));
      return this.#wholeUnits(Math.min(leftBytes, PROBE_BYTES_MAX, sparingly));
    }
    const { hasBegun, services } = this.#exchange;
    const writeBytesMax = services.bounds.writeBytesMax - (hasBegun ? 0 : HEAD_BYTES_MAX);
    const bytes = this.#wholeUnits(Math.min(leftBytes, this.#source === null ? writeBytesMax : SLICE_BYTES));
    const isLast = this.isEnded && bytes === this.queuedBytes;
    return isLast && bytes > TAIL_BYTES ? bytes - TAIL_BYTES : bytes;
  }

  protected override accept(piece: Uint8Array): number {
    const wasFull = this.#isFull;
    const begins = !this.#exchange.hasBegun;
    const beforeBytes = this.#sentBytes;
    this.#piece = piece;
    this.#exchange.corked(this.#writePiece);
    if (begins) this.#head.onBegun?.();
    const accepted = this.#source === null ? piece.length : this.#sentBytes - beforeBytes;
    // A chunked write that fails may still have sent something, unless the one before failed too.
    const hasProgressed = this.#source === null ? !(wasFull && this.#isFull) : accepted > 0;
    if (hasProgressed) this.#timer.progress(this.#exchange.services.pulse.seenClock());
    if (this.#isDone) this.#exchange.finish();
    return accepted;
  }

  readonly #writePiece = (res: HttpResponse): void => {
    this.#begin();
    if (this.#source === null) {
      this.#isFull = !res.write(this.#piece);
      return;
    }
    const { byteLength } = this.#source;
    const pieceEnd = this.#sentBytes + this.#piece.length;
    const [, isDone] = res.tryEnd(this.#piece, byteLength);
    this.#isDone = isDone;
    this.#sentBytes = isDone ? byteLength : res.getWriteOffset();
    this.#isFull = this.#sentBytes < pieceEnd;
  };

  protected override refill(): boolean {
    if (this.#source === null || this.#isFetching) return false;
    const piece = this.#source.next();
    if (piece instanceof Uint8Array) {
      this.#enqueuePiece(piece);
      return true;
    }
    this.#isFetching = true;
    piece.then(
      this.#exchange.guarded((fetched: Uint8Array) => {
        this.#isFetching = false;
        this.#timer.progress(this.#exchange.services.pulse.seenClock());
        this.#enqueuePiece(fetched);
        this.pump();
      }),
      (error: unknown) => this.#exchange.fail(error),
    );
    return false;
  }

  /** Ends a chunked body; one of known length ends by itself. */
  protected override complete(): void {
    if (this.#source !== null) return;
    this.#exchange.corked((res) => {
      this.#begin();
      res.end();
    });
    this.#exchange.finish();
  }

  #enqueuePiece(piece: Uint8Array): void {
    this.enqueue(this.#lane, piece);
    this.#fetchedBytes += piece.length;
    if (this.#fetchedBytes === this.#source?.byteLength) this.end();
  }

  #begin(): void {
    const { status, contentType, headers } = this.#head;
    if (!this.#exchange.hasBegun) this.#exchange.writeHead(status, contentType, headers);
  }

  #onWritable(): void {
    this.#isFull = false;
    this.#timer.progress(this.#exchange.services.pulse.seenClock());
    if (this.isEmpty) this.#flushLibrary();
    this.pump();
  }

  /** Has the library write what it holds back. */
  #flushLibrary(): void {
    this.#exchange.corked(() => {});
  }

  #beat(nowMs: number): void {
    if (!this.#exchange.hasBegun || !this.#timer.isRearmDue(nowMs)) return;
    // Also when the socket does not seem full: a write can fail unseen, and starts the library's timer all the same.
    this.#exchange.rearm();
    if (!this.#isFull && !this.#isFetching) return;
    this.#tryFull();
    // If something got through, the timer saw progress just now.
    if (this.#timer.isStalled(nowMs)) this.#exchange.drop('reader-stalled');
  }

  /** Bytes may fit long before the kernel calls the socket writable: that takes a third of its buffer. */
  #tryFull(): void {
    if (!this.#isFull) return;
    if (this.isEmpty) this.#flushLibrary();
    else if (this.#source === null) this.probe();
    else {
      this.#isFull = false;
      this.pump();
    }
  }

  #wholeUnits(bytes: number): number {
    const { unitBytes = 1 } = this.#head;
    return Math.max(unitBytes, bytes - (bytes % unitBytes));
  }
}
