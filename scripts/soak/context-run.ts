/**
 * One context of a streaming client: writes its replies as planned, plays what arrives, and checks every frame.
 *
 *   starting --> writing --(all flushed)--> listening --(heard)--> resting --> writing ... --> closing --> over
 *   any of these --(planned cut)--> cancelled --> over
 */
import { ContextCheck, type FrameKind } from '../rig/context-check.js';
import { createAudioCheck } from '../rig/audio-check.js';
import { Playback } from '../rig/playback.js';
import { encodeMessage, encodeStart, type ServerFrame, unavailable } from '../rig/socket.js';
import type { ClientParts } from './client.js';
import type { Reply } from './meter.js';
import { judgeDry, plausible } from './plausible.js';
import type { ContextPlan, Reader, ReplyPlan } from './population.js';

/** Audio that an encoder may still hold back at a flush; a first chunk of speech is longer. */
const encoderRestMsMax = 100;
/** A flush that is younger crossed with the close of its socket. */
const crossedMsMax = 1_000;
/** Of slow readers. */
const slowestSpeed = 0.5;

export interface RunParts extends Pick<
  ClientParts,
  'key' | 'target' | 'mayRefuse' | 'answerMsMax' | 'clock' | 'meter'
> {
  readonly id: string;
  readonly plan: ContextPlan;
  readonly reader: Reader;
  /** It ends with its socket, without a message: the socket's client makes the cut. */
  readonly vanishes: boolean;
  /** The service may stop, and refuse the start. */
  readonly mayStop: boolean;
  readonly write: (frame: Uint8Array) => void;
}

type State = 'starting' | 'writing' | 'listening' | 'resting' | 'closing' | 'cancelled' | 'over';

/** A piece of the text of a reply, as it is sent. */
interface Piece {
  readonly text: string;
  readonly isFlushed: boolean;
  /** A sentence ends before it, so the service can speak what was sent. */
  readonly followsSentence: boolean;
}

const piecesOf = ({ text, wordsPerSecond, flushes }: ReplyPlan): Piece[] => {
  const words = text.split(' ').map((word, i) => (i === 0 ? word : ` ${word}`));
  const endsSentence = (i: number) => words[i]!.endsWith('.');
  const isFlushed = (i: number) => i === words.length - 1 || (flushes === 'sentence' && endsSentence(i));
  const pieces = words.map((word, i) => ({
    text: word,
    isFlushed: isFlushed(i),
    followsSentence: i > 0 && endsSentence(i - 1),
  }));
  if (wordsPerSecond !== null) return pieces;
  const joined: Piece[] = [];
  let pending = '';
  for (const piece of pieces) {
    pending += piece.text;
    if (!piece.isFlushed) continue;
    joined.push({ text: pending, isFlushed: true, followsSentence: false });
    pending = '';
  }
  return joined;
};

export class ContextRun {
  readonly #parts: RunParts;
  readonly #check: ContextCheck;
  readonly #playback = new Playback();
  /** For each pending flush: when it was sent, when it must be completed, and the characters that are spoken by then. */
  readonly #deadlines: { readonly sentMs: number; readonly dueMs: number; readonly characters: number }[] =
    [];
  #state: State = 'starting';
  #sinceMs: number;
  #reply = -1;
  #replyStartMs = 0;
  #pieces: readonly Piece[] = [];
  #nextPiece = 0;
  #flushId = 0;
  #durationAtReplyMs = 0;
  #spokenAtMs: number | null = null;
  #textCompleteMs: number | null = null;
  #unspokenCharacters = 0;
  #sentCharacters = 0;
  #isStopping = false;
  #isStreaming = false;
  /** A part of the current reply was refused: what it lacks is no gap. */
  #isBroken = false;
  #judged: Reply = { isSpoilt: false };
  /** Audio at the last flush. */
  #durationAtFlushMs = 0;

  constructor(parts: RunParts, nowMs: number) {
    this.#parts = parts;
    this.#sinceMs = nowMs;
    const { format, timestamps } = parts.plan;
    const { trailMs, wordMarginMs, msPerCharacter } = plausible(parts.target);
    this.#check = new ContextCheck({
      id: parts.id,
      audio: createAudioCheck(format),
      timestamps,
      trailMs,
      wordMarginMs: wordMarginMs(format),
      msPerCharacter,
      ...(parts.mayRefuse && { refusal: unavailable }),
      ...(parts.mayStop && { startRefusal: unavailable }),
      onFault: (kind, what) => parts.meter.fault(kind, parts.id, what),
    });
    parts.meter.contexts++;
    this.#start();
  }

  get isOver(): boolean {
    return this.#state === 'over';
  }

  /** It speaks its last reply. */
  get isLast(): boolean {
    return this.#reply === this.#parts.plan.replies.length - 1 && this.#state !== 'starting';
  }

  /** Milliseconds that are received and not heard. */
  aheadMs(nowMs: number): number {
    return this.#playback.aheadMs(this.#playMs(nowMs));
  }

  /** The planned moment of the cut has come. */
  isCut(nowMs: number): boolean {
    const { plan } = this.#parts;
    return this.isLast && nowMs - this.#replyStartMs >= plan.cutAfterMs && !this.#isEnding;
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
    this.#become('over', 0);
  }

  tick(nowMs: number): void {
    const { plan, vanishes } = this.#parts;
    this.#checkDeadlines(nowMs);
    if (plan.ending === 'cancel' && !vanishes && this.isCut(nowMs)) this.#cancel(nowMs);
    switch (this.#state) {
      case 'writing':
        this.#writeDue(nowMs);
        return;
      case 'listening':
        if (this.#isStopping || this.aheadMs(nowMs) === 0) this.#become('resting', nowMs);
        return;
      case 'resting':
        this.#rest(nowMs);
        return;
      case 'starting':
      case 'closing':
      case 'cancelled':
      case 'over':
    }
  }

  onFrame(frame: ServerFrame, nowMs: number): FrameKind {
    const beforeMs = this.#check.durationMs;
    const kind = this.#check.onFrame(frame);
    switch (kind) {
      case 'started':
        if (this.#state === 'starting') this.#nextReply(nowMs);
        break;
      case 'audio':
        this.#onAudio(this.#check.durationMs - beforeMs, nowMs);
        break;
      case 'flushed':
        this.#onFlushed(nowMs, false);
        break;
      case 'refused':
        this.#isBroken = true;
        this.#onFlushed(nowMs, true);
        break;
      case 'closed':
      case 'start-refused':
      case 'error':
        this.#become('over', nowMs);
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

  get #isEnding(): boolean {
    return this.#state === 'closing' || this.#state === 'cancelled' || this.#state === 'over';
  }

  #start(): void {
    const { id, plan, target, write } = this.#parts;
    const { format, temperature, timestamps } = plan;
    const voice = target.voices[plan.voice % target.voices.length]!;
    write(encodeStart({ voice, format }, id, { timestamps, ...(temperature !== null && { temperature }) }));
  }

  #rest(nowMs: number): void {
    const { plan } = this.#parts;
    const reply = plan.replies[this.#reply]!;
    if (!this.#isStopping && nowMs - this.#sinceMs < reply.pauseMs) return;
    if (!this.#isStopping && this.#reply + 1 < plan.replies.length) this.#nextReply(nowMs);
    // Otherwise the planned cut ends it.
    else if (this.#isStopping || (plan.ending !== 'cancel' && !this.#parts.vanishes)) this.#close(nowMs);
  }

  #nextReply(nowMs: number): void {
    if (this.#isStopping) {
      this.#close(nowMs);
      return;
    }
    this.#pieces = piecesOf(this.#parts.plan.replies[++this.#reply]!);
    this.#nextPiece = 0;
    this.#replyStartMs = nowMs;
    this.#durationAtReplyMs = this.#check.durationMs;
    this.#spokenAtMs = this.#textCompleteMs = null;
    this.#isBroken = false;
    this.#judged = { isSpoilt: false };
    this.#playback.begin(this.#playMs(nowMs));
    this.#parts.meter.replies++;
    this.#become('writing', nowMs);
    this.#writeDue(nowMs);
  }

  #writeDue(nowMs: number): void {
    const { wordsPerSecond } = this.#parts.plan.replies[this.#reply]!;
    const dueSoFar =
      wordsPerSecond === null
        ? this.#pieces.length
        : 1 + ((nowMs - this.#replyStartMs) / 1000) * wordsPerSecond;
    while (this.#nextPiece < Math.min(dueSoFar, this.#pieces.length) && this.#state === 'writing')
      this.#send(this.#pieces[this.#nextPiece++]!, nowMs);
  }

  #send({ text, isFlushed, followsSentence }: Piece, nowMs: number): void {
    const { key, plan, meter } = this.#parts;
    this.#write({ send_text: text });
    this.#check.text(text);
    meter.sent(key, text.length);
    this.#unspokenCharacters += text.length;
    this.#sentCharacters += text.length;
    // A sentence ends with the space after its full stop.
    if (followsSentence || isFlushed) this.#spokenAtMs ??= nowMs;
    if (!isFlushed) return;
    const isLastPiece = this.#nextPiece === this.#pieces.length;
    if (isLastPiece) this.#textCompleteMs = nowMs;
    if (isLastPiece && this.isLast && plan.ending === 'close-unflushed' && !this.#parts.vanishes) {
      this.#close(nowMs);
      return;
    }
    const flushId = `${this.#parts.id}-${this.#flushId++}`;
    this.#check.flush(flushId);
    this.#write({ flush: true, flush_id: flushId });
    this.#awaitFlush(nowMs);
  }

  #awaitFlush(nowMs: number): void {
    const speechMs = (this.#sentCharacters * plausible(this.#parts.target).msPerCharacter.max) / slowestSpeed;
    this.#deadlines.push({
      sentMs: nowMs,
      dueMs: nowMs + this.#parts.answerMsMax + speechMs,
      characters: this.#unspokenCharacters,
    });
    this.#unspokenCharacters = 0;
  }

  #onAudio(moreMs: number, nowMs: number): void {
    const { clock, id, reader, meter } = this.#parts;
    meter.audioMs += moreMs;
    if (this.#isEnding && this.#state !== 'closing') return;
    const receivedMs = this.#check.durationMs - this.#durationAtReplyMs;
    const isPrompt = reader === 'eager' || reader === 'paced';
    const arrival = this.#playback.audio(receivedMs, this.#playMs(nowMs));
    if (arrival === null || !isPrompt || this.#isBroken) return;
    if (arrival.kind === 'first') {
      meter.heardFirst(id, this.#spokenAtMs === null ? null : nowMs - this.#spokenAtMs, this.#judged);
      return;
    }
    // The rest that an encoder writes at the close is not speech.
    const isSpeaking = this.#state === 'writing' || this.#deadlines.some(({ characters }) => characters > 0);
    if (!isSpeaking) return;
    const { sinceMs } = arrival;
    const clientLateMs = clock.latenessMs(sinceMs, nowMs);
    const textCompleteMs = this.#textCompleteMs;
    meter.dry(id, judgeDry({ sinceMs, untilMs: nowMs, textCompleteMs, clientLateMs }), this.#judged);
  }

  #onFlushed(nowMs: number, isRefused: boolean): void {
    const { key, meter } = this.#parts;
    const characters = this.#deadlines.shift()?.characters ?? 0;
    const isHeard = this.#check.durationMs - this.#durationAtFlushMs > encoderRestMsMax;
    this.#durationAtFlushMs = this.#check.durationMs;
    if (!isRefused) meter.spoken(key, characters);
    else {
      meter.refusals++;
      // Of an utterance that was refused in its middle, what was heard is charged.
      if (!isHeard) meter.unsent(key, characters);
    }
    if (this.#state !== 'writing' || this.#deadlines.length > 0) return;
    if (this.#nextPiece === this.#pieces.length) this.#become('listening', nowMs);
  }

  #checkDeadlines(nowMs: number): void {
    const { answerMsMax, id, meter } = this.#parts;
    const first = this.#deadlines[0];
    if (first !== undefined && nowMs > first.dueMs && this.#state !== 'cancelled' && this.#state !== 'over') {
      meter.fault('flushes', id, 'a flush is not completed');
      this.#become('over', nowMs);
    }
    const waits = this.#state === 'starting' || this.#state === 'cancelled';
    if (!waits || nowMs - this.#sinceMs <= answerMsMax) return;
    meter.fault('answers', id, `no answer while ${this.#state}`);
    this.#become('over', nowMs);
  }

  #close(nowMs: number): void {
    this.#check.closing();
    this.#write({ close_context: true });
    this.#awaitFlush(nowMs);
    this.#become('closing', nowMs);
  }

  #cancel(nowMs: number): void {
    this.#check.cancelled();
    // Drops what it has not heard.
    this.#playback.begin(nowMs);
    this.#write({ cancel_context: true });
    this.#become('cancelled', nowMs);
  }

  #become(state: State, nowMs: number): void {
    this.#state = state;
    this.#sinceMs = nowMs;
    const isStreaming = state === 'writing' || state === 'listening' || state === 'closing';
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
