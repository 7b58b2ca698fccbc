/**
 * The listener of one context: what has come for it, what it was given, and by its playback clock, when it runs dry. The
 * caller gives the time.
 *
 * Audio that has come waits only for its socket, so its lateness is measured when it comes:
 *
 * - while earlier audio still waits, the listener does not take it: nothing is late;
 * - audio is not late if it could not be made earlier: there was no text, or the gate was shut, and the listener had almost
 *   run out of audio.
 */
import { isWholeFraming, type Framing } from '../threads/messages.js';
import type { PlaybackClock } from '../threads/playback-clock.js';

/** Milliseconds that first audio may take. If text comes when less audio is left, its audio is not late. */
const FRESH_MS = 250;
/** A whole file is due after half of its playing time, and not before `FILE_LEAD_MS`. */
const FILE_PACE = 0.5;
const FILE_LEAD_MS = 300;
/** A listener keeps up who takes audio at half the pace of playback at least, and pauses for `STILL_MS_MAX` at most. */
const SLOWNESS = 2;
const STILL_MS_MAX = 20_000;

export class Listener {
  readonly clock: PlaybackClock;
  /** The service sends the response when it is complete, so its listener cannot play it earlier. */
  readonly isFile: boolean;
  /** Milliseconds of audio that came from the actor. */
  #arrivedMs = 0;
  /** The same that the socket, or the collected result, has. */
  #handedMs = 0;
  /** Until when it keeps up, if it takes nothing more. */
  #keepsUpMs = Number.NEGATIVE_INFINITY;
  /** Frames that came and were not handed over. */
  #waitingFrames = 0;
  /** The first audio of a segment from this one on is not late, whenever it comes. */
  #freshFrom = 0;
  /** It has nothing to play, and waits for what is being made. */
  #isAwaiting = false;

  constructor(clock: PlaybackClock, framing: Framing, nowMs: number) {
    this.clock = clock;
    this.isFile = isWholeFraming(framing);
    if (this.isFile) clock.start(nowMs, FILE_LEAD_MS, FILE_PACE);
    else clock.start(nowMs);
  }

  get arrivedMs(): number {
    return this.#arrivedMs;
  }

  get handedMs(): number {
    return this.#handedMs;
  }

  keepsUp(nowMs: number): boolean {
    return nowMs <= this.#keepsUpMs;
  }

  /** It waits for first audio. */
  get isAwaiting(): boolean {
    return this.#isAwaiting && !this.isFile;
  }

  /** How long it has something to play; of a file, how long until it is due. Negative: so long it has waited. */
  slackMs(nowMs: number): number {
    const slackMs = this.clock.at(this.#arrivedMs) - nowMs;
    const untakenMs = this.#arrivedMs - this.#handedMs;
    // What it does not take it does not play, whatever the clock says.
    return this.isFile || untakenMs <= 0 ? slackMs : Math.max(slackMs, untakenMs);
  }

  /** Segments from this one on could not be made before now. */
  resumed(nowMs: number, segment: number): void {
    const slackMs = this.clock.at(this.#arrivedMs) - nowMs;
    if (slackMs < FRESH_MS) this.#freshFrom = Math.min(this.#freshFrom, segment);
    this.#isAwaiting ||= slackMs <= 0;
  }

  /** @returns how late the audio is, in milliseconds; 0 if it is in time */
  arrived(nowMs: number, segment: number, durationMs: number): number {
    const isFresh = segment >= this.#freshFrom;
    const isLate = !isFresh && this.#waitingFrames === 0;
    if (isFresh) this.#freshFrom = Number.POSITIVE_INFINITY;
    const dryMs = this.isFile ? 0 : this.clock.reach(this.#arrivedMs, nowMs);
    this.#isAwaiting = false;
    if (this.#waitingFrames++ === 0) this.#keepsUpMs = nowMs + STILL_MS_MAX;
    this.#arrivedMs += durationMs;
    return isLate ? dryMs : 0;
  }

  /** The socket has the next of the frames that came. */
  handed(nowMs: number, durationMs: number): void {
    this.#waitingFrames--;
    if (!this.isFile) this.clock.reach(this.#handedMs, nowMs);
    this.#handedMs += durationMs;
    const busyMs = Math.max(0, this.#keepsUpMs - nowMs) + SLOWNESS * durationMs;
    this.#keepsUpMs = nowMs + Math.min(STILL_MS_MAX, busyMs);
  }

  /** Audio that waits for the socket is not played meanwhile. Call it now and then. */
  standsStill(nowMs: number): void {
    if (this.#waitingFrames > 0 && !this.isFile) this.clock.reach(this.#handedMs, nowMs);
  }
}
