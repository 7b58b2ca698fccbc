/** A client of the Wyoming protocol: it sends what a test says, and keeps what comes. */
import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { encodeWyoming, WyomingReader, type WyomingEvent } from '../../scripts/rig/wyoming.js';

export class WyomingClient {
  readonly socket: Socket;
  /** What came so far. */
  readonly events: WyomingEvent[] = [];
  isClosed = false;
  readonly #reader = new WyomingReader();
  #wake: (() => void)[] = [];

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (bytes) => this.#take(bytes));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.isClosed = true;
      this.#wakeAll();
    });
  }

  static async open(port: number, localAddress = '127.0.0.1'): Promise<WyomingClient> {
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    await once(socket, 'connect');
    return new WyomingClient(socket);
  }

  send(type: string, data?: Record<string, unknown>): void {
    this.socket.write(encodeWyoming(type, data));
  }

  /** @returns the events up to the first of this type, and removes them @throws if the connection closes before */
  async until(type: string): Promise<WyomingEvent[]> {
    for (;;) {
      const at = this.events.findIndex((event) => event.type === type);
      if (at >= 0) return this.events.splice(0, at + 1);
      if (this.isClosed)
        throw new Error(
          `closed before ${type}: ${this.events.map((event) => JSON.stringify(event.data)).join()}`,
        );
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }

  async untilClosed(): Promise<WyomingEvent[]> {
    while (!this.isClosed) await new Promise<void>((resolve) => this.#wake.push(resolve));
    return this.events.splice(0);
  }

  close(): void {
    this.socket.destroy();
  }

  #take(bytes: Buffer): void {
    this.events.push(...this.#reader.push(bytes));
    this.#wakeAll();
  }

  #wakeAll(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}
