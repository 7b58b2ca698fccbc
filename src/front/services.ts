/** What all exchanges of one listener share. */
import { Buckets } from '../buckets.js';
import { KeyedBudget } from '../byte-budget.js';
import type { ErrorShape } from '../api/error-shape.js';
import type { Bounds } from '../limits.js';
import type { Log } from '../log.js';
import type { Metrics } from '../metrics.js';
import { type Clock, SeenClock } from '../monotonic.js';
import { repeatedly } from '../slices.js';
import { createTickActions } from '../tick.js';
import type { Connections } from './connections.js';
import { CountedWarning } from './counted-warning.js';
import type { KeysInUse } from './keys-in-use.js';
import type { OriginPolicy } from './cors.js';
import { Turns } from './turns.js';

/** A request in flight. */
export interface InFlight {
  readonly route: string;
  /** A context speaks for it. */
  readonly hasContext: boolean;
  /** Its body has not come whole. */
  readonly isArriving?: boolean;
  /** Sends its response piece by piece. */
  readonly sender: { readonly queuedBytes: number } | undefined;
  drop(outcome: 'failed' | 'body-late'): void;
}

/** What a listener brings; the rest is shared. */
export interface ListenerServices {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly bounds: Bounds;
  readonly cors: OriginPolicy;
  /** How the listener words its errors. */
  readonly errors: ErrorShape;
  /** Of the listener. */
  readonly connections: Connections;
  /** What is open for a key ends with it. */
  readonly keys: KeysInUse;
}

/** The pulse beats this often between two re-arms. */
const BEATS_A_REARM = 4;

/** Log lines of requests without a key and of refused WebSockets, at once, and the time for one more. */
const KEYLESS_LINES = { atOnceMax: 500, everyMs: 20, countedMax: 1 };

/** Further listeners take these with their own errors, and a prefix or a registry. They share the budgets. */
export const createServices = (parts: ListenerServices) => {
  const { bounds, clock } = parts;
  const tick = createTickActions();
  return {
    ...parts,
    tick,
    /** Comes before the routes of the listener in the log and the metrics: '' for the public port, `elevenlabs:` ... */
    routePrefix: '',
    /** Whether a proxy in front of the listener says where clients are. */
    isBehindProxy: false,
    keylessLines: new Buckets({ ...KEYLESS_LINES, clock }),
    linesLeftOut: new CountedWarning(parts),
    registry: new Registry<InFlight>(),
    pulse: new Pulse(bounds.stallRearmMs / BEATS_A_REARM, clock, bounds.sliceMsMax),
    /** What each account may use of this thread. */
    turns: new Turns({
      clock,
      bounds,
      after: (ms, action) => {
        if (ms === 0) setImmediate(action);
        else setTimeout(action, ms);
      },
    }),
    /** Bytes of bodies that are arriving, or wait for the turn of their account. */
    bodyBudget: new KeyedBudget(bounds.bodyBytesInFlightMax, bounds.bodyBytesMax),
    /** Code points of the texts of requests in flight. */
    textBudget: new KeyedBudget(bounds.requestCharactersInFlightMax, bounds.bodyBytesMax),
    /** Bytes of results in memory. */
    resultBudget: new KeyedBudget(bounds.resultMemoryInFlightBytesMax, bounds.resultMemoryBytesMax),
    /** Bytes of answers that were made for one client. */
    answerBudget: new KeyedBudget(bounds.answerBytesInFlightMax, bounds.fileAnswerBytes),
    /** Bytes of results in temporary files. */
    spoolBudget: new KeyedBudget(bounds.resultSpoolBytesMax, bounds.resultMemoryBytesMax),
    /** Temporary files. */
    spoolFileBudget: new KeyedBudget(bounds.resultSpoolFilesMax, bounds.slotsPerKey),
  };
};

export type Services = Readonly<ReturnType<typeof createServices>>;

/** Members in flight. A drain waits until the last one leaves. */
export class Registry<T> {
  readonly #members = new Set<T>();
  #waiting: (() => void)[] = [];

  get size(): number {
    return this.#members.size;
  }

  /** A copy, because members may leave while the caller looks at them. */
  get members(): readonly T[] {
    return [...this.#members];
  }

  /** The live members: each that has not left by its turn. */
  [Symbol.iterator](): IterableIterator<T> {
    return this.#members.values();
  }

  add(member: T): void {
    this.#members.add(member);
  }

  delete(member: T): void {
    if (!this.#members.delete(member) || this.#members.size > 0) return;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Resolves when there is no member: at once, if there is none now. */
  whenIdle(): Promise<void> {
    if (this.#members.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }
}

export interface Pulsed {
  /** Must not throw. May add and delete members, itself included. @param nowMs by the pulse's `seenClock` */
  beat(nowMs: number): void;
}

/** One timer for all connections that send or receive: it checks deadlines and re-arms the library's own timer. */
export class Pulse {
  readonly #periodMs: number;
  readonly #seen: SeenClock;
  readonly #beat: () => void;
  readonly #members = new Set<Pulsed>();
  #timer: NodeJS.Timeout | null = null;

  constructor(periodMs: number, clock: Clock, sliceMsMax: number) {
    this.#periodMs = periodMs;
    this.#seen = new SeenClock(periodMs, clock);
    const beat = repeatedly(() => this.#beats(), { clock, sliceMsMax });
    this.#beat = () => {
      this.#seen.look();
      beat();
    };
  }

  /** For the deadlines of its members. */
  get seenClock(): Clock {
    return this.#seen.now;
  }

  add(member: Pulsed): void {
    this.#members.add(member);
    this.#timer ??= setInterval(this.#beat, this.#periodMs);
  }

  delete(member: Pulsed): void {
    this.#members.delete(member);
    if (this.#members.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  *#beats(): Generator<void> {
    for (const member of this.#members) {
      member.beat(this.#seen.now());
      yield;
    }
  }
}
