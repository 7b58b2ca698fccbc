/** One context of a streaming client: writes its replies as planned, plays what arrives, and checks every frame. */
import { createAudioCheck } from '../rig/audio-check.js';
import { ContextCheck, type FrameKind } from '../rig/context-check.js';
import { Playback } from '../rig/playback.js';
import { encodeMessage, encodeStart, type ServerFrame, unavailable } from '../rig/socket.js';
import type { ClientParts } from './client.js';
import type { Reply } from './meter.js';
import { plausible } from './plausible.js';
import type { ContextPlan, Reader, ReplyPlan } from './population.js';

/** Audio that an encoder may still hold back at a flush; a first chunk of speech is longer. */
const encoderRestMsMax = 100;
/** A flush that is younger crossed with the close of its socket. */
const crossedMsMax = 1_000;
/** Of slow readers. */
const slowestSpeed = 0.5;

export interface RunParts extends ClientParts {
  readonly id: string;
  readonly plan: ContextPlan;
  readonly reader: Reader;
  /** It ends with its socket, without a message: the socket's client makes the cut. */
  readonly vanishes: boolean;
  readonly write: (frame: Uint8Array) => void;
}

/** What a client writes between two flushes: words, or the whole text. */
const piecesOf = ({ text, wordsPerSecond, flushes }: ReplyPlan): readonly string[][] => {
  const flushed = flushes === 'sentence' ? text.split(/(?<=\.)(?= )/) : [text];
  return flushed.map((part) => (wordsPerSecond === null ? [part] : part.split(/(?<=\S)(?= )/)));
};

export class ContextRun {
  readonly #parts: RunParts;
  readonly #check: ContextCheck;
  readonly #playback = new Playback();
  /** For each pending flush: when it was sent, when it must be completed, and the characters that are spoken by then. */
  readonly #deadlines: { readonly sentMs: number; readonly dueMs: number; readonly characters: number }[] =
    [];
  #isStarted = false;
  #isOver = false;
  #isStopping = false;
  #isStreaming = false;
  #isWriting = false;
  #isClosing = false;
  #isCancelled = false;
  #hasVanished = false;
  /** A part of the current reply was refused: what it lacks is no gap. */
  #isBroken = false;
  #index = -1;
  #replyMs = 0;
  #reply: Reply = { where: '', completeMs: null, isSpoilt: false };
  /** When the service could begin to speak the reply; `null`: not yet. */
  #spokenAtMs: number | null = null;
  #flushes = 0;
  #unspokenCharacters = 0;
  #sentCharacters = 0;
  /** Audio at the beginning of the reply, and at the last flush. */
  #durationAtReplyMs = 0;
  #durationAtFlushMs = 0;

  constructor(parts: RunParts) {
    this.#parts = parts;
    const { drainMs, id, mayRefuse, meter, plan, target } = parts;
    const { trailMs, wordMarginMs, msPerCharacter } = plausible(target);
    this.#check = new ContextCheck({
      id,
      audio: createAudioCheck(plan.format),
      timestamps: plan.timestamps,
      trailMs,
      wordMarginMs: wordMarginMs(plan.format),
      msPerCharacter,
      ...(mayRefuse && { refusal: unavailable }),
      ...(drainMs !== null && { startRefusal: unavailable }),
      onFault: (kind, what) => meter.fault(kind, id, what),
    });
    meter.contexts++;
    void this.#run();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** It speaks its last reply. */
  get isLast(): boolean {
    return this.#index === this.#parts.plan.replies.length - 1;
  }

  /** The planned moment has come to end it with its socket. */
  get hasVanished(): boolean {
    return this.#hasVanished;
  }

  /** Milliseconds that are received and not heard. */
  aheadMs(nowMs: number): number {
    return this.#playback.aheadMs(this.#playMs(nowMs));
  }

  /** How long the service owes it speech, when its socket is closed; 0: it is quiet. */
  owedMs(nowMs: number): number {
    const ageMs = nowMs - (this.#deadlines[0]?.sentMs ?? nowMs);
    return ageMs <= crossedMsMax ? 0 : ageMs;
  }

  /** Begins no other reply. The current one is written to its end at its pace: all at once would be a burst. */
  stop(): void {
    this.#isStopping = true;
  }

  /** The socket is closed. Idempotent. */
  abandon(): void {
    this.#isOver = true;
    this.#stream(false);
  }

  onFrame(frame: ServerFrame, nowMs: number): FrameKind {
    const beforeMs = this.#check.durationMs;
    const kind = this.#check.onFrame(frame);
    switch (kind) {
      case 'started':
        this.#isStarted = true;
        break;
      case 'audio':
        this.#onAudio(this.#check.durationMs - beforeMs, nowMs);
        break;
      case 'flushed':
        this.#onFlushed(false);
        break;
      case 'refused':
        this.#isBroken = true;
        this.#onFlushed(true);
        break;
      case 'closed':
      case 'start-refused':
      case 'error':
        this.abandon();
        break;
      case 'refusing':
        // At the close of such a context, the rest in the encoder comes before its flush is completed.
        this.#isBroken = true;
        break;
      case 'words':
      case 'unknown':
    }
    return kind;
  }

  async #run(): Promise<void> {
    const { id, plan, target, vanishes } = this.#parts;
    const { format, replies, temperature, timestamps } = plan;
    const voice = target.voices[plan.voice % target.voices.length]!;
    const fields = { timestamps, ...(temperature !== null && { temperature }) };
    this.#parts.write(encodeStart({ voice, format }, id, fields));
    await this.#answered(() => this.#isStarted, 'start');
    while (!this.#isStopping && !this.isLast && (await this.#until(() => true)))
      await this.#speak(replies[++this.#index]!);
    // The planned cut comes later.
    if (this.#hasCut) await this.#until(() => this.#isStopping);
    this.#hasVanished = vanishes && this.#isCut;
    if (this.#isOver || this.#hasVanished) return;
    if (this.#isCut) {
      this.#check.cancelled();
      this.#isCancelled = true;
      // Drops what it has not heard.
      this.#playback.begin(performance.now());
      this.#stream(false);
      this.#write({ cancel_context: true });
      await this.#answered(() => false, 'cancel');
      return;
    }
    this.#isClosing = true;
    this.#check.closing();
    this.#write({ close_context: true });
    this.#awaitFlush(performance.now());
    this.#stream(true);
    await this.#until(() => false);
  }

  async #speak(plan: ReplyPlan): Promise<void> {
    this.#beginReply();
    const { ending } = this.#parts.plan;
    const endsUnflushed = this.isLast && ending === 'close-unflushed' && !this.#parts.vanishes;
    const flushed = piecesOf(plan);
    let [written, pieces] = ['', 0];
    for (const part of flushed) {
      for (const text of part) {
        const dueMs = this.#replyMs + (pieces++ / (plan.wordsPerSecond ?? Infinity)) * 1_000;
        if (!(await this.#until(() => performance.now() >= dueMs))) return;
        this.#sendText(text);
        written += text;
        // A sentence ends with the space after its full stop.
        if (written.includes('. ')) this.#spokenAtMs ??= performance.now();
      }
      const nowMs = performance.now();
      this.#spokenAtMs ??= nowMs;
      const isComplete = written.length === plan.text.length;
      if (isComplete) this.#reply.completeMs = nowMs;
      if (isComplete && endsUnflushed) return;
      const flushId = `${this.#parts.id}-${this.#flushes++}`;
      this.#check.flush(flushId);
      this.#write({ flush: true, flush_id: flushId });
      this.#awaitFlush(nowMs);
    }
    this.#isWriting = false;
    if (!(await this.#until(() => this.#deadlines.length === 0))) return;
    await this.#until(() => this.#isStopping || this.aheadMs(performance.now()) === 0);
    this.#stream(false);
    const endMs = performance.now() + plan.pauseMs;
    await this.#until(() => this.#isStopping || performance.now() >= endMs);
  }

  #beginReply(): void {
    const nowMs = performance.now();
    this.#replyMs = nowMs;
    this.#durationAtReplyMs = this.#check.durationMs;
    this.#reply = { where: this.#parts.id, completeMs: null, isSpoilt: false };
    this.#spokenAtMs = null;
    this.#isBroken = false;
    this.#isWriting = true;
    this.#playback.begin(this.#playMs(nowMs));
    this.#stream(true);
  }

  #sendText(text: string): void {
    this.#write({ send_text: text });
    this.#check.text(text);
    this.#parts.meter.sent(this.#parts.key, text.length);
    this.#unspokenCharacters += text.length;
    this.#sentCharacters += text.length;
  }

  #awaitFlush(nowMs: number): void {
    const { answerMsMax, target } = this.#parts;
    const speechMs = (this.#sentCharacters * plausible(target).msPerCharacter.max) / slowestSpeed;
    const dueMs = nowMs + answerMsMax + speechMs;
    this.#deadlines.push({ sentMs: nowMs, dueMs, characters: this.#unspokenCharacters });
    this.#unspokenCharacters = 0;
  }

  #onAudio(moreMs: number, nowMs: number): void {
    const { reader, meter } = this.#parts;
    meter.audioMs += moreMs;
    if (this.#isCancelled || this.#isOver) return;
    const receivedMs = this.#check.durationMs - this.#durationAtReplyMs;
    const arrival = this.#playback.audio(receivedMs, this.#playMs(nowMs));
    const isPrompt = reader === 'eager' || reader === 'paced';
    if (!isPrompt || this.#isBroken) return;
    // The rest that an encoder writes at the close is not speech.
    const isSpeaking = this.#isWriting || this.#deadlines.some(({ characters }) => characters > 0);
    if (arrival?.kind === 'dry' && !isSpeaking) return;
    meter.hear(this.#reply, arrival, nowMs, this.#spokenAtMs === null ? null : nowMs - this.#spokenAtMs);
  }

  #onFlushed(isRefused: boolean): void {
    const { key, meter } = this.#parts;
    const characters = this.#deadlines.shift()?.characters ?? 0;
    const isHeard = this.#check.durationMs - this.#durationAtFlushMs > encoderRestMsMax;
    this.#durationAtFlushMs = this.#check.durationMs;
    if (!isRefused) {
      meter.spoken(key, characters);
      return;
    }
    meter.refusals++;
    // Of an utterance that was refused in its middle, what was heard is charged.
    if (!isHeard) meter.unsent(key, characters);
  }

  get #hasCut(): boolean {
    const { plan, vanishes } = this.#parts;
    return !this.#isClosing && !this.#isStopping && (vanishes || plan.ending === 'cancel');
  }

  get #isCut(): boolean {
    const isDue = this.isLast && performance.now() - this.#replyMs >= this.#parts.plan.cutAfterMs;
    return isDue && this.#hasCut;
  }

  /** @returns false when the context is over, or is cut as planned */
  async #until(condition: () => boolean): Promise<boolean> {
    while (!this.#isOver && !this.#isCut) {
      if (condition()) return true;
      await this.#parts.ticks.next();
      if ((this.#deadlines[0]?.dueMs ?? Infinity) >= performance.now()) continue;
      this.#parts.meter.fault('flushes', this.#parts.id, 'a flush is not completed');
      this.abandon();
    }
    return false;
  }

  async #answered(condition: () => boolean, what: string): Promise<void> {
    const { answerMsMax, id, meter, ticks } = this.#parts;
    const endMs = performance.now() + answerMsMax;
    while (!this.#isOver && !condition()) {
      await ticks.next();
      if (performance.now() <= endMs) continue;
      meter.fault('answers', id, `no answer to ${what}`);
      this.abandon();
    }
  }

  /** Whether it is being spoken or heard. */
  #stream(isStreaming: boolean): void {
    if (isStreaming !== this.#isStreaming) this.#parts.meter.streams += isStreaming ? 1 : -1;
    this.#isStreaming = isStreaming;
  }

  /** The time of a slow listener passes more slowly. */
  #playMs(nowMs: number): number {
    return this.#parts.reader === 'slow' ? nowMs * slowestSpeed : nowMs;
  }

  #write(message: object): void {
    this.#parts.write(encodeMessage({ ...message, context_id: this.#parts.id }));
  }
}
