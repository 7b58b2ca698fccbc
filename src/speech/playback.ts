/**
 * How late audio is for one listener, who plays at real time from the first audio on.
 *
 * It is kept here, and not in the senders, because three things must be told apart that only a context sees
 * together: when audio came (from the actor), when it was handed to its socket, and when there was nothing to make
 * (no text, or the gate shut). What has come waits for nobody but its socket, so lateness is taken when it comes:
 *
 * - while anything that came before still waits, the listener does not take it: nothing is late;
 * - text that comes when the listener has all but run dry, and a gate that opens then, begin anew: they were waited for.
 *
 * Of one utterance, or of one context of a socket with many. Pure: time is told.
 */

/** What first audio may take: who sends text later than this before the last of the audio is played waits for itself. */
const LEAD_MS = 250;

export class Playback {
  /** When all that was handed is played. */
  #dryMs = Number.NEGATIVE_INFINITY;
  /** The first audio of a segment from this one on is awaited by nobody before it comes. */
  #freshFrom = 0;
  /** Frames that came and were not handed. */
  #waitingFrames = 0;

  /** Segments from this one on could not be made before now, for want of text or because the gate was shut. */
  resumed(nowMs: number, segment: number): void {
    if (this.#dryMs - nowMs < LEAD_MS) this.#freshFrom = Math.min(this.#freshFrom, segment);
  }

  /**
   * A frame of audio came that is to be handed.
   * @returns milliseconds since the listener had nothing left to play; 0 when it is in time
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
