/** The frames of the protocol: builds the client's, and parses the service's. */
import { SyrinxError } from './errors.js';
import type { FormatFields } from '../api/formats.js';
import type { AudioFormat, ContextOptions } from './options.js';

/** A word as written, with its punctuation; seconds count from the context's first sample. */
export interface Word {
  readonly word: string;
  readonly startSeconds: number;
  readonly endSeconds: number;
}

/** A context's options as the service resolved them, with defaults. */
export interface StartedContext {
  readonly voiceId: string;
  readonly timestamps: boolean;
  readonly format: Required<Pick<AudioFormat, 'encoding' | 'sampleRateHz'>> &
    Pick<AudioFormat, 'bitrateKbps'>;
}

type Content =
  | { readonly type: 'started'; readonly started: StartedContext }
  | { readonly type: 'audio'; readonly audio: Uint8Array }
  | { readonly type: 'words'; readonly words: readonly Word[] }
  | { readonly type: 'flushed'; readonly flushId: string }
  | { readonly type: 'closed' }
  | { readonly type: 'error'; readonly text: string };

/** A frame of the service. `contextId` is absent if it concerns the connection. */
export type ServerFrame = Content & { readonly contextId: string | undefined };

const wireFormat = ({ encoding, sampleRateHz, bitrateKbps }: AudioFormat): FormatFields => ({
  encoding,
  sample_rate: sampleRateHz,
  bitrate: bitrateKbps,
});

export const startFrame = (contextId: string, options: ContextOptions): string => {
  const format = typeof options.format === 'string' ? { encoding: options.format } : options.format;
  return JSON.stringify({
    start_context: {
      voice_id: options.voiceId,
      model_id: 'default',
      timestamps: options.timestamps,
      temperature: options.temperature,
      response_format: format && wireFormat(format),
    },
    context_id: contextId,
  });
};

export const textFrame = (contextId: string, text: string): string =>
  JSON.stringify({ send_text: text, context_id: contextId });

export const flushFrame = (contextId: string, flushId: string): string =>
  JSON.stringify({ flush: true, context_id: contextId, flush_id: flushId });

export const closeFrame = (contextId: string): string =>
  JSON.stringify({ close_context: true, context_id: contextId });

export const cancelFrame = (contextId: string): string =>
  JSON.stringify({ cancel_context: true, context_id: contextId });

type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isNumbers = (value: unknown): value is number[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'number');
const isStrings = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

/** Has its own memory, from the first byte on: `new Int16Array(chunk.buffer)` are the chunk's samples. */
const decodeBase64 = (text: string): Uint8Array | undefined => {
  const bytes = Buffer.alloc(Buffer.byteLength(text, 'base64'));
  return bytes.write(text, 'base64') === bytes.length
    ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length)
    : undefined;
};

const parseWords = (value: unknown): Word[] | undefined => {
  if (!isObject(value)) return undefined;
  const { words, start_seconds: starts, end_seconds: ends } = value;
  if (!isStrings(words) || !isNumbers(starts) || !isNumbers(ends)) return undefined;
  if (starts.length !== words.length || ends.length !== words.length) return undefined;
  return words.map((word, i) => ({ word, startSeconds: starts[i]!, endSeconds: ends[i]! }));
};

const parseStarted = (value: unknown): StartedContext | undefined => {
  const format = isObject(value) ? value['response_format'] : undefined;
  if (!isObject(value) || !isObject(format)) return undefined;
  const { voice_id: voiceId, timestamps } = value;
  const { encoding, sample_rate: sampleRateHz, bitrate } = format;
  if (typeof voiceId !== 'string' || typeof encoding !== 'string' || typeof sampleRateHz !== 'number')
    return undefined;
  const bitrateKbps = Number.parseInt(String(bitrate), 10);
  return {
    voiceId,
    timestamps: timestamps === true,
    format: {
      encoding: encoding as AudioFormat['encoding'],
      sampleRateHz,
      ...(Number.isNaN(bitrateKbps) ? {} : { bitrateKbps }),
    },
  };
};

/** @returns `undefined` for a frame of an unknown kind, `null` for a malformed one */
const parseContent = (frame: Fields): Content | undefined | null => {
  if ('error' in frame)
    return typeof frame['error'] === 'string' ? { type: 'error', text: frame['error'] } : null;
  if ('audio_chunk' in frame) {
    const audio = typeof frame['audio_chunk'] === 'string' ? decodeBase64(frame['audio_chunk']) : undefined;
    return audio === undefined ? null : { type: 'audio', audio };
  }
  if ('timestamps' in frame) {
    const words = parseWords(frame['timestamps']);
    return words === undefined ? null : { type: 'words', words };
  }
  if ('flush_completed' in frame)
    return typeof frame['flush_id'] === 'string' ? { type: 'flushed', flushId: frame['flush_id'] } : null;
  if ('context_started' in frame) {
    const started = parseStarted(frame['context_started']);
    return started === undefined ? null : { type: 'started', started };
  }
  if ('context_closed' in frame) return { type: 'closed' };
  return undefined;
};

/**
 * @returns `undefined` for a well-formed frame of an unknown kind: a later service may have more kinds
 * @throws {SyrinxError} `protocol_error`
 */
export const parseFrame = (text: string): ServerFrame | undefined => {
  let frame: unknown;
  try {
    frame = JSON.parse(text);
  } catch (cause) {
    throw new SyrinxError('protocol_error', 'The service sent a frame that is no JSON', { cause });
  }
  if (!isObject(frame)) throw new SyrinxError('protocol_error', 'The service sent a frame that is no object');
  const content = parseContent(frame);
  const contextId = frame['context_id'];
  if (content === null || (typeof contextId !== 'string' && contextId !== undefined)) {
    const kind = Object.keys(frame).slice(0, 5).join(', ').slice(0, 100);
    throw new SyrinxError('protocol_error', `The service sent a malformed frame (${kind})`);
  }
  return content && { ...content, contextId };
};
