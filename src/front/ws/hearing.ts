/** Until when a WebSocket may still be reading what it has been sent, see signs-of-life.ts. */

/** Who reads at half the speed of playback is still a listener. */
const slowness = 2;

export class Hearing {
  /** The most that it may be: a peer that is gone without a word is not waited for longer. */
  readonly #msMax: number;
  #untilMs = 0;
  #handedMs = 0;
  /** Audio that had been handed when the oldest ping that is not answered went out. */
  #pingedAtMs: number | null = null;

  constructor(msMax: number) {
    this.#msMax = msMax;
  }

  /** Audio is with the socket. */
  handed(durationMs: number, nowMs: number): void {
    this.#handedMs += durationMs;
    const untilMs = Math.max(this.#untilMs, nowMs) + durationMs * slowness;
    this.#untilMs = Math.min(untilMs, nowMs + this.#msMax);
  }

  pinged(): void {
    this.#pingedAtMs ??= this.#handedMs;
  }

  ponged(nowMs: number): void {
    if (this.#pingedAtMs === null) return;
    const unreadMs = this.#handedMs - this.#pingedAtMs;
    this.#pingedAtMs = null;
    this.#untilMs = Math.min(this.#untilMs, nowMs + unreadMs * slowness);
  }

  /** In the past once all must have been read. */
  get untilMs(): number {
    return this.#untilMs;
  }
}
