/** One context: text goes in piece by piece, audio and the times of words come out. */
import { SyrinxError, errorOfFrame } from './errors.js';
import {
  type ServerFrame,
  type StartedContext,
  type Word,
  cancelFrame,
  closeFrame,
  flushFrame,
  startFrame,
  textFrame,
} from './frames.js';
import { type EventKind, type EventOf, Inbox, type SpeechEvent } from './inbox.js';
import type { ContextOptions, Settings } from './options.js';

/** UTF-16 units of one frame: at three bytes each, they stay below the 256 KiB of text in a message. */
const pieceUnits = 64 * 1024;
/** Flushes of one context that are not completed; the service has the same bound. */
const flushesMax = 256;
/** Bytes to read before a paused connection resumes: enough not to pause at each chunk. */
const resumeBytes = 64 * 1024;

/** A promise that others settle. Its rejection may stay unhandled. */
export class Deferred<T> {
  readonly promise: Promise<T>;
  #resolve!: (value: T) => void;
  #reject!: (error: Error) => void;

  constructor() {
    this.promise = new Promise<T>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // Node ends the process on an unhandled rejection; the readers of the context get the same error.
    this.promise.catch(() => undefined);
  }

  resolve(value: T): void {
    this.#resolve(value);
  }

  reject(error: Error): void {
    this.#reject(error);
  }
}

/** The part of the client that a context uses. */
export interface Link {
  /** @returns false if the caller should wait for `drained` @throws {SyrinxError} `buffer_full` */
  send(context: SpeechContext, frame: string): boolean;
  drained(): Promise<void>;
  /** The context has more unread bytes than it may, or no longer. */
  setOverfull(context: SpeechContext, isOverfull: boolean): void;
  /** The context is over for its caller. @param goodbye a frame that ends it at the service, if needed */
  left(context: SpeechContext, goodbye: string | undefined): void;
}

/** The client's side of a context: delivers frames and the connection's faults. */
export interface ContextControl {
  readonly context: SpeechContext;
  /** Sends the first frame, and listens to the caller's signal. */
  start(): void;
  deliver(frame: ServerFrame): void;
  fail(error: SyrinxError): void;
}

/**
 * Read either everything in order of arrival with `for await (const event of context)`, or `context.audio` and
 * `context.words` by themselves. Readers get what arrived, then the end or a `SyrinxError`. Leaving a loop over events or
 * audio early cancels the context. Audio must be read: unread audio pauses the connection, and finally fails the context
 * (`slow_consumer`).
 */
export class SpeechContext implements AsyncIterable<SpeechEvent>, AsyncDisposable {
  readonly id: string;
  readonly #link: Link;
  readonly #settings: Settings;
  readonly #inbox: Inbox;
  readonly #flushes = new Map<string, Deferred<undefined>>();
  readonly #started = new Deferred<StartedContext>();
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort: () => void;
  #state: 'open' | 'closing' | 'ended' = 'open';
  #error: SyrinxError | undefined;
  #closed: Deferred<undefined> | undefined;
  #isStarted = false;
  #flushCount = 0;
  #isOverfull = false;
  #stopStall: () => void = () => undefined;

  private constructor(link: Link, settings: Settings, id: string, options: ContextOptions) {
    this.#link = link;
    this.#settings = settings;
    this.id = id;
    this.#inbox = new Inbox(() => {
      this.#weigh(true);
    });
    this.#signal = options.signal;
    this.#onAbort = () => {
      const error = new SyrinxError('aborted', 'The context was aborted', { cause: this.#signal?.reason });
      this.#end(error, true, cancelFrame(this.id));
    };
  }

  /** @internal For the client. */
  static open(link: Link, settings: Settings, id: string, options: ContextOptions): ContextControl {
    const context = new SpeechContext(link, settings, id, options);
    return {
      context,
      start: () => {
        link.send(context, startFrame(id, options));
        context.#signal?.addEventListener('abort', context.#onAbort, { once: true });
        if (context.#signal?.aborted === true) context.#onAbort();
      },
      deliver: (frame) => {
        context.#deliver(frame);
      },
      fail: (error) => {
        context.#end(error, false, undefined);
      },
    };
  }

  /** The options as the service resolved them. Rejects if the context fails before. */
  get started(): Promise<StartedContext> {
    return this.#started.promise;
  }

  /**
   * Appends text. The service speaks it as if it had been sent at once, from the first whole sentence on.
   *
   * @returns false if much is unsent: await `drained()` before the next call
   * @throws {SyrinxError} the context's error, `closed`, or `buffer_full` if the caller ignored that advice
   */
  send(text: string): boolean {
    this.#mustBeOpen();
    let isClear = true;
    for (let start = 0, end; start < text.length; start = end) {
      end = Math.min(start + pieceUnits, text.length);
      // Do not split a surrogate pair, so that every frame is well-formed.
      if (end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end -= 1;
      isClear = this.#link.send(this, textFrame(this.id, text.slice(start, end)));
    }
    return isClear;
  }

  /** Resolves when everything sent has left, or cannot leave any more. */
  drained(): Promise<void> {
    return this.#link.drained();
  }

  /**
   * Makes the service speak everything sent so far. Resolves when all of it has arrived, read or not; rejects with the
   * context's error, `closed` or `buffer_full`.
   *
   * @param flushId comes back in the `flushed` event; a new id by default
   */
  flush(flushId?: string): Promise<void> {
    const id = flushId ?? `${this.id}:${String(++this.#flushCount)}`;
    const flushed = new Deferred<undefined>();
    try {
      this.#mustBeOpen();
      if (this.#flushes.has(id)) throw new TypeError(`flush id ${id} is in use`);
      if (this.#flushes.size >= flushesMax)
        throw new SyrinxError('buffer_full', 'Too many flushes are not completed');
      this.#link.send(this, flushFrame(this.id, id));
      this.#flushes.set(id, flushed);
    } catch (error) {
      flushed.reject(error as Error);
    }
    return flushed.promise;
  }

  /**
   * Sends no more text: the service speaks the rest, then the readers' loops end. Resolves when all of it has arrived, so
   * await it after or beside reading, not before. Idempotent. Rejects with the context's error.
   */
  close(): Promise<void> {
    if (this.#closed !== undefined) return this.#closed.promise;
    this.#closed = new Deferred<undefined>();
    if (this.#state === 'ended') this.#closed.resolve(undefined);
    else {
      this.#state = 'closing';
      try {
        this.#link.send(this, closeFrame(this.id));
      } catch (error) {
        // If the close cannot be sent, the context must not stay half open.
        this.#end(error as SyrinxError, false, cancelFrame(this.id));
      }
    }
    return this.#closed.promise;
  }

  /**
   * Barge-in: stops at once. Drops unread events, ends the readers' loops, and rejects incomplete flushes with `cancelled`.
   * The service does not charge what it has not spoken.
   */
  cancel(): void {
    this.#end(undefined, true, cancelFrame(this.id));
  }

  /** Encoded audio in the context's format, chunk by chunk. */
  get audio(): AsyncIterable<Uint8Array> {
    return { [Symbol.asyncIterator]: () => this.#read(['audio'], ({ audio }) => audio) };
  }

  /** Words with their times as they become final; only if the context has `timestamps`. */
  get words(): AsyncIterable<Word> {
    const toWord = ({ word, startSeconds, endSeconds }: EventOf<'word'>) => ({
      word,
      startSeconds,
      endSeconds,
    });
    return { [Symbol.asyncIterator]: () => this.#read(['word'], toWord) };
  }

  /** @throws {TypeError} a reader of the same events exists */
  [Symbol.asyncIterator](): AsyncIterableIterator<SpeechEvent, undefined> {
    return this.#read<EventKind, SpeechEvent>(['audio', 'word', 'flushed'], (event) => event);
  }

  /** Cancels the context unless it is closed. */
  [Symbol.asyncDispose](): Promise<void> {
    this.cancel();
    return Promise.resolve();
  }

  #read<K extends EventKind, T>(
    kinds: readonly K[],
    map: (event: EventOf<K>) => T,
  ): AsyncIterableIterator<T, undefined> {
    return this.#inbox.read(kinds, map, () => {
      if ((kinds as readonly EventKind[]).includes('audio')) this.cancel();
      else this.#inbox.drop(...kinds);
    });
  }

  #mustBeOpen(): void {
    if (this.#state !== 'open')
      throw this.#error ?? new SyrinxError('closed', `Context ${this.id} is closed`);
  }

  #deliver(frame: ServerFrame): void {
    switch (frame.type) {
      case 'started':
        this.#isStarted = true;
        this.#started.resolve(frame.started);
        return;
      case 'audio':
        if (frame.audio.byteLength > 0) this.#inbox.push({ type: 'audio', audio: frame.audio });
        this.#weigh(false);
        return;
      case 'words':
        for (const word of frame.words) this.#inbox.push({ type: 'word', ...word });
        this.#weigh(false);
        return;
      case 'flushed': {
        const flushed = this.#flushes.get(frame.flushId);
        // The close has a flush of its own that no caller requested.
        if (flushed === undefined) return;
        this.#flushes.delete(frame.flushId);
        this.#inbox.push({ type: 'flushed', flushId: frame.flushId });
        flushed.resolve(undefined);
        return;
      }
      case 'closed':
        this.#end(undefined, false, undefined);
        return;
      case 'error':
        // The service continues after some errors, but an utterance with a missing part is useless.
        this.#end(
          errorOfFrame(frame.text, this.#isStarted),
          false,
          this.#isStarted ? cancelFrame(this.id) : undefined,
        );
        return;
    }
  }

  /**
   * Ends the context once, for any reason.
   *
   * @param drops drops unread events
   * @param goodbye the frame that ends it at the service, if needed
   */
  #end(error: SyrinxError | undefined, drops: boolean, goodbye: string | undefined): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    this.#error = error;
    this.#signal?.removeEventListener('abort', this.#onAbort);
    if (drops) this.#inbox.drop('audio', 'word', 'flushed');
    this.#inbox.end(error);
    this.#setOverfull(false);
    const cut = error ?? new SyrinxError('cancelled', `Context ${this.id} was cancelled`);
    this.#started.reject(cut);
    for (const flushed of this.#flushes.values()) flushed.reject(cut);
    this.#flushes.clear();
    if (error === undefined) this.#closed?.resolve(undefined);
    else this.#closed?.reject(error);
    this.#link.left(this, goodbye);
  }

  /** Reports when unread bytes exceed the bound and when they are back below; fails the context if they stay above. */
  #weigh(wasRead: boolean): void {
    if (this.#state === 'ended') return;
    const max = this.#settings.receiveBufferBytesMax;
    if (!this.#isOverfull) this.#setOverfull(this.#inbox.bytes > max);
    else if (this.#inbox.bytes <= max - Math.min(resumeBytes, max / 2)) this.#setOverfull(false);
    else if (wasRead) this.#startStall();
  }

  #setOverfull(isOverfull: boolean): void {
    if (isOverfull === this.#isOverfull) return;
    this.#isOverfull = isOverfull;
    if (isOverfull) this.#startStall();
    else this.#stopStall();
    this.#link.setOverfull(this, isOverfull);
  }

  #startStall(): void {
    this.#stopStall();
    const ms = this.#settings.consumerStallMsMax;
    this.#stopStall = this.#settings.clock.after(ms, () => {
      const held = `${String(this.#settings.receiveBufferBytesMax)} bytes of context ${this.id} were unread for ${String(ms)} ms`;
      this.#end(new SyrinxError('slow_consumer', held), false, cancelFrame(this.id));
    });
  }
}
