/**
 * Reads one WebSocket: passes its messages to the session at once, or in the turns of its account, always in their order.
 *
 *   reading --the account is above its part--> paused, messages wait --(turns) all passed--> reading;  any --closed--> over
 *   reading --(the session waits for credit)--> messages wait --(it goes on)--> (turns) all passed --> reading
 *
 * The library has no call to pause a WebSocket, but its call for responses works for one (`uws.ts`), with three effects
 * that this class makes up for. A read that was under way delivers up to half a MiB more: those messages wait too. A
 * write that the socket does not take turns reading on again, and a pause would stop the sending of what the library
 * holds: so a socket pauses only while the library holds nothing. Resuming starts a timer of ten seconds that only
 * received bytes stop.
 */
import type { PartOfAccount } from '../../byte-budget.js';
import type { Bounds } from '../../limits.js';
import type { Clock } from '../../monotonic.js';
import type { TickActions } from '../../tick.js';
import { ByteQueue } from '../byte-queue.js';
import type { Inlet, AccountTurn, Waiting } from '../turns.js';
import type { SocketReading } from '../uws.js';
import type { SocketHandle } from './outbox.js';
import type { Session } from './session.js';

type ReadHandle = Pick<SocketHandle, 'getBufferedAmount' | 'ping'>;

export type Reading = Pick<SocketReading, 'pause' | 'resume'>;

/** Before each message that waits: its length, and whether it is binary. */
const WORD_BYTES = 4;
/** Bytes of messages that wait above which all sockets of the account pause, whether they send or not. */
const MUCH_WAITING_BYTES = 1024 * 1024;

export interface SocketReaderParts {
  readonly session: Pick<
    Session,
    'guard' | 'message' | 'binaryMessage' | 'received' | 'ponged' | 'flooded' | 'pingPayload'
  >;
  readonly socket: ReadHandle;
  readonly reading: Reading;
  readonly turn: AccountTurn;
  /** Bytes of messages that wait, of all sockets of the account. */
  readonly budget: PartOfAccount;
  readonly tick: TickActions;
  readonly clock: Clock;
  readonly bounds: Pick<Bounds, 'stallRearmMs'>;
  /** The socket was read later, by so many milliseconds. */
  readonly onReadLater: (ms: number) => void;
}

export class SocketReader implements Inlet, Waiting {
  readonly #parts: SocketReaderParts;
  readonly #queue: ByteQueue;
  #pausedSinceMs: number | null = null;
  /** Since when the library's timer runs; `null`: it does not. */
  #timedSinceMs: number | null = null;
  #pingedMs = 0;
  #isChecking = false;
  #isHeld = false;
  #isOver = false;

  constructor(parts: SocketReaderParts) {
    this.#parts = parts;
    this.#queue = new ByteQueue(parts.budget);
    parts.turn.open(this);
  }

  /** Messages wait here. */
  get isBehind(): boolean {
    return this.#queue.length > 0;
  }

  /** A whole message. Its bytes are invalid after the call. */
  message(message: ArrayBuffer, isBinary: boolean): void {
    if (this.#isOver) return;
    const { turn } = this.#parts;
    this.#timedSinceMs = null;
    const isFree = !this.isBehind && turn.isFree && !this.#isHeld;
    if (isFree) turn.run(message.byteLength, () => this.#pass(new Uint8Array(message), isBinary));
    else if (this.#queueUp(message, isBinary)) {
      if (!this.#isHeld) turn.wait(this);
      this.#readLater();
    } else this.#parts.session.guard(() => this.#parts.session.flooded());
  }

  /** A ping, or a pong with its payload. The library has answered the ping. */
  control(payload: string | null): void {
    if (this.#isOver) return;
    const { session, turn } = this.#parts;
    this.#timedSinceMs = null;
    if (payload !== null) session.guard(() => session.ponged(payload));
    // A read may deliver a hundred thousand pings: beyond the account's part they are only counted.
    else if (this.#pausedSinceMs === null) session.guard(() => session.received());
    turn.count(payload?.length ?? 0);
    if (this.#pausedSinceMs !== null || !turn.isFree) this.#readLater();
  }

  /** Messages wait, in their order, until the session goes on. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
    if (isHeld || this.#isOver) return;
    if (this.isBehind) this.#parts.turn.wait(this);
    else this.#queue.clear();
  }

  get nextBytes(): number {
    return this.isBehind ? this.#queue.bytes.readUInt32BE() >>> 1 : 0;
  }

  piece(): boolean {
    if (this.#queue.length === 0) return false;
    const word = this.#queue.cut(WORD_BYTES).readUInt32BE();
    this.#pass(this.#queue.cut(word >>> 1), word % 2 === 1);
    if (this.#isHeld) return false;
    if (this.isBehind) return true;
    this.#queue.clear();
    return false;
  }

  pause(): void {
    this.#pausedSinceMs = this.#pingedMs = this.#parts.clock();
    this.#stopReading();
  }

  resume(): void {
    const nowMs = this.#parts.clock();
    if (this.#pausedSinceMs !== null) this.#parts.onReadLater(nowMs - this.#pausedSinceMs);
    this.#pausedSinceMs = null;
    this.#timedSinceMs = nowMs;
    this.#parts.reading.resume(this.#parts.socket);
  }

  /** Called several times a second. */
  beat(nowMs: number): void {
    const { bounds, reading, session, socket } = this.#parts;
    // It may have said something that is not read yet.
    if (this.#pausedSinceMs !== null || this.isBehind) session.received();
    if (this.#pausedSinceMs !== null) {
      this.#stopReading();
      // Nothing else shows that the other end of a paused socket is gone.
      if (nowMs - this.#pingedMs >= bounds.stallRearmMs) {
        this.#pingedMs = nowMs;
        socket.ping(session.pingPayload);
      }
    }
    // The timer may run in a pause too: a socket with unsent bytes is still read.
    if (this.#timedSinceMs !== null && nowMs - this.#timedSinceMs >= bounds.stallRearmMs) {
      this.#timedSinceMs = nowMs;
      reading.pause(socket);
      reading.resume(socket);
    }
  }

  /** The socket is closed: what waits is dropped. Idempotent. */
  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#queue.clear();
    this.#parts.turn.drop(this);
    this.#parts.turn.close(this);
  }

  /** @returns false if there is no room for the message: the socket must end */
  #queueUp(message: ArrayBuffer, isBinary: boolean): boolean {
    const word = Buffer.allocUnsafe(WORD_BYTES);
    word.writeUInt32BE(message.byteLength * 2 + (isBinary ? 1 : 0));
    return this.#queue.push(word, new Uint8Array(message));
  }

  #pass(bytes: Uint8Array, isBinary: boolean): void {
    const { session } = this.#parts;
    session.guard(() => {
      if (isBinary) session.binaryMessage();
      else session.message(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
    });
  }

  #readLater(): void {
    const { budget, tick, turn } = this.#parts;
    if (this.#pausedSinceMs === null) turn.pause(this);
    // At once: others could complete a message each, or send thousands of pings, before the end of this tick.
    if (budget.taken > MUCH_WAITING_BYTES || turn.isFarBehind) turn.pauseAll();
    if (this.#isChecking) return;
    // A failed write may have turned reading on again.
    this.#isChecking = true;
    tick.add(() => {
      this.#isChecking = false;
      if (!this.#isOver && this.#pausedSinceMs !== null) this.#stopReading();
    });
  }

  #stopReading(): void {
    const { reading, socket } = this.#parts;
    if (this.#isOver || socket.getBufferedAmount() > 0) return;
    reading.pause(socket);
    this.#timedSinceMs = null;
  }
}
