/** Two independent clients of the WebSocket route: `ws` and Node's own (undici). */
import { once } from 'node:events';
import { WebSocket as WsSocket } from 'ws';
import { Changes } from '../../scripts/rig/changes.js';
import { eventually } from './waiting.js';

/** A parsed frame of the server. */
export interface ServerFrame {
  readonly context_started?: {
    readonly voice_id: string;
    readonly model_id: string;
    readonly timestamps: boolean;
    readonly response_format: Readonly<Record<string, unknown>>;
  };
  readonly audio_chunk?: string;
  readonly timestamps?: {
    readonly words: string[];
    readonly start_seconds: number[];
    readonly end_seconds: number[];
  };
  readonly flush_completed?: true;
  readonly flush_id?: string;
  readonly context_closed?: true;
  readonly error?: string;
  readonly context_id?: string;
}

export interface Closed {
  readonly code: number;
  readonly reason: string;
}

export const kindOf = (frame: ServerFrame): string =>
  Object.keys(frame).find((key) => !['context_id', 'flush_id'].includes(key)) ?? '';

/** Collects frames, and waits for them. */
export class SocketClient {
  readonly frames: ServerFrame[] = [];
  closed: Closed | null = null;
  readonly #transmit: (text: string) => void;
  readonly #hangUp: () => void;
  readonly #changes = new Changes();

  constructor(transmit: (text: string) => void, hangUp: () => void) {
    this.#transmit = transmit;
    this.#hangUp = hangUp;
  }

  /** For the library below. */
  received(text: string): void {
    this.frames.push(JSON.parse(text) as ServerFrame);
    this.#changes.notify();
  }

  /** For the library below. */
  ended(closed: Closed): void {
    this.closed = closed;
    this.#changes.notify();
  }

  send(frame: unknown): void {
    this.#transmit(typeof frame === 'string' ? frame : JSON.stringify(frame));
  }

  start(contextId: string | null, more: Readonly<Record<string, unknown>> = {}): void {
    this.#about(contextId, { start_context: { voice_id: 'ada', model_id: 'default', ...more } });
  }

  text(contextId: string | null, text: string): void {
    this.#about(contextId, { send_text: text });
  }

  flush(contextId: string | null, flushId?: string): void {
    this.#about(contextId, { flush: true, ...(flushId !== undefined && { flush_id: flushId }) });
  }

  closeContext(contextId: string | null): void {
    this.#about(contextId, { close_context: true });
  }

  cancel(contextId: string | null): void {
    this.#about(contextId, { cancel_context: true });
  }

  close(): void {
    this.#hangUp();
  }

  of(contextId: string): ServerFrame[] {
    return this.frames.filter((frame) => frame.context_id === contextId);
  }

  /** Audio of one context, decoded. */
  audio(contextId: string): Buffer {
    return Buffer.concat(
      this.of(contextId)
        .filter((frame) => frame.audio_chunk !== undefined)
        .map((frame) => Buffer.from(frame.audio_chunk ?? '', 'base64')),
    );
  }

  words(contextId: string): { word: string; start: number; end: number }[] {
    return this.of(contextId).flatMap(
      ({ timestamps }) =>
        timestamps?.words.map((word, i) => ({
          word,
          start: timestamps.start_seconds[i] ?? Number.NaN,
          end: timestamps.end_seconds[i] ?? Number.NaN,
        })) ?? [],
    );
  }

  /** Resolves when the condition holds. @throws if the socket closes before */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.closed !== null)
        throw new Error(
          `closed ${this.closed.code} ${this.closed.reason}: ${JSON.stringify(this.frames.at(-1))}`,
        );
      await this.#changes.next();
    }
  }

  /** The first frame that matches, among those received and those to come. */
  async frame(matches: (frame: ServerFrame) => boolean): Promise<ServerFrame> {
    await this.until(() => this.frames.some(matches));
    return this.frames.find(matches) as ServerFrame;
  }

  async closing(): Promise<Closed> {
    await eventually(() => this.closed !== null);
    return this.closed as Closed;
  }

  #about(contextId: string | null, frame: object): void {
    this.send(contextId === null ? frame : { ...frame, context_id: contextId });
  }
}

export interface WsClient extends SocketClient {
  readonly ws: WsSocket;
}

const PATH = '/v1/tts/ws';
const urlOf = (port: number, path = PATH): string => `ws://127.0.0.1:${port}${path}`;

export interface WsOptions {
  readonly autoPong?: boolean;
  readonly ca?: string;
  readonly path?: string;
  /** In place of the key. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Opens a socket with `ws`, over TLS if `ca` is given. @throws the refusal of the handshake */
export const openWs = async (
  port: number,
  key: string,
  { path = PATH, ...options }: WsOptions = {},
): Promise<WsClient> => {
  const url = options.ca === undefined ? urlOf(port, path) : `wss://localhost:${port}${path}`;
  const ws = new WsSocket(url, {
    headers: { 'x-api-key': key },
    perMessageDeflate: false,
    ...options,
  });
  const client = new SocketClient(
    (text) => ws.send(text),
    () => ws.close(),
  );
  ws.on('message', (data: Buffer) => client.received(data.toString()));
  ws.on('close', (code: number, reason: Buffer) => client.ended({ code, reason: reason.toString() }));
  await once(ws, 'open');
  ws.on('error', () => undefined);
  return Object.assign(client, { ws });
};

/** Opens a socket with Node's own WebSocket. */
export const openNative = async (port: number, key: string): Promise<SocketClient> => {
  // Node's constructor takes headers; a browser's does not.
  const native = new WebSocket(urlOf(port), { headers: { 'x-api-key': key } });
  const client = new SocketClient(
    (text) => native.send(text),
    () => native.close(),
  );
  native.addEventListener('message', (event) => client.received(event.data as string));
  native.addEventListener('close', ({ code, reason }) => client.ended({ code, reason }));
  await new Promise<void>((resolve, reject) => {
    native.addEventListener('open', () => resolve());
    native.addEventListener('error', () => reject(new Error('refused')));
  });
  return client;
};

export const openers: readonly (readonly [string, (port: number, key: string) => Promise<SocketClient>])[] = [
  ['ws', openWs],
  ['undici', openNative],
];
