/**
 * The rig's HTTP client. A connection is as cheap as a client can be, because it shares the machine with the service that
 * it measures: a raw socket, one receive buffer for all connections, and a parser that copies no byte of a body.
 */
import { type Socket, connect } from 'node:net';
import type { AudioFormat } from '../../src/api/formats.js';

const receiveBuffer = Buffer.allocUnsafe(64 * 1024);

const LF = 10;

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
  /** @param bytes valid only during the call */
  readonly onBody: (bytes: Buffer) => void;
  readonly onEnd: () => void;
  /** The connection failed, or closed before the end of the response. */
  readonly onError: (error: Error) => void;
}

/** What comes next: a line of the head, what is around chunks, or the body. */
type State = 'head' | 'size' | 'chunk' | 'chunk-end' | 'trailer' | 'whole';

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
  #line = '';
  #head: string[] = [];
  #keepsAlive = true;
  /** Of the body or of its chunk; infinite for a body that ends with the connection. */
  #bytesLeft = 0;

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
    this.#head = [];
    this.#line = '';
    this.#bytesLeft = 0;
    this.#unanswered = bytes;
    if (this.#socket.destroyed || !this.#socket.writable) this.#socket = this.#connect();
    this.#socket.write(bytes);
  }

  /** One request to the end of its response. @returns its status @throws when the connection fails */
  ask(bytes: Buffer, onBody: ResponseHandlers['onBody'] = () => undefined): Promise<number> {
    return new Promise((resolve, reject) => {
      let status = 0;
      const onHead = (is: number): void => void (status = is);
      this.request(bytes, { onHead, onBody, onEnd: () => resolve(status), onError: reject });
    });
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
    if (this.#bytesLeft === Infinity) {
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
    while (i < length && this.#handlers !== null)
      i = this.#bytesLeft > 0 ? this.#parseBody(i, length) : this.#parseLine(i, length);
  }

  #parseBody(from: number, length: number): number {
    const to = Math.min(length, from + this.#bytesLeft);
    this.#bytesLeft -= to - from;
    this.#handlers?.onBody(receiveBuffer.subarray(from, to));
    if (this.#bytesLeft === 0 && this.#state === 'chunk') this.#state = 'chunk-end';
    else if (this.#bytesLeft === 0) this.#end();
    return to;
  }

  #parseLine(from: number, length: number): number {
    const end = receiveBuffer.indexOf(LF, from);
    const isWhole = end >= 0 && end < length;
    this.#line += receiveBuffer.toString('latin1', from, isWhole ? end : length);
    if (!isWhole) return length;
    const line = this.#line.trimEnd();
    this.#line = '';
    this.#onLine(line);
    return end + 1;
  }

  #onLine(line: string): void {
    switch (this.#state) {
      case 'head':
        if (line === '') this.#onHead();
        else this.#head.push(line);
        return;
      case 'size':
        this.#bytesLeft = Number.parseInt(line, 16);
        this.#state = this.#bytesLeft === 0 ? 'trailer' : 'chunk';
        return;
      case 'trailer':
        if (line === '') this.#end();
        return;
      case 'chunk-end':
      case 'chunk':
      case 'whole':
        this.#state = 'size';
    }
  }

  #onHead(): void {
    const [statusLine = '', ...lines] = this.#head;
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1] ?? 0);
    const headers = new Map<string, string>();
    for (const line of lines) {
      const colon = line.indexOf(':');
      headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
    }
    this.#keepsAlive = headers.get('connection')?.toLowerCase() !== 'close';
    const isChunked = headers.get('transfer-encoding') === 'chunked';
    this.#state = isChunked ? 'size' : 'whole';
    if (!isChunked) this.#bytesLeft = Number(headers.get('content-length') ?? Infinity);
    this.#handlers?.onHead?.(status, headers);
    if (!isChunked && this.#bytesLeft === 0) this.#end();
  }
}

/** Cuts the body of a stream into its records. */
export class RecordReader {
  #rest: Buffer = Buffer.alloc(0);

  /** @returns the records that are whole now */
  push(bytes: Buffer): string[] {
    const all = Buffer.concat([this.#rest, bytes]);
    const records: string[] = [];
    let from = 0;
    for (let end = all.indexOf('\n\n'); end >= 0; end = all.indexOf('\n\n', from)) {
      records.push(all.toString('utf8', from, end));
      from = end + 2;
    }
    this.#rest = all.subarray(from);
    return records;
  }

  /** No record has begun that is not whole. */
  get isWhole(): boolean {
    return this.#rest.length === 0;
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
