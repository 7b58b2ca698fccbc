/**
 * The ops listener: metrics and health for operators. Its port asks for no key and is meant for the machine itself or an
 * internal network. It listens before anything is loaded and until everything is closed, so that a supervisor always learns
 * why there is no speech.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { hostNameOf, isOwnName } from '../address.js';
import { describeFault } from '../fault.js';
import { ConnectionPool, type Connections } from '../front/connections.js';
import { listenWith } from '../front/listener.js';
import { healthAnswer, readyAnswer, type Readiness } from '../front/specification.js';
import type { Bounds } from '../limits.js';
import type { Log } from '../log.js';
import type { Metrics } from '../metrics.js';
import { monotonicMs } from '../monotonic.js';
import { networkOf } from '../network.js';

export interface OpsServerParts {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  /** Names under which it answers, beside addresses, localhost and `host`. */
  readonly names: readonly string[];
  readonly metrics: Pick<Metrics, 'contentType' | 'text'>;
  readonly readiness: Readiness;
  readonly bounds: Pick<Bounds, 'opsHeadBytesMax' | 'opsRequestMsMax' | 'opsConnectionsMax'>;
  readonly log: Log;
}

interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

const textAnswer = (status: number, body: string): Answer => ({
  status,
  contentType: 'text/plain; charset=utf-8',
  body: `${body}\n`,
});

const HEAD_END = '\r\n\r\n';

/** Milliseconds between two searches for requests that take too long. */
const CHECK_MS = 1_000;

/** Some at once, then each waits: requests take time in which no speech is sent, and texts for scrapes milliseconds. */
class Pace {
  static readonly #stepMs = 100;
  readonly #atOnceMs: number;
  /** When a loop of them would be in time. */
  #dueMs = 0;

  constructor(atOnce: number) {
    this.#atOnceMs = atOnce * Pace.#stepMs;
  }

  async turn(): Promise<void> {
    const nowMs = monotonicMs();
    const waitMs = this.#dueMs - nowMs - this.#atOnceMs;
    this.#dueMs = Math.max(this.#dueMs, nowMs) + Pace.#stepMs;
    if (waitMs > 0) await setTimeout(waitMs, undefined, { ref: false });
  }
}

const TEXTS_AT_ONCE = 8;
/** On one connection. A further connection is answered at once: it would take the place of one that waits. */
const REQUESTS_AT_ONCE = 4;

export class OpsServer {
  readonly #parts: OpsServerParts;
  readonly #server: Server;
  /** By the address that they come from, the oldest first. */
  readonly #sockets = new Map<Socket, string>();
  /** Connections whose client sends more before its answer. */
  readonly #cut = new WeakSet<Socket>();
  readonly #answering = new WeakSet<Socket>();
  /** Scrapes at the same time share one. */
  #scrape: Promise<string> | null = null;
  readonly #textPace = new Pace(TEXTS_AT_ONCE);
  readonly #paces = new WeakMap<Socket, Pace>();
  #closed: Promise<void> | undefined;

  private constructor(parts: OpsServerParts) {
    this.#parts = parts;
    const { bounds } = parts;
    this.#server = createServer(
      {
        maxHeaderSize: bounds.opsHeadBytesMax,
        headersTimeout: bounds.opsRequestMsMax,
        requestTimeout: bounds.opsRequestMsMax,
        connectionsCheckingInterval: CHECK_MS,
      },
      (request, response) => void this.#respond(request, response),
    );
    const connections = new ConnectionPool(bounds.opsConnectionsMax).listener();
    this.#server.on('connection', (socket: Socket) => this.#accept(socket, connections));
    // Also ends the connection of a reader that takes nothing.
    this.#server.timeout = bounds.opsRequestMsMax;
  }

  /** @throws {ListenError} names the variables that set the address */
  static async listen(parts: OpsServerParts): Promise<OpsServer> {
    const ops = new OpsServer(parts);
    const { host, log, port } = parts;
    const variables = { host: 'OPS_HOST', port: 'OPS_PORT' };
    await listenWith(ops.#server, { host, port, variables }, (error) =>
      log.error(describeFault(error), 'ops listener failed'),
    );
    return ops;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Ends all connections. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
    return this.#closed;
  }

  /**
   * The newest connection takes the place of an old one: of its address, or of all where others hold the port. So a flood
   * cannot hold it against a probe, which is answered within milliseconds.
   */
  #accept(socket: Socket, connections: Connections): void {
    const network = networkOf(socket.remoteAddress ?? '');
    const refusal = connections.refusalOf(network);
    if (refusal !== null) this.#dropOldest(refusal === 'connectionPoolExhausted' ? null : network);
    connections.watch(socket, network);
    this.#sockets.set(socket, network);
    this.#paces.set(socket, new Pace(REQUESTS_AT_ONCE));
    socket.once('close', () => this.#sockets.delete(socket));
    this.#cutPipelines(socket);
  }

  /**
   * Node parses all that it gets at once, some 1,500 requests or 11,000 chunks of a body in 64 KiB, and speech waits meanwhile.
   * So it gets one head, and nothing more until its answer. If more comes, the answer ends the connection: requests here have
   * no body.
   */
  #cutPipelines(socket: Socket): void {
    const parse = socket.listeners('data');
    socket.removeAllListeners('data');
    /** The end of what has come of a head. */
    let before = Buffer.alloc(0);
    socket.on('data', (piece: Buffer) => {
      if (this.#answering.has(socket)) this.#cut.add(socket);
      if (this.#cut.has(socket)) return;
      const head = Buffer.concat([before, piece]);
      const end = head.indexOf(HEAD_END) + HEAD_END.length;
      const isWhole = end >= HEAD_END.length;
      const first = isWhole ? piece.subarray(0, end - before.length) : piece;
      before = isWhole ? Buffer.alloc(0) : head.subarray(-HEAD_END.length + 1);
      if (first.length < piece.length) this.#cut.add(socket);
      for (const listener of parse) listener.call(socket, first);
      // Empty lines: no client sends them.
      if (isWhole && !this.#answering.has(socket)) socket.destroy();
    });
  }

  /** Of the older half, first one that waits for no answer: others are about to ask. @param network `null`: of all */
  #dropOldest(network: string | null): void {
    const all = [...this.#sockets.keys()].filter(
      (socket) => (network === null || this.#sockets.get(socket) === network) && !socket.destroyed,
    );
    const older = all.slice(0, Math.ceil(all.length / 2));
    (older.find((socket) => !this.#answering.has(socket)) ?? older[0])?.destroy();
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { headers, method, socket, url } = request;
    this.#answering.add(socket);
    if (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0)
      this.#cut.add(socket);
    response.once('close', () => {
      this.#answering.delete(socket);
      // What came while the answer was on its way will have none.
      if (this.#cut.has(socket)) socket.destroySoon();
    });
    await this.#paces.get(socket)?.turn();
    const { status, contentType, body } = this.#isOurs(headers.host)
      ? await this.#answer(url?.split('?', 1)[0], method)
      : textAnswer(421, 'Misdirected Request: to use this name, add it to OPS_NAMES');
    response.writeHead(status, {
      'content-type': contentType,
      'content-length': Buffer.byteLength(body),
      'cache-control': 'no-store',
      ...(this.#cut.has(socket) && { connection: 'close' }),
      ...(status === 405 && { allow: 'GET, HEAD' }),
      ...(status === 503 && { 'retry-after': '1' }),
    });
    response.end(body);
  }

  /** HTTP/1.0 has no host, and no browser speaks it. */
  #isOurs(host: string | undefined): boolean {
    const { host: own, names } = this.#parts;
    return host === undefined || isOwnName(hostNameOf(host), [own, ...names]);
  }

  /** Never rejects. */
  async #answer(path: string | undefined, method: string | undefined): Promise<Answer> {
    try {
      const answer = this.#routes.get(path ?? '');
      if (answer === undefined) return textAnswer(404, 'Not Found: see /metrics, /healthz, /readyz');
      if (method !== 'GET' && method !== 'HEAD') return textAnswer(405, 'Method Not Allowed');
      return await answer();
    } catch (error) {
      this.#parts.log.error(describeFault(error), 'ops request failed');
      return textAnswer(500, 'Internal Server Error');
    }
  }

  readonly #routes = new Map<string, () => Answer | Promise<Answer>>([
    ['/metrics', () => this.#metrics()],
    ['/healthz', healthAnswer],
    ['/readyz', () => readyAnswer(this.#parts.readiness)],
  ]);

  async #metrics(): Promise<Answer> {
    this.#scrape ??= this.#nextText().finally(() => (this.#scrape = null));
    return { status: 200, contentType: this.#parts.metrics.contentType, body: await this.#scrape };
  }

  async #nextText(): Promise<string> {
    await this.#textPace.turn();
    return this.#parts.metrics.text();
  }
}
