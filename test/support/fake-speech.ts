/** A `Speech` whose contexts do what the test says. */
import { limits } from '../../src/limits.js';
import type { GrowingLease } from '../../src/accounts/lease.js';
import { codePointCount } from '../../src/text/code-points.js';
import type { FailureCode, Frame } from '../../src/threads/messages.js';
import type {
  Activity,
  ContextOptions,
  FrameSink,
  OpenRefusal,
  Speech,
  SpeechContext,
} from '../../src/speech/speech.js';

/** @throws no context was opened */
export const opened = (context: SpeechContext | OpenRefusal): SpeechContext => {
  if (typeof context === 'string') throw new Error(context);
  return context;
};

export type AudioFrame = Extract<Frame, { type: 'audio' }>;
export type Script = (context: FakeContext) => void;
export type FlushScript = (context: FakeContext, flushId: string) => void;

/** Bytes that differ from place to place, so that a test sees a lost or repeated piece. */
export const patterned = (length: number, seed: number): Buffer => {
  const bytes = Buffer.allocUnsafe(length);
  let state = (seed * 2_654_435_761 + 1) >>> 0;
  for (let at = 0; at < length; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[at] = state >>> 24;
  }
  return bytes;
};

/** 32 kHz, 16 bit: the bytes of one millisecond. */
const PCM_BYTES_A_MS = 64;

export class FakeContext implements SpeechContext {
  readonly options: ContextOptions;
  text = '';
  /** The part of it that is not spoken. */
  unspoken = '';
  readonly flushIds: string[] = [];
  ended = false;
  released = false;
  /** All bytes emitted for the wire. */
  readonly expected: Buffer[] = [];
  readonly handedFrames: AudioFrame[] = [];
  readonly #sink: FrameSink;
  readonly #onEnd: Script;
  readonly #onFlush: FlushScript;
  /** Characters of segments that are not charged. */
  readonly #segments: number[] = [];
  #emittedMs = 0;
  #handedMs = 0;
  #count = 0;
  #onHanded: (() => void) | null = null;
  #onRelease: (() => void)[] = [];

  constructor(options: ContextOptions, sink: FrameSink, onEnd: Script, onFlush: FlushScript) {
    this.#onFlush = onFlush;
    this.options = options;
    this.#sink = sink;
    this.#onEnd = onEnd;
  }

  isAtCapacity: () => boolean = () => false;

  admits(): boolean {
    return this.activity !== 'idle' || !this.isAtCapacity();
  }

  get unsentMs(): number {
    return this.#emittedMs - this.#handedMs;
  }

  append(text: string): void {
    this.text += text;
    this.unspoken += text;
  }

  flush(flushId: string): void {
    this.flushIds.push(flushId);
    this.#onFlush(this, flushId);
  }

  dropUtterance(): number {
    const characters = codePointCount(this.unspoken);
    this.text = this.text.slice(0, this.text.length - this.unspoken.length);
    this.unspoken = '';
    return characters;
  }

  /** Speaks all text so far as one segment. It is charged when its first frame is handed over. */
  speak(rawBytes: number): void {
    this.#segments.push(codePointCount(this.unspoken));
    this.unspoken = '';
    this.audio(rawBytes);
  }

  get activity(): Activity {
    if (this.released) return 'idle';
    if (this.ended || this.unsentMs > 0) return 'speaking';
    return this.unspoken.trim() === '' ? 'idle' : 'holding';
  }

  end(): void {
    this.ended = true;
    this.#onEnd(this);
  }

  handed(frame: AudioFrame): void {
    this.handedFrames.push(frame);
    this.#handedMs += frame.durationMs;
    for (const characters of this.#segments.splice(0))
      this.options.lease.settle(characters, this.options.settings.voiceId);
    this.#onHanded?.();
  }

  release(): void {
    if (this.released) return;
    this.released = true;
    this.options.lease.close();
    for (const wake of this.#onRelease.splice(0)) wake();
  }

  whenReleased(): Promise<void> {
    return this.released ? Promise.resolve() : new Promise((resolve) => this.#onRelease.push(resolve));
  }

  /** One audio frame of its framing. @param rawBytes a multiple of 3 for `whole`, so that the base64 concatenates */
  audio(rawBytes: number): void {
    const payload = patterned(rawBytes, this.#count++);
    const bytes = this.#framed(payload);
    const durationMs = rawBytes / PCM_BYTES_A_MS;
    this.#emittedMs += durationMs;
    this.expected.push(bytes);
    this.emit({ type: 'audio', contextId: 0, segment: 0, durationMs, bytes });
  }

  #framed(payload: Buffer): Buffer {
    switch (this.options.framing) {
      case 'stream':
        return Buffer.from(`data: {"type":"audio","audio_chunk":"${payload.toString('base64')}"}\n\n`);
      case 'whole':
        return Buffer.from(payload.toString('base64'));
      case 'file':
      case 'raw':
      case 'raw-pieces':
        return payload;
      case 'openai-events':
        return Buffer.from(`data: {"type":"speech.audio.delta","audio":"${payload.toString('base64')}"}\n\n`);
      case 'socket':
        return Buffer.from(
          JSON.stringify({
            audio_chunk: payload.toString('base64'),
            context_id: this.options.clientContextId,
          }),
        );
      case 'elevenlabs':
      case 'elevenlabs-sync':
      case 'elevenlabs-lines':
      case 'elevenlabs-whole':
        throw new Error(`no test speaks in the framing ${this.options.framing}`);
    }
  }

  timestamps(words: string[], startSeconds: number): void {
    const timings = {
      words,
      start_seconds: words.map((_, index) => startSeconds + index),
      end_seconds: words.map((_, index) => startSeconds + index + 0.5),
    };
    const bytes = Buffer.from(`data: ${JSON.stringify({ type: 'timestamps', ...timings })}\n\n`);
    if (this.options.framing === 'stream') this.expected.push(bytes);
    this.emit({ type: 'timestamps', contextId: 0, timings, bytes });
  }

  close(): void {
    this.emit({ type: 'closed', contextId: 0 });
  }

  fail(reason: string, code?: FailureCode): void {
    this.emit({ type: 'failed', contextId: 0, reason, ...(code !== undefined && { code }) });
  }

  emit(frame: Frame): void {
    if (!this.released) this.#sink(frame);
  }

  /** Emits frames as fast as the backpressure gate allows, then closes. */
  stream(frames: number, rawBytes: number): void {
    let left = frames;
    let closed = false;
    const more = (): void => {
      while (left > 0 && !this.released && this.unsentMs < limits.unsentAudioMsMax) {
        left -= 1;
        this.audio(rawBytes);
      }
      // Every frame that is handed over leads here: only one of them may close.
      if (left > 0 || closed || this.released) return;
      closed = true;
      this.#onHanded = null;
      this.close();
    };
    // Not within `handed`: its caller is in the middle of a write.
    this.#onHanded = () => setImmediate(more);
    setImmediate(more);
  }

  expectedBytes(): Buffer {
    return Buffer.concat(this.expected);
  }
}

export class FakeSpeech implements Speech {
  voices = {
    speakerIds: ['ada', 'bela', 'ada_conv'] as readonly string[],
    sampleRateHz: () => 24_000,
    language: () => 'en-US',
  };
  readonly contexts: FakeContext[] = [];
  /** What a context does when its text is complete. */
  script: Script = (context) => context.stream(3, 3_000);
  /** What a context does when it is flushed. */
  flushScript: FlushScript = (context, flushId) => {
    if (context.unspoken.trim() !== '') context.speak(3_000);
    context.emit({ type: 'flushed', contextId: 0, flushId });
  };
  /** Makes `open` refuse, or throw. */
  refuse: (() => OpenRefusal) | null = null;
  /** It admits no utterance. */
  isAtCapacity = false;

  admits(): boolean {
    return !this.isAtCapacity;
  }

  open(options: ContextOptions, sink: FrameSink): SpeechContext | OpenRefusal {
    if (this.refuse) return this.refuse();
    const context = new FakeContext(
      options,
      sink,
      (ended) => this.script(ended),
      (flushed, flushId) => this.flushScript(flushed, flushId),
    );
    context.isAtCapacity = () => this.isAtCapacity;
    this.contexts.push(context);
    return context;
  }

  get last(): FakeContext {
    const context = this.contexts.at(-1);
    if (!context) throw new Error('no context was opened');
    return context;
  }
}

export class FakeLease implements GrowingLease {
  readonly keyId = 7;
  readonly account = 'default';
  settled = 0;
  closed = 0;
  voided = 0;
  reserved = 0;
  heardMs = 0;
  readonly #onClosed: () => void;

  constructor(onClosed: () => void) {
    this.#onClosed = onClosed;
  }

  settle(characters: number): void {
    this.settled += characters;
    this.reserved -= characters;
  }

  delivered(durationMs: number): void {
    this.heardMs += durationMs;
  }

  reserve(characters: number): null {
    this.reserved += characters;
    return null;
  }

  refund(characters: number): void {
    this.reserved -= characters;
  }

  close(): void {
    if (this.closed + this.voided === 0) this.#onClosed();
    this.closed += 1;
  }

  void(): void {
    if (this.closed + this.voided === 0) this.#onClosed();
    this.voided += 1;
  }
}
