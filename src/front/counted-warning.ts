/** A warning that a client can cause without end: one log line in a time, which says how many there were. */
import type { Log } from '../log.js';
import type { Clock } from '../monotonic.js';

/** Milliseconds between two lines. */
const WARN_EVERY_MS = 10_000;

export class CountedWarning {
  readonly #clock: Clock;
  readonly #log: Pick<Log, 'warn'>;
  /** Since the last line. */
  #count = 0;
  #warnedMs = Number.NEGATIVE_INFINITY;

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Pick<Log, 'warn'> }) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Counts one, and writes `fields` of it where a line is due. */
  add(fields: Readonly<Record<string, unknown>>, message: string): void {
    this.#count++;
    const nowMs = this.#clock();
    if (nowMs - this.#warnedMs < WARN_EVERY_MS) return;
    this.#warnedMs = nowMs;
    this.#log.warn({ ...fields, count: this.#count }, message);
    this.#count = 0;
  }
}
