/** Turns of one context of a WebSocket, as a listener hears them: the counterpart of a stream over HTTP. */
import { bytesPerMs } from './playing-time.js';
import type { Target } from './protocol.js';
import { encodeStart, socketPath } from '../rig-old/context-start.js';
import { SocketConnection, audioOverheadBytes, encodeMessage } from '../rig-old/socket-connection.js';
import type { StreamHandlers } from './stream-connection.js';

/** Text and flush, in the bytes of one write. */
export const encodeTurn = (text: string): Buffer =>
  Buffer.concat([encodeMessage({ send_text: text }), encodeMessage({ flush: true })]);

export class SocketStream {
  readonly #connection: SocketConnection;
  readonly #msPerBase64Byte: number;
  readonly #opened: Promise<void>;
  #handlers: StreamHandlers | null = null;
  #base64Bytes = 0;

  /** @throws {RangeError} for a format whose bytes do not tell its time */
  constructor(target: Target, key: string) {
    const payloadBytesPerMs = bytesPerMs(target.format);
    if (payloadBytesPerMs === null) throw new RangeError('the bytes of this format do not tell its time');
    this.#msPerBase64Byte = 3 / 4 / payloadBytesPerMs;
    let onStarted: () => void = () => undefined;
    let onFailed: (error: Error) => void = () => undefined;
    this.#opened = new Promise((resolve, reject) => {
      onStarted = resolve;
      onFailed = reject;
    });
    this.#connection = new SocketConnection(
      { port: target.port, path: socketPath, key, wantsAll: false },
      {
        onAudio: (bytes) => {
          this.#base64Bytes += bytes - audioOverheadBytes;
          this.#handlers?.onAudio(this.#base64Bytes * this.#msPerBase64Byte);
        },
        onMessage: (json) => {
          if (json.includes('"flush_completed"')) this.#handlers?.onEnd();
          else if (json.includes('"context_started"')) onStarted();
          else this.#fail(new Error(`the service said ${json}`), onFailed);
        },
        onError: (error) => this.#fail(error, onFailed),
      },
    );
    this.#connection.opened().then(() => this.#connection.write(encodeStart(target)), onFailed);
  }

  /** Resolves when its context is started: what is measured does not include it. */
  opened(): Promise<void> {
    return this.#opened;
  }

  /** Messages so far, of all kinds. */
  get messages(): number {
    return this.#connection.messages;
  }

  /** One turn at a time. @param bytes of `encodeTurn` */
  request(bytes: Buffer, handlers: StreamHandlers): void {
    this.#handlers = handlers;
    this.#base64Bytes = 0;
    this.#connection.write(bytes);
  }

  pause(): void {
    this.#connection.pause();
  }

  resume(): void {
    this.#connection.resume();
  }

  /** Idempotent. */
  close(): void {
    this.#handlers = null;
    this.#connection.close();
  }

  #fail(error: Error, onFailed: (error: Error) => void): void {
    onFailed(error);
    this.#handlers?.onError(error);
    this.close();
  }
}
