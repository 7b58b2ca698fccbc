/** What one context still needs of the machine, and by when. */
import type { Clock } from '../monotonic.js';
import { isSocketFraming, isWholeFraming } from '../threads/messages.js';
import type { Demand } from './capacity.js';
import { estimateSpeechMs, type ContextSchedule } from './schedule.js';
import type { ContextOptions, Utterance } from './speech.js';

/**
 * A whole file is not played while it is made, so it is due this much later than speech for a listener. It gets what the
 * listeners leave, and does not starve.
 */
const WHOLE_LEAD_MS = 10_000;

/** Milliseconds by which the first sample of a context is due later than at once. */
export const leadMsOf = ({ framing }: Pick<ContextOptions, 'framing'>): number =>
  isWholeFraming(framing) ? WHOLE_LEAD_MS : 0;

/** Text that comes word by word counts as at least this much speech until its first segment is complete. */
const COMING_MS_MIN = 2_000;

/** The demand of an utterance that has not begun. */
export const demandOf = ({ group = {}, settings, format, framing, textUnits }: Utterance): Demand => ({
  group,
  voiceId: settings.voiceId,
  encoding: format.encoding,
  // Text on a WebSocket goes on.
  remainingMs: Math.max(
    estimateSpeechMs(textUnits, settings.speed),
    isSocketFraming(framing) ? COMING_MS_MIN : 0,
  ),
  slackMs: leadMsOf({ framing }),
  awaited: isWholeFraming(framing) ? 'none' : 'first',
});

/** When no text came for this long, the context waits for its client and needs nothing now. */
const COMING_PAUSE_MS = 1_000;

export class DemandMeter {
  readonly #options: ContextOptions;
  readonly #clock: Clock;
  readonly #openedMs: number;
  /** Speech that came from the actor. */
  #arrivedMs = 0;
  /** When the listener has played all that came. */
  #dryMs = Number.NEGATIVE_INFINITY;
  /** The listener has nothing to play, and waits for what is being made. */
  #isAwaited = false;
  #lastTextMs = Number.NEGATIVE_INFINITY;

  constructor(options: ContextOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    this.#openedMs = clock();
  }

  /** The listener has something to play. */
  get isPlaying(): boolean {
    return this.#dryMs > this.#clock();
  }

  /** Text came. */
  appended(): void {
    this.#lastTextMs = this.#clock();
  }

  /** There is something to make again. */
  resumed(): void {
    this.#isAwaited ||= this.#dryMs <= this.#clock();
  }

  /** Audio came from the actor. */
  arrived(durationMs: number): void {
    this.#isAwaited = false;
    this.#arrivedMs += durationMs;
    this.#dryMs = Math.max(this.#dryMs, this.#clock()) + durationMs;
  }

  /** @returns `null` while there is no speech to be made, and none is about to come */
  demand(schedule: ContextSchedule, uncutUnits: number): Demand | null {
    const nowMs = this.#clock();
    const isToBeMade = schedule.queuedSegments > 0 || schedule.runningSegments > 0;
    const isComing = uncutUnits > 0 && nowMs - this.#lastTextMs < COMING_PAUSE_MS;
    if (!isToBeMade && !isComing) return null;
    // Its listener has much to play, and takes nothing.
    if (schedule.runningSegments === 0 && schedule.isShutByListener) return null;
    const { group, lease, format, settings, framing } = this.#options;
    const isPlayed = !isWholeFraming(framing);
    const isAwaited = isToBeMade ? this.#isAwaited : this.#dryMs <= nowMs;
    const remainingMs = schedule.expectedMs + schedule.estimateMs(uncutUnits) - this.#arrivedMs;
    return {
      group: group ?? lease,
      voiceId: settings.voiceId,
      encoding: format.encoding,
      remainingMs: Math.max(remainingMs, isToBeMade ? 0 : COMING_MS_MIN),
      // Audio that no socket has taken is not played yet, whatever the clock says.
      slackMs: isPlayed
        ? Math.max(this.#dryMs - nowMs, schedule.unsentMs, 0)
        : this.#openedMs + WHOLE_LEAD_MS + this.#arrivedMs - nowMs,
      awaited: !isPlayed ? 'none' : isAwaited ? 'first' : isToBeMade ? 'later' : 'none',
    };
  }
}
