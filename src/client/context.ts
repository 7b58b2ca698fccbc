/** One context: text goes in piece by piece, audio and the times of words come out. */
import type { Clock } from './clock.js';
import { Deferred } from './deferred.js';
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
import { type EventOf, Inbox, type Lane, type SpeechEvent } from './inbox.js';
import type { ContextOptions } from './options.js';

/** UTF-16 units of one frame: escaped at six bytes each they stay below the 1 MiB that a message may have. */
const pieceUnits = 128 * 1024;
/** Flushes of one context that are not completed: as many as the service takes. */
const flushesMax = 256;
/** Bytes that must have been read before a connection that was held up reads again: enough not to stop at each chunk. */
const resumeBytes = 64 * 1024;

/** What a context sees of its client. */
export interface Link {
  readonly clock: Clock;
  readonly receiveBufferBytesMax: number;
  readonly consumerStallMsMax: number;
  /** @returns false while more waits than should @throws {SyrinxError} `buffer_full` */
  send(context: SpeechContext, frame: string): boolean;
  drained(): Promise<void>;
  /** Whether this context has more unread than it may. */
  setOverfull(context: SpeechContext, isOverfull: boolean): void;
  /** The context is over for its caller. @param goodbye a frame that tells the service so, where it does not know */
  left(context: SpeechContext, goodbye: string | undefined): void;
}

/** Who created it can deliver what arrives, and what befalls the connection. */
export interface ContextControl {
  readonly context: SpeechContext;
  /** Sends the first frame, and listens to the caller's signal. */
  start(): void;
  deliver(frame: ServerFrame): void;
  fail(error: SyrinxError): void;
}

/**
 * Reading: either `for await (const event of context)` for everything in order of arrival, or `context.audio` and
 * `context.words`, each for itself. Readers get what arrived, then the end, or a `SyrinxError`. Leaving a loop over
 * events or audio early cancels the context. Audio must be read: what is not read in time holds up the connection, and
 * finally fails the context (`slow_consumer`).
 */
export class SpeechContext implements AsyncIterable<SpeechEvent>, AsyncDisposable {
  readonly id: string;
  readonly #link: Link;
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

  private constructor(link: Link, id: string, options: ContextOptions) {
    this.#link = link;
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

  /** @internal Its client's part of it. */
  static open(link: Link, id: string, options: ContextOptions): ContextControl {
    const context = new SpeechContext(link, id, options);
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

  /** What the service made of the options: the format with its defaults. Rejects where the context fails before. */
  get started(): Promise<StartedContext> {
    return this.#started.promise;
  }

  /**
   * Appends text: it is spoken as if all of it had been sent at once, from the first sentence on that is whole.
   *
   * @returns false when more waits to be sent than should: await `drained()` before the next
   * @throws {SyrinxError} the context's error, `closed`, or `buffer_full` when that advice was not taken
   */
  send(text: string): boolean {
    this.#mustBeOpen();
    let isClear = true;
    for (let start = 0, end; start < text.length; start = end) {
      end = Math.min(start + pieceUnits, text.length);
      // Not between the halves of a surrogate pair, so that every frame is well-formed.
      if (end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end -= 1;
      isClear = this.#link.send(this, textFrame(this.id, text.slice(start, end)));
    }
    return isClear;
  }

  /** Resolves when what was sent has left, or can no more. */
  drained(): Promise<void> {
    return this.#link.drained();
  }

  /**
   * Has everything spoken that was sent so far. Resolves when all of it has arrived, read or not; rejects with the
   * context's error, `closed` or `buffer_full`.
   *
   * @param flushId comes back in the `flushed` event; by default a new one
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
   * No more text: what was not flushed is spoken, then the readers' loops end. Resolves when all of it has arrived; await
   * it after reading, or beside it, not before. Calling it again changes nothing. Rejects with the context's error.
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
        // A close that cannot be sent must not leave the context half open.
        this.#end(error as SyrinxError, false, cancelFrame(this.id));
      }
    }
    return this.#closed.promise;
  }

  /**
   * Barge-in: stops speaking at once. What arrived and was not read is dropped, the readers' loops end, flushes that are
   * not completed reject with `cancelled`, and what the service had not spoken is not charged.
   */
  cancel(): void {
    this.#end(undefined, true, cancelFrame(this.id));
  }

  /** Encoded audio in the context's format, chunk by chunk. */
  get audio(): AsyncIterable<Uint8Array> {
    return { [Symbol.asyncIterator]: () => this.#read(['audio'], ({ audio }) => audio) };
  }

  /** Words with their times, as they become final; only where the context has `timestamps`. */
  get words(): AsyncIterable<Word> {
    const toWord = ({ word, startSeconds, endSeconds }: EventOf<'word'>) => ({
      word,
      startSeconds,
      endSeconds,
    });
    return { [Symbol.asyncIterator]: () => this.#read(['word'], toWord) };
  }

  /** @throws {TypeError} when audio, words or all of it is being read already */
  [Symbol.asyncIterator](): AsyncIterableIterator<SpeechEvent, undefined> {
    return this.#read<Lane, SpeechEvent>(['audio', 'word', 'flushed'], (event) => event);
  }

  /** Cancels what is not closed. */
  [Symbol.asyncDispose](): Promise<void> {
    this.cancel();
    return Promise.resolve();
  }

  #read<L extends Lane, T>(
    lanes: readonly L[],
    map: (event: EventOf<L>) => T,
  ): AsyncIterableIterator<T, undefined> {
    return this.#inbox.read(lanes, map, () => {
      if ((lanes as readonly Lane[]).includes('audio')) this.cancel();
      else this.#inbox.drop(...lanes);
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
        // The close has a flush of its own, which nobody asked for.
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
        // The service would let some of them pass; but a turn of which a part is missing is no use to anyone.
        this.#end(
          errorOfFrame(frame.text, this.#isStarted),
          false,
          this.#isStarted ? cancelFrame(this.id) : undefined,
        );
        return;
    }
  }

  /**
   * Once, whatever the reason.
   *
   * @param drops whether what arrived and was not read is forgotten
   * @param goodbye tells the service
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

  /** Tells the client when the unread goes over its bound or comes back; fails the context when it stays there. */
  #weigh(wasRead: boolean): void {
    if (this.#state === 'ended') return;
    const max = this.#link.receiveBufferBytesMax;
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
    const ms = this.#link.consumerStallMsMax;
    this.#stopStall = this.#link.clock.after(ms, () => {
      const held = `${String(this.#link.receiveBufferBytesMax)} bytes of context ${this.id} were unread for ${String(ms)} ms`;
      this.#end(new SyrinxError('slow_consumer', held), false, cancelFrame(this.id));
    });
  }
}
