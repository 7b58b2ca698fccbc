/**
 * One WebSocket: passes frames to its contexts, and holds the lease while they generate.
 *
 *   open --(key not valid any more, drained)--> ending --(close)--> over;  open --(client gone, dead, fault)--> over
 *
 * It does not depend on the server library: the caller hands in the socket, the clock and the beats.
 */
import { voicesOf } from '../../accounts/keys.js';
import type { ActiveKey } from '../../store/store.js';
import { unknownVoiceMessage } from '../../api/error-shape.js';
import { parseClientFrame, type ClientFrame } from '../../api/ws-frames.js';
import type { Speech } from '../../speech/speech.js';
import { errors, type SocketErrorCode } from '../../errors.js';
import { forgetLastMatch } from '../../last-match.js';
import type { Bounds } from '../../limits.js';
import type { Log } from '../../log.js';
import { refusalOf, type Metrics, type RefusalReason } from '../../metrics.js';
import type { Clock } from '../../monotonic.js';
import type { TickActions } from '../../tick.js';
import type { ByteBudget, PartOfKey } from '../../byte-budget.js';
import { describeFault } from '../../fault.js';
import { Lane, type Tally } from '../sender.js';
import { traceFields, type Trace } from '../trace.js';
import { Outbox, type SocketBudgets, type SocketHandle } from './outbox.js';
import { contextStarted, errorFrame } from './server-frames.js';
import { SessionRecord, type SessionOutcome } from './session-record.js';
import { SocketContext } from './socket-context.js';
import { SignsOfLife } from './signs-of-life.js';
import type { SocketLease } from './socket-lease.js';

export interface SessionParts {
  /** The `x-request-id` of the handshake, and its trace. */
  readonly id: string;
  readonly trace: Trace | null;
  /** For the log and the metrics. */
  readonly route: string;
  /** As it was read last. */
  readonly key: () => ActiveKey;
  readonly socket: SocketHandle;
  readonly speech: Speech;
  readonly lease: SocketLease;
  readonly tick: TickActions;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly bounds: Bounds;
  readonly budgets: SocketBudgets;
  /** Bytes queued for all sockets, without the library's. */
  readonly queued: Tally;
  /** Counts the contexts of all sockets of the key. */
  readonly contextBudget: ByteBudget;
  /** Ids of flushes that are not completed, in UTF-16 units. */
  readonly flushIdBudget: PartOfKey;
  /** Whether the client has sent more than was passed to the session. */
  readonly isBehind: () => boolean;
  readonly onBeat: (nowMs: number) => void;
  /** The service takes no new contexts. */
  readonly isDraining: () => boolean;
  readonly onOver: (session: Session) => void;
}

const POLICY_VIOLATION = 1008;
const GOING_AWAY = 1001;

export class Session {
  readonly #parts: SessionParts;
  readonly #outbox: Outbox;
  /** For answers that concern no context. */
  readonly #lane = new Lane();
  readonly #contexts = new Map<string | null, SocketContext>();
  readonly #record: SessionRecord;
  #isOver = false;
  readonly #life: SignsOfLife;
  /** When a context last spoke, or text came. */
  #busyMs = 0;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    const nowMs = parts.clock();
    this.#record = new SessionRecord(nowMs);
    this.#life = new SignsOfLife(parts.bounds, nowMs);
    this.#outbox = new Outbox({
      socket: parts.socket,
      tick: parts.tick,
      bounds: parts.bounds,
      budgets: parts.budgets,
      queued: parts.queued,
      onOverflow: () => this.flooded(),
      guard: (callback) => this.guard(callback),
    });
  }

  get keyId(): number {
    return this.#parts.key().keyId;
  }

  /** Contexts whose ids are in use. */
  get contexts(): number {
    return this.#contexts.size;
  }

  /** Whether it holds a slot of its key. */
  get holdsSlot(): boolean {
    return this.#parts.lease.isHeld;
  }

  /** Runs a callback. An exception ends this socket and no other. */
  guard(callback: () => void): void {
    if (this.#isOver) return;
    try {
      callback();
    } catch (error) {
      this.#parts.log.error({ requestId: this.#parts.id, ...describeFault(error) }, 'socket failed');
      this.#parts.metrics.failed(this.#parts.route);
      this.#drop('failed');
    }
  }

  /** A whole text message. @param bytes in UTF-8, valid only during the call */
  message(bytes: Buffer): void {
    this.#record.frames++;
    this.heard();
    const parsed = parseClientFrame(bytes, this.#parts.bounds);
    if (parsed.ok) this.#onClientFrame(parsed.frame);
    else this.#refuseFrame(parsed.reason, parsed.contextId, parsed.flushId);
  }

  /** A binary message. */
  binaryMessage(): void {
    this.#record.frames++;
    this.heard();
    this.#refuseFrame('binary message', null, null);
  }

  /** More came from the client, or waits for it, than the bounds allow: drops the socket. */
  flooded(): void {
    this.#drop('flooded');
  }

  /** The payload of the next ping. */
  get pingPayload(): string {
    return this.#life.pingPayload;
  }

  /** The client gave a sign of life. */
  heard(): void {
    this.#life.heard(this.#parts.clock());
  }

  /** The client answered a ping: it has read everything sent before. @param payload that of the ping */
  ponged(payload: string): void {
    this.#life.ponged(payload, this.#parts.clock());
  }

  /** The socket takes more. */
  drained(): void {
    this.#life.progress(this.#parts.clock());
    this.#outbox.drained();
  }

  /** The key is not valid any more: sends an error frame, and closes. */
  revoke(): void {
    this.#outbox.discard(this.#lane);
    for (const context of this.#contexts.values()) context.abandon();
    // Drops what is queued for the contexts.
    this.#outbox.close();
    this.#parts.metrics.refused('keyUnknown', this.#parts.route);
    this.#parts.socket.send(errorFrame(errors.keyUnknown.socketText, null));
    this.#end('revoked', POLICY_VIOLATION, errors.keyUnknown.socketText);
  }

  /** The key may have other voices than before: ends contexts whose voice it has lost. */
  reviewVoices(): void {
    const { bounds, key, metrics, route, speech } = this.#parts;
    const speakerIds = voicesOf(key(), speech.voices.speakerIds);
    for (const context of this.#contexts.values())
      if (key().voices?.includes(context.voiceId) === false)
        if (context.fail(unknownVoiceMessage(context.voiceId, speakerIds, bounds)))
          metrics.refused('voiceUnknown', route);
  }

  /** The service is stopping: ends the socket, unless it generates or has something to send. */
  drain(): void {
    const { isBehind, lease } = this.#parts;
    if (this.#isOver || lease.isHeld || isBehind() || !this.#outbox.isEmpty || this.#isClosing()) return;
    this.#end('drained', GOING_AWAY, 'service is stopping');
  }

  /** Ends the socket now. */
  shutDown(): void {
    if (!this.#isOver) this.#end('drained', GOING_AWAY, 'service is stopping');
  }

  /** The caller calls it several times a second. */
  beat(nowMs: number): void {
    if (this.#isOver) return;
    const { bounds, onBeat } = this.#parts;
    onBeat(nowMs);
    if (this.#checkLife(nowMs)) return;
    this.#review();
    if (this.#parts.lease.isHeld && nowMs - this.#busyMs >= bounds.slotIdleMsMax)
      this.#parts.lease.giveBack();
    if (this.#parts.isDraining()) this.drain();
  }

  /** The socket is closed: cancels everything. Idempotent. */
  closed(code: number): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const context of this.#contexts.values()) {
      this.#record.characters += context.characters;
      context.abandon();
    }
    this.#parts.contextBudget.giveBack(this.#contexts.size);
    this.#contexts.clear();
    this.#outbox.close();
    this.#parts.lease.giveBack();
    const { clock, id, lease, log, onOver, route, trace } = this.#parts;
    const { keyId } = this;
    const spokenCharacters = lease.settledCharacters;
    const facts = { requestId: id, ...traceFields(trace), keyId, route, code, spokenCharacters };
    this.#record.write(log, facts, clock());
    onOver(this);
    forgetLastMatch();
  }

  #onClientFrame(frame: ClientFrame): void {
    const { contextId } = frame;
    const context = this.#contexts.get(contextId);
    if (frame.type === 'start') {
      this.#start(frame, context !== undefined);
      return;
    }
    // A closing context takes no frames but a cancel.
    if (context === undefined || !(context.isOpen || frame.type === 'cancel')) {
      const flushId = frame.type === 'flush' ? frame.flushId : null;
      this.#refuse('contextUnknown', `unknown context_id: ${contextId ?? 'null'}`, contextId, flushId);
      return;
    }
    switch (frame.type) {
      case 'text':
        this.#busyMs = this.#parts.clock();
        this.#record.text(this.#busyMs);
        context.text(frame.text);
        return;
      case 'flush':
        context.flush(frame.flushId ?? undefined);
        return;
      case 'close':
        context.close();
        return;
      case 'cancel':
        context.cancel();
    }
  }

  #start(frame: Extract<ClientFrame, { type: 'start' }>, isTaken: boolean): void {
    const { contextId, settings, timestamps, format } = frame;
    const { voiceId } = settings;
    const { bounds, clock, key, lease, metrics, route, speech } = this.#parts;
    const speakerIds = voicesOf(key(), speech.voices.speakerIds);
    if (isTaken) this.#refuseFrame(`context_id already in use: ${contextId ?? 'null'}`, contextId, null);
    else if (!speakerIds.includes(voiceId))
      this.#refuse('voiceUnknown', unknownVoiceMessage(voiceId, speakerIds, bounds), contextId);
    else if (this.#parts.isDraining()) this.#refuseCode('unavailable', contextId, 'draining');
    else if (this.#contexts.size >= bounds.contextsPerSocketMax)
      this.#refuseCode('contextsExhausted', contextId);
    else {
      const share = lease.share();
      const context = new SocketContext({
        clientContextId: contextId,
        voiceId,
        lease,
        share,
        outbox: this.#outbox,
        flushIdBudget: this.#parts.flushIdBudget,
        open: (sink) =>
          speech.open(
            {
              lease: share,
              group: this,
              settings,
              format,
              framing: 'socket',
              timestamps,
              ...(contextId !== null && { clientContextId: contextId }),
            },
            (speechFrame) => this.guard(() => sink(speechFrame)),
          ),
        flushesPendingMax: bounds.flushesPendingMax,
        clock,
        onRefused: (code) => metrics.refused(refusalOf(code), route),
        onFirstAudio: (reply, figure, ms) => {
          this.#record.firstAudio(reply);
          metrics.firstAudio(figure, route, format.encoding, ms);
        },
        onChange: (changed) => this.#onChange(changed),
        onAudio: (durationMs, nowMs) => this.#life.handed(durationMs, nowMs),
        onOver: (over) => this.#onContextOver(over),
        onFault: (reason) => {
          metrics.failed(route);
          this.#parts.log.error({ requestId: this.#parts.id, reason }, 'context of a socket failed');
        },
      });
      if (!context.isTaken) {
        this.#refuseCode('unavailable', contextId, 'contextPoolExhausted');
        return;
      }
      if (!this.#parts.contextBudget.take(1)) {
        context.abandon();
        this.#refuseCode('contextsExhausted', contextId);
        return;
      }
      this.#record.openedContexts++;
      this.#contexts.set(contextId, context);
      context.begin(contextStarted(frame, contextId));
    }
  }

  #onContextOver(context: SocketContext): void {
    this.#record.characters += context.characters;
    this.#contexts.delete(context.clientContextId);
    this.#parts.contextBudget.giveBack(1);
    this.#review();
  }

  #onChange(context: SocketContext): void {
    if (context.activity === 'speaking') this.#busyMs = this.#parts.clock();
    else this.#review();
  }

  /** Gives the lease back if no context speaks or holds text. */
  #review(): void {
    if (!this.#parts.lease.isHeld) return;
    let holds = false;
    for (const { activity } of this.#contexts.values()) {
      if (activity === 'speaking') {
        this.#busyMs = this.#parts.clock();
        return;
      }
      holds ||= activity === 'holding';
    }
    if (!holds) this.#parts.lease.giveBack();
  }

  #isClosing(): boolean {
    for (const context of this.#contexts.values()) if (!context.isOpen) return true;
    return false;
  }

  /** Pings, and drops a socket that takes nothing or is silent. @returns true if it was dropped */
  #checkLife(nowMs: number): boolean {
    const bufferedBytes = this.#outbox.noteBuffered();
    const sign = this.#life.check(bufferedBytes, nowMs);
    if (sign === 'silent' || sign === 'reader-stalled') {
      this.#drop(sign);
      return true;
    }
    if (sign === 'ping') {
      this.#parts.socket.ping(this.#life.pingPayload);
      if (bufferedBytes > 0) this.#outbox.drained();
    }
    return false;
  }

  #refuseFrame(reason: string, contextId: string | null, flushId: string | null): void {
    this.#refuse('frameInvalid', `invalid frame: ${reason}`, contextId, flushId);
  }

  #refuseCode(
    code: Exclude<SocketErrorCode, 'internal'>,
    contextId: string | null,
    reason = refusalOf(code),
  ): void {
    this.#refuse(reason, errors[code].socketText, contextId);
  }

  #refuse(
    reason: RefusalReason,
    text: string,
    contextId: string | null,
    flushId: string | null = null,
  ): void {
    this.#parts.metrics.refused(reason, this.#parts.route);
    this.#outbox.answer(this.#lane, errorFrame(text, contextId, flushId));
  }

  /** The library calls the close handler inside `end`. */
  #end(outcome: SessionOutcome, code: number, reason: string): void {
    this.#record.outcome ??= outcome;
    this.#outbox.flush();
    this.#parts.socket.end(code, reason);
  }

  #drop(outcome: SessionOutcome): void {
    if (this.#isOver) return;
    this.#record.outcome ??= outcome;
    this.#parts.socket.close();
  }
}
