/** Streams of speech as the benchmark's listeners hear them, and the listeners. */
import type { AudioFormat } from '../../src/api/formats.js';
import { createAudioCheck } from '../rig/audio-check.js';
import { type Decoder, type FirstAudio, FirstAudioProbe } from '../rig/first-audio.js';
import { HttpConnection, RecordReader, encodeRequest, speechRequest } from '../rig/http.js';
import { Playback, ReadAhead, type Readable } from '../rig/playback.js';
import {
  SocketConnection,
  audioOverheadBytes,
  encodeMessage,
  encodeStart,
  unavailable,
  type ServerFrame,
} from '../rig/socket.js';

export interface Spoken {
  readonly voice: string;
  readonly format: AudioFormat;
}

export interface Target extends Spoken {
  readonly port: number;
  readonly keys: readonly string[];
}

export const keyOf = ({ keys }: Target, index: number): string => keys[index % keys.length]!;

export interface StreamHandlers {
  /** The last byte of the request is handed to the system. */
  readonly onWritten?: () => void;
  /** The service is full; `onEnd` follows. Without this handler, that is an error. */
  readonly onRefused?: () => void;
  /** Over HTTP: bytes of the body, valid only during the call. `onAudio` follows. */
  readonly onBody?: (piece: Buffer) => void;
  /** Audio arrived; `audioMs` is all of the utterance so far. */
  readonly onAudio: (audioMs: number) => void;
  /** The utterance is whole, or its refusal is. The stream is free again. */
  readonly onEnd: () => void;
  /** Anything else that ends the utterance, and the stream. */
  readonly onError: (error: Error) => void;
}

/** Speech over HTTP or over a WebSocket: one connection, one utterance at a time. */
export interface SpeechStream {
  readonly connection: Readable & { opened(): Promise<void> };
  /** Asks at once; the time until the connection is open counts. */
  request(text: string, handlers: StreamHandlers): void;
  /** No handler is called afterwards. Idempotent. */
  close(): void;
}

/** Milliseconds of speech in a byte of base64. @throws {RangeError} unless it is pcm: others are measured as streams over HTTP */
const msPerBase64Byte = ({ encoding, sampleRateHz }: AudioFormat): number => {
  if (encoding !== 'pcm') throw new RangeError(`the bytes of ${encoding} are not measured here`);
  return ((3 / 4) * 1000) / (sampleRateHz * 2);
};

const wholeOverheadBytes = '{"audio":""}'.length;

/** Milliseconds of speech in the body of a whole file of pcm. */
export const wholeAudioMs = (format: AudioFormat, bodyBytes: number): number =>
  (bodyBytes - wholeOverheadBytes) * msPerBase64Byte(format);

/** What an audio record has around its base64. */
const recordHead = 'data: {"type":"audio","audio_chunk":"';
const recordTail = '"}';

/** `POST /v1/tts/stream` on a connection that is kept. It cuts the base64 out of records, without parsing them. */
export class HttpStream implements SpeechStream {
  readonly #target: Target;
  readonly #key: string;
  readonly connection: HttpConnection;

  constructor(target: Target, key: string) {
    this.#target = target;
    this.#key = key;
    this.connection = new HttpConnection(target);
  }

  request(text: string, { onAudio, onBody, onEnd, onError, onRefused, onWritten }: StreamHandlers): void {
    let isSpeech = false;
    const { format, voice } = this.#target;
    const reader = new RecordReader();
    const audio = createAudioCheck(format);
    const fail = (error: Error): void => {
      this.close();
      onError(error);
    };
    this.connection.request(encodeRequest(speechRequest({ key: this.#key, text, voice, format })), {
      onHead: (status, headers) => {
        isSpeech = status === 200;
        if (isSpeech) return;
        if (status !== 503 || onRefused === undefined) fail(new Error(`the service answered ${status}`));
        else if (!headers.has('retry-after')) fail(new Error('a 503 has no Retry-After'));
        else onRefused();
      },
      onBody: (piece) => {
        if (!isSpeech) return;
        onBody?.(piece);
        const beforeMs = audio.durationMs;
        for (const record of reader.push(piece))
          audio.push(Buffer.from(record.slice(recordHead.length, -recordTail.length), 'base64'));
        if (audio.durationMs > beforeMs) onAudio(audio.durationMs);
      },
      onEnd,
      onError: fail,
    });
    onWritten?.();
  }

  close(): void {
    this.connection.close();
  }
}

/** The bytes of an utterance on a WebSocket: text and flush. */
export const encodeUtterance = (text: string): Buffer =>
  Buffer.concat([encodeMessage({ send_text: text }), encodeMessage({ flush: true })]);

/** A WebSocket: each utterance has a context of its own, which the client opens, flushes and closes in one go. */
export class SocketStream implements SpeechStream {
  readonly connection: SocketConnection;
  readonly #start: Buffer;
  #handlers: StreamHandlers | null = null;
  #base64Bytes = 0;

  constructor(target: Target, key: string) {
    const msPerByte = msPerBase64Byte(target.format);
    this.#start = encodeStart(target);
    this.connection = new SocketConnection(
      { port: target.port, key },
      {
        onAudio: (bytes) => {
          this.#base64Bytes += bytes - audioOverheadBytes;
          this.#handlers?.onAudio(this.#base64Bytes * msPerByte);
        },
        onMessage: (json) => this.#onMessage(JSON.parse(json) as ServerFrame),
        onError: (error) => this.#fail(error),
      },
    );
  }

  request(text: string, handlers: StreamHandlers): void {
    this.#handlers = handlers;
    this.#base64Bytes = 0;
    const frames = [this.#start, encodeUtterance(text), encodeMessage({ close_context: true })];
    this.connection.opened().then(
      () => {
        this.connection.write(Buffer.concat(frames));
        handlers.onWritten?.();
      },
      // `onError` reports it.
      () => undefined,
    );
  }

  close(): void {
    this.#handlers = null;
    this.connection.close();
  }

  #onMessage(frame: ServerFrame): void {
    const handlers = this.#handlers;
    if (frame.error === unavailable && handlers?.onRefused !== undefined) handlers.onRefused();
    else if (frame.error !== undefined) this.#fail(new Error(`the service sent "${frame.error}"`));
    else if (frame.context_closed === true) {
      this.#handlers = null;
      handlers?.onEnd();
    }
  }

  #fail(error: Error): void {
    const handlers = this.#handlers;
    this.close();
    handlers?.onError(error);
  }
}

/** Reads no faster than speech plays, and asks again when all of it has been heard. */
export class Listener {
  /** Milliseconds to first audio, of each request so far. */
  readonly firstAudioMs: number[] = [];
  /** The three figures of each request over HTTP, if there is a decoder. */
  readonly firstAudio: FirstAudio[] = [];
  /** The longest wait in the middle of speech; 0 without one. */
  dryMs = 0;
  readonly stream: SpeechStream;
  readonly #text: string;
  readonly #playback = new Playback();
  readonly #readAhead: ReadAhead;
  readonly #decoder: Decoder | null;
  /** Until the current speech is heard. */
  #probe: FirstAudioProbe | null = null;
  #isComplete = false;
  #error: Error | null = null;

  constructor(stream: SpeechStream, text: string, decoder: Decoder | null) {
    this.stream = stream;
    this.#text = text;
    this.#decoder = decoder;
    this.#readAhead = new ReadAhead(stream.connection);
  }

  start(nowMs: number): void {
    this.#isComplete = false;
    // The end may have come in the same read as the audio that it was paused for.
    this.#readAhead.resume();
    this.#playback.begin(nowMs);
    this.#probe = this.#decoder && new FirstAudioProbe(this.#decoder);
    this.stream.request(this.#text, {
      onBody: (piece) => this.#probe?.push(piece, performance.now() - nowMs),
      onAudio: (audioMs) => this.#onAudio(audioMs, performance.now()),
      onEnd: () => (this.#isComplete = true),
      onError: (error) => (this.#error = error),
    });
  }

  /** Reads more, or asks for the next speech. @throws the error of its stream */
  tick(nowMs: number): void {
    if (this.#error !== null) throw this.#error;
    if (!this.#playback.isPlaying) return;
    const aheadMs = this.#playback.aheadMs(nowMs);
    if (!this.#isComplete) this.#readAhead.update(aheadMs);
    else if (aheadMs === 0) this.start(nowMs);
  }

  #onAudio(audioMs: number, nowMs: number): void {
    const arrival = this.#playback.audio(audioMs, nowMs);
    if (arrival?.kind === 'first') this.firstAudioMs.push(arrival.waitedMs);
    else if (arrival?.kind === 'dry') this.dryMs = Math.max(this.dryMs, arrival.waitedMs);
    this.#readAhead.update(this.#playback.aheadMs(nowMs));
    const figures = this.#probe?.figures();
    if (figures === null || figures === undefined) return;
    this.firstAudio.push(figures);
    this.#probe = null;
  }
}
