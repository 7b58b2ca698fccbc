/**
 * Checks every frame of one context of a WebSocket (or of an HTTP response, passed on as such frames): audio by the rules
 * of its format, words one by one, flushes by id, nothing before the beginning or after the end. The caller also reports
 * what the client sends.
 *
 *   open --closing()--> closing --context_closed--> over
 *   open, closing --cancelled()--> cancelled --context_closed--> over;  open --ended()--> over
 *   open, closing --(the start is refused)--> over
 */
import type { AudioCheck } from './audio-check.js';
import type { ServerFrame, WordTimes } from './socket.js';

/** What a fault breaks. */
export type FrameFault = 'frames' | 'audio' | 'words' | 'flushes' | 'errors';

export type FrameKind =
  | 'started'
  | 'start-refused'
  | 'audio'
  | 'words'
  | 'flushed'
  | 'refusing'
  | 'refused'
  | 'closed'
  | 'error'
  | 'unknown';

export interface Range {
  readonly min: number;
  readonly max: number;
}

const isWithin = (value: number, { min, max }: Range): boolean => value >= min && value <= max;

export interface ContextCheckParts {
  readonly id: string;
  readonly audio: AudioCheck;
  readonly timestamps: boolean;
  /** Milliseconds of audio after the last word, at a flush; `null`: not checked, texts may not end with a full stop. */
  readonly trailMs: Range | null;
  /** Milliseconds of audio after a word when its times arrive; `null`: not checked. */
  readonly wordMarginMs: Range | null;
  /** `null`: not checked. */
  readonly msPerCharacter: Range | null;
  /** The error that refuses an utterance, where the service may; by default every error is a fault. */
  readonly refusal?: string;
  /** The error that refuses the start of the context, where the service may stop; by default every error is a fault. */
  readonly startRefusal?: string;
  readonly onFault: (kind: FrameFault, what: string) => void;
}

interface PendingFlush {
  readonly flushId: string;
  /** Words and characters that were sent before it. */
  readonly words: number;
  readonly characters: number;
}

/** An Opus encoder looks ahead, so its last page may end this much before the last word. */
const lookaheadMs = 20;
/** Shorter texts have no typical rate. */
const rateCharactersMin = 20;

type State = 'open' | 'closing' | 'cancelled' | 'over';

export class ContextCheck {
  readonly #parts: ContextCheckParts;
  readonly #flushes: PendingFlush[] = [];
  /** Sent, and not spoken yet. */
  readonly #words: string[] = [];
  #state: State = 'open';
  #isStarted = false;
  #sentWords = 0;
  #sentCharacters = 0;
  #spokenWords = 0;
  /** Of utterances that were refused. */
  #refusedWords = 0;
  /** The text of the current utterance was refused: its flush or the close will be too. */
  #isRefused = false;
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

  /** The client sends text, in whole words. */
  text(text: string): void {
    this.#sentCharacters += text.length;
    for (const word of text.split(' ')) {
      if (word === '') continue;
      this.#sentWords++;
      if (this.#parts.timestamps) this.#words.push(word);
    }
  }

  /** The client asks for a flush. */
  flush(flushId: string): void {
    this.#flushes.push({ flushId, words: this.#sentWords, characters: this.#sentCharacters });
  }

  /** The client closes the context. */
  closing(): void {
    this.#state = 'closing';
  }

  /** The client cancels the context. */
  cancelled(): void {
    this.#state = 'cancelled';
  }

  /** The HTTP response has ended. */
  ended(): void {
    if (this.#flushes.length > 0) this.#fault('flushes', 'ended before its last flush');
    this.#checkComplete();
    this.#state = 'over';
  }

  onFrame(frame: ServerFrame): FrameKind {
    if (this.#state === 'over') this.#fault('frames', 'a frame after the end');
    if (frame.error !== undefined) {
      if (this.#isStarted && frame.error === this.#parts.refusal) return this.#onRefused(frame.flush_id);
      if (!this.#isStarted && frame.error === this.#parts.startRefusal) {
        this.#state = 'over';
        return 'start-refused';
      }
      this.#fault('errors', `error: ${frame.error}`);
      return 'error';
    }
    if (frame.context_started !== undefined) {
      if (this.#isStarted) this.#fault('frames', 'started twice');
      this.#isStarted = true;
      return 'started';
    }
    if (!this.#isStarted) this.#fault('frames', 'a frame before the beginning');
    if (frame.audio_chunk !== undefined) {
      this.#onAudio(frame.audio_chunk);
      return 'audio';
    }
    if (frame.timestamps !== undefined) {
      this.#onWords(frame.timestamps);
      return 'words';
    }
    if (frame.flush_completed !== undefined) {
      return this.#onFlushed(frame.flush_id ?? '');
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
    if (this.#sentWords === 0) this.#fault('audio', 'audio before any text');
  }

  #onWords({ words, start_seconds, end_seconds }: WordTimes): void {
    if (!this.#parts.timestamps) this.#fault('words', 'words without timestamps asked for');
    for (const [i, word] of words.entries()) {
      const expected = this.#words.shift();
      this.#spokenWords++;
      if (word !== expected) this.#fault('words', `the word "${word}" instead of "${expected ?? 'none'}"`);
      const [start, end] = [start_seconds[i] ?? NaN, end_seconds[i] ?? NaN];
      if (!(start >= this.#startSeconds && end >= start))
        this.#fault('words', 'words are not in the order of time');
      this.#startSeconds = start;
      this.#endSeconds = end;
    }
    const { wordMarginMs } = this.#parts;
    const marginMs = this.durationMs - this.#endSeconds * 1000;
    if (wordMarginMs !== null && !isWithin(marginMs, wordMarginMs))
      this.#fault(
        'audio',
        `the times of "${words.at(-1) ?? ''}" come with ${marginMs.toFixed(0)} ms of audio after the word`,
      );
  }

  /**
   * The service drops an utterance that it refuses, from the first text that is not admitted to its flush: an error answers
   * the text, and another one the flush.
   *
   * @returns `refusing` for the first, `refused` for the one that ends the utterance
   */
  #onRefused(flushId: string | undefined): FrameKind {
    if (flushId === undefined) {
      if (this.#isRefused) this.#fault('errors', 'an utterance is refused twice');
      this.#isRefused = true;
      return 'refusing';
    }
    const flush = this.#flushes.shift();
    if (flushId !== flush?.flushId)
      this.#fault('flushes', `flush ${flushId} refused instead of ${flush?.flushId ?? 'none'}`);
    this.#isRefused = false;
    if (flush !== undefined) this.#dropUpTo(flush.words, flush.characters);
    return 'refused';
  }

  /** The rest of the text so far will not be spoken. */
  #dropUpTo(words: number, characters: number): void {
    this.#refusedWords += words - this.#flushedWords;
    if (this.#parts.timestamps) this.#words.splice(0, words - this.#spokenWords);
    this.#spokenWords = words;
    this.#mark(words, characters);
  }

  /** A flush has been answered. */
  #mark(words: number, characters: number): void {
    this.#flushedMs = this.durationMs;
    this.#flushedCharacters = characters;
    this.#flushedWords = words;
  }

  #onFlushed(flushId: string): FrameKind {
    const flush = this.#flushes.shift();
    const expected = flush?.flushId ?? `${this.#parts.id}:close`;
    if (flushId !== expected) this.#fault('flushes', `flush ${flushId} instead of ${expected}`);
    if (flush === undefined) {
      if (this.#state !== 'closing' || this.#closeFlushed)
        this.#fault('flushes', 'a flush that the client did not ask for');
      this.#closeFlushed = true;
    }
    // The service had sent it before it read the cancel.
    if (this.#state === 'cancelled') return 'flushed';
    if (flush === undefined && this.#isRefused) {
      this.#dropUpTo(this.#sentWords, this.#sentCharacters);
      return 'refused';
    }
    this.#checkSpoken(flush?.words ?? this.#sentWords, flush?.characters ?? this.#sentCharacters);
    return 'flushed';
  }

  /** Everything that was sent before the flush has been spoken, at a plausible rate. */
  #checkSpoken(words: number, characters: number): void {
    const { msPerCharacter, timestamps, trailMs } = this.#parts;
    if (timestamps && this.#spokenWords !== words)
      this.#fault('words', `${words - this.#spokenWords} words of a flush are lost`);
    if (words === this.#flushedWords) return;
    const spokenMs = this.durationMs - this.#flushedMs;
    const spokenCharacters = characters - this.#flushedCharacters;
    if (spokenMs <= 0) this.#fault('audio', `no audio for ${spokenCharacters} characters`);
    const restMs = this.durationMs - this.#endSeconds * 1000;
    if (timestamps && restMs < -lookaheadMs) this.#fault('audio', 'audio ends before its words');
    if (timestamps && trailMs !== null && !isWithin(restMs, trailMs))
      this.#fault('audio', `audio goes on for ${restMs.toFixed(0)} ms after the last word of a flush`);
    const isLong = spokenCharacters >= rateCharactersMin;
    if (isLong && msPerCharacter !== null && !isWithin(spokenMs / spokenCharacters, msPerCharacter))
      this.#fault('audio', `${spokenMs.toFixed(0)} ms of audio for ${spokenCharacters} characters`);
    this.#mark(words, characters);
  }

  #onClosed(): void {
    if (this.#state === 'closing') {
      if (!this.#closeFlushed || this.#flushes.length > 0)
        this.#fault('flushes', 'closed before its last flush');
      this.#checkComplete();
    } else if (this.#state !== 'cancelled') this.#fault('frames', 'closed without a request to close');
    this.#state = 'over';
  }

  #checkComplete(): void {
    const isSilent = this.#sentWords === this.#refusedWords && this.durationMs === 0;
    if (!isSilent && !this.#parts.audio.isComplete) this.#fault('audio', 'the end of the audio is lost');
  }

  #fault(kind: FrameFault, what: string): void {
    this.#parts.onFault(kind, what);
  }
}
