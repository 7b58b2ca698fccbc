/**
 * Counts the connections and closes those that are too many, before a byte of theirs is read. Without it the system's
 * bound on open files would be met instead: then the library's listening spins, and the store can open nothing.
 */
import type { Log } from '../log.js';
import type { Metrics } from '../metrics.js';
import type { Clock } from '../monotonic.js';
import type { TemplatedApp } from './uws.js';

/** Milliseconds between two lines of the log about connections that were refused. */
const TOLD_EVERY_MS = 10_000;

export interface ConnectionsParts {
  readonly connectionsMax: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'refused'>;
}

export class Connections {
  readonly #parts: ConnectionsParts;
  #open = 0;
  #refused = 0;
  #toldMs = Number.NEGATIVE_INFINITY;

  constructor(parts: ConnectionsParts) {
    this.#parts = parts;
  }

  get open(): number {
    return this.#open;
  }

  /** Counts the app's connections from now on. */
  watch(app: TemplatedApp): void {
    app.filter((res, change) => {
      this.#open += change;
      if (change < 0 || this.#open <= this.#parts.connectionsMax) return;
      // Comes back here, as its end.
      res.close();
      this.#parts.metrics.refused('connectionPoolExhausted');
      this.#refused++;
      this.#tell();
    });
  }

  /** The library tells of the opening of a WebSocket's connection, and not of its end. */
  webSocketEnded(): void {
    this.#open--;
  }

  #tell(): void {
    const { clock, connectionsMax, log } = this.#parts;
    const nowMs = clock();
    if (nowMs - this.#toldMs < TOLD_EVERY_MS) return;
    this.#toldMs = nowMs;
    log.warn({ connectionsMax, refused: this.#refused }, 'too many connections: new ones are closed');
    this.#refused = 0;
  }
}
