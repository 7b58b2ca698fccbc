/** A TCP connection that writes any bytes, valid or not, and keeps what the service answers. */
import { type Socket, connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HttpTarget } from './http.js';

const keptBytesMax = 16 * 1024;
/** The chunk that ends a stream. */
const lastChunk = '0\r\n\r\n';

export class RawConnection {
  readonly socket: Socket;
  /** Resolves when the connection is closed, for whatever reason. */
  readonly closed: Promise<void>;
  isClosed = false;
  /** The first bytes that came, and the last. */
  #text = '';
  #tail = '';

  constructor({ host = '127.0.0.1', port }: HttpTarget) {
    this.socket = connect({ host, port, noDelay: true });
    this.socket.on('data', (bytes) => {
      const text = bytes.toString('latin1');
      if (this.#text.length < keptBytesMax) this.#text += text;
      this.#tail = (this.#tail + text).slice(-lastChunk.length);
    });
    this.socket.on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      this.socket.on('close', () => {
        this.isClosed = true;
        resolve();
      });
    });
  }

  /** @returns false if the connection fails */
  connected(): Promise<boolean> {
    return new Promise((resolve) => {
      this.socket.once('connect', () => resolve(true));
      this.socket.once('close', () => resolve(false));
    });
  }

  write(bytes: string | Uint8Array): void {
    this.socket.write(bytes);
  }

  /** The status of the first answer; `closed` if the connection closed without one; `null` while there is none. */
  get status(): string | null {
    const status = /HTTP\/1\.1 (\d{3}) /.exec(this.#text)?.[1] ?? null;
    return status === null && this.isClosed ? 'closed' : status;
  }

  /** Waits for a status. @returns `silent` if none comes */
  async answered(msMax = 10_000): Promise<string> {
    const endMs = performance.now() + msMax;
    while (this.status === null && performance.now() < endMs) await sleep(5);
    return this.status ?? 'silent';
  }

  /** The last chunk of a stream has come. */
  get isWhole(): boolean {
    return this.#tail === lastChunk;
  }

  /** Closes with a RST, which leaves no trace in the system's tables. */
  reset(): void {
    this.socket.resetAndDestroy();
  }
}
