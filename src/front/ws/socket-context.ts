/**
 * One context of a WebSocket: what its frames do, and what it answers.
 *
 *   open --close_context--> closing --(all spoken)--> ending --(handed)--> over   flush_completed <id>:close, context_closed
 *   open, closing --(fault, voice lost)--> ending --(error handed)--> over       error
 *   any but over --cancel_context--> over                                        (context_started,) context_closed
 *   any --(socket gone)--> over                                                  nothing
 *
 * While open it accepts text, or refuses it from the first text that was not admitted up to the next flush, so that the
 * service never speaks half of an utterance.
 */
import { randomUUID } from 'node:crypto';
import { errors, type SocketErrorCode } from '../../errors.js';
import type { FirstAudioFigure } from '../../metrics.js';
import type { Clock } from '../../monotonic.js';
import type { FailureCode, Frame } from '../../threads/messages.js';
import { FirstAudio } from '../../speech/first-audio.js';
import type { Activity, FrameSink, OpenRefusal, SpeechContext } from '../../speech/speech.js';
import type { PartOfAccount } from '../../byte-budget.js';
import type { Waiting } from '../../store/reservations.js';
import type { MarkedText } from '../../text/replacements.js';
import { isBlank } from '../../text/words.js';
import { codePointCount } from '../../text/code-points.js';
import { Lane } from '../sender.js';
import type { Outbox } from './outbox.js';
import type { SocketErrorReason, SocketProtocol } from './protocol.js';
import type { LeaseRefusal, LeaseShare, SocketLease } from './socket-lease.js';

/** About 240 bytes. */
const MARK_CHARACTERS = 30;

/** A mark that waits is an object; a character in the budget stands for four UTF-16 units. @returns characters of that size */
const markedOf = ({ form, pauseMs = 0 }: MarkedText): number => {
  if (form === undefined) return pauseMs > 0 ? MARK_CHARACTERS : 0;
  return MARK_CHARACTERS + Math.ceil(('ipa' in form ? form.ipa : form.spelling).length / 4);
};

/**
 * Joins characters whose halves arrive in two messages: the stage below must not count one as two. Halves that a mark divides
 * stay two characters.
 */
class Halves {
  #high = '';

  /** @returns the pieces, without a half at their end: it waits for the next text */
  join(pieces: readonly MarkedText[]): MarkedText[] {
    const joined = [...pieces];
    const isPlain = (piece: MarkedText | undefined) => piece !== undefined && markedOf(piece) === 0;
    if (isPlain(joined[0])) joined[0] = { text: this.#high + joined[0]!.text };
    this.#high = '';
    const last = joined.at(-1);
    const end = last?.text.slice(-1) ?? '';
    if (isPlain(last) && /[\ud800-\udbff]/.test(end)) {
      this.#high = end;
      joined[joined.length - 1] = { text: last!.text.slice(0, -1) };
    }
    return joined;
  }

  /** A new text follows. */
  reset(): void {
    this.#high = '';
  }
}

/** Why the text of an utterance is refused. */
type TextRefusal = LeaseRefusal | 'overloaded';

export interface SocketContextParts {
  /** `null` if the client gave none. */
  readonly clientContextId: string | null;
  readonly voiceId: string;
  readonly protocol: SocketProtocol;
  readonly lease: SocketLease;
  readonly share: LeaseShare;
  readonly outbox: Outbox;
  readonly flushIdBudget: PartOfAccount;
  readonly flushesPendingMax: number;
  /** Opens the context below. */
  readonly open: (sink: FrameSink) => SpeechContext | OpenRefusal;
  /** The activity may have changed. */
  readonly onChange: (context: SocketContext) => void;
  readonly clock: Clock;
  /** Of the session. */
  readonly seenClock: Clock;
  /** The socket has audio. */
  readonly onAudio: (durationMs: number) => void;
  /** A figure of a reply: it begins when a frame gives the silent context something to speak. */
  readonly onFirstAudio: (reply: FirstAudio, figure: FirstAudioFigure, ms: number) => void;
  /** A text or a flush was refused, or the context ended. */
  readonly onRefused: (
    reason: TextRefusal | 'flushesExhausted' | FailureCode,
    context: SocketContext,
  ) => void;
  /** Called once, when the id is free and the context below is released. */
  readonly onOver: (context: SocketContext) => void;
  /** For the log. Never contains what a client wrote. */
  readonly onFault: (reason: string) => void;
}

/** A flush that is not completed. */
interface PendingFlush {
  readonly flushId: string;
  /** Why its utterance was refused: an error answers the flush. */
  readonly refusal: TextRefusal | null;
  /** The utterance after it was refused too, for want of capacity: its error comes after the answer to this flush. */
  refusedNext: TextRefusal | null;
}

/** `ending`: its last message waits for the socket, and nothing may follow that. */
type State = 'open' | 'closing' | 'ending' | 'over';

export class SocketContext {
  /** How it ended, if it ended by itself. */
  outcome: 'complete' | 'cancelled' | 'refused' | 'failed' | null = null;
  /** Of its first reply. */
  firstAudioMs: number | undefined;
  readonly openedMs: number;
  readonly #parts: SocketContextParts;
  readonly #lane = new Lane();
  readonly #speech: SpeechContext | null;
  /** Why the stage below has not accepted it; `null`: it has. */
  readonly openRefusal: OpenRefusal | null;
  readonly #flushes: PendingFlush[] = [];
  readonly #halves = new Halves();
  #state: State = 'open';
  /** When its client last sent it a message, or it last spoke. */
  #activeMs: number;
  /** Why text is refused until the next flush. */
  #refusal: TextRefusal | null = null;
  #characters = 0;
  #isMidUtterance = false;
  #hasFlushed = false;
  /** A flush without an answer found too many before it. It is done when one of them is completed. */
  #isFlushDue = false;
  /** Its first answer, until the socket has it: a client may wait for it, even after a cancel. */
  #started: string | null = null;
  #spokenSegments = 0;
  /** Of the current reply, or the last one. */
  #firstAudio: FirstAudio | undefined;

  constructor(parts: SocketContextParts) {
    this.#parts = parts;
    this.openedMs = parts.clock();
    this.#activeMs = parts.seenClock();
    const opened = parts.open((frame) => this.#onFrame(frame));
    this.openRefusal = typeof opened === 'string' ? opened : null;
    this.#speech = typeof opened === 'string' ? null : opened;
  }

  get clientContextId(): string | null {
    return this.#parts.clientContextId;
  }

  get voiceId(): string {
    return this.#parts.voiceId;
  }

  /** It takes the client's frames; otherwise only a cancel. */
  get isOpen(): boolean {
    return this.#state === 'open';
  }

  /** It has words that no flush has followed. */
  get isMidUtterance(): boolean {
    return this.#isMidUtterance;
  }

  get activity(): Activity {
    // An ending context may have audio that is not handed yet: that audio is charged once it is.
    return this.#state === 'over' ? 'idle' : (this.#speech?.activity ?? 'idle');
  }

  /** Accepted code points. */
  get characters(): number {
    return this.#characters;
  }

  /** Answers the frame that opened it. @param message `null`: its protocol has no answer */
  begin(message: string | null): void {
    if (message === null) return;
    this.#started = message;
    this.#parts.outbox.answer(this.#lane, message, () => {
      this.#started = null;
    });
  }

  /** Before text, a flush or a close (`null`): waits until the database has reserved credit. @returns `null`: nothing waits */
  waitForCredit(text: string | null, decide: () => void): Waiting | null {
    if (this.#refusal !== null || text === '') return null;
    const isHolding = this.activity === 'holding';
    if (text === null) return isHolding ? this.#parts.lease.wait(null, true, decide) : null;
    return this.#parts.lease.wait(text, isHolding || !isBlank(text), decide);
  }

  /** @param pieces of the text, where a protocol has markup */
  text(sent: string, sentPieces: readonly MarkedText[] = [{ text: sent }]): void {
    // A pause without text belongs to the words before it.
    const isPause = sentPieces.some(({ pauseMs = 0 }) => pauseMs > 0);
    if (this.#refusal !== null || (sent === '' && !(isPause && this.#isMidUtterance))) return;
    const pieces = this.#halves.join(sentPieces);
    const text = pieces.map((piece) => piece.text).join('');
    const characters = pieces.reduce((sum, piece) => sum + codePointCount(piece.text), 0);
    const refusal = this.#admit(text, characters, pieces);
    if (refusal !== null) {
      this.#refuse(refusal);
      if (this.#endsRefused(refusal)) return;
      const pending = this.#flushes.at(-1);
      if (refusal === 'overloaded' && pending !== undefined && pending.refusal !== null)
        pending.refusedNext = refusal;
      else this.#answerError(refusal, null);
      return;
    }
    this.#characters += characters;
    this.#isMidUtterance ||= !isBlank(text);
    this.#drive((speech) => speech.append(text, pieces));
  }

  flush(clientFlushId?: string): void {
    const { flushIdBudget, flushesPendingMax, protocol } = this.#parts;
    const flushId = clientFlushId ?? (protocol.flushed === null ? '' : randomUUID());
    const isFull = this.#flushes.length >= flushesPendingMax;
    if (isFull && protocol.flushed === null) {
      this.#isMidUtterance = false;
      this.#hasFlushed = true;
      this.#isFlushDue = true;
      return;
    }
    if (isFull || !flushIdBudget.take(flushId.length)) {
      this.#parts.onRefused('flushesExhausted', this);
      this.#answerError('flushesExhausted', flushId);
      return;
    }
    this.#halves.reset();
    this.#isMidUtterance = false;
    this.#hasFlushed = true;
    const refusal = this.#refusal === null ? this.#cover() : null;
    if (refusal !== null && this.#endsRefused(refusal)) {
      flushIdBudget.giveBack(flushId.length);
      return;
    }
    // In its place among the frames: audio begun before the refusal comes before the error.
    this.#flushes.push({ flushId, refusal: this.#refusal, refusedNext: null });
    this.#refusal = null;
    this.#drive((speech) => speech.flush(flushId));
  }

  close(): void {
    if (this.#refusal === null) {
      const refusal = this.#cover();
      if (refusal !== null && this.#endsRefused(refusal)) return;
      if (refusal !== null) this.#answerError(refusal, null);
    }
    this.#state = 'closing';
    this.#drive((speech) => speech.end());
  }

  /** Ends after what was flushed: later text is dropped. Without a flush it ends at once. */
  finish(): void {
    if (this.#isMidUtterance && !this.#hasFlushed) {
      this.cancel();
      return;
    }
    // Text before a due flush is no longer apart from the text after it.
    if (this.#isMidUtterance && !this.#isFlushDue) this.#parts.share.drop(this.#speech?.dropUtterance() ?? 0);
    this.close();
  }

  /** The client sent it a message. */
  keep(): void {
    this.#activeMs = this.#parts.seenClock();
  }

  /** Finishes it if it was idle for that long. */
  endIdle(nowMs: number, idleMsMax: number): void {
    if (this.activity === 'speaking') this.#activeMs = nowMs;
    else if (this.isOpen && nowMs - this.#activeMs >= idleMsMax) this.finish();
  }

  /** Drops what is queued, except the answer to its start, and answers at once. */
  cancel(): void {
    this.#state = 'over';
    this.outcome ??= 'cancelled';
    this.#forgetFlushes();
    this.#speech?.release();
    const closed = this.#parts.protocol.cancelled(this.clientContextId);
    this.#parts.outbox.finishLane(this.#lane, this.#started === null ? [closed] : [this.#started, closed]);
    this.#parts.onOver(this);
  }

  /** Takes no more frames from below, and ends when the socket has this error. @returns false if it ends already */
  fail(reason: SocketErrorReason, text: string): boolean {
    if (this.#state === 'over' || this.#state === 'ending') return false;
    this.#state = 'ending';
    this.outcome = reason === 'internal' ? 'failed' : 'refused';
    const message = this.#parts.protocol.error(reason, text, this.clientContextId);
    this.#parts.outbox.answer(this.#lane, message, () => this.#end());
    return true;
  }

  /** The socket is gone: sends nothing and calls nothing back. Idempotent. */
  abandon(): void {
    this.#state = 'over';
    this.#forgetFlushes();
    this.#speech?.release();
  }

  /** @returns `null`, or why the text is refused */
  #admit(text: string, characters: number, pieces: readonly MarkedText[]): TextRefusal | null {
    const { share } = this.#parts;
    const isSpeech = this.activity === 'holding' || !isBlank(text);
    const refusal = share.add(
      characters,
      isSpeech,
      pieces.reduce((sum, piece) => sum + markedOf(piece), 0),
    );
    if (refusal !== null || !isSpeech || this.#speech?.admits(text) !== false) return refusal;
    share.drop(characters);
    return 'overloaded';
  }

  #drive(act: (speech: SpeechContext) => void): void {
    const before: Activity = this.activity;
    if (this.#speech !== null) act(this.#speech);
    const after: Activity = this.activity;
    if (before !== 'speaking' && after === 'speaking') this.#beginReply();
    this.#parts.onChange(this);
  }

  #beginReply(): void {
    const reply = new FirstAudio(this.#parts.clock(), this.#spokenSegments, (figure, ms) => {
      if (figure === 'byte') this.firstAudioMs ??= ms;
      this.#parts.onFirstAudio(reply, figure, ms);
    });
    this.#firstAudio = reply;
  }

  #onHanded(frame: Extract<Frame, { type: 'audio' }>): void {
    this.#speech?.handed(frame);
    this.#firstAudio?.handed(this.#parts.clock(), frame);
    this.#parts.onAudio(frame.durationMs);
    this.#parts.onChange(this);
  }

  /** Its held text will be spoken: takes the lease again if it was given back. */
  #cover(): TextRefusal | null {
    if (this.activity !== 'holding') return null;
    const refusal =
      this.#parts.lease.cover() ?? (this.#speech?.admits('') === false ? ('overloaded' as const) : null);
    if (refusal !== null) this.#refuse(refusal);
    return refusal;
  }

  #refuse(refusal: TextRefusal): void {
    this.#refusal = refusal;
    this.#parts.onRefused(refusal, this);
    this.#parts.share.drop(this.#speech?.dropUtterance() ?? 0);
    this.#halves.reset();
    this.#parts.onChange(this);
  }

  /** If a refused text ends its context, sends the error and ends. @returns whether it does */
  #endsRefused(code: TextRefusal): boolean {
    return this.#parts.protocol.refusalEnds && this.fail(code, errors[code].socketText);
  }

  #answerError(code: SocketErrorCode, flushId: string | null): void {
    const { outbox, protocol } = this.#parts;
    const { socketText } = errors[code];
    outbox.answer(this.#lane, protocol.error(code, socketText, this.clientContextId, flushId));
  }

  #onFrame(frame: Frame): void {
    if (this.#state === 'over' || this.#state === 'ending') return;
    const { outbox } = this.#parts;
    switch (frame.type) {
      case 'audio':
        outbox.send(this.#lane, frame.bytes, () => this.#onHanded(frame));
        return;
      case 'timestamps':
        outbox.send(this.#lane, frame.bytes);
        return;
      case 'spoken':
        this.#spokenSegments = frame.segment + 1;
        this.#parts.onChange(this);
        return;
      case 'flushed':
        this.#onFlushed();
        return;
      case 'closed':
        this.#state = 'ending';
        this.#parts.protocol.closed(this.clientContextId).forEach((message, index, all) => {
          outbox.answer(this.#lane, message, index === all.length - 1 ? () => this.#end() : null);
        });
        return;
      case 'failed':
        if (frame.code === undefined) this.#parts.onFault(frame.reason);
        else this.#parts.onRefused(frame.code, this);
        this.fail(frame.code ?? 'internal', errors[frame.code ?? 'internal'].socketText);
        return;
      case 'head':
        throw new Error('a context of a socket has no head');
    }
  }

  #onFlushed(): void {
    const flush = this.#flushes.shift();
    if (flush === undefined) throw new Error('a flush was completed that was never requested');
    this.#parts.flushIdBudget.giveBack(flush.flushId.length);
    const completed = this.#parts.protocol.flushed?.(flush.flushId, this.clientContextId);
    if (flush.refusal === null && completed !== undefined) this.#parts.outbox.answer(this.#lane, completed);
    if (flush.refusal !== null) this.#answerError(flush.refusal, flush.flushId);
    if (flush.refusedNext !== null) this.#answerError(flush.refusedNext, null);
    if (this.#isFlushDue && this.isOpen) {
      this.#isFlushDue = false;
      this.flush();
    }
    this.#parts.onChange(this);
  }

  #forgetFlushes(): void {
    for (const { flushId } of this.#flushes.splice(0)) this.#parts.flushIdBudget.giveBack(flushId.length);
  }

  /** The socket has the last frame. */
  #end(): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    this.outcome ??= 'complete';
    this.#forgetFlushes();
    this.#speech?.release();
    this.#parts.onOver(this);
  }
}
