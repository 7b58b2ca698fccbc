/**
 * Finds threads that hang: in a step that does not end, or with an event loop that does not turn.
 *
 * It measures the time that it saw pass, one beat after the other. After a suspend of the machine, or a long block of the
 * front thread, its own beat is late, and a late beat counts at most as two beats. So such a pause makes no thread hang.
 */
import type { Bounds } from '../limits.js';
import type { Clock } from '../monotonic.js';
import type { Vitals } from './vitals.js';

type Signs = Pick<Vitals, 'beats' | 'steps' | 'isStepping' | 'declaredMs'>;

/** A long step may take this many times the declared time, which was measured while nothing else ran. */
const LONG_STEP_FACTOR = 3;

interface Deadline {
  readonly onOver: () => void;
  readonly dueMs: number;
}

interface Watched {
  readonly onHung: () => void;
  beats: number;
  steps: number;
  /** When they last changed, in time that the watchdog saw pass. */
  beatMs: number;
  stepMs: number;
}

export class Watchdog {
  readonly #bounds: Pick<Bounds, 'watchdogBeatMs' | 'threadHangMsMax'>;
  readonly #clock: Clock;
  readonly #watched = new Map<Signs, Watched>();
  readonly #deadlines = new Set<Deadline>();
  readonly #timer: NodeJS.Timeout;
  #lookedMs: number;
  /** The time that it saw pass. */
  #seenMs = 0;

  constructor(bounds: Pick<Bounds, 'watchdogBeatMs' | 'threadHangMsMax'>, clock: Clock) {
    this.#bounds = bounds;
    this.#clock = clock;
    this.#lookedMs = clock();
    this.#timer = setInterval(() => this.look(), bounds.watchdogBeatMs).unref();
  }

  /** @param onHung called at most once; then the thread is no longer watched. Must not throw */
  watch(vitals: Signs, onHung: () => void): void {
    const { beats, steps } = vitals;
    this.#watched.set(vitals, { onHung, beats, steps, beatMs: this.#seenMs, stepMs: this.#seenMs });
  }

  /** Idempotent. */
  unwatch(vitals: Signs): void {
    this.#watched.delete(vitals);
  }

  /**
   * For work without signs of life, such as a load.
   * @param onOver called at most once, after `withinMs` of time that the watchdog saw pass. Must not throw
   * @returns cancels the deadline. Idempotent
   */
  expect(withinMs: number, onOver: () => void): () => void {
    const deadline = { onOver, dueMs: this.#seenMs + withinMs };
    this.#deadlines.add(deadline);
    return () => this.#deadlines.delete(deadline);
  }

  /** Called by its own timer. */
  look(): void {
    const nowMs = this.#clock();
    this.#seenMs += Math.min(nowMs - this.#lookedMs, 2 * this.#bounds.watchdogBeatMs);
    this.#lookedMs = nowMs;
    for (const deadline of this.#deadlines) {
      if (this.#seenMs <= deadline.dueMs) continue;
      this.#deadlines.delete(deadline);
      deadline.onOver();
    }
    for (const [vitals, watched] of this.#watched) {
      if (!this.#isHung(vitals, watched)) continue;
      this.#watched.delete(vitals);
      watched.onHung();
    }
  }

  /** Idempotent. */
  close(): void {
    clearInterval(this.#timer);
    this.#watched.clear();
    this.#deadlines.clear();
  }

  #isHung(vitals: Signs, watched: Watched): boolean {
    const { beats, steps, isStepping, declaredMs } = vitals;
    if (beats !== watched.beats) {
      watched.beats = beats;
      watched.beatMs = this.#seenMs;
    }
    if (steps !== watched.steps || !isStepping) {
      watched.steps = steps;
      watched.stepMs = this.#seenMs;
    }
    const hangMs = this.#bounds.threadHangMsMax + LONG_STEP_FACTOR * declaredMs;
    return this.#seenMs - Math.min(watched.beatMs, watched.stepMs) > hangMs;
  }
}
