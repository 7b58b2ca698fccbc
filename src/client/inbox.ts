/** Unread events of one context, by kind. A caller reads all kinds together, or each by itself. */
import type { Word } from './frames.js';

export type SpeechEvent =
  /** Encoded audio in the context's format. It has its own memory, from the first byte on. */
  | { readonly type: 'audio'; readonly audio: Uint8Array }
  | ({ readonly type: 'word' } & Word)
  /** All audio and words of the text before the flush have arrived before this. */
  | { readonly type: 'flushed'; readonly flushId: string };

export type EventKind = SpeechEvent['type'];
export type EventOf<K extends EventKind> = Extract<SpeechEvent, { readonly type: K }>;

interface Entry {
  readonly order: number;
  readonly event: SpeechEvent;
}

/** What an event counts against the bound; for words and flushes an estimate of their memory. */
const bytesOf = (event: SpeechEvent): number => {
  switch (event.type) {
    case 'audio':
      return event.audio.byteLength;
    case 'word':
      return 64 + 2 * event.word.length;
    case 'flushed':
      return 64 + 2 * event.flushId.length;
  }
};

interface Waiting<T> {
  readonly resolve: (result: IteratorResult<T, undefined>) => void;
  readonly reject: (error: Error) => void;
}

const done = { done: true, value: undefined } as const;

/** A loop over what arrives. Not a generator, because a caller cannot leave a generator that waits for the next value. */
class Reader<T> implements AsyncIterableIterator<T, undefined> {
  readonly #inbox: Inbox;
  readonly #take: () => T | undefined;
  readonly #onLeft: () => void;
  readonly #waiting: Waiting<T>[] = [];
  #hasLeft = false;

  /**
   * @param take gets the next value, or `undefined` if there is none now
   * @param onLeft called once: at the end, or when the caller leaves the loop
   */
  constructor(inbox: Inbox, take: () => T | undefined, onLeft: () => void) {
    this.#inbox = inbox;
    this.#take = take;
    this.#onLeft = onLeft;
  }

  next(): Promise<IteratorResult<T, undefined>> {
    const result = new Promise<IteratorResult<T, undefined>>((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
    });
    this.serve();
    return result;
  }

  /** Leaves the loop, even while it waits. */
  return(): Promise<IteratorResult<T, undefined>> {
    this.#leave();
    return Promise.resolve(done);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The source has a value, or has ended. */
  serve(): void {
    while (this.#waiting.length > 0) {
      const value = this.#hasLeft ? undefined : this.#take();
      if (value !== undefined) this.#waiting.shift()?.resolve({ done: false, value });
      else if (this.#hasLeft || this.#inbox.isEnded) {
        const { error } = this.#inbox;
        // The error comes once, then the end.
        if (!this.#hasLeft && error !== undefined) this.#waiting.shift()?.reject(error);
        this.#leave();
        return;
      } else return;
    }
  }

  #leave(): void {
    const isFirst = !this.#hasLeft;
    this.#hasLeft = true;
    for (const { resolve } of this.#waiting.splice(0)) resolve(done);
    if (isFirst) this.#onLeft();
  }
}

export class Inbox {
  readonly #events: Record<EventKind, Entry[]> = { audio: [], word: [], flushed: [] };
  /** Kinds that a reader has, and kinds that are dropped. */
  readonly #claimed = new Set<EventKind>();
  readonly #dropped = new Set<EventKind>();
  readonly #readers = new Set<{ serve(): void }>();
  readonly #onTaken: () => void;
  #order = 0;
  #bytes = 0;
  isEnded = false;
  /** Why it ended early. */
  error: Error | undefined;

  /** @param onTaken called when an event was read or dropped: `bytes` is less */
  constructor(onTaken: () => void) {
    this.#onTaken = onTaken;
  }

  get bytes(): number {
    return this.#bytes;
  }

  push(event: SpeechEvent): void {
    if (this.isEnded || this.#dropped.has(event.type)) return;
    this.#events[event.type].push({ order: this.#order++, event });
    this.#bytes += bytesOf(event);
    this.#wake();
  }

  /** Nothing follows: readers get what is there, then the end, or the error. Only the first call counts. */
  end(error?: Error): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.error = error;
    this.#wake();
  }

  /** Drops the events of these kinds, also those to come. */
  drop(...kinds: readonly EventKind[]): void {
    for (const kind of kinds) {
      this.#dropped.add(kind);
      for (const { event } of this.#events[kind].splice(0)) this.#bytes -= bytesOf(event);
    }
    this.#onTaken();
  }

  /**
   * Reads kinds in the order of arrival.
   *
   * @param onLeft the reader is gone, at the end or before
   * @throws {TypeError} when one of them is being read already
   */
  read<K extends EventKind, T>(
    kinds: readonly K[],
    map: (event: EventOf<K>) => T,
    onLeft: () => void,
  ): Reader<T> {
    const taken = kinds.find((kind) => this.#claimed.has(kind));
    if (taken !== undefined)
      throw new TypeError(`The ${taken} events of this context are being read already`);
    for (const kind of kinds) this.#claimed.add(kind);
    // A caller that reads only audio or words learns of flushes from the promises.
    if (!(kinds as readonly EventKind[]).includes('flushed')) this.drop('flushed');
    const take = () => {
      const event = this.#take(kinds);
      return event && map(event);
    };
    const reader = new Reader<T>(this, take, () => {
      this.#readers.delete(reader);
      for (const kind of kinds) this.#claimed.delete(kind);
      onLeft();
    });
    this.#readers.add(reader);
    return reader;
  }

  #take<K extends EventKind>(kinds: readonly K[]): EventOf<K> | undefined {
    let first: K | undefined;
    for (const kind of kinds) {
      const order = this.#events[kind][0]?.order;
      if (order !== undefined && (first === undefined || order < this.#events[first][0]!.order)) first = kind;
    }
    const entry = first && this.#events[first].shift();
    if (entry === undefined) return undefined;
    this.#bytes -= bytesOf(entry.event);
    this.#onTaken();
    // Each list holds events of its kind only.
    return entry.event as EventOf<K>;
  }

  #wake(): void {
    for (const reader of [...this.#readers]) reader.serve();
  }
}
