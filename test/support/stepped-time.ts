/** Time on the clock of a service, in steps that its pulse sees: of a longer one it counts two beats at most (`SeenClock`). */
import { eventually, pause } from './waiting.js';

export class SteppedTime {
  readonly #stepMs: number;
  #nowMs = 0;

  /** @param stepMs at most a beat of the pulse */
  constructor(stepMs: number) {
    this.#stepMs = stepMs;
  }

  readonly clock = (): number => this.#nowMs;

  async pass(ms: number): Promise<void> {
    for (let leftMs = ms; leftMs > 0; leftMs -= this.#stepMs) {
      this.#nowMs += Math.min(this.#stepMs, leftMs);
      await pause(this.#stepMs);
    }
  }

  async passUntil(condition: () => boolean): Promise<void> {
    await eventually(async () => {
      await this.pass(this.#stepMs);
      return condition();
    });
  }
}
