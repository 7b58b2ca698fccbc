/**
 * Whether the other end of a WebSocket is still there: what it sends, what it takes, and how it answers pings.
 *
 * Kernels buffer megabytes, which is minutes of telephone speech. A client that reads at the pace of playback reaches a
 * ping behind them only when it has played them, and is not silent until then. A pong shows that the client has read
 * everything before the ping; but a player that has read minutes ahead reads nothing while it plays them.
 */
import type { Bounds } from '../../limits.js';
import { PlaybackClock } from '../../threads/playback-clock.js';
import { StallTimer } from '../sender.js';

export type LifeBounds = Pick<
  Bounds,
  'readerStallMsMax' | 'stallRearmMs' | 'socketSilenceMsMax' | 'socketHearingMsMax' | 'socketPingMs'
>;

/** A client that reads at half the speed of playback is still listening. */
const slowness = 2;

/** What a ping carries before the socket has had audio. */
const NOTHING_HANDED = '0';

/**
 * Until when a client may be busy with the audio it got: reading it, or playing what it has read. A player with a full
 * buffer reads nothing, pings included, until it has played some of it.
 */
class Hearing {
  /** The longest time: the service does not wait longer for a peer that vanished. */
  readonly #msMax: number;
  readonly #read = new PlaybackClock();
  readonly #played = new PlaybackClock();
  #handedMs = 0;

  constructor(msMax: number) {
    this.#msMax = msMax;
  }

  /** The socket has audio. */
  handed(durationMs: number, nowMs: number): void {
    this.#handedMs += durationMs;
    for (const [clock, ms] of [
      [this.#read, durationMs * slowness],
      [this.#played, durationMs],
    ] as const) {
      clock.reach(0, nowMs);
      clock.advance(ms);
      clock.limit(0, nowMs + this.#msMax);
    }
  }

  /**
   * What a ping carries, and its pong returns: the audio handed before it. So each pong shows which ping it answers, even
   * if pings overtake pongs or a client answers only the last of several.
   */
  get pingPayload(): string {
    return String(Math.floor(this.#handedMs));
  }

  /** @param payload of the pong; one that is not ours, as in an unsolicited pong, changes nothing */
  ponged(payload: string, nowMs: number): void {
    if (!/^\d{1,15}$/.test(payload) || Number(payload) > this.#handedMs) return;
    const unreadMs = this.#handedMs - Number(payload);
    // Never later, so that an invented payload gains no time.
    this.#read.limit(0, nowMs + unreadMs * slowness);
  }

  /** In the past once the client must have read and played everything. */
  get untilMs(): number {
    return Math.max(this.#read.at(), this.#played.at());
  }
}

export class SignsOfLife {
  readonly #bounds: LifeBounds;
  /** `null` until the socket has had audio: an idle socket needs none. */
  #hearing: Hearing | null = null;
  readonly #reader: StallTimer;
  #receivedMs: number;
  #pingedMs: number;
  #bufferedBytes = 0;

  constructor(bounds: LifeBounds, nowMs: number) {
    this.#bounds = bounds;
    this.#reader = new StallTimer(bounds, nowMs);
    this.#receivedMs = this.#pingedMs = nowMs;
  }

  received(nowMs: number): void {
    this.#receivedMs = nowMs;
  }

  /** What the next ping carries. */
  get pingPayload(): string {
    return this.#hearing?.pingPayload ?? NOTHING_HANDED;
  }

  /** The client answered a ping. */
  ponged(payload: string, nowMs: number): void {
    this.#receivedMs = nowMs;
    this.#hearing?.ponged(payload, nowMs);
  }

  /** The socket takes more. */
  progress(nowMs: number): void {
    this.#reader.progress(nowMs);
  }

  /** The socket has audio. */
  handed(durationMs: number, nowMs: number): void {
    this.#hearing ??= new Hearing(this.#bounds.socketHearingMsMax);
    this.#hearing.handed(durationMs, nowMs);
  }

  /** @returns why the socket must be dropped, or that a ping is due */
  check(bufferedBytes: number, nowMs: number): 'reader-stalled' | 'silent' | 'ping' | null {
    const bounds = this.#bounds;
    // With an empty buffer there is nothing to take.
    if (bufferedBytes < this.#bufferedBytes || bufferedBytes === 0) this.#reader.progress(nowMs);
    this.#bufferedBytes = bufferedBytes;
    if (this.#reader.isStalled(nowMs)) return 'reader-stalled';
    const isBuffered = bufferedBytes > 0;
    const { progressMs } = this.#reader;
    const lastMs = isBuffered ? Math.max(this.#receivedMs, progressMs) : this.#receivedMs;
    if (nowMs - Math.max(lastMs, this.#hearing?.untilMs ?? 0) >= bounds.socketSilenceMsMax) return 'silent';
    // The system reports a slow reader's socket writable late; a small write finds out whether it takes more.
    const pingMs = isBuffered ? bounds.stallRearmMs : bounds.socketPingMs;
    if (nowMs - Math.max(this.#pingedMs, isBuffered ? progressMs : this.#receivedMs) < pingMs) return null;
    this.#pingedMs = nowMs;
    return 'ping';
  }
}
