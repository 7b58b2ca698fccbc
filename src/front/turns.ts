/**
 * What each account, or other member, may use of the front thread: a rate of frames and of milliseconds for parsing and
 * handling them. Work above it waits for the account's turn, and its connections are read later; nothing is refused.
 *
 *   free --above its rate, or work waits--> waiting (its connections pause) --turns--> all done, connections read--> free
 *
 * N accounts that wait have 1 / (N + 1) of the whole rate each, so one part is left for a newcomer; but a sixteenth at least,
 * so that a crowd of ordinary accounts does not wait. They take turns by small pieces, and all of them together give the
 * thread back after each slice.
 */
import type { Member } from '../byte-budget.js';
import type { Bounds } from '../limits.js';
import type { Clock } from '../monotonic.js';

/** Work that waits for the turn of its account. */
export interface Waiting {
  /** Size of the first piece. */
  readonly nextBytes: number;
  /** Does the first piece. Must not throw. @returns whether more waits */
  piece(): boolean;
}

/** A connection whose reading can pause. Neither call may throw. */
export interface Inlet {
  pause(): void;
  resume(): void;
}

export interface TurnsParts {
  readonly clock: Clock;
  readonly bounds: Pick<Bounds, 'parseMsPerSecond' | 'framesPerSecond'>;
  /** Calls `action` after `ms`. With 0 it is called after the front thread has read the input that has arrived. */
  readonly after: (ms: number, action: () => void) => void;
}

/** An idle account may use the rate of this time at once. */
const BURST_SECONDS = 0.1;
/** The time that all turns take of the thread in one slice, and that one account takes in one turn. */
const SLICE_MS = 2;
const TURN_MS = 0.5;
/** The rate of an account is at least one in this many parts of the whole, however many wait. */
const PARTS_MOST = 16;
/**
 * The most that a piece of so many bytes counts: the clock also runs while the system has given the core to another
 * thread. The most expensive input that we know takes 125 ns a byte.
 */
const PIECE_MS = 1;
const BYTE_MS = 0.0002;
/** Milliseconds until work above its rate is checked again. */
const RETRY_MS = 5;
/** Connections of one account that a slice reads again: each may deliver half a MiB. */
const RESUMED_A_SLICE = 16;
/** What the system, the library and our copy take to read a frame, and each of its bytes. */
const FRAME_MS = 0.0005;
const READ_BYTE_MS = 4e-6;
const FORGET_EVERY_MS = 1_000;

export class Turns {
  readonly #parts: TurnsParts;
  readonly #turns = new Map<Member, AccountTurn>();
  /** Accounts with work that waits or connections that pause, the next one first. */
  readonly #waiting = new Set<AccountTurn>();
  /** The integral of the part of one account over time, in milliseconds. */
  #part = 0;
  #partMs: number;
  #forgotMs: number;
  #isScheduled = false;

  constructor(parts: TurnsParts) {
    this.#parts = parts;
    this.#partMs = this.#forgotMs = parts.clock();
  }

  /** Accounts that are known now. */
  get size(): number {
    return this.#turns.size;
  }

  /** The same object while the account is in use. */
  of(member: Member): AccountTurn {
    const known = this.#turns.get(member);
    if (known !== undefined) return known;
    this.#forgetIdle();
    const turn = new AccountTurn(this, this.#parts);
    this.#turns.set(member, turn);
    return turn;
  }

  /** How much of the whole rate an account could have had since the beginning, in milliseconds. */
  partMs(): number {
    const nowMs = this.#parts.clock();
    this.#part += (nowMs - this.#partMs) / Math.min(PARTS_MOST, Math.max(1, this.#waiting.size) + 1);
    this.#partMs = nowMs;
    return this.#part;
  }

  /** The account has something that waits. Idempotent. */
  wait(turn: AccountTurn): void {
    if (this.#waiting.has(turn)) return;
    this.partMs();
    this.#waiting.add(turn);
    this.#schedule(0);
  }

  /** Nothing of the account waits any more. Idempotent. */
  leave(turn: AccountTurn): void {
    if (!this.#waiting.has(turn)) return;
    this.partMs();
    this.#waiting.delete(turn);
  }

  #schedule(ms: number): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#parts.after(ms, () => {
      this.#isScheduled = false;
      this.#slice();
    });
  }

  #slice(): void {
    const { clock } = this.#parts;
    const endMs = clock() + SLICE_MS;
    let progressed = true;
    while (progressed && clock() < endMs) {
      progressed = false;
      for (const turn of [...this.#waiting]) {
        const nowMs = clock();
        if (nowMs >= endMs) break;
        if (!turn.takeTurn(Math.min(endMs, nowMs + TURN_MS))) continue;
        progressed = true;
        // The next slice begins with another account.
        if (this.#waiting.delete(turn)) this.#waiting.add(turn);
      }
    }
    // Once in a slice: what these connections then send comes in the next tick.
    for (const turn of [...this.#waiting]) turn.readOn();
    if (this.#waiting.size > 0) this.#schedule(progressed ? 0 : RETRY_MS);
  }

  /** An account without a connection is full again soon, and nothing is lost with it. */
  #forgetIdle(): void {
    const nowMs = this.#parts.clock();
    if (nowMs - this.#forgotMs < FORGET_EVERY_MS) return;
    this.#forgotMs = nowMs;
    for (const [member, turn] of this.#turns) if (turn.isIdle) this.#turns.delete(member);
  }
}

/** A rate with a burst; what is used beyond it is owed. */
class Rate {
  readonly #perMs: number;
  readonly #most: number;
  #left: number;

  /** @param perSecond of all accounts together */
  constructor(perSecond: number) {
    this.#perMs = perSecond / 1_000;
    this.#left = this.#most = (perSecond * BURST_SECONDS) / 2;
  }

  get isFull(): boolean {
    return this.#left >= this.#most;
  }

  get isOwing(): boolean {
    return this.#left <= 0;
  }

  get isFarBehind(): boolean {
    return this.#left < -this.#most;
  }

  refill(partMs: number): void {
    this.#left = Math.min(this.#most, this.#left + partMs * this.#perMs);
  }

  use(amount: number): void {
    this.#left -= amount;
  }
}

/** One account's turns. */
export class AccountTurn {
  readonly #turns: Turns;
  readonly #clock: Clock;
  readonly #time: Rate;
  readonly #frames: Rate;
  #refilledMs: number;
  /** In the order of their turns. */
  readonly #work = new Set<Waiting>();
  readonly #reading = new Set<Inlet>();
  /** The longest first. */
  readonly #paused = new Set<Inlet>();

  constructor(turns: Turns, { bounds, clock }: TurnsParts) {
    this.#turns = turns;
    this.#clock = clock;
    this.#time = new Rate(bounds.parseMsPerSecond);
    this.#frames = new Rate(bounds.framesPerSecond);
    this.#refilledMs = turns.partMs();
  }

  /** New work may be done at once: none waits, and the account is within its rate. */
  get isFree(): boolean {
    return this.#work.size === 0 && !this.#isOwing();
  }

  /** It owes more than a burst: its other connections must not be read in this tick either. */
  get isFarBehind(): boolean {
    this.#refill();
    return this.#time.isFarBehind || this.#frames.isFarBehind;
  }

  get isIdle(): boolean {
    if (this.#work.size + this.#reading.size + this.#paused.size > 0) return false;
    this.#refill();
    return this.#time.isFull && this.#frames.isFull;
  }

  /** Does work of the account now, and counts its time and one frame. @param bytes of its input */
  run(bytes: number, work: () => void): void {
    try {
      this.time(bytes, work);
    } finally {
      this.count(bytes);
    }
  }

  /** Does a part of the work for a frame now, and counts its time. @param bytes of its input */
  time<Result>(bytes: number, work: () => Result): Result {
    const startMs = this.#clock();
    try {
      return work();
    } finally {
      this.#time.use(Math.min(this.#clock() - startMs, PIECE_MS + bytes * BYTE_MS));
    }
  }

  /** Counts the reading of a frame. @param bytes of its payload */
  count(bytes: number): void {
    this.#time.use(FRAME_MS + bytes * READ_BYTE_MS);
    this.#frames.use(1);
  }

  /** The work waits for the account's turns. Idempotent. */
  wait(work: Waiting): void {
    this.#work.add(work);
    this.#turns.wait(this);
  }

  /** The work waits no more. Idempotent. */
  drop(work: Waiting): void {
    this.#work.delete(work);
    this.#settle();
  }

  /** A connection of the account is being read. Its owner calls `close`. */
  open(inlet: Inlet): void {
    this.#reading.add(inlet);
  }

  /** Idempotent. */
  close(inlet: Inlet): void {
    this.#reading.delete(inlet);
    this.#paused.delete(inlet);
    this.#settle();
  }

  /** Reads an open connection later. */
  pause(inlet: Inlet): void {
    if (!this.#reading.delete(inlet)) return;
    this.#paused.add(inlet);
    inlet.pause();
    this.#turns.wait(this);
  }

  pauseAll(): void {
    for (const inlet of [...this.#reading]) this.pause(inlet);
  }

  /** Works until the moment comes or the account is above its rate. @returns whether it did anything */
  takeTurn(untilMs: number): boolean {
    let hasWorked = false;
    while (this.#work.size > 0 && !this.#isOwing() && this.#clock() < untilMs) {
      hasWorked = true;
      const next = this.#work.values().next().value!;
      this.#work.delete(next);
      this.run(next.nextBytes, () => {
        if (next.piece()) this.#work.add(next);
      });
    }
    this.#settle();
    return hasWorked;
  }

  /** Reads a few paused connections again, if no work waits and the account is within its rate. */
  readOn(): void {
    if (!this.isFree) return;
    let resumed = 0;
    for (const inlet of this.#paused) {
      if (resumed++ === RESUMED_A_SLICE) break;
      this.#paused.delete(inlet);
      this.#reading.add(inlet);
      inlet.resume();
    }
    this.#settle();
  }

  #settle(): void {
    if (this.#work.size + this.#paused.size === 0) this.#turns.leave(this);
  }

  #refill(): void {
    const partMs = this.#turns.partMs();
    this.#time.refill(partMs - this.#refilledMs);
    this.#frames.refill(partMs - this.#refilledMs);
    this.#refilledMs = partMs;
  }

  #isOwing(): boolean {
    this.#refill();
    return this.#time.isOwing || this.#frames.isOwing;
  }
}
