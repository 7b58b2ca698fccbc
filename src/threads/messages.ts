/**
 * The messages between threads: one union for each boundary, shared by both sides.
 *
 *   front  --SynthesisJob (piscina)-->  synthesis  --ChunkMail-->  actor  --FrameMail-->  front
 *   front  --------------------------ActorCommand---------------->  actor
 *
 * Offsets and durations of engine audio are in samples at the rate of the voice.
 */
import type { MessagePort } from 'node:worker_threads';
import type { AudioFormat, Encoding } from '../api/formats.js';
import type { SpeechSettings } from '../api/speech-settings.js';
import type { GpuGraphs, LogLevel, Provider } from '../config.js';
import type { Bounds } from '../limits.js';
import type { Replacement } from '../text/replacements.js';
import type { Segment } from '../text/segments.js';
import type { Span } from '../text/words.js';
import type { LongStep, Voice, VoiceCost, VoicePack } from './voices.js';

/** `Span`: a range of UTF-16 offsets into a segment's text. `Replacement`: the spoken form of some of its tokens. */
export type { Replacement, Span };

/** What a synthesis thread needs if the provider is a GPU. */
export interface GpuThreadData {
  /** Backs `GpuState`. */
  readonly state: SharedArrayBuffer;
  readonly graphs: GpuGraphs;
  readonly batchMax: number;
  readonly device: string | null;
}

/** Where each graph runs, in words for the operator, by `PACK/GRAPH`. */
export type GraphPlaces = ReadonlyMap<string, string>;

/** `workerData` of a synthesis thread. */
export interface SynthesisThreadData {
  readonly packs: readonly VoicePack[];
  /** The most packs that are loaded at once; absent: all. */
  readonly packsLoadedMax?: number;
  readonly executionProvider: Provider;
  readonly gpu?: GpuThreadData;
  readonly logLevel: LogLevel;
  readonly bounds: Bounds;
  /** Backs `JobControl`. */
  readonly control: SharedArrayBuffer;
  /** Backs `Vitals`. */
  readonly vitals: SharedArrayBuffer;
  /** Backs `EffortTable`: a row for each voice, in the order of the packs, and one for all work. */
  readonly effort: SharedArrayBuffer;
  /** Backs `ClockTable`. */
  readonly clocks: SharedArrayBuffer;
}

const CONTEXTS_PER_ACTOR = 2 ** 32;

/**
 * Context ids are never used twice. Those of an actor thread count up from its first one, so a thread can tell a context
 * that is over from one that is not open yet, and from one that it never had.
 */
export const firstContextId = (actor: number): number => actor * CONTEXTS_PER_ACTOR + 1;

/** The actor thread whose context this is. */
export const actorOfContext = (contextId: number): number => Math.floor(contextId / CONTEXTS_PER_ACTOR);

/** `workerData` of an actor thread. */
export interface ActorThreadData {
  /** Its number. */
  readonly actor: number;
  readonly bounds: Bounds;
  /** Backs `Vitals`. */
  readonly vitals: SharedArrayBuffer;
  /** Backs `EffortTable`: a row for each encoding, in the order of `encodingNames`. */
  readonly effort: SharedArrayBuffer;
  /** Backs `ClockTable`. */
  readonly clocks: SharedArrayBuffer;
}

/** One segment to speak, for an engine: it times all words, in order, without overlap. */
export interface SegmentRequest extends Pick<
  Segment,
  'text' | 'words' | 'before' | 'after' | 'beforeIsWhole'
> {
  /** Words with another spoken form. Several words with one form share its time. */
  readonly spoken?: readonly Replacement[];
  /** Its listener waits for first audio. */
  readonly isFirst?: boolean;
  /**
   * Its first chunk; absent: a short one. One long chunk costs less than several short ones, and in a crowd the last listener
   * waits less. `medium`: of a short one a decoder would make nothing. `long`: its listener does not wait for first audio, or
   * many listeners do, or the machine is full.
   * `longest`: it belongs to a whole file, whose caller needs nothing before the end, or in a crowd to a listener with seconds
   * in hand.
   */
  readonly begins?: 'short' | 'medium' | 'long' | 'longest';
  /** Silence of this length, and no text. */
  readonly pauseMs?: number;
  readonly settings: SpeechSettings;
  /** Equal requests with equal seeds give equal samples, however their steps are scheduled. So a retry can resume. */
  readonly seed: number;
  /** The same for all segments that are to sound like one reading. */
  readonly utteranceSeed: number;
}

/** A segment as a voice pronounces it. */
export type WrittenSegment = Pick<SegmentRequest, 'text' | 'words' | 'spoken'>;

/** Pronounces texts for people who look at them. */
export interface Pronouncing {
  /** @returns for each segment, the phonemes of each of its words; `null` if the voices of the pack read letters */
  pronounce(
    pack: VoicePack,
    voice: Voice,
    segments: readonly WrittenSegment[],
  ): Promise<readonly (readonly string[])[] | null>;
}

/** The piscina task. */
export interface SynthesisJob extends SegmentRequest {
  readonly contextId: number;
  /** 0, 1, 2 ... within the context. */
  readonly segment: number;
  /** The job's slot in `JobControl`. */
  readonly slot: number;
  /** The actor thread that hosts the context. */
  readonly actor: number;
  /** Number of the playback clock of its context. */
  readonly clock: number;
  /** Number of the clock that says what its group has had. Absent if the job does not count for a group. */
  readonly share?: number;
  /** `first`: its listener waits for first audio. `file`: a whole file, which no listener plays yet. */
  readonly urgency: 'playing' | 'first' | 'file';
  readonly account: string;
}

/** The compute time of a job. */
export interface SynthesisEffort {
  /** When its first step began, on the clock that all threads share. */
  readonly startedMs: number;
  /** The sum over its steps. */
  readonly computeMs: number;
}

export type SynthesisResult =
  | { readonly type: 'done'; readonly samples: number; readonly effort: SynthesisEffort }
  /** `effort` is `null` if no step had begun. */
  | { readonly type: 'cancelled'; readonly effort: SynthesisEffort | null }
  | { readonly type: 'failed'; readonly reason: string };

/** Front thread to synthesis thread, through the control port of its `ready`. */
export type SynthesisControl = {
  /** Chunks for contexts of this actor thread go through `port`. */
  readonly type: 'actor';
  readonly actor: number;
  readonly port: MessagePort;
};

/** Synthesis thread to front thread: its voices are loaded and warm, or cannot be loaded; later, loads of single packs. */
export type SynthesisHello =
  | {
      readonly type: 'ready';
      readonly control: MessagePort;
      readonly loadMs: number;
      /** Why packs could not be loaded, by their names. */
      readonly faults: ReadonlyMap<string, string>;
      /** The provider that runs the models. */
      readonly executionProvider: Provider;
      /** Empty unless the provider is WebGPU. */
      readonly graphs: GraphPlaces;
      /** The long step of each voice that has one, by voice id. */
      readonly longSteps: ReadonlyMap<string, LongStep>;
      /** What the voices cost, as the load measured it, by voice id. */
      readonly costs: ReadonlyMap<string, VoiceCost>;
      readonly loadedPacks: number;
    }
  /** A pack was loaded because a job needed it; another may have been unloaded. */
  | {
      readonly type: 'pack-loaded';
      readonly pack: string;
      readonly ms: number;
      /** Packs that are loaded now. */
      readonly loadedPacks: number;
    }
  /** A step of a voice took long that the load had not found long. */
  | { readonly type: 'slow-step'; readonly voiceId: string; readonly step: LongStep }
  | { readonly type: 'load-failed'; readonly message: string };

/** The time of a word, in samples from the first one of its segment. */
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
      /** Offset of the chunk in its segment. A retried segment sends its chunks again, and the actor drops the known ones. */
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
export interface ActorReady {
  /** What the encodings cost, as far as the load measured it: CPU time of a millisecond of speech, in milliseconds. */
  readonly encodingCosts: ReadonlyMap<Encoding, number>;
}

/** Actor thread to front thread: mail came that belongs to no context. It is logged. */
export interface ActorError {
  readonly reason: string;
}

/** Front thread to actor thread. */
export type ActorThreadMessage =
  /** Those of one tick. */
  | { readonly type: 'commands'; readonly commands: readonly ActorCommand[] }
  /** The port for the chunks of one synthesis thread. */
  | { readonly type: 'synthesis'; readonly port: MessagePort };

/** Framings of WebSockets, and `raw-pieces`, which is `raw` for text that arrives in pieces as theirs does. */
export type SocketFraming = 'socket' | 'elevenlabs' | 'elevenlabs-sync' | 'raw-pieces';

/**
 * How frames are built: records of a stream, pieces of one JSON response or one file, bare audio bytes, or WebSocket messages. Those of
 * ElevenLabs report the times of characters; those of OpenAI report no times.
 */
export type Framing =
  | 'stream'
  | 'whole'
  | 'file'
  | 'raw'
  | 'elevenlabs-lines'
  | 'elevenlabs-whole'
  | 'openai-events'
  | SocketFraming;

const socketFramings: ReadonlySet<Framing> = new Set<SocketFraming>([
  'socket',
  'elevenlabs',
  'elevenlabs-sync',
  'raw-pieces',
]);

export const isSocketFraming = (framing: Framing): framing is SocketFraming => socketFramings.has(framing);

/** The service sends the response only when it is complete. */
export const isWholeFraming = (framing: Framing): framing is 'whole' | 'file' | 'elevenlabs-whole' =>
  framing === 'whole' || framing === 'file' || framing === 'elevenlabs-whole';

export const timesCharacters = (framing: Framing): boolean => framing.startsWith('elevenlabs');

/** Front thread to actor thread, in batches of one tick. */
export type ActorCommand =
  | {
      readonly type: 'open';
      readonly contextId: number;
      readonly format: AudioFormat;
      readonly framing: Framing;
      readonly timestamps: boolean;
      /** The rate of the chunks. */
      readonly engineSampleRateHz: number;
      /** Number of its playback clock. */
      readonly clock: number;
      /** WebSockets: the client's name for the context, part of every message. Absent if it gave none. */
      readonly clientContextId?: string;
    }
  | {
      readonly type: 'segment';
      readonly contextId: number;
      readonly segment: number;
      /** Token texts; empty if the context reports no timestamps. */
      readonly words: readonly string[];
      /** The white space before each token and after the last one, with a framing that times characters. */
      readonly gaps?: readonly string[];
      /** The last token continues in the next segment. */
      readonly tokenContinues: boolean;
    }
  | {
      readonly type: 'flush';
      readonly contextId: number;
      readonly flushId: string;
      /** White space after the last segment, with a framing that times characters. */
      readonly blank?: string;
    }
  | { readonly type: 'close'; readonly contextId: number; readonly blank?: string }
  /** Drops all data of the context. No frame follows. */
  | { readonly type: 'cancel'; readonly contextId: number };

/** Words, or characters, with final times, in seconds from the context's first sample. */
export interface WordTimings {
  readonly words: string[];
  readonly start_seconds: number[];
  readonly end_seconds: number[];
}

/**
 * What a decoder can play with the bytes of a frame. Frames have it while the current segment has no audible sample yet: the
 * figures of first audio are made of it. Times are in milliseconds.
 */
export interface Onset {
  /** Audio that these bytes add, with a codec's delay where no header makes players skip it. */
  readonly decodedMs: number;
  /** Of that, what comes before the first sample of the segment. Absent if that sample is not in it. */
  readonly firstMs?: number;
  /** The same for the segment's first audible sample (over -50 dBFS). */
  readonly audibleMs?: number;
}

/** Reasons for a context's end that are no fault of the service. */
export type FailureCode = 'voiceRetired';

/** Actor thread to front thread. The bytes are ready to send. */
export type Frame =
  | {
      readonly type: 'audio';
      readonly contextId: number;
      /** The segment that was being encoded when these bytes came out. Its first audio charges the segment. */
      readonly segment: number;
      /**
       * The speech that went into the encoder since bytes last came out, without the silence that flushes a codec. Over a
       * context the sum equals the audio that the synthesis threads made, whatever an encoder holds back meanwhile.
       */
      readonly durationMs: number;
      readonly onset?: Onset;
      readonly bytes: Uint8Array;
    }
  /** A response that is collected: base64 to put before all audio: a header whose sizes are known only at the end. */
  | { readonly type: 'head'; readonly contextId: number; readonly bytes: Uint8Array }
  /** A record, a message, or only the timings if the response is collected. */
  | {
      readonly type: 'timestamps';
      readonly contextId: number;
      readonly timings: WordTimings;
      readonly bytes: Uint8Array;
    }
  /** WebSockets: all audio of the segment has been sent, except what an encoder holds back. */
  | { readonly type: 'spoken'; readonly contextId: number; readonly segment: number }
  | { readonly type: 'flushed'; readonly contextId: number; readonly flushId: string }
  /** Last: all audio has been sent. */
  | { readonly type: 'closed'; readonly contextId: number }
  /** Last: the context ends early. */
  | {
      readonly type: 'failed';
      readonly contextId: number;
      readonly reason: string;
      /** The reason for the client. Absent for a fault of the service. */
      readonly code?: FailureCode | undefined;
    };
