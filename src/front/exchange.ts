/**
 * One request and its response: the only thing that touches the library's response object, which throws when it is
 * used after it was answered or aborted.
 *
 *   open --head--> begun --end--> over;  any --client gone, dropped, fault--> over
 *
 * Whoever holds something for a request (a context, a body's bytes, a timer) gives it back in `onOver`.
 */
import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import { errors } from '../errors.js';
import type { Header } from './cors.js';
import { describeFault } from '../fault.js';
import { forgetLastMatch } from '../last-match.js';
import type { RefusalReason } from '../metrics.js';
import type { Services } from './services.js';
import type { HttpResponse } from './uws.js';

/** How an exchange ended; `aborted` is the client's doing, the last two are ours to a client that is too slow. */
export type Outcome = 'complete' | 'aborted' | 'failed' | 'reader-stalled' | 'body-late';

export class Exchange {
  readonly id: string;
  readonly route: string;
  /** In lower case. */
  readonly method: string;
  readonly services: Services;
  /** Of the page that sent the request, as its browser says; empty when none does. Never to be sent back. */
  readonly origin: string;
  /** For the log: set when they are known. */
  keyId: number | undefined;
  characters: number | undefined;
  /** A context speaks for it. */
  isSpokenFor = false;
  /** What sends its response piece by piece, asked how much waits. */
  sender: { readonly queuedBytes: number } | undefined;
  readonly #res: HttpResponse;
  readonly #startMs: number;
  readonly #overListeners: (() => void)[] = [];
  #status: number | undefined;
  #firstAudioMs: number | undefined;
  #begun = false;
  #refusal: RefusalReason | undefined;
  #outcome: Outcome | undefined;

  constructor(res: HttpResponse, services: Services, route: string, method: string, origin: string) {
    // First of all: an exception before this ends the process, and no handler of ours would see it.
    res.onAborted(() => this.#over('aborted'));
    this.#res = res;
    this.services = services;
    this.route = route;
    this.method = method;
    this.origin = origin;
    this.#startMs = services.clock();
    this.id = randomUUID();
    services.registry.add(this);
  }

  /** Answered, aborted or dropped: nothing can be sent any more. */
  get isOver(): boolean {
    return this.#outcome !== undefined;
  }

  get outcome(): Outcome | undefined {
    return this.#outcome;
  }

  /** The head was sent: the status can no longer change. */
  get hasBegun(): boolean {
    return this.#begun;
  }

  /** Calls `listener` once, when the exchange is over for whatever reason; at once, when it is over already. */
  onOver(listener: () => void): void {
    if (this.isOver) this.#tell(listener);
    else this.#overListeners.push(listener);
  }

  /** A callback whose exception answers this request instead of hanging it. Not called once the exchange is over. */
  guarded<A extends unknown[]>(callback: (...parameters: A) => void): (...parameters: A) => void {
    return (...parameters) => {
      if (this.isOver) return;
      try {
        callback(...parameters);
      } catch (error) {
        this.fail(error);
      }
    };
  }

  /** @param listener called with each piece of the body; its bytes are gone when it returns */
  onData(listener: (piece: ArrayBuffer, isLast: boolean) => void): void {
    if (!this.isOver) this.#res.onData(this.guarded(listener));
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

  /** Runs `write` in one cork, unless the exchange is over. One `write` of the response in it, no more. */
  corked(write: (res: HttpResponse) => void): void {
    if (this.isOver) return;
    let fault: { readonly error: unknown } | undefined;
    this.#res.cork(() => {
      // An exception does not come out of `cork`: it goes to the process.
      try {
        write(this.#res);
      } catch (error) {
        fault = { error };
      }
    });
    if (fault) throw fault.error;
  }

  /**
   * Writes status line and headers; only in `corked`, and once.
   * @param headers names and values of ours, never a client's: the library lets CR and LF through
   */
  writeHead(status: number, contentType: string | null, headers: readonly Header[] = []): void {
    this.#begun = true;
    this.#status = status;
    this.#res.writeStatus(`${status} ${STATUS_CODES[status] ?? ''}`);
    if (contentType !== null) this.#res.writeHeader('content-type', contentType);
    this.#res.writeHeader('x-request-id', this.id);
    for (const [name, value] of headers) this.#res.writeHeader(name, value);
    for (const [name, value] of this.services.cors.headersFor(this.origin))
      this.#res.writeHeader(name, value);
  }

  /**
   * Ends a response whose body is known; only in `corked`, after `writeHead`. HEAD is told the length that GET has.
   * @param close the connection after it
   */
  endWhole(res: HttpResponse, body: Uint8Array | string, close = false): void {
    if (this.method !== 'head') res.end(body, close);
    else if (close) res.end('', true);
    else {
      // With any argument, the library ends without a body in a way that breaks the next request.
      res.writeHeader('content-length', String(Buffer.byteLength(body)));
      res.endWithoutBody();
    }
  }

  /**
   * Grants a slow peer ten more seconds of the library's timer. It runs from a failed write to the next writable
   * event, which a slow reader can hold off for a minute while its kernel buffer is more than two thirds full, and
   * from the request to the end of its body. Resuming is the one thing that always sets it anew.
   */
  rearm(): void {
    if (this.isOver) return;
    this.#res.pause();
    this.#res.resume();
  }

  /** Counts that it is refused, and tells the log why. The answer is the caller's. */
  noteRefusal(reason: RefusalReason): void {
    this.#refusal = reason;
    this.services.metrics.refused(reason);
  }

  /** Audio was handed to the socket. */
  noteAudio(): void {
    if (this.#firstAudioMs !== undefined) return;
    this.#firstAudioMs = this.#elapsedMs();
    this.services.metrics.firstAudio(this.route, this.#firstAudioMs);
  }

  /** The response was ended: its last byte is with the socket. */
  finish(): void {
    this.#over('complete');
  }

  /**
   * The connection becomes something else, and is no request any more: no line of the log.
   * @param upgrade takes the response over; called with the status line and the headers written
   */
  switchProtocols(upgrade: (res: HttpResponse) => void): void {
    if (this.isOver) return;
    this.writeHead(101, null);
    this.#outcome = 'complete';
    this.services.registry.delete(this);
    this.services.metrics.request(this.route, 101);
    upgrade(this.#res);
  }

  /** Closes the connection as it is: a response that has begun is seen to be cut short. */
  drop(outcome: Exclude<Outcome, 'complete' | 'aborted'>): void {
    if (this.isOver) return;
    const res = this.#res;
    this.#over(outcome);
    // Calls the abort handler, which finds the exchange over.
    res.close();
  }

  /** Answers 500, or cuts the response short when it has begun. The log gets the cause. */
  fail(cause: unknown): void {
    if (this.isOver) return;
    const reason = typeof cause === 'string' ? { reason: cause } : describeFault(cause);
    this.services.log.error({ requestId: this.id, route: this.route, ...reason }, 'request failed');
    if (this.#begun) {
      this.drop('failed');
      return;
    }
    try {
      this.corked((res) => {
        this.writeHead(errors.internal.status, errors.internal.contentType);
        this.endWhole(res, errors.internal.body);
      });
      this.#over('failed');
    } catch {
      this.drop('failed');
    }
  }

  #elapsedMs(): number {
    return Math.round((this.services.clock() - this.#startMs) * 10) / 10;
  }

  #over(outcome: Outcome): void {
    if (this.isOver) return;
    this.#outcome = outcome;
    const { metrics, registry } = this.services;
    registry.delete(this);
    metrics.request(this.route, this.#status ?? null);
    if (outcome === 'failed') metrics.failed(this.route);
    for (const listener of this.#overListeners.splice(0)) this.#tell(listener);
    this.services.log.info(
      {
        requestId: this.id,
        keyId: this.keyId,
        route: this.route,
        method: this.method,
        status: this.#status,
        outcome,
        refusal: this.#refusal,
        characters: this.characters,
        firstAudioMs: this.#firstAudioMs,
        totalMs: this.#elapsedMs(),
      },
      'request',
    );
    forgetLastMatch();
  }

  #tell(listener: () => void): void {
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
