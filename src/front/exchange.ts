/**
 * One request and its response. Nothing else touches the library's response object, which throws when it is used after it
 * was answered or aborted.
 *
 *   open --head--> begun --end--> over;  any --client gone, dropped, fault--> over
 *
 * Code that holds something for a request (a context, a body's bytes, a timer) gives it back in `onOver`.
 */
import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Member } from '../byte-budget.js';
import { describeFault } from '../fault.js';
import { networkOf } from '../network.js';
import type { RefusalReason } from '../metrics.js';
import { FirstAudio } from '../speech/first-audio.js';
import type { ActiveKey } from '../store/store.js';
import type { Header } from './cors.js';
import { endRequest } from './request-end.js';
import type { InFlight, Services } from './services.js';
import { readTrace, traceFields, traceHeaders, type Trace } from './trace.js';
import type { HttpRequest, HttpResponse } from './uws.js';

/**
 * How long a client may keep an idle connection. The library ends it 8 to 12 s after the last byte of the response, because it
 * counts ten seconds in steps of four (the earliest of 400: 8.01 s). One second is left for the way to the client and back.
 */
const KEEP_ALIVE_SECONDS = 7;

const KEEPS: readonly Header[] = [
  ['connection', 'keep-alive'],
  ['keep-alive', `timeout=${KEEP_ALIVE_SECONDS}`],
];
const CLOSES: readonly Header[] = [['connection', 'close']];

/** Clients without a key together have the part of one account. */
const STRANGERS: Member = 'without a key';

/** What the system, the library and the log take for a request counts like the reading of so many bytes: 40 µs. */
const REQUEST_BYTES = 10_000;

/**
 * How an exchange ended. `aborted`: by the client. The service drops a reader that stalls, a body that is late, and speech
 * whose listener has lost access (`revoked`).
 */
export type Outcome = 'complete' | 'aborted' | 'failed' | 'reader-stalled' | 'body-late' | 'revoked';

/** An answer that is known whole. */
export interface Reply {
  readonly status: number;
  /** `null` for an empty body. */
  readonly contentType: string | null;
  readonly body: string | Uint8Array;
  readonly headers?: readonly Header[] | undefined;
  /** Close the connection after it: at once, so only if no more of the body is on its way. */
  readonly close?: boolean;
}

export class Exchange implements InFlight {
  readonly id: string;
  readonly route: string;
  /** In lower case. */
  readonly method: string;
  readonly services: Services;
  /** The page's origin as its browser reports it; empty if there is none. Never send it back. */
  readonly origin: string;
  /** The address that the connection comes from: the client's, or a proxy's. */
  readonly peer: string;
  /** The connection ends with this response. If the client asks for that, the library obeys, and does not say so. */
  #isLast: boolean;
  /** `null` without a valid `traceparent`. */
  readonly trace: Trace | null;
  /** For the log; set once it is known. */
  characters: number | undefined;
  /** The same: see `askedVoice`. */
  voice: string | undefined;
  hasContext = false;
  sender: InFlight['sender'];
  readonly #res: HttpResponse;
  readonly #startMs: number;
  readonly #overListeners: (() => void)[] = [];
  /** The network that its connection comes from. */
  readonly #network: string;
  /** The network whose stranger it is: the client's, where a proxy names it; `null`: it has shown a key. */
  #strangerOf: string | null;
  /** The account that its connection counts for. */
  #member: Member | undefined;
  /** A second object of the library for this request, of use when the answer has spent the first. */
  readonly #spare: HttpResponse | null;
  /** The head says that the connection ends, and the library does not end it. */
  #endsConnection = false;
  #key: Pick<ActiveKey, 'keyId' | 'accountId'> | undefined;
  #status: number | undefined;
  #firstAudio: FirstAudio | undefined;
  #begun = false;
  /** No more of the request is on its way. */
  #hasWholeRequest: boolean;
  /** What answers it waits for its turn, or is being done in it. */
  #isWaiting = false;
  #isInTurn = false;
  #refusal: RefusalReason | undefined;
  #outcome: Outcome | undefined;

  /** @param req valid only during the call */
  constructor(
    res: HttpResponse,
    services: Services,
    route: string,
    req: Pick<HttpRequest, 'getMethod' | 'getHeader' | 'forEach'>,
    peer: string,
    spare: HttpResponse | null,
  ) {
    // First: an exception before this ends the process, and no handler of ours sees it.
    res.onAborted(() => this.#over('aborted'));
    this.#res = res;
    this.#spare = spare;
    this.services = services;
    this.route = services.routePrefix + route;
    this.method = req.getMethod();
    this.#hasWholeRequest = this.method === 'get' || this.method === 'head';
    this.origin = req.getHeader('origin');
    // The library, too, looks only at the length.
    this.#isLast = req.getHeader('connection').length === 'close'.length;
    this.trace = readTrace(req);
    this.#startMs = services.clock();
    this.id = randomUUID();
    this.peer = peer;
    // Counted since the connection was opened, or the answer before.
    this.#network = this.#strangerOf = networkOf(this.peer);
    services.registry.add(this);
  }

  get isArriving(): boolean {
    return !this.#hasWholeRequest;
  }

  /** Answered, aborted or dropped: nothing can be sent. */
  get isOver(): boolean {
    return this.#outcome !== undefined;
  }

  /** Set once it is known. */
  get key(): Pick<ActiveKey, 'keyId' | 'accountId'> | undefined {
    return this.#key;
  }

  set key(key: Pick<ActiveKey, 'keyId' | 'accountId'> | undefined) {
    this.#key = key;
    this.countFor(key?.accountId);
  }

  /** The account or group that its answers count for. */
  get member(): Member {
    return this.#member ?? STRANGERS;
  }

  /** The client has shown who it is: its connection counts for them. */
  countFor(member: Member | undefined): void {
    if (this.isOver) return;
    const { accounts, known } = this.services.connections;
    // Also the proxy.
    known.add(this.#network, true);
    if (this.#strangerOf !== null) known.add(this.#strangerOf, true);
    this.#leave();
    this.#member = member;
    if (member !== undefined) accounts.add(member);
  }

  /**
   * A proxy says that the connection serves this client.
   *
   * @returns false if the client's address has too many connections
   */
  comesFrom(address: string): boolean {
    const { connections } = this.services;
    const network = networkOf(address);
    const refusal = connections.refusalOf(network);
    this.#leave();
    connections.strangers.add(network);
    this.#strangerOf = network;
    return refusal !== 'connectionsOfAddressExhausted';
  }

  /**
   * In a crowd, each answer ends its connection. A client that is still sending keeps it, because it would not read the answer.
   * Without a spare object the service cannot count a connection that stays open: it would not learn when it ends.
   */
  get isLastOfConnection(): boolean {
    return this.#spare === null || (this.#hasWholeRequest && this.services.connections.isCrowded);
  }

  get outcome(): Outcome | undefined {
    return this.#outcome;
  }

  /** The head was sent: the status can no longer change. */
  get hasBegun(): boolean {
    return this.#begun;
  }

  /** Calls `listener` once when the exchange is over, for any reason; at once if it is over already. */
  onOver(listener: () => void): void {
    if (this.isOver) this.#notify(listener);
    else this.#overListeners.push(listener);
  }

  /** A callback whose exception answers this request with 500 instead of hanging it. It does nothing once the exchange is over. */
  guarded<A extends unknown[]>(callback: (...parameters: A) => void): (...parameters: A) => void {
    return (...parameters) => this.guard(() => callback(...parameters));
  }

  /** Runs such a callback now. */
  guard(callback: () => void): void {
    if (this.isOver || this.#isWaiting) return;
    try {
      callback();
    } catch (error) {
      this.fail(error);
    }
  }

  /** @param listener called with each piece of the body; the bytes are invalid when it returns */
  onData(listener: (piece: ArrayBuffer, isLast: boolean) => void): void {
    if (this.isOver) return;
    const call = this.guarded(listener);
    this.#res.onData((piece, isLast) => {
      this.#hasWholeRequest ||= isLast;
      call(piece, isLast);
    });
  }

  /** @param listener called when the socket takes bytes again */
  onWritable(listener: () => void): void {
    if (this.isOver) return;
    const call = this.guarded(listener);
    this.#res.onWritable(() => {
      call();
      return true;
    });
  }

  /** Runs `write` in one cork, unless the exchange is over. It may contain only one `write` of the response. */
  corked(write: (res: HttpResponse) => void): void {
    if (this.isOver) return;
    let fault: { readonly error: unknown } | undefined;
    this.#res.cork(() => {
      // The library passes an exception inside a cork to the process.
      try {
        write(this.#res);
      } catch (error) {
        fault = { error };
      }
    });
    if (fault) throw fault.error;
  }

  /**
   * Does what answers the request: now, or in the turns of its account or network. A client that asks again at each answer
   * would take the whole thread, and the library takes thousands of requests from one read while they are answered at once.
   * While one waits, a further request ends its connection.
   *
   * @param isProbe it asks for the health of the service: the probes of a network have turns of their own
   */
  inTurn(work: () => void, isProbe = false): void {
    if (this.isOver || this.#isWaiting) return;
    if (this.#isInTurn) {
      work();
      return;
    }
    // Of strangers, each network has turns of its own. It may be that of a balancer, whose probes must not wait for them.
    const member = this.#member ?? this.#strangerOf ?? STRANGERS;
    const turn = this.services.turns.of(isProbe ? `probes of ${this.#network}` : member);
    const piece = (): boolean => {
      this.#isWaiting = false;
      this.#isInTurn = true;
      this.guard(work);
      this.#isInTurn = false;
      return false;
    };
    if (turn.isFree) {
      turn.run(REQUEST_BYTES, piece);
      return;
    }
    this.#isWaiting = true;
    const waiting = { nextBytes: REQUEST_BYTES, piece };
    turn.wait(waiting);
    this.onOver(() => turn.drop(waiting));
  }

  /** Sends a whole answer, and the exchange is over. */
  answer(answer: Reply): void {
    if (this.isOver) return;
    this.#writeWhole(answer, answer.close);
    this.finish();
  }

  /**
   * Writes status line and headers. Call it once, in `corked`.
   * @param headers our own names and values, never a client's: the library does not filter CR and LF (of a trace, see
   * trace.ts)
   * @param close the end of the answer will close the connection
   */
  writeHead(
    status: number,
    contentType: string | null,
    headers: readonly Header[] = [],
    close = false,
  ): void {
    this.#begun = true;
    this.#status = status;
    this.#res.writeStatus(`${status} ${STATUS_CODES[status] ?? ''}`);
    if (contentType !== null) this.#res.writeHeader('content-type', contentType);
    this.#res.writeHeader('x-request-id', this.id);
    for (const [name, value] of traceHeaders(this.trace)) this.#res.writeHeader(name, value);
    for (const [name, value] of headers) this.#res.writeHeader(name, value);
    this.#endsConnection = !close && !this.#isLast && this.isLastOfConnection;
    this.#isLast ||= close || this.#endsConnection;
    // The library adds the header to its own close.
    if (status !== 101 && !close)
      for (const [name, value] of this.#isLast ? CLOSES : KEEPS) this.#res.writeHeader(name, value);
    for (const [name, value] of this.services.cors.headersFor(this.origin))
      if (!headers.some(([given]) => given === name)) this.#res.writeHeader(name, value);
  }

  /** Writes a whole answer. HEAD gets the content length of GET. @param close closes the connection afterwards */
  #writeWhole({ status, contentType, body, headers }: Reply, close = this.isLastOfConnection): void {
    this.corked((res) => {
      this.writeHead(status, contentType, headers, close);
      if (this.method !== 'head') res.end(body, close);
      else if (close) res.end('', true);
      else {
        // With an argument, `endWithoutBody` breaks the next request.
        res.writeHeader('content-length', String(Buffer.byteLength(body)));
        res.endWithoutBody();
      }
    });
  }

  /**
   * Grants a slow peer ten more seconds of the library's timer. The timer runs from a failed write to the next writable
   * event, which a slow reader can delay by a minute while its kernel buffer is more than two thirds full, and from the
   * request to the end of its body. Only resuming always restarts it.
   */
  rearm(): void {
    if (this.isOver) return;
    this.#res.pause();
    this.#res.resume();
  }

  /** Reads no more of the request for now. Its end may already be on the way. */
  pause(): void {
    if (!this.isOver) this.#res.pause();
  }

  /** Reads on. */
  resume(): void {
    if (!this.isOver) this.#res.resume();
  }

  /** Counts the refusal and notes its reason for the log. The caller sends the answer. */
  noteRefusal(reason: RefusalReason): void {
    this.#refusal = reason;
    this.services.metrics.refused(reason);
  }

  /** The response will have audio. @returns what the caller reports it to */
  expectAudio(encoding: string): FirstAudio {
    const { metrics } = this.services;
    this.#firstAudio = new FirstAudio(this.#startMs, 0, (figure, ms) =>
      metrics.firstAudio(figure, this.route, encoding, ms),
    );
    return this.#firstAudio;
  }

  /** The response has ended: the socket has its last byte. */
  finish(): void {
    if (this.isOver) return;
    this.#over('complete');
    if (this.#endsConnection) this.#spare?.close();
  }

  /**
   * The connection changes its protocol and is not a request any more: the log gets no line.
   * @param upgrade takes the response over; status line and headers are written. It gets the network whose stranger the
   * connection is, if it has not shown a key
   */
  switchProtocols(upgrade: (res: HttpResponse, strangerOf: string | null) => void): void {
    if (this.isOver) return;
    this.corked((res) => {
      this.writeHead(101, null);
      this.#outcome = 'complete';
      this.services.registry.delete(this);
      this.services.metrics.request(this.route, 101);
      this.services.connections.sockets++;
      if (this.#member !== undefined) this.services.connections.accounts.remove(this.#member);
      upgrade(res, this.#strangerOf);
    });
  }

  /** Closes the connection: the client sees that a response which has begun is cut short. */
  drop(outcome: Exclude<Outcome, 'complete' | 'aborted'>): void {
    if (this.isOver) return;
    const res = this.#res;
    this.#isLast = true;
    this.#over(outcome);
    // This calls the abort handler, which does nothing because the exchange is over.
    res.close();
  }

  /** Answers 500, or cuts the response short if it has begun. The log gets the cause. */
  fail(cause: unknown): void {
    if (this.isOver) return;
    const reason = typeof cause === 'string' ? { reason: cause } : describeFault(cause);
    this.services.log.error({ requestId: this.id, route: this.route, ...reason }, 'request failed');
    if (this.#begun) {
      this.drop('failed');
      return;
    }
    try {
      this.#writeWhole(this.services.errors.of('internal'));
      this.#over('failed');
    } catch {
      this.drop('failed');
    }
  }

  #over(outcome: Outcome): void {
    if (this.isOver) return;
    this.#outcome = outcome;
    const { metrics, registry } = this.services;
    registry.delete(this);
    this.#leave();
    if (outcome !== 'aborted' && !this.#isLast) this.#wait();
    if (outcome === 'failed') metrics.failed(this.route);
    for (const listener of this.#overListeners.splice(0)) this.#notify(listener);
    const { characters, key, method, route, trace, voice } = this;
    endRequest(this.services, {
      ...{ requestId: this.id, key, route, method, voice, characters, outcome },
      trace: traceFields(trace),
      status: this.#status,
      refusal: this.#refusal,
      startMs: this.#startMs,
      firstAudio: this.#firstAudio,
    });
  }

  /** Takes the connection off the counts of its address and its account. */
  #leave(): void {
    const { accounts, strangers } = this.services.connections;
    if (this.#strangerOf !== null) strangers.remove(this.#strangerOf);
    if (this.#member !== undefined) accounts.remove(this.#member);
    this.#strangerOf = null;
    this.#member = undefined;
  }

  /** The connection waits for the next request, whose exchange puts its own handler in the place of this one. */
  #wait(): void {
    const spare = this.#spare;
    if (spare === null) return;
    const { strangers } = this.services.connections;
    const network = this.#network;
    strangers.add(network);
    spare.onAborted(() => strangers.remove(network));
  }

  #notify(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      this.services.log.error(
        { requestId: this.id, ...describeFault(error) },
        'clean-up of a request failed',
      );
    }
  }
}
