/**
 * The live view: one `LiveView` a second as server-sent events. All open pages of operators share it. Without an open page
 * nothing is read.
 */
import { describeFault } from '../fault.js';
import type { Exchange } from '../front/exchange.js';
import { reply } from '../front/reply.js';
import { ResponseSender } from '../front/response-sender.js';
import type { Handler } from '../front/routes.js';
import type { Log } from '../log.js';
import type { History } from '../history.js';
import type { Figures } from '../metrics.js';
import { pssBytes } from '../process.js';
import type { Threads } from '../threads/threads.js';
import { forOperators, replyFault } from './answers.js';
import type { LiveView } from './contract.js';
import type { Door } from './dispatch.js';
import type { Session, Sessions } from './sessions.js';

const PERIOD_MS = 1_000;

/** The state of the stages, in the words of the page. */
export const liveView = async (
  figures: Figures,
  lateChunks: number,
  { firstAudioMs, last, refusals }: History,
  threads: Pick<Threads, 'counts' | 'generations'>,
  warnings: readonly string[],
): Promise<LiveView> => {
  const { bufferedAudioMs, capacityRatio, contexts, eventLoopDelay, reasons, restarts, sockets, streams } =
    figures;
  const { contextsOfOlderVoices, generation, voices } = threads.generations.status();
  const delayMs = (quantile: 0.5 | 0.99): number => eventLoopDelay(quantile) * 1_000;
  return {
    atMs: Date.now(),
    ready: reasons.length === 0,
    ...{ reasons, warnings, sockets, contexts, bufferedAudioMs, capacityRatio, voices },
    ...{ firstAudioMs, lateChunks, refusals, point: last },
    streams: Object.fromEntries(streams),
    threads: threads.counts,
    threadRestarts: restarts,
    memoryBytes: (await pssBytes()) ?? 0,
    eventLoopDelayMs: { p50: delayMs(0.5), p99: delayMs(0.99) },
    generations: { current: generation, olderContexts: contextsOfOlderVoices },
  };
};

export interface LiveParts {
  readonly door: Door;
  readonly sessions: Sessions;
  readonly read: () => Promise<LiveView>;
  readonly log: Log;
}

export class Live {
  readonly #parts: LiveParts;
  readonly #watching = new Set<ResponseSender>();
  #timer: NodeJS.Timeout | undefined;
  #isReading = false;
  #isClosed = false;

  constructor(parts: LiveParts) {
    this.#parts = parts;
  }

  /** `GET /api/live` */
  readonly handler: Handler = (exchange, head) => {
    const { door, sessions } = this.#parts;
    if (!door.admits(exchange, head)) return;
    sessions
      .demand(exchange, head)
      .then((session) => this.#watch(exchange, session))
      .catch((error: unknown) => exchange.guard(() => replyFault(exchange, error)));
  };

  /** Ends all views, and opens no further one. Idempotent. */
  close(): void {
    this.#isClosed = true;
    for (const sender of this.#watching) sender.end();
    this.#stopIfUnwatched();
  }

  /** @throws {ConsoleRefusal} */
  #watch(exchange: Exchange, session: Session): void {
    if (exchange.isOver) return;
    if (session.user.role !== 'operator') throw forOperators();
    const opened = this.#parts.sessions.open(session, () => exchange.drop('revoked'));
    const contentType = 'text/event-stream';
    if (exchange.method === 'head') {
      opened();
      reply(exchange, { status: 200, contentType, body: '' });
      return;
    }
    const sender = new ResponseSender(exchange, {
      status: 200,
      contentType,
      headers: [['x-accel-buffering', 'no']],
    });
    this.#watching.add(sender);
    exchange.onOver(() => {
      opened();
      this.#watching.delete(sender);
      this.#stopIfUnwatched();
    });
    if (this.#isClosed) {
      sender.end();
      return;
    }
    this.#timer ??= setInterval(() => void this.#send(), PERIOD_MS).unref();
    void this.#send();
  }

  #stopIfUnwatched(): void {
    if (this.#watching.size > 0 && !this.#isClosed) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Never rejects. Skips a reader that has not taken the previous view: the next one is newer. */
  async #send(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      const event = Buffer.from(`data: ${JSON.stringify(await this.#parts.read())}\n\n`);
      for (const sender of this.#watching) if (sender.isEmpty && !this.#isClosed) sender.write(event);
    } catch (error) {
      this.#parts.log.error(describeFault(error), 'the live view of the console failed');
    } finally {
      this.#isReading = false;
    }
  }
}
