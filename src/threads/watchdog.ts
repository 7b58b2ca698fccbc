/**
 * Finds threads that hang: inside a step that does not end, or with an event loop that does not turn.
 *
 * It counts the time that it saw pass, beat by beat, not that of any clock: a machine that was suspended, or a front
 * thread that was held up, is late itself, and a late beat counts as little more than one in time.
 */
import type { Clock } from '../monotonic.js';
import type { Vitals } from './vitals.js';

export interface WatchdogLimits {
  readonly watchdogBeatMs: number;
  readonly threadHangMsMax: number;
}

type Signs = Pick<Vitals, 'beats' | 'steps' | 'isStepping'>;

interface Deadline {
  readonly onOver: () => void;
  readonly dueMs: number;
}

interface Watched {
  readonly onHung: () => void;
  beats: number;
  steps: number;
  /** On the watchdog's own clock: when they last changed. */
  beatMs: number;
  stepMs: number;
}

export class Watchdog {
  readonly #limits: WatchdogLimits;
  readonly #clock: Clock;
  readonly #watched = new Map<Signs, Watched>();
  readonly #deadlines = new Set<Deadline>();
  readonly #timer: NodeJS.Timeout;
  #lookedMs: number;
  /** Time that was seen to pass. */
  #seenMs = 0;

  constructor(options: { readonly limits: WatchdogLimits; readonly clock: Clock }) {
    this.#limits = options.limits;
    this.#clock = options.clock;
    this.#lookedMs = this.#clock();
    this.#timer = setInterval(() => this.look(), this.#limits.watchdogBeatMs).unref();
  }

  /** @param onHung called at most once; the thread is then no longer watched. Must not throw */
  watch(vitals: Signs, onHung: () => void): void {
    const { beats, steps } = vitals;
    this.#watched.set(vitals, { onHung, beats, steps, beatMs: this.#seenMs, stepMs: this.#seenMs });
  }

  /** Idempotent. */
  unwatch(vitals: Signs): void {
    this.#watched.delete(vitals);
  }

  /**
   * For what shows no signs of life, as a load.
   * @param onOver called at most once, when so much time was seen to pass. Must not throw
   * @returns calls it off. Idempotent
   */
  expect(withinMs: number, onOver: () => void): () => void {
    const deadline = { onOver, dueMs: this.#seenMs + withinMs };
    this.#deadlines.add(deadline);
    return () => this.#deadlines.delete(deadline);
  }

  /** Called by its own timer. */
  look(): void {
    const nowMs = this.#clock();
    this.#seenMs += Math.min(nowMs - this.#lookedMs, 2 * this.#limits.watchdogBeatMs);
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
    const { beats, steps, isStepping } = vitals;
    if (beats !== watched.beats) {
      watched.beats = beats;
      watched.beatMs = this.#seenMs;
    }
    if (steps !== watched.steps || !isStepping) {
      watched.steps = steps;
      watched.stepMs = this.#seenMs;
    }
    return this.#seenMs - Math.min(watched.beatMs, watched.stepMs) > this.#limits.threadHangMsMax;
  }
}
