/** Clients of the floods: a connection of bytes, and a WebSocket that counts what it is told. */
import { type Socket, connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { SocketConnection, encodeMessage } from '../../rig-old/socket-connection.js';
import { socketPath } from '../../rig-old/context-start.js';
import { countOne } from './flood.js';

const keptBytesMax = 16 * 1024;
/** The chunk that ends a stream. */
const lastChunk = '0\r\n\r\n';
const tailLength = lastChunk.length;

export class ByteClient {
  readonly socket: Socket;
  receivedBytes = 0;
  /** The beginning of what came. */
  text = '';
  /** The end of it. */
  tail = '';
  isClosed = false;
  readonly closed: Promise<void>;

  constructor(port: number, host = '127.0.0.1') {
    this.socket = connect({ host, port, noDelay: true });
    this.socket.on('data', (bytes) => {
      this.receivedBytes += bytes.length;
      const text = bytes.toString('latin1');
      if (this.text.length < keptBytesMax) this.text += text;
      this.tail = (this.tail + text).slice(-tailLength);
    });
    this.socket.on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      this.socket.on('close', () => {
        this.isClosed = true;
        resolve();
      });
    });
  }

  connected(): Promise<boolean> {
    return new Promise((resolve) => {
      this.socket.once('connect', () => resolve(true));
      this.socket.once('close', () => resolve(false));
    });
  }

  /** Of its answers so far; `closed` when there are none and will be none. */
  get statuses(): string[] {
    const found = [...this.text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status = '']) => status);
    return found.length === 0 && this.isClosed ? ['closed'] : found;
  }

  /** Resolves with the first status, or `closed`, or `silent` when neither comes. */
  async status(msMax = 10_000): Promise<string> {
    const endMs = performance.now() + msMax;
    while (this.statuses.length === 0 && performance.now() < endMs) await sleep(5);
    return this.statuses[0] ?? 'silent';
  }

  /** The last chunk of a stream came. */
  get isWhole(): boolean {
    return this.tail === lastChunk;
  }

  /** Leaves no trace in the system's tables. */
  reset(): void {
    this.socket.resetAndDestroy();
  }
}

export const speechRequest = (
  key: string,
  voice: string,
  text: string,
  path = '/v1/tts/stream',
  timestamps = false,
): string => {
  const body = JSON.stringify({
    text,
    voice,
    response_format: { encoding: 'pcm', sample_rate: 24_000 },
    timestamps,
  });
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: flood',
    `X-Api-Key: ${key}`,
    'Content-Type: application/json',
    `Content-Length: ${String(Buffer.byteLength(body))}`,
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
};

export const handshakeRequest = (key: string): string =>
  [
    `GET ${socketPath} HTTP/1.1`,
    'Host: flood',
    `X-Api-Key: ${key}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==',
    '\r\n',
  ].join('\r\n');

const kinds = ['context_started', 'flush_completed', 'context_closed', 'error', 'audio_chunk'];

export class CountingSocket {
  /** Frames by kind. */
  readonly counts = new Map<string, number>();
  /** Texts of errors. */
  readonly errors = new Map<string, number>();
  /** `null` while it is open. */
  end: string | null = null;
  readonly #connection: SocketConnection;

  constructor(port: number, key: string) {
    this.#connection = new SocketConnection(
      { port, path: socketPath, key, wantsAll: true },
      {
        onAudio: () => undefined,
        onMessage: (json) => {
          countOne(this.counts, kinds.find((kind) => json.includes(`"${kind}"`)) ?? 'other');
          const error = /"error":"([^"]{0,60})/.exec(json)?.[1];
          if (error !== undefined) countOne(this.errors, error);
        },
        onError: (error) => (this.end = error.message),
      },
    );
  }

  opened(): Promise<void> {
    return this.#connection.opened();
  }

  of(kind: string): number {
    return this.counts.get(kind) ?? 0;
  }

  write(bytes: Uint8Array): void {
    this.#connection.write(bytes);
  }

  send(message: object): void {
    this.write(encodeMessage(message));
  }

  start(voice: string, contextId: string): void {
    this.send({ start_context: { voice_id: voice, model_id: 'default' }, context_id: contextId });
  }

  /** Resolves when all that was sent before is dealt with, or the socket is gone. */
  async caughtUp(msMax = 30_000): Promise<boolean> {
    const mark = `unknown context_id: mark-${String(Math.random())}`;
    this.send({ flush: true, context_id: mark.slice('unknown context_id: '.length) });
    const endMs = performance.now() + msMax;
    while (!this.errors.has(mark) && this.end === null && performance.now() < endMs) await sleep(5);
    // It is no answer to the flood.
    if (!this.errors.delete(mark)) return false;
    const others = this.of('error') - 1;
    if (others > 0) this.counts.set('error', others);
    else this.counts.delete('error');
    return true;
  }

  /** Waits for a number of frames of a kind. */
  async until(kind: string, count: number, msMax = 30_000): Promise<boolean> {
    const endMs = performance.now() + msMax;
    while (this.of(kind) < count && this.end === null && performance.now() < endMs) await sleep(5);
    return this.of(kind) >= count;
  }

  close(): void {
    this.#connection.close();
  }
}

/** As many sockets, each with a key of the list in turn; all open when it resolves. */
export const openSockets = async (
  port: number,
  keys: readonly string[],
  count: number,
): Promise<CountingSocket[]> => {
  const sockets = Array.from({ length: count }, (_, i) => new CountingSocket(port, keys[i % keys.length]!));
  await Promise.all(sockets.map((socket) => socket.opened()));
  return sockets;
};
