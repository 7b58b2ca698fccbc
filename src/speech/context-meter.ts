/** What is counted of one context. */
import type { Clock } from '../monotonic.js';
import type { Metrics } from '../metrics.js';
import type { Frame, SynthesisEffort } from '../threads/messages.js';
import { Playback } from './playback.js';
import type { ContextOptions } from './speech.js';

type AudioFrame = Extract<Frame, { type: 'audio' }>;

export class ContextMeter {
  readonly #metrics: Metrics;
  readonly #clock: Clock;
  readonly #speech: { inc(seconds: number): void };
  /** `null`: nobody listens while a result is collected. */
  readonly #playback: Playback | null;

  constructor(metrics: Metrics, clock: Clock, { format, framing }: ContextOptions) {
    this.#metrics = metrics;
    this.#clock = clock;
    this.#speech = metrics.speechIn(format.encoding);
    this.#playback = framing === 'whole' ? null : new Playback();
  }

  /** There is something to make again, from this segment on. */
  readonly resumed = (nowMs: number, segment: number): void => {
    this.#playback?.resumed(nowMs, segment);
  };

  /** A frame came from the actor. */
  arrived({ segment }: AudioFrame): void {
    if (this.#playback !== null) this.#metrics.playback(this.#playback.arrived(this.#clock(), segment));
  }

  /** The socket has it. */
  handed({ durationMs }: AudioFrame): void {
    this.#playback?.handed(this.#clock(), durationMs);
    this.#speech.inc(durationMs / 1000);
  }

  /** @param audioMs `null` of a segment that was not completed */
  made(readySinceMs: number, effort: SynthesisEffort | null, audioMs: number | null): void {
    if (effort === null) return;
    this.#metrics.segment(effort.startedMs - readySinceMs, effort.computeMs, audioMs);
  }
}
