/**
 * What waits for one WebSocket: a lane for each context, and one for answers that are about none. Lanes take turns,
 * a frame each, so that a context with much to say does not hold up its neighbours; within a lane order is kept.
 *
 * The library's own buffer takes any amount. It is given no more than a bound, and the rest waits here, not handed:
 * that closes the gate of backpressure, and generation for a slow reader pauses.
 */
import type { ByteBudget } from '../../byte-budget.js';
import type { TickActions } from '../../tick.js';

/** The part of the library's socket that is used. */
export interface SocketHandle {
  /** @returns 1: sent, 0: buffered, 2: dropped */
  send(message: string | Uint8Array): number;
  /** @param mark comes back in the pong */
  ping(mark: string): number;
  getBufferedAmount(): number;
  /** Runs it with all that is sent in it in one piece. */
  cork(write: () => void): unknown;
  /** Sends a close frame; calls the close handler before it returns. */
  end(code: number, reason: string): void;
  /** Drops the connection; calls the close handler before it returns. */
  close(): void;
}

interface Waiting {
  message: string | Uint8Array;
  /** Of answers, which are bounded apart: what is spoken is bounded by the gate. */
  readonly answerBytes: number;
  readonly onHanded: (() => void) | null;
  /** Or dropped. */
  isHanded: boolean;
}

/** One context's place in the outbox. */
export class Lane {
  readonly waiting: Waiting[] = [];
  /** It keeps its turn until it is empty. */
  isFinishing = false;
}

export interface OutboxBounds {
  readonly socketBufferedBytesMax: number;
  readonly socketAnswerBytesMax: number;
  readonly senderQueueBytesMax: number;
}

/** What all sockets share. */
export interface SocketPools {
  /** Bytes in the library's buffers. */
  readonly buffered: ByteBudget;
  /** Answers that wait, in UTF-16 units. */
  readonly answers: ByteBudget;
  /** The ids of flushes that are not completed, in UTF-16 units. */
  readonly flushIds: ByteBudget;
}

/** Answers that may wait for a socket however much waits for others. */
const ANSWER_BYTES_MIN = 4 * 1024;

export interface OutboxParts {
  readonly socket: SocketHandle;
  readonly tick: TickActions;
  readonly bounds: OutboxBounds;
  readonly pools: Omit<SocketPools, 'flushIds'>;
  /** More waits than is bounded. Not called from within `post` or `answer`. */
  readonly onOverflow: () => void;
  /** Runs a callback of an entry; must not throw. */
  readonly guard: (callback: () => void) => void;
}

const sizeOf = (message: string | Uint8Array): number => message.length;

export class Outbox {
  readonly #parts: OutboxParts;
  /** Lanes with something waiting, the next to be served first. */
  readonly #ready = new Set<Lane>();
  #bytes = 0;
  #answerBytes = 0;
  #bufferedBytes = 0;
  /** Since the last run: their bytes are parts of a mail with those of others. */
  #fresh: Waiting[] = [];
  #scheduled = false;
  #closed = false;

  constructor(parts: OutboxParts) {
    this.#parts = parts;
  }

  /** Nothing waits here. The library's buffer may still hold what was handed. */
  get isEmpty(): boolean {
    return this.#ready.size === 0;
  }

  /** What waits here. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Of one lane. */
  isWaiting(lane: Lane): boolean {
    return lane.waiting.length > 0;
  }

  /** Speech: frames that the gate bounds. @param onHanded called once the socket has it */
  post(lane: Lane, message: string | Uint8Array, onHanded: (() => void) | null = null): void {
    this.#add(lane, { message, answerBytes: 0, onHanded, isHanded: false });
  }

  /** An answer to a frame of the client's: who asks without reading would pile them up. */
  answer(lane: Lane, message: string, onHanded: (() => void) | null = null): void {
    this.#add(lane, { message, answerBytes: sizeOf(message), onHanded, isHanded: false });
  }

  /**
   * Drops what waits in a lane for its last answers, which follow each other without another's frame between: the
   * lane's context is over, and its id may be that of the next one.
   */
  finish(lane: Lane, answers: readonly string[]): void {
    this.discard(lane);
    lane.isFinishing = true;
    for (const message of answers) this.answer(lane, message);
  }

  /** Drops what waits in a lane. */
  discard(lane: Lane): void {
    for (const entry of lane.waiting.splice(0)) this.#forget(entry);
    this.#ready.delete(lane);
  }

  /** The socket takes more. */
  drained(): void {
    if (!this.isEmpty) this.#schedule();
  }

  /** Hands on what the socket takes. Scheduled for the end of the tick, when all of it is known. */
  #run(): void {
    this.#scheduled = false;
    if (this.#closed) return;
    const { guard, onOverflow, socket } = this.#parts;
    const handed: (() => void)[] = [];
    // An exception does not come out of `cork`.
    socket.cork(() => guard(() => this.#hand(handed)));
    for (const callback of handed) guard(callback);
    // A callback may have closed it.
    if (!this.#isOpen()) return;
    this.noteBuffered();
    this.#keepFresh();
    // Only what the socket did not take: a tick's input may ask for much at once.
    if (this.#isOverflowing()) guard(onOverflow);
  }

  /** Counts what the library holds for the socket. @returns its bytes */
  noteBuffered(): number {
    const bytes = this.#closed ? 0 : this.#parts.socket.getBufferedAmount();
    this.#parts.pools.buffered.change(bytes - this.#bufferedBytes);
    this.#bufferedBytes = bytes;
    return bytes;
  }

  /** Sends what waits as it is, whatever the socket buffers: before a close. Nothing is called back. */
  flush(): void {
    if (this.#closed) return;
    const { socket } = this.#parts;
    for (let entry = this.#next(); entry !== null; entry = this.#next()) socket.send(entry.message);
  }

  /** Forgets everything. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.noteBuffered();
    this.#parts.pools.answers.change(-this.#answerBytes);
    this.#answerBytes = 0;
    this.#fresh = [];
    for (const lane of this.#ready) lane.waiting.length = 0;
    this.#ready.clear();
  }

  #add(lane: Lane, entry: Waiting): void {
    if (this.#closed) return;
    lane.waiting.push(entry);
    this.#ready.add(lane);
    this.#bytes += sizeOf(entry.message);
    this.#answerBytes += entry.answerBytes;
    this.#parts.pools.answers.change(entry.answerBytes);
    if (typeof entry.message !== 'string') this.#fresh.push(entry);
    this.#schedule();
  }

  /** What goes on waiting shall not keep the whole mail in memory that it came with. */
  #keepFresh(): void {
    for (const entry of this.#fresh)
      if (!entry.isHanded && typeof entry.message !== 'string') entry.message = new Uint8Array(entry.message);
    this.#fresh = [];
  }

  #isOpen(): boolean {
    return !this.#closed;
  }

  #isOverflowing(): boolean {
    const { bounds, pools } = this.#parts;
    if (this.#bytes > bounds.senderQueueBytesMax) return true;
    const answerBytesMax = pools.answers.allowance(bounds.socketAnswerBytesMax);
    return (
      this.#answerBytes > Math.max(Math.min(ANSWER_BYTES_MIN, bounds.socketAnswerBytesMax), answerBytesMax)
    );
  }

  #schedule(): void {
    if (this.#scheduled || this.#closed) return;
    this.#scheduled = true;
    this.#parts.tick.add(() => this.#run());
  }

  #hand(handed: (() => void)[]): void {
    const { bounds, pools, socket } = this.#parts;
    const bufferedBytesMax = pools.buffered.allowance(bounds.socketBufferedBytesMax);
    for (;;) {
      const bufferedBytes = socket.getBufferedAmount();
      // Into an empty buffer goes a frame at any time: where nothing is held up, it does not stay there.
      if (bufferedBytes > 0 && bufferedBytes >= bufferedBytesMax) return;
      const entry = this.#next();
      if (entry === null) return;
      socket.send(entry.message);
      if (entry.onHanded !== null) handed.push(entry.onHanded);
    }
  }

  /** The next lane's first, its lane put behind the others. */
  #next(): Waiting | null {
    for (const lane of this.#ready) {
      const entry = lane.waiting.shift();
      const keepsTurn = lane.isFinishing && lane.waiting.length > 0;
      if (!keepsTurn) this.#ready.delete(lane);
      if (entry === undefined) continue;
      if (lane.waiting.length > 0) this.#ready.add(lane);
      this.#forget(entry);
      return entry;
    }
    return null;
  }

  #forget(entry: Waiting): void {
    entry.isHanded = true;
    this.#bytes -= sizeOf(entry.message);
    this.#answerBytes -= entry.answerBytes;
    this.#parts.pools.answers.change(-entry.answerBytes);
  }
}
