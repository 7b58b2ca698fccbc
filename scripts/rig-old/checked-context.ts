/**
 * One context of a WebSocket: speaks turn after turn, and looks at every frame.
 *
 *   starting --> speaking (turn after turn) --> closing --> over;  speaking --> cancelled --> over
 */
import { ContextCheck } from './context-check.js';
import { OggPages } from './ogg-pages.js';
import type { ServerFrame } from './server-frame.js';
import { encodeMessage } from './socket-connection.js';

export interface ContextParts {
  readonly id: string;
  /** After which it is closed, or cancelled in the midst of the last. */
  readonly turns: number;
  readonly isCancelled: boolean;
  readonly write: (frame: Buffer) => void;
  readonly nextText: () => string;
  /** From 0, below 1: where texts are cut. */
  readonly random: () => number;
  /** Called once. */
  readonly onOver: () => void;
  readonly onFault: (what: string) => void;
}

type State = 'starting' | 'idle' | 'speaking' | 'closing' | 'cancelled' | 'over';

export class CheckedContext {
  readonly #parts: ContextParts;
  readonly #check: ContextCheck;
  #state: State = 'starting';
  #turns = 0;

  constructor(parts: ContextParts) {
    this.#parts = parts;
    this.#check = new ContextCheck({
      id: parts.id,
      audio: new OggPages(),
      timestamps: true,
      trailMs: null,
      wordMarginMs: null,
      msPerCharacter: null,
      onFault: (_kind, what) => parts.onFault(`${parts.id}: ${what}`),
    });
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
    return this.#check.durationMs;
  }

  /** The next turn, its text in pieces cut anywhere. Only when idle. */
  speak(): void {
    const { id, nextText, random } = this.#parts;
    const text = nextText();
    const flushId = `${id}-${String(this.#turns++)}`;
    this.#state = 'speaking';
    const [a, b] = [random(), random()].map((share) => Math.floor(share * text.length)).sort(byValue);
    this.#check.text(text);
    for (const piece of [text.slice(0, a), text.slice(a, b), text.slice(b)])
      this.#write({ send_text: piece });
    this.#check.flush(flushId);
    this.#write({ flush: true, flush_id: flushId });
  }

  /** No more turns; what it speaks is spoken to the end. Idempotent. */
  close(): void {
    if (this.#state === 'closing' || this.#state === 'cancelled' || this.#state === 'over') return;
    this.#state = 'closing';
    this.#check.closing();
    this.#write({ close_context: true });
  }

  onFrame(frame: ServerFrame): void {
    switch (this.#check.onFrame(frame)) {
      case 'started':
        if (this.#state === 'starting') this.#state = 'idle';
        return;
      case 'audio':
        this.#cancelWhenDue();
        return;
      case 'flushed':
        if (this.#state !== 'speaking') return;
        this.#state = 'idle';
        if (this.#turns >= this.#parts.turns) this.close();
        return;
      case 'closed':
        this.#state = 'over';
        this.#parts.onOver();
        return;
      case 'words':
      case 'error':
      case 'unknown':
    }
  }

  #cancelWhenDue(): void {
    const { isCancelled, turns } = this.#parts;
    if (this.#state !== 'speaking' || !isCancelled || this.#turns < turns) return;
    this.#state = 'cancelled';
    this.#check.cancelled();
    this.#write({ cancel_context: true });
  }

  #write(message: object): void {
    this.#parts.write(encodeMessage({ ...message, context_id: this.#parts.id }));
  }
}

const byValue = (a: number, b: number): number => a - b;
