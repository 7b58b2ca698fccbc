/**
 * Looks at every frame of one context of a WebSocket, or of one answer over HTTP told in such frames: its audio by the rules of its format, words one by one, flushes
 * by id, and that nothing comes before its beginning or after its end. It is told what its client sends.
 *
 *   open --closing()--> closing --context_closed--> over
 *   open, closing --cancelled()--> cancelled --context_closed--> over;  open --ended()--> over
 */
import type { AudioCheck } from './audio-check.js';
import type { ServerFrame, WordTimes } from './server-frame.js';

/** What is broken by a fault. */
export type FrameFault = 'frames' | 'audio' | 'words' | 'flushes' | 'errors';

/** What a frame was. */
export type FrameKind = 'started' | 'audio' | 'words' | 'flushed' | 'closed' | 'error' | 'unknown';

export interface Range {
  readonly min: number;
  readonly max: number;
}

export interface ContextCheckParts {
  readonly id: string;
  readonly audio: AudioCheck;
  readonly timestamps: boolean;
  /** Milliseconds of audio after the last word, at a flush; `null` where texts do not end with a full stop. */
  readonly trailMs: Range | null;
  /** Milliseconds of audio behind a word when it is told; `null` where words are told apart from their audio. */
  readonly wordMarginMs: Range | null;
  /** Milliseconds of audio for a character; `null` where it is not looked at. */
  readonly msPerCharacter: Range | null;
  readonly onFault: (kind: FrameFault, what: string) => void;
}

interface PendingFlush {
  readonly flushId: string;
  /** Words and characters that were sent before it. */
  readonly words: number;
  readonly characters: number;
}

/** What a page may end short of its words: what an encoder looks ahead, and rounding. */
const lookaheadMs = 20;
/** Texts shorter than this have too little to tell a rate by. */
const rateCharactersMin = 20;

type State = 'open' | 'closing' | 'cancelled' | 'over';

export class ContextCheck {
  readonly #parts: ContextCheckParts;
  readonly #flushes: PendingFlush[] = [];
  readonly #words: string[] = [];
  #state: State = 'open';
  #isStarted = false;
  #sentWords = 0;
  #sentCharacters = 0;
  #spokenWords = 0;
  #closeFlushed = false;
  #startSeconds = 0;
  #endSeconds = 0;
  /** At the last flush. */
  #flushedMs = 0;
  #flushedCharacters = 0;
  #flushedWords = 0;

  constructor(parts: ContextCheckParts) {
    this.#parts = parts;
  }

  get durationMs(): number {
    return this.#parts.audio.durationMs;
  }

  /** Text that is sent, of whole words. */
  text(text: string): void {
    this.#sentCharacters += text.length;
    for (const word of text.split(' ')) {
      if (word === '') continue;
      this.#sentWords++;
      if (this.#parts.timestamps) this.#words.push(word);
    }
  }

  flush(flushId: string): void {
    this.#flushes.push({ flushId, words: this.#sentWords, characters: this.#sentCharacters });
  }

  closing(): void {
    this.#state = 'closing';
  }

  cancelled(): void {
    this.#state = 'cancelled';
  }

  /** Its transport tells of the end by its own: all has come by then. */
  ended(): void {
    if (this.#flushes.length > 0) this.#fault('flushes', 'ended before its last flush');
    this.#checkComplete();
    this.#state = 'over';
  }

  onFrame(frame: ServerFrame): FrameKind {
    if (this.#state === 'over') this.#fault('frames', 'a frame comes after the end');
    if (frame.error !== undefined) {
      this.#fault('errors', `error: ${frame.error}`);
      return 'error';
    }
    if (frame.context_started !== undefined) {
      if (this.#isStarted) this.#fault('frames', 'started twice');
      this.#isStarted = true;
      return 'started';
    }
    if (!this.#isStarted) this.#fault('frames', 'a frame comes before the beginning');
    if (frame.audio_chunk !== undefined) {
      this.#onAudio(frame.audio_chunk);
      return 'audio';
    }
    if (frame.timestamps !== undefined) {
      this.#onWords(frame.timestamps);
      return 'words';
    }
    if (frame.flush_completed !== undefined) {
      this.#onFlushed(frame.flush_id ?? '');
      return 'flushed';
    }
    if (frame.context_closed !== undefined) {
      this.#onClosed();
      return 'closed';
    }
    this.#fault('frames', 'a frame of no kind');
    return 'unknown';
  }

  #onAudio(base64: string): void {
    const bytes = Buffer.from(base64, 'base64');
    if (Math.ceil(bytes.length / 3) * 4 !== base64.length) this.#fault('audio', 'a chunk is no base64');
    const fault = this.#parts.audio.push(bytes);
    if (fault !== null) this.#fault('audio', fault);
    if (this.#sentWords === 0) this.#fault('audio', 'audio comes before any text');
  }

  #onWords({ words, start_seconds, end_seconds }: WordTimes): void {
    if (!this.#parts.timestamps) this.#fault('words', 'words come that nobody asked for');
    for (const [i, word] of words.entries()) {
      const expected = this.#words.shift();
      this.#spokenWords++;
      if (word !== expected)
        this.#fault('words', `the word "${word}" comes where "${expected ?? 'none'}" must be`);
      const [start, end] = [start_seconds[i] ?? NaN, end_seconds[i] ?? NaN];
      if (!(start >= this.#startSeconds && end >= start))
        this.#fault('words', 'words are not in the order of time');
      this.#startSeconds = start;
      this.#endSeconds = end;
    }
    const { wordMarginMs } = this.#parts;
    const marginMs = this.durationMs - this.#endSeconds * 1000;
    if (wordMarginMs !== null && !(marginMs >= wordMarginMs.min && marginMs <= wordMarginMs.max))
      this.#fault(
        'audio',
        `the word "${words.at(-1) ?? ''}" is told with ${marginMs.toFixed(0)} ms of audio behind it`,
      );
  }

  #onFlushed(flushId: string): void {
    const flush = this.#flushes.shift();
    const expected = flush?.flushId ?? `${this.#parts.id}:close`;
    if (flushId !== expected)
      this.#fault('flushes', `flush ${flushId} is completed where ${expected} must be`);
    if (flush === undefined) {
      if (this.#state !== 'closing' || this.#closeFlushed)
        this.#fault('flushes', 'a flush that nobody asked for');
      this.#closeFlushed = true;
    }
    // What was under way when the context was cancelled.
    if (this.#state === 'cancelled') return;
    this.#checkSpoken(flush?.words ?? this.#sentWords, flush?.characters ?? this.#sentCharacters);
  }

  /** All that was sent before a flush was spoken by its completion, in a plausible time. */
  #checkSpoken(words: number, characters: number): void {
    const { timestamps, trailMs, msPerCharacter } = this.#parts;
    if (timestamps && this.#spokenWords !== words)
      this.#fault('words', `${String(words - this.#spokenWords)} words of a flush are lost`);
    if (words === this.#flushedWords) return;
    const spokenMs = this.durationMs - this.#flushedMs;
    const spokenCharacters = characters - this.#flushedCharacters;
    if (spokenMs <= 0) this.#fault('audio', `no audio for ${String(spokenCharacters)} characters`);
    const restMs = this.durationMs - this.#endSeconds * 1000;
    if (timestamps && restMs < -lookaheadMs) this.#fault('audio', 'audio ends before its words');
    if (timestamps && trailMs !== null && !(restMs >= trailMs.min && restMs <= trailMs.max))
      this.#fault('audio', `audio goes on for ${restMs.toFixed(0)} ms after the last word of a flush`);
    const rate = spokenMs / spokenCharacters;
    const isLong = spokenCharacters >= rateCharactersMin;
    if (isLong && msPerCharacter !== null && !(rate >= msPerCharacter.min && rate <= msPerCharacter.max))
      this.#fault('audio', `${spokenMs.toFixed(0)} ms of audio for ${String(spokenCharacters)} characters`);
    this.#flushedMs = this.durationMs;
    this.#flushedCharacters = characters;
    this.#flushedWords = words;
  }

  #onClosed(): void {
    if (this.#state === 'closing') {
      if (!this.#closeFlushed || this.#flushes.length > 0)
        this.#fault('flushes', 'closed before its last flush');
      this.#checkComplete();
    } else if (this.#state !== 'cancelled') this.#fault('frames', 'closed without being asked');
    this.#state = 'over';
  }

  #checkComplete(): void {
    if (this.#sentWords > 0 && !this.#parts.audio.isComplete)
      this.#fault('audio', 'the end of the audio is lost');
  }

  #fault(kind: FrameFault, what: string): void {
    this.#parts.onFault(kind, what);
  }
}
