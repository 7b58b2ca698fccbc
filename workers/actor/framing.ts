/**
 * Builds the bytes of frames, ready to send. A framer belongs to one context.
 *
 * - `stream`: every frame is one record, `data: {json}` and two newlines.
 * - `whole`: frames are pieces of one base64 text. Three bytes make four characters, so the framer carries up to two
 *   bytes from one piece to the next. It holds back the first bytes of the payload for the header, which is known last.
 * - `file`: frames are pieces of one file. Its header is known last, and comes as the head.
 * - `raw`, `raw-pieces`: frames are the payload itself, without times.
 * - `socket`: every frame is one JSON message, with the client's name for the context if it gave one.
 * - `openai-events`: every frame is one server-sent event of that API, without times.
 * - `elevenlabs-whole`: as `whole`, with the times of characters; the other framings of that API are in elevenlabs-framing.ts.
 */
import type { Framing, WordTimings } from '../../src/threads/messages.js';
import { NOTHING, type Encoder } from '../audio/encoder.js';
import { alignedEnvelope } from './elevenlabs-framing.js';

export interface Framer {
  /** Its audio frames have the final times. Otherwise times have their own frames, after their audio. */
  readonly carriesTimes: boolean;
  /** @param payload encoded audio, not empty @param timings only for a framer that carries times */
  audio(payload: Uint8Array, timings: WordTimings | undefined): Uint8Array;
  timestamps(timings: WordTimings): Uint8Array;
  /** @param payload the encoder's last bytes @returns what is left to send: `tail` after all audio, `head` before it */
  end(
    payload: Uint8Array,
    timings: WordTimings | undefined,
  ): { readonly tail: Uint8Array; readonly head: Uint8Array };
}

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

const base64 = (bytes: Uint8Array): Uint8Array => Buffer.from(asBuffer(bytes).toString('base64'), 'latin1');

const concat = (a: Uint8Array, b: Uint8Array): Uint8Array => {
  if (a.length === 0) return b;
  const joined = new Uint8Array(a.length + b.length);
  joined.set(a);
  joined.set(b, a.length);
  return joined;
};

/** How frames are built that stand alone. */
export interface Envelope {
  readonly carriesTimes: boolean;
  audio(bytes: Uint8Array, timings: WordTimings | undefined): Uint8Array;
  timestamps(timings: WordTimings): Uint8Array;
}

/** Puts the base64 of some audio between two texts. */
const between = (before: string, after: string): Envelope['audio'] => {
  const [open, close] = [Buffer.from(before), Buffer.from(after)];
  return (bytes) => {
    const text = asBuffer(bytes).toString('base64');
    const frame = Buffer.allocUnsafe(open.length + text.length + close.length);
    frame.set(open);
    frame.write(text, open.length, 'latin1');
    frame.set(close, open.length + text.length);
    return frame;
  };
};

const noTimes = (): never => {
  throw new Error('these frames have no place for times');
};

const recordEnvelope: Envelope = {
  carriesTimes: false,
  audio: between('data: {"type":"audio","audio_chunk":"', '"}\n\n'),
  timestamps: (timings) => Buffer.from(`data: ${JSON.stringify({ type: 'timestamps', ...timings })}\n\n`),
};

const eventEnvelope: Envelope = {
  carriesTimes: false,
  audio: between('data: {"type":"speech.audio.delta","audio":"', '"}\n\n'),
  timestamps: noTimes,
};

const rawEnvelope: Envelope = { carriesTimes: false, audio: (bytes) => bytes, timestamps: noTimes };

const messageEnvelope = (clientContextId: string | undefined): Envelope => {
  const close = clientContextId === undefined ? '}' : `,"context_id":${JSON.stringify(clientContextId)}}`;
  return {
    carriesTimes: false,
    audio: between('{"audio_chunk":"', `"${close}`),
    timestamps: (timings) => Buffer.from(`{"timestamps":${JSON.stringify(timings)}${close}`),
  };
};

/** Records, messages, events, and bare bytes: frames that stand alone. */
class ChunkFramer implements Framer {
  readonly carriesTimes: boolean;
  readonly #encoder: Encoder;
  readonly #envelope: Envelope;
  #begun = false;

  constructor(encoder: Encoder, envelope: Envelope) {
    this.#encoder = encoder;
    this.#envelope = envelope;
    this.carriesTimes = envelope.carriesTimes;
  }

  audio(payload: Uint8Array, timings: WordTimings | undefined): Uint8Array {
    const header = this.#encoder.chunkHeader(payload.length, !this.#begun);
    this.#begun = true;
    return this.#envelope.audio(concat(header, payload), timings);
  }

  timestamps(timings: WordTimings): Uint8Array {
    return this.#envelope.timestamps(timings);
  }

  end(payload: Uint8Array, timings: WordTimings | undefined): { tail: Uint8Array; head: Uint8Array } {
    if (payload.length > 0) return { tail: this.audio(payload, timings), head: NOTHING };
    return { tail: timings === undefined ? NOTHING : this.timestamps(timings), head: NOTHING };
  }
}

class WholeFramer implements Framer {
  readonly carriesTimes = false;
  readonly #encoder: Encoder;
  /** Payload bytes that complete the header to a multiple of three. */
  readonly #keptMax: number;
  #kept: Uint8Array = NOTHING;
  #carried: Uint8Array = NOTHING;
  #payloadBytes = 0;

  constructor(encoder: Encoder) {
    this.#encoder = encoder;
    this.#keptMax = (3 - (encoder.fileHeader(0).length % 3)) % 3;
  }

  audio(payload: Uint8Array): Uint8Array {
    this.#payloadBytes += payload.length;
    const wanted = this.#keptMax - this.#kept.length;
    this.#kept = concat(this.#kept, payload.slice(0, wanted));
    const bytes = concat(this.#carried, payload.subarray(wanted));
    const whole = bytes.length - (bytes.length % 3);
    this.#carried = bytes.slice(whole);
    return base64(bytes.subarray(0, whole));
  }

  timestamps(): Uint8Array {
    return NOTHING;
  }

  end(payload: Uint8Array): { tail: Uint8Array; head: Uint8Array } {
    const last = this.audio(payload);
    const tail = Buffer.concat([last, base64(this.#carried)]);
    const header = this.#encoder.fileHeader(this.#payloadBytes);
    return { tail, head: base64(concat(header, this.#kept)) };
  }
}

class FileFramer implements Framer {
  readonly carriesTimes = false;
  readonly #encoder: Encoder;
  #payloadBytes = 0;

  constructor(encoder: Encoder) {
    this.#encoder = encoder;
  }

  audio(payload: Uint8Array): Uint8Array {
    this.#payloadBytes += payload.length;
    return payload;
  }

  timestamps(): Uint8Array {
    return NOTHING;
  }

  end(payload: Uint8Array): { tail: Uint8Array; head: Uint8Array } {
    const tail = this.audio(payload);
    return { tail, head: this.#encoder.fileHeader(this.#payloadBytes) };
  }
}

/** @param clientContextId of WebSockets only */
export const createFramer = (framing: Framing, encoder: Encoder, clientContextId?: string): Framer => {
  switch (framing) {
    case 'stream':
      return new ChunkFramer(encoder, recordEnvelope);
    case 'openai-events':
      return new ChunkFramer(encoder, eventEnvelope);
    case 'socket':
      return new ChunkFramer(encoder, messageEnvelope(clientContextId));
    case 'whole':
    case 'elevenlabs-whole':
      return new WholeFramer(encoder);
    case 'file':
      return new FileFramer(encoder);
    case 'raw':
    case 'raw-pieces':
      return new ChunkFramer(encoder, rawEnvelope);
    case 'elevenlabs':
    case 'elevenlabs-sync':
    case 'elevenlabs-lines':
      return new ChunkFramer(encoder, alignedEnvelope(framing, clientContextId));
  }
};
