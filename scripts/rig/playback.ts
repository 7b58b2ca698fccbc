/**
 * The rig's one model of a listener: hears what arrives, one second a second, and knows when it has nothing to play.
 *
 *   idle --begin--> waiting --first audio--> playing --(all heard)--> dry --audio--> playing;  any --begin--> waiting
 */

/** What an arrival of audio meant for the listener. */
export type Arrival =
  | { readonly kind: 'first'; readonly waitedMs: number }
  /** The listener had nothing to play since `sinceMs`. */
  | { readonly kind: 'dry'; readonly sinceMs: number; readonly waitedMs: number };

export class Playback {
  #state: 'idle' | 'waiting' | 'playing' = 'idle';
  #begunMs = 0;
  #playingSinceMs = 0;
  #receivedMs = 0;
  #earlierMs = 0;

  /** Audio received, of all streams. */
  get audioMs(): number {
    return this.#earlierMs + this.#receivedMs;
  }

  get isPlaying(): boolean {
    return this.#state === 'playing';
  }

  /** A stream begins: `audio` counts from zero. What was received before and not heard is dropped. */
  begin(nowMs: number): void {
    this.#earlierMs += this.#receivedMs;
    this.#receivedMs = 0;
    this.#state = 'waiting';
    this.#begunMs = nowMs;
  }

  /**
   * @param receivedMs of this stream so far
   * @returns `null` when playback simply goes on
   */
  audio(receivedMs: number, nowMs: number): Arrival | null {
    if (this.#state === 'idle' || receivedMs <= this.#receivedMs) return null;
    const endMs = this.#playingSinceMs + this.#receivedMs;
    const isFirst = this.#state === 'waiting';
    this.#state = 'playing';
    this.#receivedMs = receivedMs;
    if (isFirst) {
      this.#playingSinceMs = nowMs;
      return { kind: 'first', waitedMs: nowMs - this.#begunMs };
    }
    const waitedMs = nowMs - endMs;
    if (waitedMs <= 0) return null;
    // Late audio is played when it comes.
    this.#playingSinceMs += waitedMs;
    return { kind: 'dry', sinceMs: endMs, waitedMs };
  }

  /** Milliseconds that are received and not heard. */
  aheadMs(nowMs: number): number {
    return this.#receivedMs === 0 ? 0 : Math.max(0, this.#receivedMs - (nowMs - this.#playingSinceMs));
  }
}

export interface Readable {
  pause(): void;
  resume(): void;
}

const aheadMsMin = 500;
const aheadMsMax = 1_000;

/** A listener's buffer: its connection is not read while more than a second waits to be heard, until less than half of one does. */
export class ReadAhead {
  readonly #readable: Readable;
  #isPaused = false;

  constructor(readable: Readable) {
    this.#readable = readable;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  update(aheadMs: number): void {
    if (aheadMs > aheadMsMax) this.pause();
    else if (aheadMs < aheadMsMin) this.resume();
  }

  pause(): void {
    if (!this.#isPaused) this.#readable.pause();
    this.#isPaused = true;
  }

  resume(): void {
    if (this.#isPaused) this.#readable.resume();
    this.#isPaused = false;
  }
}
