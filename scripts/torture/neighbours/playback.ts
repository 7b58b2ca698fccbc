/**
 * What a listener would hear of one stream after another: how long each first sound took, and how long playback ever
 * had to wait in mid-speech.
 *
 *   idle --asked--> waiting --first audio--> playing --ended--> idle
 */
export class Playback {
  #state: 'idle' | 'waiting' | 'playing' = 'idle';
  #askedMs = 0;
  #playingSinceMs = 0;
  #receivedMs = 0;
  #firstAudioMsMax = 0;
  #dryMsMax = 0;
  #audioMs = 0;

  get firstAudioMsMax(): number {
    return this.#firstAudioMsMax;
  }

  get dryMsMax(): number {
    return this.#dryMsMax;
  }

  /** Of all streams. */
  get audioMs(): number {
    return this.#audioMs;
  }

  asked(nowMs: number): void {
    this.#state = 'waiting';
    this.#askedMs = nowMs;
    this.#receivedMs = 0;
  }

  /** @param receivedMs of this stream so far */
  audio(nowMs: number, receivedMs: number): void {
    if (this.#state === 'idle' || receivedMs <= this.#receivedMs) return;
    this.tick(nowMs);
    if (this.#state === 'waiting') {
      this.#state = 'playing';
      this.#playingSinceMs = nowMs;
    }
    // What ran dry goes on when more comes.
    const heardMs = Math.min(nowMs - this.#playingSinceMs, this.#receivedMs);
    this.#playingSinceMs = nowMs - heardMs;
    this.#audioMs += receivedMs - this.#receivedMs;
    this.#receivedMs = receivedMs;
  }

  ended(): void {
    this.#state = 'idle';
  }

  /** What is received and not heard; 0 once all is, also after the end. */
  aheadMs(nowMs: number): number {
    return this.#receivedMs === 0 ? 0 : Math.max(0, this.#receivedMs - (nowMs - this.#playingSinceMs));
  }

  /** Counts the wait that is under way. */
  tick(nowMs: number): void {
    if (this.#state === 'waiting')
      this.#firstAudioMsMax = Math.max(this.#firstAudioMsMax, nowMs - this.#askedMs);
    else if (this.#state === 'playing')
      this.#dryMsMax = Math.max(this.#dryMsMax, nowMs - this.#playingSinceMs - this.#receivedMs);
  }
}
