/**
 * Sends records of unknown total length, chunked, as they come and no faster than the reader takes them.
 *
 * The library's rules, each learnt from a loss: one `write` a cork, of less than its 16 KiB cork buffer, or bytes
 * vanish under backpressure; `write` accepts always and says false when the socket was full before (so one write
 * late); what it holds back is flushed by our next write or empty cork, not by the writable event; and from a failed
 * write to the next writable event a timer of ten seconds runs that closes the connection, however much the reader
 * takes meanwhile. Hence our own queue, the pulse that re-arms, and the end that waits for the socket.
 */
import { limits } from '../limits.js';
import type { Frame } from '../threads/messages.js';
import type { Exchange } from './exchange.js';
import type { Pulsed } from './pulse.js';
import type { HttpResponse } from './uws.js';

export type AudioFrame = Extract<Frame, { type: 'audio' }>;

interface Entry {
  bytes: Uint8Array;
  /** The frame that `bytes` completes. */
  readonly frame: AudioFrame | null;
  /** The bytes are no part of a mail any more. */
  isOwn: boolean;
}

export interface StreamHead {
  readonly contentType: string;
  readonly headers: readonly (readonly [string, string])[];
  /** What is sent consists of units of so many bytes, and no chunk of the encoding ends inside one. */
  readonly unitBytes: number;
}

/** Left in the first write for status line and headers, which share its cork. */
const HEAD_BYTES_MAX = 1024;
/** Bytes written in one tick: others' frames wait for no more than this. */
const TICK_BYTES = 256 * 1024;
/** A write to a socket that is full, to learn whether it still is. Small, because the library holds it back. */
const PROBE_BYTES_MAX = 1024;
/** So many probes fit in what is queued: as many as there are re-arms until a reader counts as stalled. */
const PROBES_MIN = 16;
/** Entries sent that are still in the queue, so that it is not moved up for each of them. */
const SENT_ENTRIES_MAX = 32;

export class StreamSender implements Pulsed {
  readonly #exchange: Exchange;
  readonly #head: StreamHead;
  readonly #onHanded: (frame: AudioFrame) => void;
  readonly #pumpGuarded: () => void;
  readonly #beatGuarded: (nowMs: number) => void;
  #queue: Entry[] = [];
  /** Index of the entry being sent, and how much of it is. */
  #at = 0;
  #offset = 0;
  /** Bounded by the gate of the context's backpressure; the limit says when that fails. */
  #queuedBytes = 0;
  #ended = false;
  #scheduled = false;
  /** The socket is full: write probes only. */
  #blocked = false;
  #lastProgressMs = 0;
  #lastRearmMs: number;
  #piece: Uint8Array | null = null;
  #accepted = false;

  /**
   * @param onHanded called for each frame whose last byte the socket accepted
   */
  constructor(exchange: Exchange, head: StreamHead, onHanded: (frame: AudioFrame) => void) {
    this.#exchange = exchange;
    this.#head = head;
    this.#onHanded = onHanded;
    this.#pumpGuarded = exchange.guarded(() => this.#pump());
    this.#beatGuarded = exchange.guarded((nowMs: number) => this.#beat(nowMs));
    const { pulse, clock } = exchange.services;
    this.#lastRearmMs = clock();
    pulse.add(this);
    exchange.sender = this;
    exchange.onOver(() => {
      pulse.delete(this);
      this.#queue = [];
    });
    exchange.onWritable(() => this.#onWritable());
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Queues a record, which is copied only if it has to wait. */
  send(bytes: Uint8Array, frame: AudioFrame | null): void {
    if (this.#exchange.isOver) return;
    this.#queue.push({ bytes, frame, isOwn: false });
    this.#queuedBytes += bytes.length;
    if (this.#queuedBytes > limits.senderQueueBytesMax) {
      this.#exchange.fail('the gate of backpressure let too much through');
      return;
    }
    this.#schedule();
  }

  /** Nothing more comes: the response ends when all of it was accepted. */
  end(): void {
    this.#ended = true;
    this.#schedule();
  }

  #run(): void {
    this.#scheduled = false;
    this.#pumpGuarded();
  }

  beat(nowMs: number): void {
    this.#beatGuarded(nowMs);
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#exchange.services.tick.add(() => this.#run());
  }

  #pump(): void {
    let tickBytes = 0;
    while (!this.#blocked && this.#queuedBytes > 0) {
      if (tickBytes >= TICK_BYTES) {
        this.#schedule();
        return;
      }
      const bytes = this.#pieceBytes();
      tickBytes += bytes;
      this.#write(bytes);
      if (this.#exchange.isOver) return;
    }
    if (this.#blocked) this.#keepQueued();
    else if (this.#ended) this.#finish();
  }

  /** What goes on waiting shall not keep the whole mail in memory that it came with. */
  #keepQueued(): void {
    for (const entry of this.#queue.slice(this.#at)) {
      if (entry.isOwn) continue;
      entry.bytes = new Uint8Array(entry.bytes);
      entry.isOwn = true;
    }
  }

  #pieceBytes(): number {
    const leftBytes = this.#queue[this.#at]!.bytes.length - this.#offset;
    const bytesMax = this.#exchange.hasBegun ? limits.writeBytesMax : limits.writeBytesMax - HEAD_BYTES_MAX;
    const bytes = this.#wholeUnits(Math.min(leftBytes, bytesMax));
    // The last few bytes of a response go after it is known that the socket has the others: once it is ended, the
    // library gives the reader ten seconds and then drops what it still holds.
    const isLast = this.#ended && bytes === this.#queuedBytes;
    return isLast && bytes > PROBES_MIN ? bytes - PROBES_MIN : bytes;
  }

  #write(bytes: number): void {
    const entry = this.#queue[this.#at]!;
    const endOffset = this.#offset + bytes;
    this.#piece = bytes === entry.bytes.length ? entry.bytes : entry.bytes.subarray(this.#offset, endOffset);
    this.#exchange.corked(this.#writePiece);
    this.#piece = null;
    this.#queuedBytes -= bytes;
    this.#offset = endOffset;
    if (endOffset === entry.bytes.length) this.#nextEntry();
    const nowMs = this.#exchange.services.clock();
    if (this.#accepted || !this.#blocked) this.#lastProgressMs = nowMs;
    this.#blocked = !this.#accepted;
    if (entry.frame !== null && endOffset === entry.bytes.length) {
      this.#exchange.noteAudio();
      this.#onHanded(entry.frame);
    }
  }

  readonly #writePiece = (res: HttpResponse): void => {
    if (!this.#exchange.hasBegun) this.#exchange.writeHead(200, this.#head.contentType, this.#head.headers);
    this.#accepted = res.write(this.#piece!);
  };

  #nextEntry(): void {
    this.#offset = 0;
    this.#at += 1;
    // A slow reader's queue may never run empty: what was sent must go all the same.
    if (this.#at < this.#queue.length && this.#at < SENT_ENTRIES_MAX) return;
    this.#queue.splice(0, this.#at);
    this.#at = 0;
  }

  #onWritable(): void {
    this.#blocked = false;
    this.#lastProgressMs = this.#exchange.services.clock();
    // Nothing to write would leave what the library holds back where it is.
    if (this.#queuedBytes === 0) this.#flush();
    this.#pump();
  }

  #flush(): void {
    this.#exchange.corked(() => {});
  }

  #beat(nowMs: number): void {
    const { bounds } = this.#exchange.services;
    if (!this.#exchange.hasBegun || nowMs - this.#lastRearmMs < bounds.stallRearmMs) return;
    this.#lastRearmMs = nowMs;
    // Also when nothing seems to be held up: a write can fail unseen, and starts the library's timer all the same.
    this.#exchange.rearm();
    if (!this.#blocked) return;
    if (this.#queuedBytes > 0) this.#probe();
    else this.#flush();
    // A probe that got through made progress just now.
    if (nowMs - this.#lastProgressMs > bounds.readerStallMsMax) this.#exchange.drop('reader-stalled');
  }

  /** Bytes may fit long before the kernel calls the socket writable: that takes a third of its buffer. */
  #probe(): void {
    const leftBytes = this.#queue[this.#at]!.bytes.length - this.#offset;
    const sparingly = Math.max(1, Math.floor(this.#queuedBytes / PROBES_MIN));
    this.#write(this.#wholeUnits(Math.min(leftBytes, PROBE_BYTES_MAX, sparingly)));
    if (!this.#blocked) this.#pump();
  }

  #wholeUnits(bytes: number): number {
    const { unitBytes } = this.#head;
    return Math.max(unitBytes, bytes - (bytes % unitBytes));
  }

  #finish(): void {
    this.#exchange.corked((res) => {
      if (!this.#exchange.hasBegun) this.#exchange.writeHead(200, this.#head.contentType, this.#head.headers);
      res.end();
    });
    this.#exchange.finish();
  }
}
