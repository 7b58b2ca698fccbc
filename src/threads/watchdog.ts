/**
 * Finds threads that hang: in a step that does not end, or with an event loop that does not turn.
 *
 * It measures the time that it saw pass, one beat after the other: a suspend of the machine, or a long block of the front
 * thread, makes no thread hang.
 */
import type { Bounds } from '../limits.js';
import { type Clock, SeenClock } from '../monotonic.js';
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
  readonly #seen: SeenClock;
  readonly #watched = new Map<Signs, Watched>();
  readonly #deadlines = new Set<Deadline>();
  readonly #timer: NodeJS.Timeout;

  constructor(bounds: Pick<Bounds, 'watchdogBeatMs' | 'threadHangMsMax'>, clock: Clock) {
    this.#bounds = bounds;
    this.#seen = new SeenClock(bounds.watchdogBeatMs, clock);
    this.#timer = setInterval(() => this.look(), bounds.watchdogBeatMs).unref();
  }

  /** @param onHung called at most once; then the thread is no longer watched. Must not throw */
  watch(vitals: Signs, onHung: () => void): void {
    const { beats, steps } = vitals;
    const nowMs = this.#seen.now();
    this.#watched.set(vitals, { onHung, beats, steps, beatMs: nowMs, stepMs: nowMs });
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
    const deadline = { onOver, dueMs: this.#seen.now() + withinMs };
    this.#deadlines.add(deadline);
    return () => this.#deadlines.delete(deadline);
  }

  /** Called by its own timer. */
  look(): void {
    this.#seen.look();
    const nowMs = this.#seen.now();
    for (const deadline of this.#deadlines) {
      if (nowMs <= deadline.dueMs) continue;
      this.#deadlines.delete(deadline);
      deadline.onOver();
    }
    for (const [vitals, watched] of this.#watched) {
      if (!this.#isHung(vitals, watched, nowMs)) continue;
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

  #isHung(vitals: Signs, watched: Watched, nowMs: number): boolean {
    const { beats, steps, isStepping, declaredMs } = vitals;
    if (beats !== watched.beats) {
      watched.beats = beats;
      watched.beatMs = nowMs;
    }
    if (steps !== watched.steps || !isStepping) {
      watched.steps = steps;
      watched.stepMs = nowMs;
    }
    const hangMs = this.#bounds.threadHangMsMax + LONG_STEP_FACTOR * declaredMs;
    return nowMs - Math.min(watched.beatMs, watched.stepMs) > hangMs;
  }
}
