/** One WebSocket, from its handshake to its end. The end comes once, with a reason, and nothing follows it. */
import type { IncomingMessage } from 'node:http';
import WebSocket, { type RawData } from 'ws';
import { SyrinxError, errorOfHandshake } from './errors.js';
import { type ServerFrame, parseFrame } from './frames.js';
import type { Settings } from './options.js';

/** Bytes of one message; the service's messages are below 1 MiB. */
const messageBytesMax = 4 * 1024 * 1024;
/** Bytes of a refusal's body that the client reads. */
const refusalBytesMax = 4 * 1024;
const policyViolation = 1008;

export interface ConnectionHandlers {
  onOpen(): void;
  onFrame(frame: ServerFrame): void;
  /** The service is alive: it sent a frame, or answered a ping. */
  onAlive(): void;
  /** A sent frame has left for the network. */
  onSent(): void;
  onEnd(error: SyrinxError): void;
}

export class Connection {
  readonly #socket: WebSocket;
  readonly #settings: Settings;
  readonly #handlers: ConnectionHandlers;
  #state: 'connecting' | 'open' | 'closing' | 'ended' = 'connecting';
  #reason: SyrinxError | undefined;
  #wasHeard = false;
  #stopTimer: () => void;

  constructor(settings: Settings, handlers: ConnectionHandlers) {
    this.#settings = settings;
    this.#handlers = handlers;
    this.#socket = new WebSocket(settings.url, {
      headers: settings.headers,
      // Base64 of speech hardly compresses, and a deflater costs 300 KiB for each connection.
      perMessageDeflate: false,
      maxPayload: messageBytesMax,
    });
    this.#stopTimer = settings.clock.after(settings.connectTimeoutMs, () => {
      this.end(new SyrinxError('unreachable', `No handshake within ${String(settings.connectTimeoutMs)} ms`));
    });
    this.#socket
      .on('open', () => {
        this.#opened();
      })
      .on('unexpected-response', (_request: unknown, response: IncomingMessage) => {
        this.#refused(response);
      })
      .on('message', (data, isBinary) => {
        this.#received(data, isBinary);
      })
      .on('ping', () => {
        this.#alive();
      })
      .on('pong', () => {
        this.#alive();
      })
      .on('error', (cause: Error & { code?: string }) => {
        this.#reason ??= this.#errorOf(cause);
      })
      .on('close', (code, reason) => {
        this.#closed(code, reason.toString());
      });
  }

  /** Sent bytes that have not left. */
  get waitingBytes(): number {
    return this.#socket.bufferedAmount;
  }

  send(frame: string): void {
    if (this.#state !== 'open') return;
    this.#socket.send(frame, () => {
      // The socket ends by itself after a failure.
      if (this.#state !== 'ended') this.#handlers.onSent();
    });
  }

  /** Stops or resumes reading: the network, and then the service, hold back the rest. */
  setPaused(isPaused: boolean): void {
    if (this.#state !== 'open') return;
    if (isPaused) this.#socket.pause();
    else {
      // While the connection was paused, silence did not mean that the service is gone.
      this.#wasHeard = true;
      this.#socket.resume();
    }
  }

  /** Closes cleanly, and waits a little for the answer. Always calls `onEnd`. */
  close(reason: SyrinxError): void {
    if (this.#state === 'connecting') this.end(reason);
    if (this.#state !== 'open') return;
    this.#state = 'closing';
    this.#reason = reason;
    this.#stopTimer();
    this.#stopTimer = this.#settings.clock.after(this.#settings.closeTimeoutMs, () => {
      this.end(reason);
    });
    this.#socket.close(1000);
  }

  /** Ends at once, without a close frame. */
  end(error: SyrinxError): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    this.#stopTimer();
    this.#socket.terminate();
    this.#handlers.onEnd(error);
  }

  #opened(): void {
    if (this.#state !== 'connecting') return;
    this.#state = 'open';
    this.#stopTimer();
    this.#keepAlive();
    this.#handlers.onOpen();
  }

  /** The first ping shows whether the service takes the key: it answers a handshake with any key, and refuses it after. */
  #keepAlive(): void {
    const ms = this.#settings.pingIntervalMs;
    this.#wasHeard = false;
    this.#socket.ping();
    this.#stopTimer = this.#settings.clock.after(ms, () => {
      if (!this.#wasHeard && !this.#socket.isPaused) {
        this.end(
          new SyrinxError('connection_lost', `The service did not answer a ping within ${String(ms)} ms`),
        );
        return;
      }
      this.#keepAlive();
    });
  }

  #alive(): void {
    this.#wasHeard = true;
    if (this.#state === 'open') this.#handlers.onAlive();
  }

  #received(data: RawData, isBinary: boolean): void {
    if (this.#state !== 'open') return;
    let frame;
    try {
      if (isBinary) throw new SyrinxError('protocol_error', 'The service sent a binary message');
      // ws passes text as a Buffer unless `binaryType` is set.
      frame = parseFrame((data as Buffer).toString());
    } catch (error) {
      this.end(error as SyrinxError);
      return;
    }
    // A frame that ends the connection is no sign of life.
    if (frame !== undefined) this.#handlers.onFrame(frame);
    this.#alive();
  }

  /** The answer is not a WebSocket: another server, or a refusal of this service. */
  #refused(response: IncomingMessage): void {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const finish = () => {
      this.end(
        errorOfHandshake(
          response.statusCode ?? 0,
          Buffer.concat(chunks).toString().slice(0, refusalBytesMax),
        ),
      );
    };
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes >= refusalBytesMax) finish();
    });
    response.on('end', finish).on('error', finish).on('close', finish);
  }

  #errorOf(cause: Error & { code?: string }): SyrinxError {
    if (this.#state === 'connecting')
      return new SyrinxError('unreachable', `${this.#settings.url} cannot be reached: ${cause.message}`, {
        cause,
      });
    const isProtocol = cause.code?.startsWith('WS_ERR_') === true;
    return new SyrinxError(isProtocol ? 'protocol_error' : 'connection_lost', cause.message, { cause });
  }

  #closed(code: number, reason: string): void {
    const shown = reason === '' ? String(code) : `${String(code)}, ${reason}`;
    // The service closes with this code if the key is unknown or not valid any more.
    const meaning = code === policyViolation ? 'invalid_api_key' : 'connection_lost';
    this.end(this.#reason ?? new SyrinxError(meaning, `The service closed the connection (${shown})`));
  }
}
