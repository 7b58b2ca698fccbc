/** A client of the Wyoming protocol: it sends what a test says, and keeps what comes. */
import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { Changes } from '../../scripts/rig/changes.js';
import { encodeWyoming, WyomingReader, type WyomingEvent } from '../../scripts/rig/wyoming.js';

export class WyomingClient {
  readonly socket: Socket;
  /** What came so far. */
  readonly events: WyomingEvent[] = [];
  isClosed = false;
  readonly #reader = new WyomingReader();
  readonly #changes = new Changes();

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (bytes) => this.#take(bytes));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.isClosed = true;
      this.#changes.notify();
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
      await this.#changes.next();
    }
  }

  async untilClosed(): Promise<WyomingEvent[]> {
    await this.#changes.until(() => this.isClosed);
    return this.events.splice(0);
  }

  close(): void {
    this.socket.destroy();
  }

  #take(bytes: Buffer): void {
    this.events.push(...this.#reader.push(bytes));
    this.#changes.notify();
  }
}
