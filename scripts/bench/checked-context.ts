/**
 * One context of a WebSocket, every frame of which is looked at: pages of its audio by number, words one by one,
 * flushes by id, and that nothing comes before its beginning or after its end.
 *
 *   starting --> speaking (turn after turn) --> closing --> over;  speaking --> cancelled --> over
 */
import { OggPages } from './ogg-pages.js';
import { encodeMessage } from './socket-connection.js';

/** As the specification has them; of all the frames that there are. */
export interface ServerFrame {
  readonly context_id?: string;
  readonly context_started?: object;
  readonly audio_chunk?: string;
  readonly timestamps?: {
    readonly words: readonly string[];
    readonly start_seconds: readonly number[];
    readonly end_seconds: readonly number[];
  };
  readonly flush_completed?: true;
  readonly flush_id?: string;
  readonly context_closed?: true;
  readonly error?: string;
}

export interface ContextParts {
  readonly id: string;
  /** After which it is closed, or cancelled in the midst of the last. */
  readonly turns: number;
  readonly isCancelled: boolean;
  readonly write: (frame: Buffer) => void;
  readonly nextText: () => string;
  /** Called once. */
  readonly onOver: () => void;
  readonly onFault: (what: string) => void;
}

/** What a page may end short of its words: what an encoder looks ahead, and rounding. */
const lookaheadMs = 20;

type State = 'starting' | 'idle' | 'speaking' | 'closing' | 'cancelled' | 'over';

export class CheckedContext {
  readonly #parts: ContextParts;
  readonly #pages = new OggPages();
  #state: State = 'starting';
  #turns = 0;
  #flushId: string | null = null;
  #words: string[] = [];
  #startSeconds = 0;
  #endSeconds = 0;

  constructor(parts: ContextParts) {
    this.#parts = parts;
  }

  /** Waits for its next turn. */
  get isIdle(): boolean {
    return this.#state === 'idle';
  }

  /** Turns that it has spoken or is speaking. */
  get turns(): number {
    return this.#turns;
  }

  get durationMs(): number {
    return this.#pages.durationMs;
  }

  /** The next turn, its text in pieces cut anywhere. Only when idle. */
  speak(): void {
    const { id, nextText } = this.#parts;
    const text = nextText();
    this.#words = text.split(' ');
    this.#flushId = `${id}-${String(this.#turns++)}`;
    this.#state = 'speaking';
    const [a, b] = [Math.random(), Math.random()]
      .map((share) => Math.floor(share * text.length))
      .sort(byValue);
    for (const piece of [text.slice(0, a), text.slice(a, b), text.slice(b)])
      this.#write({ send_text: piece });
    this.#write({ flush: true, flush_id: this.#flushId });
  }

  /** No more turns; what it speaks is spoken to the end. Idempotent. */
  close(): void {
    if (this.#state === 'closing' || this.#state === 'cancelled' || this.#state === 'over') return;
    this.#state = 'closing';
    this.#write({ close_context: true });
  }

  onFrame(frame: ServerFrame): void {
    if (frame.error !== undefined) this.#fault(`error: ${frame.error}`);
    else if (frame.context_started !== undefined) this.#onStarted();
    else if (frame.audio_chunk !== undefined) this.#onAudio(frame.audio_chunk);
    else if (frame.timestamps !== undefined) this.#onWords(frame.timestamps);
    else if (frame.flush_completed !== undefined) this.#onFlushed(frame.flush_id ?? '');
    else if (frame.context_closed !== undefined) this.#onClosed();
    else this.#fault('a frame of no kind');
  }

  #onStarted(): void {
    if (this.#state === 'starting') this.#state = 'idle';
    else this.#fault('started twice');
  }

  #onAudio(base64: string): void {
    const fault = this.#pages.push(Buffer.from(base64, 'base64'));
    if (fault !== null) this.#fault(fault);
    const { isCancelled, turns } = this.#parts;
    if (this.#state !== 'speaking' || !isCancelled || this.#turns < turns) return;
    this.#state = 'cancelled';
    this.#write({ cancel_context: true });
  }

  #onWords({ words, start_seconds, end_seconds }: NonNullable<ServerFrame['timestamps']>): void {
    for (const [i, word] of words.entries()) {
      const expected = this.#words.shift();
      if (word !== expected) this.#fault(`the word "${word}" comes where "${expected ?? 'none'}" must be`);
      const [start, end] = [start_seconds[i] ?? NaN, end_seconds[i] ?? NaN];
      if (!(start >= this.#startSeconds && end >= start)) this.#fault('words are not in the order of time');
      this.#startSeconds = start;
      this.#endSeconds = end;
    }
  }

  #onFlushed(flushId: string): void {
    const isPending = this.#flushId !== null;
    const expected = this.#flushId ?? `${this.#parts.id}:close`;
    if (flushId !== expected) this.#fault(`flush ${flushId} is completed where ${expected} must be`);
    if (this.#words.length > 0) this.#fault(`${String(this.#words.length)} words of a flush are lost`);
    if (!isPending) {
      if (this.#state !== 'closing') this.#fault('closed without being asked');
      this.#flushId = '';
      return;
    }
    this.#flushId = null;
    if (this.#state !== 'speaking') return;
    this.#state = 'idle';
    if (this.#turns >= this.#parts.turns) this.close();
  }

  #onClosed(): void {
    if (this.#state === 'closing') {
      if (this.#flushId !== '') this.#fault('closed before its last flush');
      if (this.#turns > 0 && !this.#pages.isComplete) this.#fault('the end of the audio is lost');
      if (this.durationMs < this.#endSeconds * 1000 - lookaheadMs) this.#fault('audio ends before its words');
    } else if (this.#state !== 'cancelled') this.#fault('closed without being asked');
    this.#state = 'over';
    this.#parts.onOver();
  }

  #write(message: object): void {
    this.#parts.write(encodeMessage({ ...message, context_id: this.#parts.id }));
  }

  #fault(what: string): void {
    this.#parts.onFault(`${this.#parts.id}: ${what}`);
  }
}

const byValue = (a: number, b: number): number => a - b;
