/**
 * The sender of one WebSocket: a lane for each context, and one for answers that concern no context.
 *
 * The library's own buffer takes any amount. It gets no more than a bound, and the rest is queued here without being
 * handed on: that closes the backpressure gate, and generation for a slow reader pauses.
 */
import type { GrowingPart, PartOfAccount } from '../../byte-budget.js';
import type { Bounds } from '../../limits.js';
import type { TickActions } from '../../tick.js';
import { Sender, type Lane, type Message, type Tally } from '../sender.js';

/** The part of the library's socket that we use. */
export interface SocketHandle {
  /** @returns 1: sent, 0: buffered, 2: dropped */
  send(message: Message): number;
  /** @param payload comes back in the pong */
  ping(payload: string): number;
  getBufferedAmount(): number;
  /** Sends in one piece what `write` sends. */
  cork(write: () => void): unknown;
  /** Sends a close frame; calls the close handler before it returns. */
  end(code: number, reason: string): void;
  /** Drops the connection; calls the close handler before it returns. */
  close(): void;
}

/** The parts of the socket's account in the budgets that all sockets share. */
export interface SocketBudgets {
  /** Bytes in the library's buffers. */
  readonly buffered: GrowingPart;
  /** Queued answers, in UTF-16 units. */
  readonly answers: GrowingPart;
  /** Bytes of messages that wait. */
  readonly waiting: PartOfAccount;
  /** Unspoken characters. */
  readonly text: PartOfAccount;
  /** Ids of flushes that are not completed, in UTF-16 units. */
  readonly flushIds: PartOfAccount;
}

/** Answers that may be queued for a socket however full the budget is. */
const ANSWER_BYTES_MIN = 4 * 1024;

export interface OutboxParts {
  readonly socket: SocketHandle;
  readonly budgets: Pick<SocketBudgets, 'buffered' | 'answers'>;
  readonly shared: {
    readonly tick: TickActions;
    readonly bounds: Pick<Bounds, 'socketBufferedBytesMax' | 'socketAnswerBytesMax' | 'senderQueueBytesMax'>;
    /** Bytes queued for all sockets, without the library's. */
    readonly queued: Tally;
  };
}

/** The socket's session. */
interface Owner {
  /** See `Sender.guard`. */
  guard(callback: () => void): void;
  /** More is queued than the bounds allow. */
  flooded(): void;
}

/** A tick needs no bound here, because the bound on the library's buffer is lower. */
export class Outbox extends Sender {
  readonly #owner: Owner;
  readonly #parts: OutboxParts;
  #bufferedBytes = 0;

  constructor(owner: Owner, parts: OutboxParts) {
    super(parts.shared.tick, parts.budgets.answers, parts.shared.queued);
    this.#owner = owner;
    this.#parts = parts;
  }

  /** Queues an answer to a client's frame. A budget bounds answers, because a client may ask without reading. */
  answer(lane: Lane, message: string, onHanded: (() => void) | null = null): void {
    this.send(lane, message, onHanded, message.length);
  }

  /**
   * Replaces what is queued in a lane by its last answers, and sends them together: the lane's context is over, and the
   * next context may have the same id.
   */
  finishLane(lane: Lane, answers: readonly string[]): void {
    this.discard(lane);
    lane.isFinishing = true;
    for (const message of answers) this.answer(lane, message);
  }

  /** The socket takes more. */
  drained(): void {
    if (!this.isEmpty) this.schedule();
  }

  /**
   * The kernel has everything. A socket that ends earlier loses what the library holds: a reader that pauses after the end has
   * seconds for it, and a process that exits drops it.
   */
  get isHandedOn(): boolean {
    return this.isEmpty && this.noteBuffered() === 0;
  }

  /** Counts what the library holds for the socket. @returns its bytes */
  noteBuffered(): number {
    const bytes = this.isClosed ? 0 : this.#parts.socket.getBufferedAmount();
    this.#parts.budgets.buffered.change(bytes - this.#bufferedBytes);
    this.#bufferedBytes = bytes;
    return bytes;
  }

  override close(): void {
    super.close();
    this.noteBuffered();
  }

  protected override guard(callback: () => void): void {
    this.#owner.guard(callback);
  }

  /** An empty buffer always takes a frame: without a stall, the frame does not stay there. */
  protected override get isFull(): boolean {
    const { budgets, shared, socket } = this.#parts;
    const bytes = socket.getBufferedAmount();
    return bytes > 0 && bytes >= budgets.buffered.allowance(shared.bounds.socketBufferedBytesMax);
  }

  protected override accept(message: Message): number {
    this.#parts.socket.send(message);
    return message.length;
  }

  protected override corked(handOn: () => void): void {
    this.#parts.socket.cork(handOn);
  }

  protected override afterPump(): void {
    this.noteBuffered();
    if (this.#isOverflowing()) this.guard(() => this.#owner.flooded());
  }

  /** Looks only at what the socket did not take: the input of one tick may ask for much. */
  #isOverflowing(): boolean {
    const { budgets, shared } = this.#parts;
    const { bounds } = shared;
    const most = bounds.socketAnswerBytesMax;
    const answerBytesMax = Math.max(Math.min(ANSWER_BYTES_MIN, most), budgets.answers.allowance(most));
    return this.queuedBytes > bounds.senderQueueBytesMax || this.budgetedBytes > answerBytesMax;
  }
}
