import type { ContextSchedule } from './scheduler.js';

/** The contexts of one lease, in turn. */
export class LeaseSchedule {
  readonly contexts = new Set<ContextSchedule>();
  readonly #unsentMsMax: number;
  running = 0;
  /** When its last segment to run ended. */
  idleSinceMs = Number.NEGATIVE_INFINITY;
  /** Over its contexts. */
  unsentMs = 0;

  constructor(unsentMsMax: number) {
    this.#unsentMsMax = unsentMsMax;
  }

  isFull(): boolean {
    return this.unsentMs > this.#unsentMsMax;
  }

  /** The lease's next context: the earliest due; among equals the one that waited longest (insertion order). */
  next(): ContextSchedule | undefined {
    let best: ContextSchedule | undefined;
    for (const context of this.contexts) {
      if (!context.isReady() || (this.running > 0 && !context.heard)) continue;
      if (best === undefined || context.dueMs() < best.dueMs()) best = context;
    }
    return best;
  }

  /** Moves the context behind its siblings. */
  rotate(context: ContextSchedule): void {
    this.contexts.delete(context);
    this.contexts.add(context);
  }
}
