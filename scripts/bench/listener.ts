/** Someone who listens: reads no faster than speech plays, and asks again when all of it was heard. */
import type { StreamHandlers } from './stream-connection.js';

/** A player's buffer: the socket is not read while more than this is waiting to be heard. */
const bufferMsMax = 1_000;
const bufferMsMin = 500;

/** Speech that is asked for over HTTP or over a WebSocket. */
export interface SpeechConnection {
  opened(): Promise<void>;
  /** One request at a time. `onAudio` is told milliseconds of audio since it. */
  request(bytes: Buffer, handlers: StreamHandlers): void;
  pause(): void;
  resume(): void;
  close(): void;
}

export class Listener {
  readonly #connection: SpeechConnection;
  readonly #request: Buffer;
  readonly #firstAudioMs: number[] = [];
  #requestedAtMs = 0;
  #playingSinceMs = 0;
  #receivedMs = 0;
  #complete = false;
  #paused = false;
  #earlierAudioMs = 0;
  #dryMs = 0;
  #state: 'idle' | 'waiting' | 'playing' = 'idle';
  #error: Error | null = null;

  constructor(connection: SpeechConnection, request: Buffer) {
    this.#connection = connection;
    this.#request = request;
  }

  opened(): Promise<void> {
    return this.#connection.opened();
  }

  /** Milliseconds to first audio, of each request so far. */
  get firstAudioMs(): readonly number[] {
    return this.#firstAudioMs;
  }

  /** The longest that playback had to wait in mid-speech; 0 when it never did. */
  get dryMs(): number {
    return this.#dryMs;
  }

  get audioMs(): number {
    return this.#earlierAudioMs + this.#receivedMs;
  }

  start(nowMs: number): void {
    this.#earlierAudioMs += this.#receivedMs;
    this.#receivedMs = 0;
    this.#complete = false;
    // The end may have come in the same read as what it was paused for.
    this.#setPaused(false);
    this.#state = 'waiting';
    this.#requestedAtMs = nowMs;
    this.#connection.request(this.#request, {
      onAudio: (audioMs) => this.#onAudio(audioMs, performance.now()),
      onEnd: () => {
        this.#complete = true;
      },
      onError: (error) => {
        this.#error = error;
      },
    });
  }

  /** Playback goes on: reads more, or asks for the next speech. @throws what its connection met with */
  tick(nowMs: number): void {
    if (this.#error !== null) throw this.#error;
    if (this.#state !== 'playing') return;
    const aheadMs = this.#receivedMs - (nowMs - this.#playingSinceMs);
    if (this.#complete) {
      if (aheadMs <= 0) this.start(nowMs);
      return;
    }
    if (aheadMs < bufferMsMin) this.#setPaused(false);
  }

  close(): void {
    this.#connection.close();
  }

  #onAudio(audioMs: number, nowMs: number): void {
    if (this.#state === 'waiting') {
      this.#state = 'playing';
      this.#playingSinceMs = nowMs;
      this.#firstAudioMs.push(nowMs - this.#requestedAtMs);
    } else {
      const lateMs = nowMs - this.#playingSinceMs - this.#receivedMs;
      if (lateMs > 0 && audioMs > this.#receivedMs) this.#dryMs = Math.max(this.#dryMs, lateMs);
    }
    this.#receivedMs = audioMs;
    if (audioMs - (nowMs - this.#playingSinceMs) > bufferMsMax) this.#setPaused(true);
  }

  #setPaused(paused: boolean): void {
    if (this.#paused === paused) return;
    this.#paused = paused;
    if (paused) this.#connection.pause();
    else this.#connection.resume();
  }
}
