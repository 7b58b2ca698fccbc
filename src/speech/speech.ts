/**
 * What a transport sees of the stages below it: it opens a context, appends text, and gets frames. Every transport is a
 * thin adapter over this one interface.
 */
import type { AudioFormat } from '../api/formats.js';
import type { SpeechSettings } from '../api/speech-settings.js';
import type { Lease } from '../accounts/lease.js';
import type { MarkedText } from '../text/replacements.js';
import type { Frame, Framing } from '../threads/messages.js';
import type { VoiceCatalogue } from '../threads/voices.js';

export interface ContextOptions {
  /** The context owns it: it settles what was spoken, and closes the lease at `release`. */
  readonly lease: Lease;
  /** Contexts of the same group count as one listener and have one bound of unsent audio. By default each is alone; whole files
   * are together with those of their account. */
  readonly group?: object;
  readonly settings: SpeechSettings;
  /** Asked at the start of each utterance, for the same voice. By default `settings` hold for all. */
  readonly settingsNow?: () => SpeechSettings;
  readonly format: AudioFormat;
  readonly framing: Framing;
  readonly timestamps: boolean;
  /** WebSockets: part of every message. Absent if the client gave none. */
  readonly clientContextId?: string;
}

/**
 * `speaking` while a context has audio to make or to hand over, or a flush to answer; `holding` while it only has text
 * whose segment is not final; else `idle`.
 */
export type Activity = 'speaking' | 'holding' | 'idle';

/** Gets a context's frames in order. Nothing follows `closed` or `failed`. Never throws. */
export type FrameSink = (frame: Frame) => void;

export interface SpeechContext {
  /**
   * Whether the machine can speak this text in time. Ask before each `append` of words, and
   * before a flush or an end of held words. A listener who is being served goes on being served.
   */
  admits(text: string): boolean;
  /**
   * Text that comes bit by bit, split anywhere, is spoken as if it had been appended whole.
   * @param pieces of the text, where it has markup. Before and after a pause the text is cut
   */
  append(text: string, pieces?: readonly MarkedText[]): void;
  /**
   * Speaks all that was appended, then emits `flushed` with this id. Later text begins a new utterance. Its times run on.
   */
  flush(flushId: string): void;
  /**
   * Drops the text since the last flush, but for segments that were started.
   *
   * @returns the code points dropped, blanks included
   */
  dropUtterance(): number;
  /** Of WebSockets only. It changes only with calls and with frames. */
  readonly activity: Activity;
  /** No text follows: the rest is spoken, then `closed` is emitted. Idempotent. */
  end(): void;
  /**
   * The response is over: the socket accepted its last byte, or it was abandoned (client gone, barge-in, fault). Drops
   * at once whatever is queued or being made, and closes the lease: the slot is freed, unspoken text refunded. No frame
   * follows. Every transport calls it at the end of every context, also after the terminal frame. Idempotent.
   */
  release(): void;
  /**
   * The transport handed the frame over to its socket, or to the result that it collects: this opens the backpressure
   * gate by the frame's duration and settles its segment's charge.
   */
  handed(frame: Extract<Frame, { type: 'audio' }>): void;
}

/** An utterance that a caller asks for. */
export interface Utterance extends Pick<
  ContextOptions,
  'group' | 'lease' | 'settings' | 'format' | 'framing'
> {
  /** Its text, as far as it is known. */
  readonly pieces: readonly MarkedText[];
  /** What is to be spoken before it. */
  readonly uncutMs?: number;
}

/** Why no context opens: there are too many, or no thread is alive; or its account has its part of them. */
export type OpenRefusal = 'contextPoolExhausted' | 'contextsOfAccountExhausted';

export interface Speech {
  /**
   * Whether the machine can speak the utterance in time, without making others late. Ask once for each, just before it
   * begins: one that is admitted counts from then on.
   */
  admits(utterance: Utterance): boolean;
  /** The current ones: a reload replaces the catalogue. */
  readonly voices: VoiceCatalogue;
  /** @returns the context, or why none opens: the lease stays the caller's */
  open(options: ContextOptions, sink: FrameSink): SpeechContext | OpenRefusal;
}
