/** A client of the Wyoming protocol that knows only bytes: it shares no code with the service. */
import { connect, type Socket } from 'node:net';
import { once } from 'node:events';

export interface Received {
  readonly type: string;
  readonly data: Record<string, unknown>;
  readonly payload: Buffer;
}

/** An event as the library of the protocol writes it: spaces after colons and commas, and data after the line. */
export const written = (type: string, data?: Record<string, unknown>): Buffer => {
  const spaced = (value: unknown): string =>
    JSON.stringify(value, null, 1)
      .replace(/\n */g, ' ')
      .replace(/([{[]) /g, '$1')
      .replace(/ ([}\]])/g, '$1');
  const bytes = Buffer.from(data === undefined ? '' : spaced(data));
  const line = { type, version: '1.8.0', ...(data !== undefined && { data_length: bytes.length }) };
  return Buffer.concat([Buffer.from(`${spaced(line)}\n`), bytes]);
};

/** @returns the event at the start, and how many bytes it takes; `null` if it is not whole */
const firstEvent = (bytes: Buffer): { event: Received; length: number } | null => {
  const lineEnd = bytes.indexOf('\n');
  if (lineEnd < 0) return null;
  const line = JSON.parse(bytes.toString('utf8', 0, lineEnd)) as Record<string, unknown>;
  const dataEnd = lineEnd + 1 + Number(line['data_length'] ?? 0);
  const length = dataEnd + Number(line['payload_length'] ?? 0);
  if (bytes.length < length) return null;
  const data = bytes.toString('utf8', lineEnd + 1, dataEnd);
  const event = {
    type: String(line['type']),
    data: (data === '' ? {} : JSON.parse(data)) as Record<string, unknown>,
    payload: Buffer.from(bytes.subarray(dataEnd, length)),
  };
  return { event, length };
};

export class WyomingClient {
  readonly socket: Socket;
  /** What came so far. */
  readonly events: Received[] = [];
  isClosed = false;
  #bytes: Buffer = Buffer.alloc(0);
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
    this.socket.write(written(type, data));
  }

  /** @returns the events up to the first of this type, and removes them @throws if the connection closes before */
  async until(type: string): Promise<Received[]> {
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

  async untilClosed(): Promise<Received[]> {
    while (!this.isClosed) await new Promise<void>((resolve) => this.#wake.push(resolve));
    return this.events.splice(0);
  }

  close(): void {
    this.socket.destroy();
  }

  #take(bytes: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    for (let next = firstEvent(this.#bytes); next !== null; next = firstEvent(this.#bytes)) {
      this.events.push(next.event);
      this.#bytes = this.#bytes.subarray(next.length);
    }
    this.#wakeAll();
  }

  #wakeAll(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}

/** The samples of the chunks among some events, in milliseconds at their rate. */
export const audioMs = (events: readonly Received[]): number =>
  events
    .filter(({ type }) => type === 'audio-chunk')
    .reduce((sum, { data, payload }) => sum + (payload.length / 2 / Number(data['rate'])) * 1_000, 0);
