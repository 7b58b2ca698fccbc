/** Lateness of this process's own event loop. Audio that is late by no more than this is not the service's fault. */

/** Ticks that are remembered: a few seconds. */
const ticksMax = 256;

export class LoopClock {
  readonly #periodMs: number;
  readonly #atMs: number[] = [];
  readonly #lateMs: number[] = [];
  #next = 0;
  #lastMs: number;

  /** @param periodMs the period of the timer that calls `tick` */
  constructor(periodMs: number, nowMs: number) {
    this.#periodMs = periodMs;
    this.#lastMs = nowMs;
  }

  tick(nowMs: number): void {
    this.#atMs[this.#next] = nowMs;
    this.#lateMs[this.#next] = Math.max(0, nowMs - this.#lastMs - this.#periodMs);
    this.#next = (this.#next + 1) % ticksMax;
    this.#lastMs = nowMs;
  }

  /** The greatest lateness between then and now. */
  latenessMs(sinceMs: number, nowMs: number): number {
    let mostMs = Math.max(0, nowMs - this.#lastMs - this.#periodMs);
    for (const [i, atMs] of this.#atMs.entries())
      if (atMs >= sinceMs) mostMs = Math.max(mostMs, this.#lateMs[i]!);
    return mostMs;
  }
}
