/**
 * One keep-alive connection for `POST /v1/tts/stream`, as cheap as a client can be, because it shares the machine with
 * what it measures: a raw socket, one receive buffer for all of them, and a parser that looks at the framing only.
 */
import { type Socket, connect } from 'node:net';
import { bytesPerMs, pagePosition, pageTimeMs } from './playing-time.js';
import type { Target } from './protocol.js';

const receiveBuffer = Buffer.allocUnsafe(64 * 1024);

const CR = 13;
const LF = 10;

/** What a record has besides base64. */
const base64At = 'data: {"type":"audio","audio_chunk":"'.length;
const recordOverheadBytes = base64At + '"}\n\n'.length;
const colon = ':'.charCodeAt(0);
const colonAt = 'data'.length;

type ParserState = 'head' | 'size' | 'payload' | 'payload-end' | 'trailer';

export interface StreamHandlers {
  /** Audio arrived; `audioMs` is all of the response so far. */
  readonly onAudio: (audioMs: number) => void;
  readonly onEnd: () => void;
  readonly onError: (error: Error) => void;
}

/** The request's bytes: made once, written many times. */
export const encodeRequest = (target: Target, key: string, text: string): Buffer => {
  const { format } = target;
  const body = JSON.stringify({
    text,
    voice: target.voice,
    response_format: {
      encoding: format.encoding,
      sample_rate: format.sampleRateHz,
      bitrate: 'bitrateKbps' in format ? format.bitrateKbps : null,
    },
  });
  const head = [
    'POST /v1/tts/stream HTTP/1.1',
    'host: bench',
    `x-api-key: ${key}`,
    'content-type: application/json',
    `content-length: ${String(Buffer.byteLength(body))}`,
  ];
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`);
};

export class StreamConnection {
  readonly #target: Target;
  #socket: Socket;
  /** `null`: its pages tell the time. */
  readonly #msPerBase64Byte: number | null;
  readonly #opened: Promise<void>;
  #handlers: StreamHandlers | null = null;
  /** What was asked for on a kept connection, until it is answered: the service may have closed that meanwhile. */
  #unanswered: Buffer | null = null;
  #error: Error | null = null;
  #state: ParserState = 'head';
  #head = '';
  #chunkBytesLeft = 0;
  #chunkOffset = 0;
  #trailerByte = 0;
  #base64Bytes = 0;
  /** The chunk begins with a record, and is no further part of one. */
  #inRecord = false;
  #pagePosition = '';
  #pageMs = 0;

  constructor(target: Target) {
    const payloadBytesPerMs = bytesPerMs(target.format);
    // Base64 has four characters for three bytes.
    this.#msPerBase64Byte = payloadBytesPerMs === null ? null : 3 / 4 / payloadBytesPerMs;
    this.#target = target;
    this.#socket = this.#connect();
    this.#opened = new Promise((resolve, reject) => {
      this.#socket.once('connect', resolve).once('error', reject);
    });
  }

  /** Resolves when the connection is there: what is measured does not include it. */
  opened(): Promise<void> {
    return this.#opened;
  }

  /** One request at a time. */
  request(bytes: Buffer, handlers: StreamHandlers): void {
    this.#handlers = handlers;
    this.#state = 'head';
    this.#head = '';
    this.#base64Bytes = 0;
    this.#pageMs = 0;
    this.#unanswered = bytes;
    this.#socket.write(bytes);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Idempotent; a request under way is aborted, and hears no more. */
  close(): void {
    this.#handlers = null;
    this.#socket.destroy();
  }

  get #audioMs(): number {
    return this.#msPerBase64Byte === null ? this.#pageMs : this.#base64Bytes * this.#msPerBase64Byte;
  }

  #connect(): Socket {
    const socket = connect({
      host: '127.0.0.1',
      port: this.#target.port,
      noDelay: true,
      onread: {
        buffer: receiveBuffer,
        callback: (length) => {
          this.#unanswered = null;
          this.#parse(length);
          return true;
        },
      },
    });
    this.#error = null;
    socket.on('error', (error) => (this.#error = error));
    socket.on('close', () => this.#onClose());
    return socket;
  }

  /** A kept connection that idled is closed by its server, which a client sees when it asks again: it asks anew. */
  #onClose(): void {
    const bytes = this.#unanswered;
    this.#unanswered = null;
    if (bytes === null || this.#handlers === null) {
      this.#fail(this.#error ?? new Error('the service closed the connection'));
      return;
    }
    this.#socket = this.#connect();
    this.#socket.write(bytes);
  }

  #fail(error: Error): void {
    const handlers = this.#handlers;
    this.#handlers = null;
    handlers?.onError(error);
  }

  #parse(length: number): void {
    const before = this.#base64Bytes;
    let i = 0;
    while (i < length) {
      switch (this.#state) {
        case 'head':
          i = this.#parseHead(i, length);
          break;
        case 'size':
          i = this.#parseSize(i, length);
          break;
        case 'payload':
          i = this.#parsePayload(i, length);
          break;
        case 'payload-end':
          if (receiveBuffer[i++] === LF) this.#state = 'size';
          break;
        case 'trailer':
          if (receiveBuffer[i++] === LF && ++this.#trailerByte === 1) this.#end();
      }
    }
    if (this.#base64Bytes > before) this.#handlers?.onAudio(this.#audioMs);
  }

  #parseHead(from: number, length: number): number {
    this.#head += receiveBuffer.toString('latin1', from, length);
    const end = this.#head.indexOf('\r\n\r\n');
    if (end < 0) return length;
    const excess = this.#head.length - end - 4;
    if (!this.#head.startsWith('HTTP/1.1 200 ')) {
      this.#fail(new Error(`the service answered ${this.#head}`));
      this.close();
      return length;
    }
    this.#state = 'size';
    this.#chunkBytesLeft = 0;
    return length - excess;
  }

  #parseSize(from: number, length: number): number {
    let i = from;
    while (i < length) {
      const byte = receiveBuffer[i++]!;
      if (byte === CR) continue;
      if (byte === LF) {
        this.#state = this.#chunkBytesLeft === 0 ? 'trailer' : 'payload';
        this.#chunkOffset = 0;
        this.#trailerByte = 0;
        break;
      }
      const digit = byte <= 57 ? byte - 48 : (byte | 32) - 87;
      this.#chunkBytesLeft = this.#chunkBytesLeft * 16 + digit;
    }
    return i;
  }

  /** A long record comes in several chunks; only the first of them has the colon, which base64 has not. */
  #parsePayload(from: number, length: number): number {
    const count = Math.min(length - from, this.#chunkBytesLeft);
    const colonIndex = from + colonAt - this.#chunkOffset;
    const seesColon = this.#chunkOffset <= colonAt && colonIndex < from + count;
    const beginsRecord = seesColon && receiveBuffer[colonIndex] === colon;
    this.#base64Bytes += count;
    if (beginsRecord) this.#base64Bytes -= recordOverheadBytes;
    if (this.#chunkOffset === 0) this.#inRecord = false;
    this.#inRecord ||= beginsRecord;
    if (this.#msPerBase64Byte === null && this.#inRecord) this.#lookForPage(from, count);
    this.#chunkOffset += count;
    this.#chunkBytesLeft -= count;
    if (this.#chunkBytesLeft === 0) this.#state = 'payload-end';
    return from + count;
  }

  /** Takes a page's position from the beginning of a record, which may come in parts. */
  #lookForPage(from: number, count: number): void {
    const begin = Math.max(base64At + pagePosition.begin - this.#chunkOffset, 0);
    const end = Math.min(base64At + pagePosition.end - this.#chunkOffset, count);
    if (begin >= end) return;
    this.#pagePosition += receiveBuffer.toString('latin1', from + begin, from + end);
    if (this.#pagePosition.length < pagePosition.end - pagePosition.begin) return;
    this.#pageMs = pageTimeMs(this.#pagePosition);
    this.#pagePosition = '';
  }

  #end(): void {
    const handlers = this.#handlers;
    this.#handlers = null;
    // Its last audio may have come in this very read.
    handlers?.onAudio(this.#audioMs);
    handlers?.onEnd();
  }
}
