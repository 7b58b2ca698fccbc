/**
 * What an actor thread does with mail for a context that is not open. The ids of a thread's contexts count up from a
 * first one that only this thread has, so an id tells which of three cases it is:
 *
 * - the context is over: its last chunks and a late cancel are normal, and dropped;
 * - the context is not open yet: ports keep no common order, so chunks may overtake the `open` command and are kept;
 * - no such context can exist: that is an error, and reported.
 */
import { actorOfContext, type ChunkMail } from '../../src/threads/messages.js';

/** Contexts with early chunks at once; far above what one tick of the front thread can open. */
const EARLY_CONTEXTS_MAX = 256;

export class EarlyMail {
  readonly #actor: number;
  readonly #report: (reason: string) => void;
  readonly #held = new Map<number, ChunkMail[]>();
  #lastOpened = 0;
  #lastReported = 0;

  /** @param actor number of this thread */
  constructor(actor: number, report: (reason: string) => void) {
    this.#actor = actor;
    this.#report = report;
  }

  /** A context opens. @returns the chunks that came before */
  opened(contextId: number): ChunkMail[] {
    if (this.#isOver(contextId) || !this.#isOurs(contextId))
      this.#error(contextId, 'a context opens that this thread cannot open');
    this.#lastOpened = Math.max(this.#lastOpened, contextId);
    const chunks = this.#held.get(contextId) ?? [];
    this.#held.delete(contextId);
    // Contexts open in the order of their ids.
    for (const held of this.#held.keys())
      if (held < contextId) {
        this.#held.delete(held);
        this.#error(held, 'audio came for a context that was never opened');
      }
    return chunks;
  }

  /** A chunk of a context that is not open. */
  offer(chunk: ChunkMail): void {
    const { contextId } = chunk;
    if (this.#isOver(contextId)) return;
    let chunks = this.#held.get(contextId);
    if (!this.#isOurs(contextId)) this.#error(contextId, 'audio came for a context of another thread');
    else if (chunks === undefined && this.#held.size >= EARLY_CONTEXTS_MAX)
      this.#error(contextId, 'audio came early for too many contexts');
    else {
      if (chunks === undefined) this.#held.set(contextId, (chunks = []));
      chunks.push(chunk);
    }
  }

  /** A command, other than `open`, for a context that is not open. Commands of a context never overtake its `open`. */
  command(type: string, contextId: number): void {
    if (!this.#isOver(contextId))
      this.#error(contextId, `"${type}" came for a context that was never opened`);
  }

  #isOurs(contextId: number): boolean {
    return actorOfContext(contextId) === this.#actor;
  }

  #isOver(contextId: number): boolean {
    return this.#isOurs(contextId) && contextId <= this.#lastOpened;
  }

  /** One report for each context: its audio may be many chunks. */
  #error(contextId: number, reason: string): void {
    if (contextId === this.#lastReported) return;
    this.#lastReported = contextId;
    this.#report(`${reason}: ${contextId}`);
  }
}
