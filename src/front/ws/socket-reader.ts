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
import type { Bounds } from '../../limits.js';
import type { Metrics } from '../../metrics.js';
import type { Clock } from '../../monotonic.js';
import type { TickActions } from '../../tick.js';
import { ByteQueue } from '../byte-queue.js';
import type { Inlet, AccountTurn, Waiting } from '../turns.js';
import type { SocketReading } from '../uws.js';
import type { SocketBudgets, SocketHandle } from './outbox.js';

type ReadHandle = Pick<SocketHandle, 'getBufferedAmount' | 'ping'>;

export type Reading = Pick<SocketReading, 'pause' | 'resume'>;

/** Before each message that waits: its length, and whether it is binary. */
const WORD_BYTES = 4;
/** Bytes of messages that wait above which all sockets of the account pause, whether they send or not. */
const MUCH_WAITING_BYTES = 1024 * 1024;

export interface SocketReaderParts {
  readonly route: string;
  readonly socket: ReadHandle;
  readonly reading: Reading;
  readonly turn: AccountTurn;
  readonly budgets: Pick<SocketBudgets, 'waiting'>;
  readonly shared: {
    readonly tick: TickActions;
    readonly clock: Clock;
    readonly bounds: Pick<Bounds, 'stallRearmMs'>;
    readonly metrics: Pick<Metrics, 'readLater'>;
  };
}

/** The socket's session. */
interface Owner {
  /** Runs a callback. An exception ends this socket and no other. */
  guard(callback: () => void): void;
  /** A whole text message. @param bytes in UTF-8, valid only during the call */
  message(bytes: Buffer): void;
  binaryMessage(): void;
  /** The client gave a sign of life. */
  received(): void;
  ponged(payload: string): void;
  /** More came than the bounds allow. */
  flooded(): void;
  readonly pingPayload: string;
}

export class SocketReader implements Inlet, Waiting {
  readonly #owner: Owner;
  readonly #parts: SocketReaderParts;
  readonly #queue: ByteQueue;
  #pausedSinceMs: number | null = null;
  /** Since when the library's timer runs; `null`: it does not. */
  #timedSinceMs: number | null = null;
  #pingedMs = 0;
  #isChecking = false;
  #isHeld = false;
  #isOver = false;

  constructor(owner: Owner, parts: SocketReaderParts) {
    this.#owner = owner;
    this.#parts = parts;
    this.#queue = new ByteQueue(parts.budgets.waiting);
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
    } else this.#owner.guard(() => this.#owner.flooded());
  }

  /** A ping, or a pong with its payload. The library has answered the ping. */
  control(payload: string | null): void {
    if (this.#isOver) return;
    const { turn } = this.#parts;
    this.#timedSinceMs = null;
    if (payload !== null) this.#owner.guard(() => this.#owner.ponged(payload));
    // A read may deliver a hundred thousand pings: beyond the account's part they are only counted.
    else if (this.#pausedSinceMs === null) this.#owner.guard(() => this.#owner.received());
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
    this.#pausedSinceMs = this.#pingedMs = this.#parts.shared.clock();
    this.#stopReading();
  }

  resume(): void {
    const { route, shared } = this.#parts;
    const nowMs = shared.clock();
    if (this.#pausedSinceMs !== null) shared.metrics.readLater(route, nowMs - this.#pausedSinceMs);
    this.#pausedSinceMs = null;
    this.#timedSinceMs = nowMs;
    this.#parts.reading.resume(this.#parts.socket);
  }

  /** Called several times a second. */
  beat(nowMs: number): void {
    const { reading, shared, socket } = this.#parts;
    const { stallRearmMs } = shared.bounds;
    // It may have said something that is not read yet.
    if (this.#pausedSinceMs !== null || this.isBehind) this.#owner.received();
    if (this.#pausedSinceMs !== null) {
      this.#stopReading();
      // Nothing else shows that the other end of a paused socket is gone.
      if (nowMs - this.#pingedMs >= stallRearmMs) {
        this.#pingedMs = nowMs;
        socket.ping(this.#owner.pingPayload);
      }
    }
    // The timer may run in a pause too: a socket with unsent bytes is still read.
    if (this.#timedSinceMs !== null && nowMs - this.#timedSinceMs >= stallRearmMs) {
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
    this.#owner.guard(() => {
      if (isBinary) this.#owner.binaryMessage();
      else this.#owner.message(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
    });
  }

  #readLater(): void {
    const { budgets, shared, turn } = this.#parts;
    if (this.#pausedSinceMs === null) turn.pause(this);
    // At once: others could complete a message each, or send thousands of pings, before the end of this tick.
    if (budgets.waiting.taken > MUCH_WAITING_BYTES || turn.isFarBehind) turn.pauseAll();
    if (this.#isChecking) return;
    // A failed write may have turned reading on again.
    this.#isChecking = true;
    shared.tick.add(() => {
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
