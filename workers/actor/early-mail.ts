/**
 * Chunks that overtook the command that opens their context: ports keep no common order. Context ids only grow, so a
 * chunk of an unknown context with an id above every opened one is early; any other is stale and dropped.
 */
import type { ChunkMail } from '../../src/threads/messages.js';

/** Contexts held at once; far above what one tick of the front thread can open. */
const EARLY_CONTEXTS_MAX = 256;

export class EarlyMail {
  readonly #held = new Map<number, ChunkMail[]>();
  #highestOpened = 0;

  opened(contextId: number): void {
    this.#highestOpened = Math.max(this.#highestOpened, contextId);
    // Ids opened on other actor threads never show here: whatever is below and still held is stale.
    for (const held of this.#held.keys()) if (held < contextId) this.#held.delete(held);
  }

  offer(mail: ChunkMail): void {
    if (mail.contextId <= this.#highestOpened) return;
    let held = this.#held.get(mail.contextId);
    if (held === undefined) {
      if (this.#held.size >= EARLY_CONTEXTS_MAX) return;
      this.#held.set(mail.contextId, (held = []));
    }
    held.push(mail);
  }

  take(contextId: number): ChunkMail[] {
    const held = this.#held.get(contextId) ?? [];
    this.#held.delete(contextId);
    return held;
  }
}
