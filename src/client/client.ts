/** A connection that the client replaces when it is lost, and the contexts on it. */
import { randomUUID } from 'node:crypto';
import { Connection } from './connection.js';
import { type ContextControl, Deferred, type Link, SpeechContext } from './context.js';
import { SyrinxError, errorOfFrame } from './errors.js';
import type { ServerFrame } from './frames.js';
import {
  type ConnectOptions,
  type ContextOptions,
  type Settings,
  backoffMs,
  checkContextOptions,
  settingsOf,
} from './options.js';

/** Unsent bytes above which `send` advises to wait. */
const highWaterBytes = 64 * 1024;

interface Entry {
  /** Absent when its caller is done with it and only the service's last frame is missing. */
  control: ContextControl | undefined;
  /** Frames of a context that was opened while there was no connection. */
  held: string[] | undefined;
  heldBytes: number;
}

/**
 * When the connection is lost, its contexts fail with a retryable error (`connection_lost`): the service has forgotten
 * them, and speech cannot continue in the middle. Contexts that are opened meanwhile wait for the next connection.
 */
export class SyrinxClient implements AsyncDisposable {
  readonly #settings: Settings;
  readonly #entries = new Map<string, Entry>();
  readonly #overfull = new Set<SpeechContext>();
  readonly #drainWaiters = new Set<() => void>();
  readonly #opened = new Deferred<undefined>();
  readonly #closed = new Deferred<SyrinxError | undefined>();
  readonly #signal: AbortSignal | undefined;
  #state: 'connecting' | 'open' | 'waiting' | 'closing' | 'closed' = 'connecting';
  #connection: Connection | undefined;
  #failures = 0;
  /** Why the client closed by itself. */
  #cause: SyrinxError | undefined;
  #stopRetry: () => void = () => undefined;

  /** What contexts ask of the client. */
  readonly #link: Link = {
    send: (context, frame) => {
      const entry = this.#entries.get(context.id);
      if (entry === undefined) return true;
      const waitingBytes = this.#waitingBytes();
      if (waitingBytes > this.#settings.sendBufferBytesMax)
        throw new SyrinxError('buffer_full', `${String(waitingBytes)} bytes wait to be sent`);
      if (entry.held === undefined) this.#connection?.send(frame);
      else {
        entry.held.push(frame);
        entry.heldBytes += Buffer.byteLength(frame);
      }
      return this.#waitingBytes() <= highWaterBytes;
    },
    drained: () => {
      if (this.#state === 'closed' || this.#waitingBytes() <= highWaterBytes) return Promise.resolve();
      return new Promise((resolve) => this.#drainWaiters.add(resolve));
    },
    setOverfull: (context, isOverfull) => {
      if (isOverfull) this.#overfull.add(context);
      else this.#overfull.delete(context);
      this.#connection?.setPaused(this.#overfull.size > 0);
    },
    left: (context, goodbye) => {
      const entry = this.#entries.get(context.id);
      if (entry === undefined) return;
      entry.control = undefined;
      // The service still has to answer, and may send what was under way. Until then the id is in use.
      if (goodbye !== undefined && entry.held === undefined) this.#connection?.send(goodbye);
      else this.#entries.delete(context.id);
      this.#wakeDrained();
    },
  };

  /** @internal Use `connect`. */
  constructor(options: ConnectOptions) {
    this.#settings = settingsOf(options);
    this.#signal = options.signal;
    if (this.#signal?.aborted === true) this.#onAbort();
    else {
      this.#signal?.addEventListener('abort', this.#onAbort, { once: true });
      this.#dial();
    }
  }

  /** `waiting`: the connection was lost, and the next try comes later. */
  get state(): 'connecting' | 'open' | 'waiting' | 'closing' | 'closed' {
    return this.#state;
  }

  /** @internal Resolves when the service has taken the key. */
  get opened(): Promise<void> {
    return this.#opened.promise;
  }

  /** Resolves when the client gives up: with the reason, or with nothing after `close`. */
  get closed(): Promise<SyrinxError | undefined> {
    return this.#closed.promise;
  }

  /**
   * Opens a context with a voice and a format. Without a connection it waits for the next one.
   *
   * @throws {SyrinxError} `closed`, `too_many_contexts`, `buffer_full`
   * @throws {TypeError} the context id is in use, or an option is unknown
   */
  context(options: ContextOptions): SpeechContext {
    checkContextOptions(options);
    if (this.#state === 'closing' || this.#state === 'closed') {
      const because = this.#cause === undefined ? '' : `: ${this.#cause.message}`;
      throw new SyrinxError('closed', `The client is closed${because}`, { cause: this.#cause });
    }
    if (this.#entries.size >= this.#settings.contextsMax)
      throw new SyrinxError(
        'too_many_contexts',
        `${String(this.#entries.size)} contexts are open on this connection`,
      );
    const id = options.contextId ?? randomUUID();
    if (this.#entries.has(id)) throw new TypeError(`context id ${id} is in use`);
    const control = SpeechContext.open(this.#link, this.#settings, id, options);
    this.#entries.set(id, { control, held: this.#state === 'open' ? undefined : [], heldBytes: 0 });
    try {
      control.start();
    } catch (error) {
      this.#entries.delete(id);
      throw error;
    }
    return control.context;
  }

  /** Ends everything: open contexts fail with `closed`, and the connection closes cleanly. Never rejects. */
  async close(): Promise<void> {
    this.#shut(undefined);
    await this.#closed.promise;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  readonly #onAbort = (): void => {
    this.#shut(new SyrinxError('aborted', 'The client was aborted', { cause: this.#signal?.reason }));
  };

  #shut(error: SyrinxError | undefined): void {
    if (this.#state === 'closing' || this.#state === 'closed') return;
    this.#state = 'closing';
    this.#stopRetry();
    const reason = error ?? new SyrinxError('closed', 'The client was closed');
    this.#failContexts(reason, true);
    if (this.#connection === undefined) this.#finish(error);
    else this.#connection.close(reason);
  }

  #finish(error: SyrinxError | undefined): void {
    this.#state = 'closed';
    this.#cause = error;
    this.#signal?.removeEventListener('abort', this.#onAbort);
    this.#opened.reject(error ?? new SyrinxError('closed', 'The client was closed'));
    this.#failContexts(error ?? new SyrinxError('closed', 'The client was closed'), true);
    this.#wakeDrained();
    this.#closed.resolve(error);
    this.#settings.onEvent({ type: 'closed', ...(error && { error }) });
  }

  #dial(): void {
    this.#state = 'connecting';
    this.#connection = new Connection(this.#settings, {
      onOpen: () => {
        this.#open();
      },
      onFrame: (frame) => {
        this.#receive(frame);
      },
      onAlive: () => {
        this.#failures = 0;
        this.#opened.resolve(undefined);
      },
      onSent: () => {
        this.#wakeDrained();
      },
      onEnd: (error) => {
        this.#lost(error);
      },
    });
  }

  #open(): void {
    this.#state = 'open';
    for (const entry of this.#entries.values()) {
      for (const frame of entry.held ?? []) this.#connection?.send(frame);
      entry.held = undefined;
      entry.heldBytes = 0;
    }
    this.#wakeDrained();
    this.#settings.onEvent({ type: 'open' });
  }

  #lost(error: SyrinxError): void {
    this.#connection = undefined;
    if (this.#state === 'closing') {
      this.#finish(error.code === 'closed' ? undefined : error);
      return;
    }
    this.#failures += 1;
    this.#state = 'waiting';
    this.#failContexts(error, false);
    if (!error.retryable || this.#failures >= this.#settings.attemptsMax) {
      this.#finish(error);
      return;
    }
    const retryInMs = backoffMs(this.#failures, this.#settings.backoff, this.#settings.random);
    this.#stopRetry = this.#settings.clock.after(retryInMs, () => {
      this.#dial();
    });
    this.#wakeDrained();
    this.#settings.onEvent({ type: 'lost', error, retryInMs });
  }

  /** @param all also the contexts that wait for a connection */
  #failContexts(error: SyrinxError, all: boolean): void {
    // A reader may open its next context at once: that one waits for a connection and does not fail.
    for (const [id, entry] of [...this.#entries]) {
      if (!all && entry.held !== undefined) continue;
      this.#entries.delete(id);
      entry.control?.fail(error);
    }
  }

  #receive(frame: ServerFrame): void {
    if (frame.type === 'error') {
      const error = errorOfFrame(frame.text, true);
      if (error.code === 'invalid_api_key') {
        this.#connection?.end(error);
        return;
      }
      if (frame.contextId === undefined) this.#settings.onEvent({ type: 'error', error });
    }
    const entry = frame.contextId === undefined ? undefined : this.#entries.get(frame.contextId);
    if (entry === undefined) return;
    const isLast = frame.type === 'closed' || (frame.type === 'error' && entry.control === undefined);
    if (isLast) this.#entries.delete(frame.contextId!);
    entry.control?.deliver(frame);
  }

  #waitingBytes(): number {
    let bytes = this.#connection?.waitingBytes ?? 0;
    for (const { heldBytes } of this.#entries.values()) bytes += heldBytes;
    return bytes;
  }

  #wakeDrained(): void {
    if (this.#drainWaiters.size === 0) return;
    if (this.#state !== 'closed' && this.#waitingBytes() > highWaterBytes) return;
    for (const resolve of this.#drainWaiters) resolve();
    this.#drainWaiters.clear();
  }
}

/**
 * Connects to a service. Tries again as `reconnect` says while that can help.
 *
 * @throws {SyrinxError} no connection could be opened
 * @throws {TypeError} an option is invalid
 */
export const connect = async (options: ConnectOptions): Promise<SyrinxClient> => {
  const client = new SyrinxClient(options);
  await client.opened;
  return client;
};
