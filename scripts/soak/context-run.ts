/**
 * One context of a streaming client: writes its turns as planned, plays what comes, and looks at every frame.
 *
 *   starting --> writing --(all flushed)--> listening --(heard)--> resting --> writing ... --> closing --> over
 *   any of these --(planned cut)--> cancelled --> over
 */
import { ContextCheck, type FrameKind } from '../rig-old/context-check.js';
import { createAudioCheck } from '../rig-old/audio-check.js';
import type { ServerFrame } from '../rig-old/server-frame.js';
import { encodeMessage } from '../rig-old/socket-connection.js';
import type { LoopClock } from './loop-clock.js';
import { msPerCharacter, trailMs, wordMarginMs } from './plausible.js';
import { Player, judgeDry } from './player.js';
import type { ContextPlan, Reader, TurnPlan } from './population.js';
import type { Target } from './protocol.js';
import type { Tally } from './tally.js';

/** What comes within this is answered in time; speech has the time that it takes besides. */
export const answerMsMax = 15_000;
/** Those who read slower than they could. */
const slowestSpeed = 0.5;

export interface RunParts {
  readonly id: string;
  readonly plan: ContextPlan;
  readonly reader: Reader;
  /** Ends without a word to the service, with the socket: the plan's cut is then the socket's. */
  readonly vanishes: boolean;
  readonly key: string;
  readonly target: Target;
  readonly clock: LoopClock;
  readonly tally: Tally;
  readonly write: (frame: Uint8Array) => void;
}

type State = 'starting' | 'writing' | 'listening' | 'resting' | 'closing' | 'cancelled' | 'over';

/** The text of a turn in the pieces that are sent, and after which of them a flush follows. */
interface Piece {
  readonly text: string;
  readonly isFlushed: boolean;
  /** A sentence ends before it: what was sent can be spoken. */
  readonly followsSentence: boolean;
}

const piecesOf = ({ text, wordsPerSecond, flushes }: TurnPlan): Piece[] => {
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
  readonly #player = new Player();
  /** Until when each pending flush has to be completed, and characters that are spoken by then. */
  readonly #deadlines: { readonly dueMs: number; readonly characters: number }[] = [];
  #state: State = 'starting';
  #sinceMs: number;
  #turn = -1;
  #turnStartMs = 0;
  #pieces: readonly Piece[] = [];
  #nextPiece = 0;
  #flushId = 0;
  #durationAtTurnMs = 0;
  #spokenAtMs: number | null = null;
  #textCompleteMs: number | null = null;
  #unspokenCharacters = 0;
  #sentCharacters = 0;
  #heardAny = false;
  #isStopping = false;
  #isStreaming = false;

  constructor(parts: RunParts, nowMs: number) {
    this.#parts = parts;
    this.#sinceMs = nowMs;
    const { format, timestamps } = parts.plan;
    this.#check = new ContextCheck({
      id: parts.id,
      audio: createAudioCheck(format),
      timestamps,
      trailMs,
      wordMarginMs: wordMarginMs(format),
      msPerCharacter,
      onFault: (kind, what) => parts.tally.fault(kind, parts.id, what),
    });
    parts.tally.contexts++;
    this.#write(this.#startMessage());
  }

  get isOver(): boolean {
    return this.#state === 'over';
  }

  /** Speaks its last turn. */
  get isLast(): boolean {
    return this.#turn === this.#parts.plan.turns.length - 1 && this.#state !== 'starting';
  }

  /** What it has received and not heard. */
  aheadMs(nowMs: number): number {
    return this.#player.aheadMs(this.#playMs(nowMs));
  }

  /** The planned moment has come at which it is cut short. */
  isCut(nowMs: number): boolean {
    const { plan } = this.#parts;
    return this.isLast && nowMs - this.#turnStartMs >= plan.cutAfterMs && !this.#isEnding;
  }

  /** No turn begins any more. The one that is written is written to its end at its pace: all at once would be a burst. */
  stop(): void {
    this.#isStopping = true;
  }

  /** The socket is gone. Idempotent. */
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
        if (this.#state === 'starting') this.#nextTurn(nowMs);
        break;
      case 'audio':
        this.#onAudio(this.#check.durationMs - beforeMs, nowMs);
        break;
      case 'flushed':
        this.#onFlushed(nowMs);
        break;
      case 'closed':
        this.#become('over', nowMs);
        break;
      case 'error':
        this.#become('over', nowMs);
        break;
      case 'words':
      case 'unknown':
    }
    return kind;
  }

  get #isEnding(): boolean {
    return this.#state === 'closing' || this.#state === 'cancelled' || this.#state === 'over';
  }

  #startMessage(): object {
    const { plan, target } = this.#parts;
    const { encoding, sampleRateHz } = plan.format;
    return {
      start_context: {
        voice_id: target.voices[plan.voice % target.voices.length],
        model_id: 'default',
        timestamps: plan.timestamps,
        ...(plan.temperature !== null && { temperature: plan.temperature }),
        response_format: {
          encoding,
          sample_rate: sampleRateHz,
          ...('bitrateKbps' in plan.format && { bitrate: plan.format.bitrateKbps }),
        },
      },
    };
  }

  #rest(nowMs: number): void {
    const { plan } = this.#parts;
    const turn = plan.turns[this.#turn]!;
    if (!this.#isStopping && nowMs - this.#sinceMs < turn.pauseMs) return;
    if (!this.#isStopping && this.#turn + 1 < plan.turns.length) this.#nextTurn(nowMs);
    // Until the planned cut, when one is planned.
    else if (this.#isStopping || (plan.ending !== 'cancel' && !this.#parts.vanishes)) this.#close(nowMs);
  }

  #nextTurn(nowMs: number): void {
    if (this.#isStopping) {
      this.#close(nowMs);
      return;
    }
    this.#pieces = piecesOf(this.#parts.plan.turns[++this.#turn]!);
    this.#nextPiece = 0;
    this.#turnStartMs = nowMs;
    this.#durationAtTurnMs = this.#check.durationMs;
    this.#spokenAtMs = this.#textCompleteMs = null;
    this.#heardAny = false;
    this.#player.begin();
    this.#parts.tally.turns++;
    this.#become('writing', nowMs);
    this.#writeDue(nowMs);
  }

  #writeDue(nowMs: number): void {
    const { wordsPerSecond } = this.#parts.plan.turns[this.#turn]!;
    const dueSoFar =
      wordsPerSecond === null
        ? this.#pieces.length
        : 1 + ((nowMs - this.#turnStartMs) / 1000) * wordsPerSecond;
    while (this.#nextPiece < Math.min(dueSoFar, this.#pieces.length) && this.#state === 'writing')
      this.#send(this.#pieces[this.#nextPiece++]!, nowMs);
  }

  #send({ text, isFlushed, followsSentence }: Piece, nowMs: number): void {
    const { key, plan, tally } = this.#parts;
    this.#write({ send_text: text });
    this.#check.text(text);
    tally.sent(key, text.length);
    this.#unspokenCharacters += text.length;
    this.#sentCharacters += text.length;
    // The space behind its full stop makes a sentence one.
    if (followsSentence || isFlushed) this.#spokenAtMs ??= nowMs;
    if (!isFlushed) return;
    const isLastPiece = this.#nextPiece === this.#pieces.length;
    if (isLastPiece) this.#textCompleteMs = nowMs;
    if (isLastPiece && this.isLast && plan.ending === 'close-unflushed' && !this.#parts.vanishes) {
      this.#close(nowMs);
      return;
    }
    const flushId = `${this.#parts.id}-${String(this.#flushId++)}`;
    this.#check.flush(flushId);
    this.#write({ flush: true, flush_id: flushId });
    this.#awaitFlush(nowMs);
  }

  #awaitFlush(nowMs: number): void {
    const speechMs = (this.#sentCharacters * msPerCharacter.max) / slowestSpeed;
    this.#deadlines.push({ dueMs: nowMs + answerMsMax + speechMs, characters: this.#unspokenCharacters });
    this.#unspokenCharacters = 0;
  }

  #onAudio(moreMs: number, nowMs: number): void {
    const { clock, id, reader, tally } = this.#parts;
    tally.audioMs += moreMs;
    if (this.#isEnding && this.#state !== 'closing') return;
    const receivedMs = this.#check.durationMs - this.#durationAtTurnMs;
    const isPrompt = reader === 'eager' || reader === 'paced';
    // Of mp3 and Opus the first chunk may hold no more than what ends the turn before.
    if (!this.#heardAny && moreMs > 0) {
      this.#heardAny = true;
      if (isPrompt && this.#spokenAtMs !== null) tally.heardFirst(nowMs - this.#spokenAtMs);
    }
    const drySinceMs = this.#player.onAudio(receivedMs, this.#playMs(nowMs));
    // What an encoder has left at the close is no speech that anybody waits for.
    const isSpeaking = this.#state === 'writing' || this.#deadlines.some(({ characters }) => characters > 0);
    if (drySinceMs === null || !isPrompt || !isSpeaking) return;
    const clientLateMs = clock.latenessMs(drySinceMs, nowMs);
    const textCompleteMs = this.#textCompleteMs;
    tally.dry(id, judgeDry({ sinceMs: drySinceMs, untilMs: nowMs, textCompleteMs, clientLateMs }));
  }

  #onFlushed(nowMs: number): void {
    const done = this.#deadlines.shift();
    if (done !== undefined) this.#parts.tally.spoken(this.#parts.key, done.characters);
    if (this.#state !== 'writing' || this.#deadlines.length > 0) return;
    if (this.#nextPiece === this.#pieces.length) this.#become('listening', nowMs);
  }

  #checkDeadlines(nowMs: number): void {
    const { id, tally } = this.#parts;
    const first = this.#deadlines[0];
    if (first !== undefined && nowMs > first.dueMs && this.#state !== 'cancelled' && this.#state !== 'over') {
      tally.fault('flushes', id, 'a flush is not completed');
      this.#become('over', nowMs);
    }
    const waits = this.#state === 'starting' || this.#state === 'cancelled';
    if (!waits || nowMs - this.#sinceMs <= answerMsMax) return;
    tally.fault('answers', id, `no answer while ${this.#state}`);
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
    // What it has not heard it drops.
    this.#player.begin();
    this.#write({ cancel_context: true });
    this.#become('cancelled', nowMs);
  }

  #become(state: State, nowMs: number): void {
    this.#state = state;
    this.#sinceMs = nowMs;
    const isStreaming = state === 'writing' || state === 'listening' || state === 'closing';
    if (isStreaming !== this.#isStreaming) this.#parts.tally.streams += isStreaming ? 1 : -1;
    this.#isStreaming = isStreaming;
  }

  /** A slow listener's own time. */
  #playMs(nowMs: number): number {
    return this.#parts.reader === 'slow' ? nowMs * slowestSpeed : nowMs;
  }

  #write(message: object): void {
    this.#parts.write(encodeMessage({ ...message, context_id: this.#parts.id }));
  }
}
