/** Contexts that work when the schedule says so. They keep the contract of `Speech`. */
import type {
  Activity,
  ContextOptions,
  FrameSink,
  OpenRefusal,
  Speech,
  SpeechContext,
} from '../../src/speech/speech.js';
import type { Frame } from '../../src/threads/messages.js';
import { codePointCount } from '../../src/text/code-points.js';
import { isBlank } from '../../src/text/words.js';

/** Audio frames that wait for their socket when the gate shuts. */
export const UNHANDED_MAX = 4;
export const FRAMES_A_SEGMENT_MAX = 3;
export const AUDIO_FRAME_MS = 40;
/** Contexts of the account, over all its sockets. */
export const CONTEXTS_MAX = 6;

interface Segment {
  readonly characters: number;
  framesLeft: number;
  begun: boolean;
}
type Work = { readonly segment: Segment } | { readonly flushId: string } | 'close';

/** Called for each frame before its transport gets it. @param characters are charged when it is handed over */
export type Emission = (context: SteppedContext, frame: Frame, characters: number) => void;

export class SteppedContext implements SpeechContext {
  readonly flushIds: string[] = [];
  /** Appended text that is in no segment. */
  held = '';
  released = false;
  ended = false;
  readonly #options: ContextOptions;
  readonly #sink: FrameSink;
  readonly #serial: number;
  readonly #emission: Emission;
  readonly #work: Work[] = [];
  /** Blanks of utterances without words. They are charged with the words after them. */
  #blanks = 0;
  readonly #charges = new Map<number, number>();
  #over = false;
  #unhanded = 0;
  #sequence = 0;
  #unsettled = 0;

  constructor(serial: number, options: ContextOptions, sink: FrameSink, emission: Emission) {
    this.#serial = serial;
    this.#options = options;
    this.#sink = sink;
    this.#emission = emission;
  }

  /** Characters that were accepted, and neither charged nor dropped. */
  get unspoken(): number {
    if (this.released) return 0;
    let characters = this.#blanks + codePointCount(this.held) + this.#unsettled;
    for (const work of this.#work)
      if (work !== 'close' && 'segment' in work && !work.segment.begun) characters += work.segment.characters;
    return characters;
  }

  /** Some words are still to be spoken. */
  get hasSegment(): boolean {
    return (
      !this.released &&
      !this.#over &&
      this.#work.some((work) => work !== 'close' && 'segment' in work && work.segment.framesLeft > 0)
    );
  }

  get activity(): Activity {
    if (this.released) return 'idle';
    if (this.#unhanded > 0 || (!this.#over && (this.ended || this.#work.length > 0))) return 'speaking';
    return this.#over || isBlank(this.held) ? 'idle' : 'holding';
  }

  admits(): boolean {
    return true;
  }

  append(text: string): void {
    if (this.#over || this.ended) return;
    this.held += text;
    const end = this.held.lastIndexOf('. ');
    if (end < 0) return;
    const whole = this.held.slice(0, end + 2);
    this.held = this.held.slice(end + 2);
    this.#cut(whole);
  }

  flush(flushId: string): void {
    if (this.#over || this.ended) return;
    this.flushIds.push(flushId);
    this.#cut(this.held);
    this.held = '';
    this.#work.push({ flushId });
  }

  dropUtterance(): number {
    if (this.#over || this.ended) return 0;
    let characters = codePointCount(this.held);
    this.held = '';
    const flushed = this.#work.findLastIndex((work) => work !== 'close' && 'flushId' in work);
    for (let at = this.#work.length - 1; at > flushed; at--) {
      const work = this.#work[at];
      if (work === undefined || work === 'close' || 'flushId' in work || work.segment.begun) continue;
      characters += work.segment.characters;
      this.#work.splice(at, 1);
    }
    characters += this.#blanks;
    this.#blanks = 0;
    return characters;
  }

  end(): void {
    if (this.#over || this.ended) return;
    this.ended = true;
    this.#cut(this.held);
    this.held = '';
    this.#work.push('close');
  }

  release(): void {
    if (this.released) return;
    this.released = true;
    this.#over = true;
    this.#options.lease.close();
  }

  handed(frame: Extract<Frame, { type: 'audio' }>): void {
    if (this.released) return;
    this.#unhanded -= 1;
    const characters = this.#charges.get(frame.segment) ?? 0;
    this.#charges.delete(frame.segment);
    this.#unsettled -= characters;
    if (characters > 0) this.#options.lease.settle(characters, this.#options.settings.voiceId);
  }

  fail(): void {
    if (this.#over) return;
    this.#over = true;
    this.#emit({ type: 'failed', contextId: 0, reason: 'a thread died' });
  }

  /** Emits one frame. @returns false if there is nothing to do, or the gate is shut */
  step(): boolean {
    const work = this.#work[0];
    if (this.#over || work === undefined) return false;
    if (work === 'close') {
      this.#over = true;
      this.#emit({ type: 'closed', contextId: 0 });
    } else if ('flushId' in work) {
      this.#work.shift();
      this.#emit({ type: 'flushed', contextId: 0, flushId: work.flushId });
    } else return this.#speak(work.segment);
    return true;
  }

  #speak(segment: Segment): boolean {
    if (segment.framesLeft === 0) {
      this.#work.shift();
      this.#emit({ type: 'spoken', contextId: 0, segment: this.#sequence });
      return true;
    }
    if (this.#unhanded >= UNHANDED_MAX) return false;
    const number = ++this.#sequence;
    let characters = 0;
    if (!segment.begun) {
      segment.begun = true;
      characters = segment.characters;
      this.#charges.set(number, characters);
      this.#unsettled += characters;
    }
    segment.framesLeft -= 1;
    this.#unhanded += 1;
    const bytes = this.#message({ audio_chunk: `${this.#serial}.${number}` });
    this.#emit(
      { type: 'audio', contextId: 0, segment: number, durationMs: AUDIO_FRAME_MS, bytes },
      characters,
    );
    if (this.#options.timestamps) {
      const timings = { words: [`${number}`], start_seconds: [number], end_seconds: [number + 1] };
      this.#emit({
        type: 'timestamps',
        contextId: 0,
        timings,
        bytes: this.#message({ timestamps: timings }),
      });
    }
    return true;
  }

  #cut(text: string): void {
    this.#blanks += codePointCount(text);
    if (isBlank(text)) return;
    const framesLeft = 1 + (text.length % FRAMES_A_SEGMENT_MAX);
    this.#work.push({ segment: { characters: this.#blanks, framesLeft, begun: false } });
    this.#blanks = 0;
  }

  #message(fields: object): Buffer {
    const { clientContextId } = this.#options;
    const named = clientContextId === undefined ? fields : { ...fields, context_id: clientContextId };
    return Buffer.from(JSON.stringify(named));
  }

  #emit(frame: Frame, characters = 0): void {
    if (this.released) return;
    this.#emission(this, frame, characters);
    this.#sink(frame);
  }
}

export class SteppedSpeech implements Speech {
  readonly voices = {
    speakerIds: ['ada'] as readonly string[],
    sampleRateHz: () => 24_000,
    language: () => 'en-US',
  };
  readonly contexts: SteppedContext[] = [];
  /** The fault of the next `open`. */
  fault: 'none' | 'full' | 'throws' = 'none';
  readonly #emission: Emission;

  constructor(emission: Emission) {
    this.#emission = emission;
  }

  admits(): boolean {
    return true;
  }

  get openContexts(): number {
    return this.contexts.filter(({ released }) => !released).length;
  }

  open(options: ContextOptions, sink: FrameSink): SpeechContext | OpenRefusal {
    const { fault } = this;
    this.fault = 'none';
    if (fault === 'throws') throw new Error('scheduled fault');
    if (fault === 'full') return 'contextPoolExhausted';
    if (this.openContexts >= CONTEXTS_MAX) return 'contextsOfAccountExhausted';
    const context = new SteppedContext(this.contexts.length, options, sink, this.#emission);
    this.contexts.push(context);
    return context;
  }
}
