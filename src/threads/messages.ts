/**
 * What crosses the ports between threads, one union a boundary, shared by both sides.
 *
 *   front  --SynthesisJob (piscina)-->  synthesis  --ChunkMail-->  actor  --FrameMail-->  front
 *   front  --------------------------ActorCommand---------------->  actor
 *
 * Offsets and durations of engine audio are in samples at the voice's own rate.
 */
import type { MessagePort } from 'node:worker_threads';
import type { AudioFormat } from '../api/formats.js';
import type { SpeechSettings } from '../api/speech-settings.js';
import type { ExecutionProvider, LogLevel } from '../config.js';
import type { Bounds } from '../limits.js';
import type { Replacement } from '../text/normalise/normalise.js';
import type { Span } from '../text/words.js';
import type { VoicePack } from './voices.js';

/** `Span`: range of UTF-16 offsets into a segment's text. `Replacement`: what some of its tokens are spoken as. */
export type { Replacement, Span };

/** What a synthesis thread is started with. */
export interface SynthesisThreadData {
  readonly packs: readonly VoicePack[];
  readonly executionProvider: ExecutionProvider;
  readonly logLevel: LogLevel;
  readonly bounds: Bounds;
  /** Backs `JobControl`. */
  readonly control: SharedArrayBuffer;
  /** Backs `Vitals`. */
  readonly vitals: SharedArrayBuffer;
}

const CONTEXTS_PER_ACTOR = 2 ** 32;

/**
 * Context ids are never used twice. Those of an actor thread count up from its first one, so a thread can tell a context
 * that is over from one that is not open yet, and from one that it never had.
 */
export const firstContextId = (actor: number): number => actor * CONTEXTS_PER_ACTOR + 1;

/** The actor thread whose context this is. */
export const actorOfContext = (contextId: number): number => Math.floor(contextId / CONTEXTS_PER_ACTOR);

/** What an actor thread is started with. */
export interface ActorThreadData {
  /** Its number. */
  readonly actor: number;
  readonly bounds: Bounds;
  /** Backs `Vitals`. */
  readonly vitals: SharedArrayBuffer;
}

/** One segment to speak, as an engine needs to know it. */
export interface SegmentRequest {
  /** The original text of one segment; any Unicode, any script. */
  readonly text: string;
  /** Its tokens; every one of them is given a time, in order, without overlap. */
  readonly words: readonly Span[];
  /** Words that are spoken otherwise than written; several that are spoken as one share its time. */
  readonly spoken?: readonly Replacement[];
  /**
   * What other segments have of the clauses that this one begins and ends in the middle of, '' if it does not: not to be
   * spoken, but to be joined.
   */
  readonly before: string;
  readonly after: string;
  readonly settings: SpeechSettings;
  /** Same request, same seeds: the same samples, however its steps are scheduled; so a retry resumes where it broke off. */
  readonly seed: number;
  /** Of all segments that shall sound like one reading. */
  readonly utteranceSeed: number;
}

/** The piscina task. */
export interface SynthesisJob extends SegmentRequest {
  readonly contextId: number;
  /** 0, 1, 2 ... within the context. */
  readonly segment: number;
  /** Index into the shared deadline and cancel arrays. */
  readonly slot: number;
  /** Which actor thread hosts the context. */
  readonly actor: number;
}

/** What a job took. */
export interface SynthesisEffort {
  /** When its first step began, on the clock that all threads share. */
  readonly startedMs: number;
  /** In its steps. */
  readonly computeMs: number;
}

export type SynthesisResult =
  | { readonly type: 'done'; readonly samples: number; readonly effort: SynthesisEffort }
  /** `effort`: `null` when no step had begun. */
  | { readonly type: 'cancelled'; readonly effort: SynthesisEffort | null }
  | { readonly type: 'failed'; readonly reason: string };

/** Front thread to synthesis thread, over the control port that the thread offers when it is ready. */
export type SynthesisControl = {
  /** From now on chunks for contexts of this actor thread go through `port`. */
  readonly type: 'actor';
  readonly actor: number;
  readonly port: MessagePort;
};

/** Synthesis thread to front thread, once its voices are loaded and warm, or cannot be. */
export type SynthesisHello =
  | {
      readonly type: 'ready';
      readonly threadId: number;
      readonly control: MessagePort;
      readonly loadMs: number;
      /** What the models run on. */
      readonly executionProvider: Exclude<ExecutionProvider, 'auto'>;
    }
  | { readonly type: 'load-failed'; readonly threadId: number; readonly message: string };

/** When one word of a segment sounds, in samples from the segment's first. */
export interface WordTime {
  /** Index into the job's `words`. */
  readonly word: number;
  readonly startSample: number;
  readonly endSample: number;
}

/** Synthesis thread to actor thread. */
export type ChunkMail =
  | {
      readonly type: 'chunk';
      readonly contextId: number;
      readonly segment: number;
      /** Offset of the chunk in its segment; a retried segment sends chunks again, and the actor drops those. */
      readonly startSample: number;
      readonly pcm: Int16Array;
      /** Words that end within this chunk. */
      readonly words: readonly WordTime[];
    }
  | {
      readonly type: 'segment-done';
      readonly contextId: number;
      readonly segment: number;
      readonly samples: number;
    };

/** The first message of an actor thread: its encoders are loaded. Mail and errors follow. */
export const ACTOR_READY = 'ready';

/** Actor thread to front thread: mail came that belongs to no context. It is logged. */
export interface ActorError {
  readonly reason: string;
}

/** What an actor thread is sent. */
export type ActorThreadMessage =
  /** A tick's `ActorCommand`s, packed. */
  | { readonly type: 'commands'; readonly mail: Uint8Array }
  /** Chunks of one synthesis thread will come through this port. */
  | { readonly type: 'synthesis'; readonly port: MessagePort };

/**
 * How frames are built: records of a stream, pieces of one JSON response, the audio's bytes and nothing else, or
 * messages of a WebSocket.
 */
export type Framing = 'stream' | 'whole' | 'raw' | 'socket';

/** Front thread to actor thread, batched a tick. */
export type ActorCommand =
  | {
      readonly type: 'open';
      readonly contextId: number;
      readonly format: AudioFormat;
      readonly framing: Framing;
      readonly timestamps: boolean;
      /** Rate of the chunks that will come. */
      readonly engineSampleRateHz: number;
      /** `socket` framing: the client's name for the context, part of every message; absent when it gave none. */
      readonly clientContextId?: string;
    }
  | {
      readonly type: 'segment';
      readonly contextId: number;
      readonly segment: number;
      /** Token texts, only when the context reports timestamps. */
      readonly words: readonly string[];
      /** The last token goes on in the next segment. */
      readonly tokenContinues: boolean;
    }
  | { readonly type: 'flush'; readonly contextId: number; readonly flushId: string }
  | { readonly type: 'close'; readonly contextId: number }
  /** Drop everything of the context; no frame follows. */
  | { readonly type: 'cancel'; readonly contextId: number };

/** Words whose times are final, in seconds from the context's first sample. */
export interface WordTimings {
  readonly words: string[];
  readonly start_seconds: number[];
  readonly end_seconds: number[];
}

/** Ends of a context that are no fault of the service. */
export type FailureCode = 'voiceRetired';

/** Actor thread to front thread. Bytes are ready to send. */
export type Frame =
  | {
      readonly type: 'audio';
      readonly contextId: number;
      /** The segment that was being spoken when these bytes came out: its first audio is what is charged. */
      readonly segment: number;
      /**
       * Of the speech that went in since bytes last came out; the silence that a codec is flushed with is not counted.
       * Over a context the frames add up to what the synthesis threads made, whatever an encoder holds back meanwhile.
       */
      readonly durationMs: number;
      readonly bytes: Uint8Array;
    }
  /** `whole` framing: base64 that goes before all audio (a header whose sizes are known only at the end). */
  | { readonly type: 'head'; readonly contextId: number; readonly bytes: Uint8Array }
  /** A `stream` record, a `socket` message, or (for `whole`) nothing but the timings. */
  | {
      readonly type: 'timestamps';
      readonly contextId: number;
      readonly timings: WordTimings;
      readonly bytes: Uint8Array;
    }
  /** `socket` framing: all audio of a segment is in the frames before this one, but for what an encoder holds back. */
  | { readonly type: 'spoken'; readonly contextId: number; readonly segment: number }
  | { readonly type: 'flushed'; readonly contextId: number; readonly flushId: string }
  /** Terminal: everything was released. */
  | { readonly type: 'closed'; readonly contextId: number }
  /** Terminal: the context ends here, short. */
  | {
      readonly type: 'failed';
      readonly contextId: number;
      readonly reason: string;
      /** Why, for the client; absent when it is a fault of the service. */
      readonly code?: FailureCode | undefined;
    };
