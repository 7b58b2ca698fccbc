/** Connections on which listeners ask for one utterance after the other, and learn whether they are admitted. */
import {
  audioOverheadBytes,
  encodeMessage,
  encodeStart,
  SocketConnection,
  unavailable,
} from '../../rig/socket.js';
import type { ServerFrame } from '../../rig/socket.js';
import { encodeSpeech, encodeUtterance, HttpStream, msPerBase64Byte, type Target } from '../streams.js';

export interface VisitHandlers {
  /** The last byte of the request is handed to the system. */
  readonly onWritten: () => void;
  /** Audio arrived; `audioMs` is all of the utterance so far. */
  readonly onAudio: (audioMs: number) => void;
  /** The service is full; `onEnd` follows. */
  readonly onRefused: () => void;
  /** The utterance is whole, or its refusal is. The channel is free again. */
  readonly onEnd: () => void;
  /** Anything else that ends the visit, and the channel. */
  readonly onError: (reason: string) => void;
}

/** One connection, one utterance at a time. */
export interface Channel {
  /** The time until the connection is open counts. */
  ask(text: string, handlers: VisitHandlers): void;
  /** No handler is called afterwards. Idempotent. */
  close(): void;
}

export class HttpChannel implements Channel {
  readonly #target: Target;
  readonly #key: string;
  readonly #stream: HttpStream;
  #isClosed = false;

  constructor(target: Target, key: string) {
    this.#target = target;
    this.#key = key;
    this.#stream = new HttpStream(target);
  }

  ask(text: string, { onAudio, onEnd, onError, onRefused, onWritten }: VisitHandlers): void {
    let fault: string | null = null;
    this.#stream.request(encodeSpeech(this.#target, this.#key, text), {
      onRefused: (status, headers) => {
        if (status !== 503) fault = `the service answered ${status}`;
        else if (!headers.has('retry-after')) fault = 'a 503 has no Retry-After';
        else onRefused();
      },
      onAudio,
      onEnd: () => {
        if (fault === null) onEnd();
        else this.#fail(fault, onError);
      },
      onError: (error) => this.#fail(error.message, onError),
    });
    onWritten();
  }

  close(): void {
    this.#isClosed = true;
    this.#stream.close();
  }

  #fail(reason: string, onError: VisitHandlers['onError']): void {
    if (this.#isClosed) return;
    this.close();
    onError(reason);
  }
}

/** A WebSocket: each utterance has a context of its own, which the client opens, flushes and closes in one go. */
export class SocketChannel implements Channel {
  readonly #start: Buffer;
  readonly #connection: SocketConnection;
  readonly #msPerByte: number;
  #handlers: VisitHandlers | null = null;
  #base64Bytes = 0;

  /** @throws {RangeError} for Opus */
  constructor(target: Target, key: string) {
    const msPerByte = msPerBase64Byte(target.format);
    if (msPerByte === null) throw new RangeError('the bytes of this format have no fixed duration');
    this.#msPerByte = msPerByte;
    this.#start = encodeStart(target);
    this.#connection = new SocketConnection(
      { port: target.port, key },
      {
        onAudio: (bytes) => {
          this.#base64Bytes += bytes - audioOverheadBytes;
          this.#handlers?.onAudio(this.#base64Bytes * this.#msPerByte);
        },
        onMessage: (json) => this.#onMessage(JSON.parse(json) as ServerFrame),
        onError: (error) => this.#fail(error.message),
      },
    );
  }

  ask(text: string, handlers: VisitHandlers): void {
    this.#handlers = handlers;
    this.#base64Bytes = 0;
    const utterance = Buffer.concat([
      this.#start,
      encodeUtterance(text),
      encodeMessage({ close_context: true }),
    ]);
    this.#connection.opened().then(
      () => {
        this.#connection.write(utterance);
        handlers.onWritten();
      },
      // `onError` reports it.
      () => undefined,
    );
  }

  close(): void {
    this.#handlers = null;
    this.#connection.close();
  }

  #onMessage(frame: ServerFrame): void {
    if (frame.error === unavailable) this.#handlers?.onRefused();
    else if (frame.error !== undefined) this.#fail(`the service sent "${frame.error}"`);
    else if (frame.context_closed === true) {
      const handlers = this.#handlers;
      this.#handlers = null;
      handlers?.onEnd();
    }
  }

  #fail(reason: string): void {
    const handlers = this.#handlers;
    this.close();
    handlers?.onError(reason);
  }
}
