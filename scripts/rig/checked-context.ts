/**
 * One Opus context of a WebSocket that speaks utterance after utterance and checks every frame that it receives.
 *
 *   starting --> idle <--> speaking --> closing --> over;  speaking --> cancelled --> over
 */
import { OggPages } from './audio-check.js';
import { ContextCheck } from './context-check.js';
import { encodeMessage, encodeStart, type ServerFrame } from './socket.js';

export interface CheckedContextParts {
  readonly id: string;
  readonly voice: string;
  /** The context is closed after so many, or cancelled in the middle of the last. */
  readonly utterances: number;
  readonly isCancelled: boolean;
  readonly write: (frame: Buffer) => void;
  readonly nextText: () => string;
  /** From 0, below 1: where texts are cut. */
  readonly random: () => number;
  /** Called once, after the last frame. */
  readonly onOver: () => void;
  readonly onFault: (what: string) => void;
}

export class CheckedContext {
  readonly #parts: CheckedContextParts;
  readonly #check: ContextCheck;
  #state: 'starting' | 'idle' | 'speaking' | 'closing' | 'cancelled' | 'over' = 'starting';
  #utterances = 0;

  /** Writes its `start_context`. */
  constructor(parts: CheckedContextParts) {
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
    const format = { encoding: 'opus', sampleRateHz: 24_000, bitrateKbps: 64 } as const;
    parts.write(encodeStart({ voice: parts.voice, format }, parts.id, { timestamps: true }));
  }

  /** It may speak its next utterance. */
  get isIdle(): boolean {
    return this.#state === 'idle';
  }

  /** Utterances that it has begun. */
  get utterances(): number {
    return this.#utterances;
  }

  get durationMs(): number {
    return this.#check.durationMs;
  }

  /** Begins the next utterance, its text in pieces that are cut anywhere. Only when idle. */
  speak(): void {
    const { id, nextText, random } = this.#parts;
    const text = nextText();
    const flushId = `${id}-${this.#utterances++}`;
    this.#state = 'speaking';
    const cuts = [random(), random()].map((share) => Math.floor(share * text.length));
    const [a, b] = [Math.min(...cuts), Math.max(...cuts)];
    this.#check.text(text);
    for (const piece of [text.slice(0, a), text.slice(a, b), text.slice(b)])
      this.#write({ send_text: piece });
    this.#check.flush(flushId);
    this.#write({ flush: true, flush_id: flushId });
  }

  /** Begins no other utterance; the current one is spoken to its end. Idempotent. */
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
        if (this.#utterances >= this.#parts.utterances) this.close();
        return;
      case 'closed':
        this.#state = 'over';
        this.#parts.onOver();
        return;
      case 'words':
      case 'start-refused':
      case 'error':
      case 'refusing':
      case 'refused':
      case 'unknown':
    }
  }

  #cancelWhenDue(): void {
    const { isCancelled, utterances } = this.#parts;
    if (this.#state !== 'speaking' || !isCancelled || this.#utterances < utterances) return;
    this.#state = 'cancelled';
    this.#check.cancelled();
    this.#write({ cancel_context: true });
  }

  #write(message: object): void {
    this.#parts.write(encodeMessage({ ...message, context_id: this.#parts.id }));
  }
}
