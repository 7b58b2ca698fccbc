/** A watchdog whose time passes only when a test says so. */
import type { Bounds } from '../../src/limits.js';
import { Watchdog } from '../../src/threads/watchdog.js';
import { until } from './waiting.js';

type Signs = Parameters<Watchdog['watch']>[0];

/** Real milliseconds: threads beat every 10. */
const BEAT_MS = 20;

export const steppedBounds = { watchdogBeatMs: BEAT_MS, threadHangMsMax: 400, voicesLoadMsMax: 400 };

export class SteppedWatchdog extends Watchdog {
  readonly #signs = new Set<Signs>();
  readonly #pass: (ms: number) => void;

  constructor(bounds: Pick<Bounds, 'watchdogBeatMs' | 'threadHangMsMax'> = steppedBounds) {
    let nowMs = 0;
    super(bounds, () => nowMs);
    this.#pass = (ms) => {
      nowMs += ms;
    };
  }

  override watch(signs: Signs, onHung: () => void): void {
    this.#signs.add(signs);
    super.watch(signs, () => {
      this.#signs.delete(signs);
      onHung();
    });
  }

  override unwatch(signs: Signs): void {
    this.#signs.delete(signs);
    super.unwatch(signs);
  }

  /**
   * Lets time pass, a beat at a time, until the condition holds. All watched threads beat between two of the watchdog's
   * beats, except at most `silent` of them: so a healthy thread never counts as hung, however busy the machine is.
   */
  async passUntil(condition: () => boolean, silent = 1): Promise<void> {
    for (let i = 0; i < 200 && !condition(); i++) {
      const before = [...this.#signs].map((signs) => ({ signs, beats: signs.beats }));
      await until(() => before.filter(({ signs, beats }) => signs.beats === beats).length <= silent);
      this.#pass(BEAT_MS);
      this.look();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
