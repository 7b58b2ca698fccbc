/**
 * The rig's HTTP client. A connection is as cheap as a client can be, because it shares the machine with the service that
 * it measures: a raw socket, one receive buffer for all connections, and a parser that copies no byte of a body.
 */
import { type Socket, connect } from 'node:net';
import type { AudioFormat } from '../../src/api/formats.js';

const receiveBuffer = Buffer.allocUnsafe(64 * 1024);

const [CR, LF] = [13, 10];

export interface RequestParts {
  readonly path: string;
  /** By default GET, or POST with a body. */
  readonly method?: string;
  readonly key?: string;
  /** Sent as JSON. */
  readonly body?: object;
}

export const encodeRequest = ({ body, key, method, path }: RequestParts): Buffer => {
  const json = body === undefined ? '' : JSON.stringify(body);
  const head = [
    `${method ?? (body === undefined ? 'GET' : 'POST')} ${path} HTTP/1.1`,
    'Host: localhost',
    ...(key === undefined ? [] : [`X-Api-Key: ${key}`]),
    ...(body === undefined
      ? []
      : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(json)}`]),
  ];
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${json}`);
};

export type SpeechPath = '/v1/tts' | '/v1/tts/stream';

export interface SpeechParts {
  readonly key: string;
  readonly voice: string;
  readonly text: string;
  /** By default `/v1/tts/stream`. */
  readonly path?: string;
  /** By default pcm at 24,000 Hz. */
  readonly format?: AudioFormat;
  readonly timestamps?: boolean;
}

/** As the specification has it in bodies and in `start_context`. */
export const responseFormat = (format: AudioFormat): object => ({
  encoding: format.encoding,
  sample_rate: format.sampleRateHz,
  ...('bitrateKbps' in format && { bitrate: format.bitrateKbps }),
});

export const speechRequest = (parts: SpeechParts): RequestParts => {
  const { format = { encoding: 'pcm', sampleRateHz: 24_000 }, key, path = '/v1/tts/stream' } = parts;
  const { text, timestamps = false, voice } = parts;
  return { path, key, body: { text, voice, timestamps, response_format: responseFormat(format) } };
};

export interface ResponseHandlers {
  readonly onHead?: (status: number, headers: ReadonlyMap<string, string>) => void;
  /**
   * @param bytes valid only during the call
   * @param offset of these bytes in their HTTP chunk
   */
  readonly onBody: (bytes: Buffer, offset: number) => void;
  readonly onEnd: () => void;
  /** The connection failed, or closed before the end of the response. */
  readonly onError: (error: Error) => void;
}

type State = 'head' | 'size' | 'chunk' | 'chunk-end' | 'trailer' | 'length' | 'until-close';

export interface HttpTarget {
  readonly port: number;
  /** By default this machine. */
  readonly host?: string;
}

/** One keep-alive connection: one request at a time. It connects again when the service has closed it in between. */
export class HttpConnection {
  readonly #target: HttpTarget;
  #socket: Socket;
  #handlers: ResponseHandlers | null = null;
  /** The request until its response begins: a kept connection may be closing just then. */
  #unanswered: Buffer | null = null;
  #isReused = false;
  #isClosed = false;
  #error: Error | null = null;
  #state: State = 'head';
  #head = '';
  #keepsAlive = true;
  #bytesLeft = 0;
  #offset = 0;
  #lineBytes = 0;

  constructor(target: HttpTarget) {
    this.#target = target;
    this.#socket = this.#connect();
  }

  /** Resolves when the connection is open. @throws when it fails */
  opened(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (!this.#socket.connecting) resolve();
      this.#socket.once('connect', resolve).once('error', reject);
    });
  }

  request(bytes: Buffer, handlers: ResponseHandlers): void {
    this.#handlers = handlers;
    this.#state = 'head';
    this.#head = '';
    this.#unanswered = bytes;
    if (this.#socket.destroyed || !this.#socket.writable) this.#socket = this.#connect();
    this.#socket.write(bytes);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Aborts a request; its handlers are not called again. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#handlers = null;
    this.#socket.destroy();
  }

  #connect(): Socket {
    this.#isReused = false;
    this.#error = null;
    const { host = '127.0.0.1', port } = this.#target;
    const callback = (length: number): boolean => {
      this.#unanswered = null;
      this.#parse(length);
      return true;
    };
    const socket = connect({ host, port, noDelay: true, onread: { buffer: receiveBuffer, callback } });
    socket.on('error', (error) => (this.#error = error));
    socket.on('close', () => {
      if (socket === this.#socket && !this.#isClosed) this.#onClose();
    });
    return socket;
  }

  #onClose(): void {
    if (this.#state === 'until-close') {
      this.#end();
      return;
    }
    const bytes = this.#unanswered;
    if (bytes === null || !this.#isReused) {
      this.#fail(this.#error ?? new Error('the service closed the connection'));
      return;
    }
    // The server closed an idle connection while we wrote to it.
    this.#socket = this.#connect();
    this.#socket.write(bytes);
  }

  #fail(error: Error): void {
    const handlers = this.#handlers;
    this.#handlers = null;
    handlers?.onError(error);
  }

  #end(): void {
    const handlers = this.#handlers;
    this.#handlers = null;
    this.#isReused = true;
    if (!this.#keepsAlive) this.#socket.destroy();
    handlers?.onEnd();
  }

  #parse(length: number): void {
    let i = 0;
    while (i < length && this.#handlers !== null) {
      switch (this.#state) {
        case 'head':
          i = this.#parseHead(i, length);
          break;
        case 'size':
          i = this.#parseSize(i, length);
          break;
        case 'chunk':
          i = this.#parseBody(i, Math.min(length - i, this.#bytesLeft));
          if (this.#bytesLeft === 0) this.#state = 'chunk-end';
          break;
        case 'length':
          i = this.#parseBody(i, Math.min(length - i, this.#bytesLeft));
          if (this.#bytesLeft === 0) this.#end();
          break;
        case 'until-close':
          i = this.#parseBody(i, length - i);
          break;
        case 'chunk-end':
          if (receiveBuffer[i++] === LF) this.#beginSize();
          break;
        case 'trailer':
          i = this.#parseTrailer(i, length);
      }
    }
  }

  #parseHead(from: number, length: number): number {
    this.#head += receiveBuffer.toString('latin1', from, length);
    const end = this.#head.indexOf('\r\n\r\n');
    if (end < 0) return length;
    const next = length - (this.#head.length - end - 4);
    const [statusLine = '', ...lines] = this.#head.slice(0, end).split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1] ?? 0);
    const headers = new Map<string, string>();
    for (const line of lines) {
      const colon = line.indexOf(':');
      headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
    }
    this.#keepsAlive = headers.get('connection')?.toLowerCase() !== 'close';
    this.#bytesLeft = Number(headers.get('content-length') ?? 0);
    this.#offset = 0;
    this.#handlers?.onHead?.(status, headers);
    if (headers.get('transfer-encoding') === 'chunked') this.#beginSize();
    else if (headers.has('content-length')) this.#state = 'length';
    else this.#state = 'until-close';
    if (this.#state === 'length' && this.#bytesLeft === 0) this.#end();
    return next;
  }

  #beginSize(): void {
    this.#state = 'size';
    this.#bytesLeft = 0;
  }

  #parseSize(from: number, length: number): number {
    let i = from;
    while (i < length) {
      const byte = receiveBuffer[i++]!;
      if (byte === CR) continue;
      if (byte === LF) {
        this.#state = this.#bytesLeft === 0 ? 'trailer' : 'chunk';
        this.#offset = 0;
        this.#lineBytes = 0;
        break;
      }
      const digit = byte <= 57 ? byte - 48 : (byte | 32) - 87;
      this.#bytesLeft = this.#bytesLeft * 16 + digit;
    }
    return i;
  }

  #parseBody(from: number, count: number): number {
    const offset = this.#offset;
    this.#offset += count;
    this.#bytesLeft -= count;
    this.#handlers?.onBody(receiveBuffer.subarray(from, from + count), offset);
    return from + count;
  }

  /** Lines up to an empty one. */
  #parseTrailer(from: number, length: number): number {
    let i = from;
    while (i < length) {
      const byte = receiveBuffer[i++]!;
      if (byte === LF && this.#lineBytes === 0) {
        this.#end();
        break;
      }
      if (byte === LF) this.#lineBytes = 0;
      else if (byte !== CR) this.#lineBytes++;
    }
    return i;
  }
}

export interface Answer {
  /** 0 without a response. */
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
  /** False if the response broke off. */
  readonly isWhole: boolean;
  readonly error: Error | null;
}

export interface ExchangeOptions {
  readonly host?: string;
  /** Aborts the request. */
  readonly signal?: AbortSignal;
}

/** One request on a connection of its own, to the end of its response. Never rejects. */
export const exchange = (
  port: number,
  request: RequestParts,
  { host = '127.0.0.1', signal }: ExchangeOptions = {},
): Promise<Answer> =>
  new Promise((resolve) => {
    let status = 0;
    let headers: ReadonlyMap<string, string> = new Map();
    const parts: Buffer[] = [];
    const connection = new HttpConnection({ host, port });
    const end = (error: Error | null): void => {
      signal?.removeEventListener('abort', onAbort);
      connection.close();
      resolve({ status, headers, body: Buffer.concat(parts), isWhole: error === null, error });
    };
    const onAbort = (): void => end(new Error('aborted'));
    connection.request(encodeRequest(request), {
      onHead: (is, are) => {
        status = is;
        headers = are;
      },
      onBody: (bytes) => void parts.push(Buffer.from(bytes)),
      onEnd: () => end(null),
      onError: end,
    });
    if (signal?.aborted === true) onAbort();
    else signal?.addEventListener('abort', onAbort);
  });

/** @throws with the error or the status if the answer has no JSON */
export const jsonOf = ({ body, error, status }: Answer): unknown => {
  if (error !== null) throw error;
  try {
    return JSON.parse(body.toString());
  } catch {
    throw new Error(`the service answered ${status}: ${body.toString().slice(0, 200)}`);
  }
};
