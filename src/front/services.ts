/** What all exchanges of one server share. */
import type { Bounds } from '../limits.js';
import type { Log } from '../log.js';
import type { Metrics } from '../metrics.js';
import type { Clock } from '../monotonic.js';
import type { ByteBudget } from '../byte-budget.js';
import type { TickActions } from '../tick.js';
import type { Cors } from './cors.js';
import type { Exchange } from './exchange.js';
import type { Pulse } from './pulse.js';
import type { Registry } from './registry.js';

export interface Services {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly bounds: Bounds;
  readonly cors: Cors;
  readonly registry: Registry<Exchange>;
  readonly pulse: Pulse;
  readonly tick: TickActions;
  /** Bytes of bodies that are arriving. */
  readonly bodyBudget: ByteBudget;
  /** Code points of the texts of requests in flight. */
  readonly textBudget: ByteBudget;
  /** Bytes of results in memory. */
  readonly resultBudget: ByteBudget;
  /** Bytes of results in temporary files. */
  readonly spoolBudget: ByteBudget;
  /** Temporary files. */
  readonly spoolFileBudget: ByteBudget;
}
