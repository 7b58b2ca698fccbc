/**
 * One sender with backpressure for everything that leaves the service: chunked responses and responses of known length
 * (response-sender.ts), and WebSocket messages (ws/outbox.ts). It queues what the socket does not take yet, hands it on at
 * the end of a tick, and reports when the socket has an item.
 *
 * Lanes keep the order of their items and alternate, one item each, so that a context with much to send does not hold up
 * its neighbours. A response has one lane.
 */
import type { GrowingPart } from '../byte-budget.js';
import type { Bounds } from '../limits.js';
import type { TickActions } from '../tick.js';

export type Message = string | Uint8Array;

interface Item {
  message: Message;
  /** What the item counts against the budget. */
  readonly budgetBytes: number;
  readonly onHanded: (() => void) | null;
  isQueued: boolean;
}

export class Lane {
  readonly items: Item[] = [];
  /** How much of the first item the socket has. */
  sentBytes = 0;
  /** The lane keeps its place in front until it is empty. */
  isFinishing = false;
}

const NO_LANES = new Set<Lane>();

/** Bytes that several senders queue together. */
export interface Tally {
  bytes: number;
}

export abstract class Sender {
  readonly #tick: TickActions;
  readonly #budget: GrowingPart | undefined;
  readonly #queued: Tally | undefined;
  /** Lanes with items, the next one first. */
  #ready = NO_LANES;
  /** Items of this tick. Their bytes are parts of a mail that also holds the bytes of others. */
  #fresh: Item[] = [];
  #queuedBytes = 0;
  #budgetedBytes = 0;
  #isScheduled = false;
  #isEnded = false;
  #isClosed = false;

  /** @param budget counts the items that ask for it @param queued counts what this sender queues, and others */
  constructor(tick: TickActions, budget?: GrowingPart, queued?: Tally) {
    this.#tick = tick;
    this.#budget = budget;
    this.#queued = queued;
  }

  /** Calls back and ends the connection if the callback throws; does nothing when the connection has ended. */
  protected abstract guard(callback: () => void): void;

  /** The socket takes nothing more for now. */
  protected abstract get isFull(): boolean;
  /** Gives the socket a piece. @returns how much of it the socket has now; all, unless it is full then */
  protected abstract accept(piece: Message): number;

  /** @returns how much of so many bytes the next piece has; all, where messages go whole */
  protected pieceBytes(leftBytes: number): number {
    return leftBytes;
  }

  /** The most bytes that one tick writes, so that other senders do not wait long. */
  protected get tickBytesMax(): number {
    return Infinity;
  }

  /** Runs what hands items on. Its exceptions are caught inside, because none comes out of the library's cork. */
  protected corked(handOn: () => void): void {
    handOn();
  }

  /** Nothing is queued: enqueues more if there is a source of more. @returns false if nothing was enqueued */
  protected refill(): boolean {
    return false;
  }

  /** The socket has all it takes for now. */
  protected afterPump(): void {
    // Most senders have nothing to add.
  }

  /** After `end`: the socket has everything. */
  protected complete(): void {
    // Most senders have nothing to add.
  }

  protected get isEnded(): boolean {
    return this.#isEnded;
  }

  protected get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Budgeted bytes that are queued. */
  protected get budgetedBytes(): number {
    return this.#budgetedBytes;
  }

  /** Nothing is queued here. The library may still hold what was handed on. */
  get isEmpty(): boolean {
    return this.#ready.size === 0;
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Queues an item. @param onHanded called once the socket has all of it */
  send(lane: Lane, message: Message, onHanded: (() => void) | null = null, budgetBytes = 0): void {
    if (this.#isClosed) return;
    const item = this.enqueue(lane, message, onHanded, budgetBytes);
    if (typeof message !== 'string') this.#fresh.push(item);
    this.schedule();
  }

  /** Queues an item whose bytes are its own and stay unchanged until they are handed on. */
  protected enqueue(
    lane: Lane,
    message: Message,
    onHanded: (() => void) | null = null,
    budgetBytes = 0,
  ): Item {
    const item: Item = { message, budgetBytes, onHanded, isQueued: true };
    lane.items.push(item);
    // A sender of an idle socket has no set of its own.
    if (this.#ready === NO_LANES) this.#ready = new Set();
    this.#ready.add(lane);
    this.#countQueued(message.length);
    this.#budgetedBytes += budgetBytes;
    this.#budget?.change(budgetBytes);
    return item;
  }

  /** No item follows. */
  end(): void {
    this.#isEnded = true;
    this.schedule();
  }

  /** Hands on at the end of the tick, when all of its input is known. */
  schedule(): void {
    if (this.#isScheduled || this.#isClosed) return;
    this.#isScheduled = true;
    this.#tick.add(() => {
      this.#isScheduled = false;
      this.pump();
    });
  }

  /** Hands on what the socket takes. */
  pump(): void {
    if (this.#isClosed) return;
    const handed: (() => void)[] = [];
    this.corked(() => this.guard(() => this.#handOn(handed)));
    for (const onHanded of handed) this.guard(onHanded);
    // A callback may have closed it.
    if (this.isClosed) return;
    this.#ownFresh();
    this.afterPump();
    if (this.#isEnded && this.isEmpty && !this.isFull) this.guard(() => this.complete());
  }

  /** Gives a full socket one piece, to learn whether it takes more. */
  protected probe(): void {
    const [lane] = this.#ready;
    if (lane === undefined) return;
    const handed: (() => void)[] = [];
    this.guard(() => this.#handPiece(lane, handed));
    for (const onHanded of handed) this.guard(onHanded);
    if (!this.isClosed && !this.isFull) this.pump();
  }

  /** Hands on everything although the socket may be full: before a close. Calls nothing back. */
  flush(): void {
    for (let [lane] = this.#ready; lane !== undefined; [lane] = this.#ready) this.#handPiece(lane, []);
  }

  /** Drops the items of a lane. */
  discard(lane: Lane): void {
    for (const item of lane.items.splice(0)) this.#forget(item);
    this.#countQueued(lane.sentBytes);
    lane.sentBytes = 0;
    this.#ready.delete(lane);
  }

  /** Drops everything. Idempotent. */
  close(): void {
    this.#isClosed = true;
    for (const lane of this.#ready) this.discard(lane);
    this.#fresh = [];
  }

  #handOn(handed: (() => void)[]): void {
    let tickBytes = 0;
    while (!this.#isClosed && !this.isFull) {
      if (tickBytes >= this.tickBytesMax) {
        this.schedule();
        return;
      }
      const [lane] = this.#ready;
      if (lane !== undefined) tickBytes += this.#handPiece(lane, handed);
      else if (this.#isEnded || !this.refill()) return;
    }
  }

  /** @returns bytes that the socket accepted */
  #handPiece(lane: Lane, handed: (() => void)[]): number {
    const item = lane.items[0]!;
    const { message } = item;
    const from = lane.sentBytes;
    const bytes = this.pieceBytes(message.length - from);
    const isWhole = typeof message === 'string' || bytes === message.length;
    const accepted = this.accept(isWhole ? message : message.subarray(from, from + bytes));
    // The socket's end drops everything.
    if (this.isClosed) return accepted;
    lane.sentBytes += accepted;
    this.#countQueued(-accepted);
    if (lane.sentBytes < message.length) return accepted;
    this.#countQueued(message.length);
    lane.sentBytes = 0;
    lane.items.shift();
    this.#forget(item);
    if (!lane.isFinishing || lane.items.length === 0) this.#ready.delete(lane);
    if (lane.items.length > 0) this.#ready.add(lane);
    if (item.onHanded !== null) handed.push(item.onHanded);
    return accepted;
  }

  /** An item that stays queued must not keep the whole mail in memory that it came with. */
  #ownFresh(): void {
    for (const item of this.#fresh)
      if (item.isQueued && typeof item.message !== 'string') item.message = new Uint8Array(item.message);
    this.#fresh = [];
  }

  #countQueued(bytes: number): void {
    this.#queuedBytes += bytes;
    if (this.#queued !== undefined) this.#queued.bytes += bytes;
  }

  #forget(item: Item): void {
    item.isQueued = false;
    this.#countQueued(-item.message.length);
    this.#budgetedBytes -= item.budgetBytes;
    this.#budget?.giveBack(item.budgetBytes);
  }
}

/** When a reader last took something, and when the library's own timer is due for a re-arm. */
export class StallTimer {
  readonly #bounds: Pick<Bounds, 'readerStallMsMax' | 'stallRearmMs'>;
  #progressMs: number;
  #rearmMs: number;

  constructor(bounds: Pick<Bounds, 'readerStallMsMax' | 'stallRearmMs'>, nowMs: number) {
    this.#bounds = bounds;
    this.#progressMs = this.#rearmMs = nowMs;
  }

  get progressMs(): number {
    return this.#progressMs;
  }

  progress(nowMs: number): void {
    this.#progressMs = nowMs;
  }

  isStalled(nowMs: number): boolean {
    return nowMs - this.#progressMs >= this.#bounds.readerStallMsMax;
  }

  /** @returns true once in `stallRearmMs` */
  isRearmDue(nowMs: number): boolean {
    if (nowMs - this.#rearmMs < this.#bounds.stallRearmMs) return false;
    this.#rearmMs = nowMs;
    return true;
  }
}
