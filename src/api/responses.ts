/** Types of the service's answers on the wire; the OpenAPI description is derived from them. */
import type { tags } from 'typia';

/** Word times: three arrays of the same length. */
export interface Timestamps {
  /** Tokens of the text as sent, punctuation attached. */
  words: string[];
  /** When each word begins, in seconds from the start of the audio. */
  start_seconds: number[];
  /** When each word ends. */
  end_seconds: number[];
}

/** The whole file. */
export interface SpeechResponse {
  /** Base64 of the file in the requested format. */
  audio: string;
  /** Only if `timestamps` was true. */
  timestamps?: Timestamps;
}

/** A piece of the audio. */
export interface AudioRecord {
  type: 'audio';
  /** Base64. The decoded pieces, joined in the order of arrival, are the file. */
  audio_chunk: string;
}

/** Words whose times became final since the record before. Append them; they never replace earlier ones. */
export interface TimestampsRecord extends Timestamps {
  type: 'timestamps';
}

/** The JSON of one record of a stream. */
export type StreamRecord = AudioRecord | TimestampsRecord;

/** The live catalogue of voices. */
export interface SpeakerList {
  /** Ids to use as `voice`; one that ends in `_conv` is the same speaker's conversational variant. */
  speaker_ids: string[];
}

/** One fault of a request. */
export interface ValidationItem {
  /** The kind of fault, for programs: `missing`, `string_type`, `extra_forbidden`, `value_error` ... */
  type: string;
  /** The place: `body` or `query`, then keys from the outermost inwards. */
  loc: (string | (number & tags.Type<'uint32'>))[];
  /** The fault in words. */
  msg: string;
  /** The value sent; absent if it is too large to echo. */
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
  /** Which bound was exceeded, if one was. */
  reason?: string;
}

/** An error in words. */
export interface DetailBody {
  detail: string;
}

/** The state of the service, for a supervisor or load balancer. */
export interface Health {
  status: 'ok' | 'ready' | 'not ready';
  /** Why the service is not ready, one phrase each. */
  reasons?: string[];
  /** What needs the operator's attention, whether the service is ready or not. */
  warnings?: string[];
}
