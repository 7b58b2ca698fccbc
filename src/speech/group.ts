/** The contexts of one lease, or of one socket: they count as one listener, and have one bound of unsent audio. */
import { Heap } from '../heap.js';
import type { Bounds } from '../limits.js';
import { GroupClock } from '../threads/control.js';

/** What decides between contexts of a group. */
interface Ranked {
  readonly rankMs: number;
  readonly order: number;
}

export type GroupBounds = Pick<Bounds, 'unsentAudioMsPerLeaseMax' | 'expectedAudioMsPerLeaseMax'>;

/** A total order. Contexts of equal deadline: the one that waited longest. */
const isBefore = (a: Ranked, b: Ranked): boolean =>
  a.rankMs !== b.rankMs ? a.rankMs < b.rankMs : a.order < b.order;

export class Group<Context extends Ranked> {
  readonly key: object;
  /** Counts up with every group. */
  readonly order: number;
  readonly contexts = new Set<Context>();
  /** Its contexts that run no segment and may start one. */
  readonly startable = new Heap<Context>(isBefore);
  readonly #bounds: GroupBounds;
  #clock: GroupClock | undefined;
  /** Segments that run now. */
  running = 0;
  /** When the last segment that ran ended. */
  idleSinceMs = Number.NEGATIVE_INFINITY;
  /** Audio of all its contexts that was made and not handed over; below zero while the segment being handed over runs. */
  unsentMs = 0;
  /** The same with what the running segments are expected to make. Never negative, but for rounding. */
  expectedMs = 0;

  constructor(key: object, order: number, bounds: GroupBounds) {
    this.key = key;
    this.order = order;
    this.#bounds = bounds;
  }

  /** Goes with its jobs to the threads. */
  get clock(): GroupClock {
    return (this.#clock ??= new GroupClock());
  }

  isFull(): boolean {
    return this.unsentMs > this.#bounds.unsentAudioMsPerLeaseMax;
  }

  /** It may start a segment while others run. */
  hasRoom(): boolean {
    return this.expectedMs <= this.#bounds.expectedAudioMsPerLeaseMax;
  }
}
