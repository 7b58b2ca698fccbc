/**
 * Until when a WebSocket may be busy with what it has been sent, see signs-of-life.ts: reading it, or playing what it has
 * read. A player with a full buffer reads nothing, pings included, until it has played some of it.
 */

/** Who reads at half the speed of playback is still a listener. */
const slowness = 2;

export class Hearing {
  /** The most that it may be: a peer that is gone without a word is not waited for longer. */
  readonly #msMax: number;
  #readMs = 0;
  #playedMs = 0;
  #handedMs = 0;

  constructor(msMax: number) {
    this.#msMax = msMax;
  }

  /** Audio is with the socket. */
  handed(durationMs: number, nowMs: number): void {
    this.#handedMs += durationMs;
    const after = (untilMs: number, ms: number): number =>
      Math.min(Math.max(untilMs, nowMs) + ms, nowMs + this.#msMax);
    this.#readMs = after(this.#readMs, durationMs * slowness);
    this.#playedMs = after(this.#playedMs, durationMs);
  }

  /**
   * What a ping carries, and its pong back: the audio that was handed before it. So every pong is known for what it
   * answers, though pings overtake their pongs and a client may answer only the last of several.
   */
  get mark(): string {
    return String(Math.floor(this.#handedMs));
  }

  /** @param mark of the ping; one that is none of ours, as in a pong that nobody asked for, says nothing */
  ponged(mark: string, nowMs: number): void {
    if (!/^\d{1,15}$/.test(mark) || Number(mark) > this.#handedMs) return;
    const unreadMs = this.#handedMs - Number(mark);
    // Never later: who makes a mark up gains no time.
    this.#readMs = Math.min(this.#readMs, nowMs + unreadMs * slowness);
  }

  /** In the past once all must have been read, and played. */
  get untilMs(): number {
    return Math.max(this.#readMs, this.#playedMs);
  }
}
