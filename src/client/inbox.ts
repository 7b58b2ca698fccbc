/** What arrived for one context and was not read yet, in lanes that can be read together or each for itself. */
import type { Word } from './frames.js';
import { Reader } from './reader.js';

export type SpeechEvent =
  /** Encoded audio in the context's format. Its memory is its own, from its first byte on. */
  | { readonly type: 'audio'; readonly audio: Uint8Array }
  | ({ readonly type: 'word' } & Word)
  /** All audio and words of what was sent before that flush came before this. */
  | { readonly type: 'flushed'; readonly flushId: string };

export type Lane = SpeechEvent['type'];
export type EventOf<L extends Lane> = Extract<SpeechEvent, { readonly type: L }>;

interface Entry {
  readonly order: number;
  readonly event: SpeechEvent;
}

/** What an event weighs against the bound; the small ones are an estimate of what they take in memory. */
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

export class Inbox {
  readonly #lanes: Record<Lane, Entry[]> = { audio: [], word: [], flushed: [] };
  /** Lanes that are being read, and those that nobody will read any more. */
  readonly #claimed = new Set<Lane>();
  readonly #dropped = new Set<Lane>();
  readonly #readers = new Set<{ serve(): void }>();
  readonly #onTaken: () => void;
  #order = 0;
  #bytes = 0;
  #isEnded = false;
  #error: Error | undefined;

  /** @param onTaken something was read, or dropped: `bytes` is less */
  constructor(onTaken: () => void) {
    this.#onTaken = onTaken;
  }

  get bytes(): number {
    return this.#bytes;
  }

  push(event: SpeechEvent): void {
    if (this.#isEnded || this.#dropped.has(event.type)) return;
    this.#lanes[event.type].push({ order: this.#order++, event });
    this.#bytes += bytesOf(event);
    this.#wake();
  }

  /** Nothing more comes: readers get what is there, then the end, or the error. Only the first call counts. */
  end(error?: Error): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#error = error;
    this.#wake();
  }

  /** Forgets what a lane holds, and what will come for it. */
  drop(...lanes: readonly Lane[]): void {
    for (const lane of lanes) {
      this.#dropped.add(lane);
      for (const { event } of this.#lanes[lane].splice(0)) this.#bytes -= bytesOf(event);
    }
    this.#onTaken();
  }

  /**
   * Reads lanes in the order of arrival.
   *
   * @param onLeft the reader is gone, at the end or before
   * @throws {TypeError} when one of them is being read already
   */
  read<L extends Lane, T>(lanes: readonly L[], map: (event: EventOf<L>) => T, onLeft: () => void): Reader<T> {
    const taken = lanes.find((lane) => this.#claimed.has(lane));
    if (taken !== undefined)
      throw new TypeError(`The ${taken} events of this context are being read already`);
    for (const lane of lanes) this.#claimed.add(lane);
    // Who reads audio or words by themselves learns of flushes from the promises.
    if (!(lanes as readonly Lane[]).includes('flushed')) this.drop('flushed');
    const source = {
      take: () => {
        const event = this.#take(lanes);
        return event && map(event);
      },
      isEnded: () => this.#isEnded,
      error: () => this.#error,
    };
    const reader = new Reader<T>(source, () => {
      this.#readers.delete(reader);
      for (const lane of lanes) this.#claimed.delete(lane);
      onLeft();
    });
    this.#readers.add(reader);
    return reader;
  }

  #take<L extends Lane>(lanes: readonly L[]): EventOf<L> | undefined {
    let first: L | undefined;
    for (const lane of lanes) {
      const order = this.#lanes[lane][0]?.order;
      if (order !== undefined && (first === undefined || order < this.#lanes[first][0]!.order)) first = lane;
    }
    const entry = first && this.#lanes[first].shift();
    if (entry === undefined) return undefined;
    this.#bytes -= bytesOf(entry.event);
    this.#onTaken();
    // A lane holds the events of its name only.
    return entry.event as EventOf<L>;
  }

  #wake(): void {
    for (const reader of [...this.#readers]) reader.serve();
  }
}
