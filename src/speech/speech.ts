/**
 * What a transport sees of the stages below it: it opens a context, appends text, and is called back with frames.
 * Every transport is a thin adapter over this one interface.
 */
import type { AudioFormat } from '../api/formats.js';
import type { SpeechSettings } from '../api/speech-settings.js';
import type { Lease } from '../accounts/lease.js';
import type { Frame, Framing } from '../threads/messages.js';
import type { VoiceCatalogue } from '../threads/voices.js';

export interface ContextOptions {
  /** Owned by the context from here on: it settles what was spoken, and closes the lease at `release`. */
  readonly lease: Lease;
  /** Contexts of the same group share one running segment and a bound of unsent audio; by default the lease. */
  readonly group?: object;
  readonly settings: SpeechSettings;
  readonly format: AudioFormat;
  readonly framing: Framing;
  readonly timestamps: boolean;
  /** `socket` framing: goes into every message; absent when the client gave none. */
  readonly clientContextId?: string;
}

/**
 * What a context is about: `speaking` while anything is being made, sent or in line to be; `holding` while all it has
 * is text whose segment is not final; else `idle`.
 */
export type Activity = 'speaking' | 'holding' | 'idle';

/** Receives a context's frames in order. After `closed` or `failed` nothing follows. Never throws. */
export type FrameSink = (frame: Frame) => void;

export interface SpeechContext {
  /** Text appended in pieces, split anywhere, is spoken as if it had been sent whole. */
  append(text: string): void;
  /**
   * Speaks all that was appended, then emits `flushed` with this id. Text that follows begins a new utterance, with
   * times that run on.
   */
  flush(flushId: string): void;
  /**
   * Drops what was appended since the last flush and has not begun to be spoken.
   * @returns its code points, blanks included
   */
  dropUtterance(): number;
  /** Of `socket` framing only; it changes with calls and with frames, at no other time. */
  readonly activity: Activity;
  /** No more text: what is left is spoken, then `closed` follows. Idempotent. */
  end(): void;
  /**
   * The response is over: its last byte was accepted by the socket, or it was given up (client gone, barge-in, fault).
   * Drops at once whatever is still queued or being made, closes the lease (slot freed, unspoken text refunded); no
   * frame follows. Every transport calls it at the end of every context, also after the terminal frame. Idempotent.
   */
  release(): void;
  /**
   * The transport handed this audio frame's bytes to its socket (or to the result it collects): opens the gate of
   * backpressure by the frame's duration and settles its segment's charge.
   */
  handed(frame: Extract<Frame, { type: 'audio' }>): void;
}

export interface Speech {
  /** Those of this moment: a reload puts another catalogue in its place. */
  readonly voices: VoiceCatalogue;
  /** `null` while nothing more can be taken on: too many contexts, or no thread alive. The lease is then the caller's. */
  open(options: ContextOptions, sink: FrameSink): SpeechContext | null;
}
