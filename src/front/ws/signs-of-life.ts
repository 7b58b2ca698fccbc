/**
 * Whether the other end of a WebSocket is still there: what it says, what it takes, how it answers pings.
 *
 * Kernels hold megabytes, minutes of telephone speech: a client that reads at the pace of playback gets to a ping that
 * lies behind them when it has heard them, and is not silent until then. A pong says that all before its ping was read;
 * but a player that has read minutes ahead reads nothing while it plays them.
 */
import { Hearing } from './hearing.js';

export interface LifeBounds {
  readonly readerStallMsMax: number;
  readonly stallRearmMs: number;
  readonly socketSilenceMsMax: number;
  readonly socketHearingMsMax: number;
  readonly socketPingMs: number;
}

export class SignsOfLife {
  readonly #bounds: LifeBounds;
  readonly #hearing: Hearing;
  #heardMs: number;
  #takenMs: number;
  #pingedMs: number;
  #bufferedBytes = 0;

  constructor(bounds: LifeBounds, nowMs: number) {
    this.#bounds = bounds;
    this.#hearing = new Hearing(bounds.socketHearingMsMax);
    this.#heardMs = this.#takenMs = this.#pingedMs = nowMs;
  }

  heard(nowMs: number): void {
    this.#heardMs = nowMs;
  }

  /** What the next ping carries. */
  get mark(): string {
    return this.#hearing.mark;
  }

  /** It answered a ping. @param mark what that carried */
  ponged(mark: string, nowMs: number): void {
    this.#heardMs = nowMs;
    this.#hearing.ponged(mark, nowMs);
  }

  /** Its socket takes more. */
  taken(nowMs: number): void {
    this.#takenMs = nowMs;
  }

  /** Audio is with the socket. */
  handed(durationMs: number, nowMs: number): void {
    this.#hearing.handed(durationMs, nowMs);
  }

  /** @returns why it is to be dropped, or that a ping is due */
  check(bufferedBytes: number, nowMs: number): 'reader-stalled' | 'silent' | 'ping' | null {
    const bounds = this.#bounds;
    // With an empty buffer there is nothing to take.
    if (bufferedBytes < this.#bufferedBytes || bufferedBytes === 0) this.#takenMs = nowMs;
    this.#bufferedBytes = bufferedBytes;
    if (nowMs - this.#takenMs >= bounds.readerStallMsMax) return 'reader-stalled';
    const isBuffered = bufferedBytes > 0;
    const lastMs = isBuffered ? Math.max(this.#heardMs, this.#takenMs) : this.#heardMs;
    if (nowMs - Math.max(lastMs, this.#hearing.untilMs) >= bounds.socketSilenceMsMax) return 'silent';
    // The system calls a slow reader's socket writable late; a small write finds out whether it takes more.
    const pingMs = isBuffered ? bounds.stallRearmMs : bounds.socketPingMs;
    if (nowMs - Math.max(this.#pingedMs, isBuffered ? this.#takenMs : this.#heardMs) < pingMs) return null;
    this.#pingedMs = nowMs;
    return 'ping';
  }
}
