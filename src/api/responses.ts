/** What the service answers, as types on the wire; the OpenAPI description is derived from them. */
import type { tags } from 'typia';

/** Word times: three arrays of one length. */
export interface Timestamps {
  /** Tokens of the text as sent, punctuation attached. */
  words: string[];
  /** When each begins, in seconds from the start of the audio. */
  start_seconds: number[];
  /** When each ends. */
  end_seconds: number[];
}

/** The whole file. */
export interface SpeechResponse {
  /** Base64 of the file in the format asked for. */
  audio: string;
  /** Only when `timestamps` was true. */
  timestamps?: Timestamps;
}

/** A piece of the audio. */
export interface AudioRecord {
  type: 'audio';
  /** Base64; decoded and joined in the order of arrival, the pieces are the file. */
  audio_chunk: string;
}

/** Words whose times are final since the record before: to be appended, never to be put over earlier ones. */
export interface TimestampsRecord extends Timestamps {
  type: 'timestamps';
}

/** The JSON of one record of a stream. */
export type StreamRecord = AudioRecord | TimestampsRecord;

/** The live catalogue. */
export interface SpeakerList {
  /** Ids to use as `voice`; one that ends in `_conv` is the same speaker's conversational variant. */
  speaker_ids: string[];
}

/** One thing that is wrong with a request. */
export interface ValidationItem {
  /** What kind of fault, for programs: `missing`, `string_type`, `extra_forbidden`, `value_error` ... */
  type: string;
  /** Where: `body` or `query`, then keys from the outermost in. */
  loc: (string | (number & tags.Type<'uint32'>))[];
  /** What, for people. */
  msg: string;
  /** The value sent; left out where it is too large to be echoed. */
  input?: unknown;
  /** Bounds and causes that `msg` names. */
  ctx?: ValidationContext;
}

export interface ValidationContext {
  [name: string]: unknown;
}

/** Fields that are missing, wrong or unknown, in the order in which they are declared. */
export interface ValidationErrors {
  detail: ValidationItem[];
}

/** The voice is not in the catalogue. */
export interface UnknownVoice {
  error: 'unknown_voice';
  /** Names the voice and the valid ones. */
  message: string;
  /** As sent. */
  voice: string;
  /** The live catalogue, sorted. */
  valid_voices: string[];
}

/** An error with a fixed code. */
export interface ErrorBody {
  error: string;
  /** What was exceeded, where something was. */
  reason?: string;
}

/** An error in words. */
export interface DetailBody {
  detail: string;
}

/** What a supervisor or load balancer wants to know. */
export interface Health {
  status: 'ok' | 'ready' | 'not ready';
  /** Why not ready, one phrase each. */
  reasons?: string[];
  /** What the operator should see to, whether ready or not. */
  warnings?: string[];
}
