/** A WebSocket server whose every move is a line of the test. */
import { type IncomingMessage, type Server, createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Test } from 'tap';
import { type WebSocket, WebSocketServer } from 'ws';
import { Arrivals } from './arrivals.js';

export type Frame = Readonly<Record<string, unknown>>;

/** The server's end of one connection. */
export class Peer {
  readonly socket: WebSocket;
  readonly request: IncomingMessage;
  readonly closed: Promise<{ code: number; reason: string }>;
  readonly #frames = new Arrivals<Frame>();

  constructor(socket: WebSocket, request: IncomingMessage) {
    this.socket = socket;
    this.request = request;
    socket.on('message', (data) => {
      this.#frames.push(JSON.parse((data as Buffer).toString()) as Frame);
    });
    this.closed = new Promise((resolve) => {
      socket.on('close', (code, reason) => {
        resolve({ code, reason: reason.toString() });
      });
    });
  }

  /** The next frame of the client. */
  next(): Promise<Frame> {
    return this.#frames.next();
  }

  get unread(): readonly Frame[] {
    return this.#frames.rest;
  }

  send(...frames: readonly (Frame | string)[]): void {
    for (const frame of frames) this.socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame));
  }

  /** Resolves when the client has read all that was sent before. */
  async caughtUp(): Promise<void> {
    const answered = new Promise((resolve) => this.socket.once('pong', resolve));
    this.socket.ping();
    await answered;
  }
}

export type Upgrade = (request: IncomingMessage, socket: Duplex, accept: () => void) => void;

export class ScriptedSocket {
  readonly #http: Server;
  readonly #peers = new Arrivals<Peer>();

  private constructor(http: Server) {
    this.#http = http;
  }

  /** @param upgrade decides about each handshake; by default all are accepted */
  static async listen(
    t: Test,
    { upgrade, port = 0 }: { upgrade?: Upgrade; port?: number } = {},
  ): Promise<ScriptedSocket> {
    const http = createServer();
    const connections = new Set<Socket>();
    http.on('connection', (socket) => {
      // A client that is gone in the middle of a handshake is what some tests are about.
      connections.add(socket.on('error', () => undefined));
    });
    const server = new ScriptedSocket(http);
    const sockets = new WebSocketServer({ noServer: true });
    http.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      const accept = () => {
        sockets.handleUpgrade(request, socket, head, (peer) => {
          server.#peers.push(new Peer(peer, request));
        });
      };
      if (upgrade === undefined) accept();
      else upgrade(request, socket, accept);
    });
    await new Promise<void>((resolve) => http.listen(port, '127.0.0.1', resolve));
    t.teardown(() => {
      http.close();
      for (const socket of connections) socket.destroy();
    });
    return server;
  }

  get port(): number {
    return (this.#http.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${String(this.port)}`;
  }

  /** The next connection. */
  peer(): Promise<Peer> {
    return this.#peers.next();
  }
}

export const started = (
  contextId: string,
  format: Frame = { encoding: 'pcm', sample_rate: 32_000 },
): Frame => ({
  context_started: { voice_id: 'ada', model_id: 'default', timestamps: true, response_format: format },
  context_id: contextId,
});

export const audio = (contextId: string, bytes: Uint8Array | readonly number[]): Frame => ({
  audio_chunk: Buffer.from(bytes).toString('base64'),
  context_id: contextId,
});

/** Words of a second each. */
export const words = (contextId: string, startSeconds: number, ...list: readonly string[]): Frame => ({
  timestamps: {
    words: list,
    start_seconds: list.map((_, i) => startSeconds + i),
    end_seconds: list.map((_, i) => startSeconds + i + 1),
  },
  context_id: contextId,
});

export const flushed = (contextId: string, flushId: string): Frame => ({
  flush_completed: true,
  flush_id: flushId,
  context_id: contextId,
});

/** As the service ends a context that was closed. */
export const ended = (contextId: string): readonly Frame[] => [
  flushed(contextId, `${contextId}:close`),
  { context_closed: true, context_id: contextId },
];
