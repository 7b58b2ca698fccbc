/**
 * An HTTP/1.1 client on a bare socket. It sends exactly the given bytes, reads at the given rate, and parses responses
 * strictly by itself.
 */
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { Changes } from '../../scripts/rig/changes.js';

export interface RawResponse {
  readonly status: number;
  readonly reason: string;
  /** Names in lower case, in order. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Buffer;
  /** Sizes of the chunks, for a chunked body. */
  readonly chunkBytes: readonly number[];
  /** The body is complete according to its framing. */
  readonly complete: boolean;
  /** Bytes after the response. */
  readonly rest: Buffer;
}

export const header = (response: RawResponse, name: string): string | undefined =>
  response.headers.find(([key]) => key === name)?.[1];

const readChunks = (bytes: Buffer): Pick<RawResponse, 'body' | 'chunkBytes' | 'complete' | 'rest'> => {
  const pieces: Buffer[] = [];
  let at = 0;
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd < 0) break;
    const line = bytes.toString('latin1', at, lineEnd);
    if (!/^[0-9a-fA-F]+$/.test(line))
      throw new Error(`no chunk size at ${at}: ${JSON.stringify(line.slice(0, 40))}`);
    const size = Number.parseInt(line, 16);
    const start = lineEnd + 2;
    const end = start + size;
    if (bytes.length < end + 2) {
      pieces.push(bytes.subarray(start, Math.min(end, bytes.length)));
      break;
    }
    if (bytes.toString('latin1', end, end + 2) !== '\r\n')
      throw new Error(`chunk at ${at} does not end at ${end}`);
    at = end + 2;
    const chunkBytes = pieces.map((piece) => piece.length);
    if (size === 0)
      return { body: Buffer.concat(pieces), chunkBytes, complete: true, rest: bytes.subarray(at) };
    pieces.push(bytes.subarray(start, end));
  }
  const chunkBytes = pieces.map((piece) => piece.length);
  return { body: Buffer.concat(pieces), chunkBytes, complete: false, rest: Buffer.alloc(0) };
};

/**
 * @param isHead the response has no body, whatever its headers say
 * @returns `null` if the head is incomplete
 */
export const parseResponse = (bytes: Buffer, isHead = false): RawResponse | null => {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) return null;
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n');
  const match = /^HTTP\/1\.1 (\d{3}) (.+)$/.exec(statusLine);
  if (match === null) throw new Error(`no status line: ${JSON.stringify(statusLine)}`);
  const headers = lines.map((line): readonly [string, string] => {
    const colon = line.indexOf(': ');
    if (colon <= 0) throw new Error(`no header: ${JSON.stringify(line)}`);
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 2)];
  });
  const status = Number(match[1]);
  const head = { status, reason: match[2]!, headers };
  const after = bytes.subarray(headEnd + 4);
  if (status === 100) return parseResponse(after, isHead);
  const of = (name: string): string | undefined => headers.find(([key]) => key === name)?.[1];
  if (of('transfer-encoding') === 'chunked') return { ...head, ...readChunks(after) };
  const length = isHead ? 0 : Number(of('content-length') ?? Number.NaN);
  if (Number.isNaN(length))
    return { ...head, body: after, chunkBytes: [], complete: false, rest: Buffer.alloc(0) };
  const complete = after.length >= length;
  return { ...head, body: after.subarray(0, length), chunkBytes: [], complete, rest: after.subarray(length) };
};

export interface RequestOptions {
  readonly method?: string;
  readonly path: string;
  readonly key?: string | null;
  readonly headers?: readonly string[];
  readonly body?: string | Buffer;
}

/** The bytes of a well-formed request. */
export const requestBytes = ({ method = 'GET', path, key, headers = [], body }: RequestOptions): Buffer => {
  const bytes = Buffer.from(body ?? '');
  const lines = [
    `${method} ${path} HTTP/1.1`,
    'Host: syrinx.test',
    ...(typeof key === 'string' ? [`x-api-key: ${key}`] : []),
    ...(body === undefined ? [] : ['Content-Type: application/json', `Content-Length: ${bytes.length}`]),
    ...headers,
  ];
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), bytes]);
};

export class RawClient {
  readonly socket: Socket;
  #received: Buffer[] = [];
  #receivedBytes = 0;
  /** Received bytes that belong to no response yet, and the last seven. */
  #heldBytes = 0;
  #tail = '';
  #closed = false;
  #error: NodeJS.ErrnoException | null = null;
  readonly #changes = new Changes();

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (bytes) => {
      this.#received.push(bytes);
      this.#receivedBytes += bytes.length;
      this.#heldBytes += bytes.length;
      this.#tail = (this.#tail + bytes.toString('latin1', Math.max(0, bytes.length - 7))).slice(-7);
      this.#changes.notify();
    });
    socket.on('error', (error) => (this.#error = error));
    const onClosed = (): void => {
      this.#closed = true;
      this.#changes.notify();
    };
    socket.on('end', onClosed);
    socket.on('close', onClosed);
  }

  /** @param ca connects over TLS and trusts this certificate */
  static open(port: number, ca?: string): Promise<RawClient> {
    return new Promise((resolve, reject) => {
      const to = { host: '127.0.0.1', port, noDelay: true, allowHalfOpen: true };
      const socket = ca === undefined ? connect(to) : connectTls({ ...to, ca });
      socket.once('error', reject);
      socket.once(ca === undefined ? 'connect' : 'secureConnect', () => {
        socket.off('error', reject);
        resolve(new RawClient(socket));
      });
    });
  }

  /** Opens, sends and waits for one response. */
  static async ask(port: number, request: RequestOptions | Buffer): Promise<RawResponse> {
    const client = await RawClient.open(port);
    client.send(Buffer.isBuffer(request) ? request : requestBytes(request));
    try {
      return await client.response(!Buffer.isBuffer(request) && request.method === 'HEAD');
    } finally {
      client.destroy();
    }
  }

  /** The server sends nothing more. */
  get isClosed(): boolean {
    return this.#closed;
  }

  get error(): NodeJS.ErrnoException | null {
    return this.#error;
  }

  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  send(bytes: Buffer | string): void {
    this.socket.write(bytes);
  }

  /** Everything received so far. */
  bytes(): Buffer {
    const all = Buffer.concat(this.#received);
    this.#received = [all];
    return all;
  }

  /** Waits until `condition` holds; checks it when bytes arrive and when the connection closes. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.#closed) return;
      await this.#changes.next();
    }
  }

  /**
   * Waits for the next response, which may be cut short by the end of the connection. Keeps the bytes after it.
   * @throws if the connection closes without a response
   */
  async response(isHead = false): Promise<RawResponse> {
    let parsed: RawResponse | null = null;
    // Parsing costs time for each byte, so it does not run for every one of thousands of pieces.
    let enoughBytes = 0;
    const isComplete = (): boolean => {
      if (this.#heldBytes < enoughBytes && this.#tail !== '\r\n0\r\n\r\n') return false;
      parsed = parseResponse(this.bytes(), isHead);
      enoughBytes = this.#heldBytes * 1.5;
      const length = parsed === null ? undefined : header(parsed, 'content-length');
      if (length !== undefined) enoughBytes = Number(length);
      return parsed?.complete === true;
    };
    await this.until(isComplete);
    parsed = parseResponse(this.bytes(), isHead);
    if (parsed === null) throw new Error(`closed without a response: ${this.#error?.code ?? 'no error'}`);
    this.#hold(parsed.complete ? parsed.rest : Buffer.alloc(0));
    return parsed;
  }

  closed(): Promise<void> {
    return this.until(() => this.#closed);
  }

  /** Reads at a steady rate from now on, in small pieces. */
  readAt(bytesASecond: number, signal?: AbortSignal): void {
    const sipMs = 50;
    let allowed = 0;
    this.socket.pause();
    const timer = setInterval(() => {
      allowed += (bytesASecond * sipMs) / 1000;
      while (allowed >= 1 && !this.#closed) {
        const bytes = this.socket.read(
          Math.min(Math.floor(allowed), this.socket.readableLength),
        ) as Buffer | null;
        if (bytes === null) break;
        allowed -= bytes.length;
      }
    }, sipMs);
    const stop = (): void => clearInterval(timer);
    this.socket.once('close', stop);
    signal?.addEventListener('abort', stop);
  }

  destroy(): void {
    this.socket.destroy();
  }

  #hold(rest: Buffer): void {
    this.#received = [rest];
    this.#heldBytes = rest.length;
  }
}
