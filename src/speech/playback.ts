/** What the metrics count of one context, and how late its audio is for its listener. */
import type { Metrics } from '../metrics.js';
import type { Clock } from '../monotonic.js';
import { isWholeFraming, type Frame, type SynthesisEffort } from '../threads/messages.js';
import type { ContextOptions } from './speech.js';

type AudioFrame = Extract<Frame, { type: 'audio' }>;

/** Milliseconds that first audio may take. If text comes when less audio is left, its audio is not late. */
const LEAD_MS = 250;

/**
 * How late audio is for one listener, who plays in real time from the first audio on.
 *
 * The context keeps it, not the senders, because only the context sees three things together: when audio came from the
 * actor, when it was handed to its socket, and when there was nothing to make (no text, or the gate shut). Audio that
 * has come waits only for its socket, so its lateness is measured when it comes:
 *
 * - while earlier audio still waits, the listener does not take it: nothing is late;
 * - playback starts again with text that comes, or a gate that opens, when the listener has almost run out of audio.
 *
 * It covers one HTTP request, or one context of a socket with all its utterances. The caller gives the time.
 */
export class Playback {
  /** When all that was handed over is played. */
  #dryMs = Number.NEGATIVE_INFINITY;
  /** The first audio of a segment from this one on is not late, whenever it comes. */
  #freshFrom = 0;
  /** Frames that came and were not handed over. */
  #waitingFrames = 0;

  /** Segments from this one on could not be made before now: there was no text, or the gate was shut. */
  resumed(nowMs: number, segment: number): void {
    if (this.#dryMs - nowMs < LEAD_MS) this.#freshFrom = Math.min(this.#freshFrom, segment);
  }

  /**
   * A frame of audio came from the actor.
   *
   * @returns milliseconds since the listener had nothing left to play; 0 when the frame is in time
   */
  arrived(nowMs: number, segment: number): number {
    const isFresh = segment >= this.#freshFrom;
    const isAwaited = !isFresh && this.#waitingFrames === 0;
    if (isFresh) this.#freshFrom = Number.POSITIVE_INFINITY;
    this.#waitingFrames++;
    return isAwaited ? Math.max(0, nowMs - this.#dryMs) : 0;
  }

  /** The socket has the next of the frames that came. */
  handed(nowMs: number, durationMs: number): void {
    this.#waitingFrames--;
    this.#dryMs = Math.max(this.#dryMs, nowMs) + durationMs;
  }
}

/** Reports one context to the metrics. */
export class ContextMeter {
  readonly #metrics: Metrics;
  readonly #clock: Clock;
  readonly #speech: { inc(seconds: number): void };
  /** `null` while a whole result is collected: there is no listener yet. */
  readonly #playback: Playback | null;

  constructor(metrics: Metrics, clock: Clock, { format, framing }: ContextOptions) {
    this.#metrics = metrics;
    this.#clock = clock;
    this.#speech = metrics.speechIn(format.encoding);
    this.#playback = isWholeFraming(framing) ? null : new Playback();
  }

  /** There is something to make again, from this segment on. */
  resumed(nowMs: number, segment: number): void {
    this.#playback?.resumed(nowMs, segment);
  }

  /** A frame came from the actor. */
  arrived({ segment }: AudioFrame): void {
    if (this.#playback !== null) this.#metrics.playback(this.#playback.arrived(this.#clock(), segment));
  }

  /** The socket has the frame. */
  handed({ durationMs }: AudioFrame): void {
    this.#playback?.handed(this.#clock(), durationMs);
    this.#speech.inc(durationMs / 1000);
  }

  /** @param audioMs `null` if the segment was not completed */
  made(readySinceMs: number, effort: SynthesisEffort | null, audioMs: number | null): void {
    if (effort === null) return;
    this.#metrics.segment(effort.startedMs - readySinceMs, effort.computeMs, audioMs);
  }
}
