/**
 * One WebSocket: passes frames to its contexts, and holds the lease while they generate.
 *
 *   open --(key not valid any more, drained)--> ending --(close)--> over;  open --(client gone, dead, fault)--> over
 *
 * It does not depend on the server library: the caller hands in the socket, the clock and the beats.
 */
import { voicesOf } from '../../accounts/keys.js';
import { unknownVoiceMessage } from '../../api/error-shape.js';
import { quoted } from '../../api/quoted.js';
import { settingsOf } from '../../api/speech-settings.js';
import type { ClientFrame } from '../../api/ws-frames.js';
import { errors } from '../../errors.js';
import { describeFault } from '../../fault.js';
import { forgetLastMatch } from '../../last-match.js';
import { refusalOf, type RefusalReason } from '../../metrics.js';
import type { Clock } from '../../monotonic.js';
import { askedVoice, type RequestOutcome } from '../../recent-requests.js';
import type { FirstAudio } from '../../speech/first-audio.js';
import type { OpenRefusal, Speech } from '../../speech/speech.js';
import type { Waiting } from '../../store/reservations.js';
import type { KeyUse } from '../keys-in-use.js';
import { Lane, type Tally } from '../sender.js';
import type { Services } from '../services.js';
import { traceFields, type Trace } from '../trace.js';
import type { AccountTurn } from '../turns.js';
import { Outbox, type SocketBudgets, type SocketHandle } from './outbox.js';
import type { SocketAct, SocketProtocol } from './protocol.js';
import { SignsOfLife } from './signs-of-life.js';
import { SocketContext } from './socket-context.js';
import type { SocketLease } from './socket-lease.js';
import { SocketReader, type Reading } from './socket-reader.js';

type StartFrame = Extract<ClientFrame, { type: 'start' }>;

/** Why a socket ended. `client`: the client closed it, or went away. */
type SessionOutcome = 'client' | 'revoked' | 'drained' | 'reader-stalled' | 'silent' | 'flooded' | 'failed';

/** A handshake: its `x-request-id`, its trace, and its route for the log and the metrics. */
export interface Handshake {
  readonly id: string;
  readonly trace: Trace | null;
  readonly route: string;
}

/** What all sockets of a service share. */
export interface SharedParts extends Pick<Services, 'bounds' | 'clock' | 'log' | 'metrics' | 'tick'> {
  readonly speech: Speech;
  /** The service takes no new contexts. */
  readonly isDraining: () => boolean;
  /** Bytes queued for all sockets, without the library's. */
  readonly queued: Tally;
  /** The time that this thread saw pass, for deadlines of the client. */
  readonly seenClock: Clock;
}

export interface SessionParts extends Handshake {
  readonly shared: SharedParts;
  readonly use: Pick<KeyUse, 'key'>;
  readonly protocol: SocketProtocol;
  readonly lease: SocketLease;
  readonly socket: SocketHandle;
  readonly reading: Reading;
  readonly turn: AccountTurn;
  readonly budgets: SocketBudgets;
  readonly onOver: () => void;
}

const NORMAL = 1000;
const POLICY_VIOLATION = 1008;
const GOING_AWAY = 1001;
const NO_CONTEXTS = new Map<string | null, SocketContext>();

export class Session {
  /** Closed by the caller, with the socket. */
  readonly reader: SocketReader;
  readonly #parts: SessionParts;
  readonly #outbox: Outbox;
  /** For answers that concern no context. */
  readonly #lane = new Lane();
  #contexts = NO_CONTEXTS;
  readonly #startMs: number;
  #outcome: SessionOutcome | null = null;
  #openedContexts = 0;
  #characters = 0;
  #frames = 0;
  #firstTextMs: number | undefined;
  /** Of the first reply with audio. */
  #firstAudio: FirstAudio | undefined;
  /** The client asked for the end: it comes when no context is left. */
  #isEnding = false;
  #isOver = false;
  readonly #life: SignsOfLife;
  /** When a context last spoke, or text came. */
  #busyMs = 0;
  /** For credit that the database reserves. */
  #waiting: Waiting | null = null;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    const { clock, bounds, seenClock } = parts.shared;
    this.#startMs = clock();
    this.#life = new SignsOfLife(bounds, seenClock());
    this.#outbox = new Outbox(this, parts);
    this.reader = new SocketReader(this, parts);
  }

  /** Contexts whose ids are in use. */
  get contexts(): number {
    return this.#contexts.size;
  }

  /** Runs a callback. An exception ends this socket and no other. */
  guard(callback: () => void): void {
    if (this.#isOver) return;
    try {
      callback();
    } catch (error) {
      this.#parts.shared.log.error({ requestId: this.#parts.id, ...describeFault(error) }, 'socket failed');
      this.#parts.shared.metrics.failed(this.#parts.route);
      this.#drop('failed');
    }
  }

  /** A whole text message. @param bytes in UTF-8, valid only during the call */
  message(bytes: Buffer): void {
    this.#frames++;
    this.received();
    this.#do(this.#parts.protocol.read(bytes, this.#contexts), 0);
  }

  /** Waits until the current message is done. */
  get isWaiting(): boolean {
    return this.#waiting !== null;
  }

  /** A binary message. */
  binaryMessage(): void {
    this.#frames++;
    this.received();
    this.#refuse('frameInvalid', 'invalid frame: binary message', null);
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
  received(): void {
    this.#life.received(this.#parts.shared.seenClock());
  }

  /** The client answered a ping: it has read everything sent before. @param payload that of the ping */
  ponged(payload: string): void {
    this.#life.ponged(payload, this.#parts.shared.seenClock());
  }

  /** The socket takes more. */
  drained(): void {
    this.#life.progress(this.#parts.shared.seenClock());
    this.#outbox.drained();
    this.#endIfAsked();
  }

  /** The key is not valid any more: sends an error frame, and closes. */
  revoke(): void {
    this.#outbox.discard(this.#lane);
    for (const context of this.#contexts.values()) context.abandon();
    // Drops what is queued for the contexts.
    this.#outbox.close();
    const { protocol, shared, socket } = this.#parts;
    const { socketText } = errors.keyUnknown;
    shared.metrics.refused('keyUnknown');
    socket.send(protocol.error('keyUnknown', socketText, null));
    this.#end('revoked', POLICY_VIOLATION, socketText);
  }

  /** The key may have other voices than before: ends contexts whose voice it has lost. */
  reviewVoices(): void {
    const { shared, use } = this.#parts;
    const { bounds, speech } = shared;
    const speakerIds = voicesOf(use.key, speech.voices.speakerIds);
    for (const context of this.#contexts.values())
      if (use.key.voices?.includes(context.voiceId) === false)
        if (context.fail('voiceUnknown', unknownVoiceMessage(context.voiceId, speakerIds, bounds)))
          this.#noteRefusal('voiceUnknown', context);
  }

  /** The service is stopping: ends the socket, unless it generates or has something to send. */
  drain(): void {
    if (
      this.#isOver ||
      this.isWaiting ||
      this.#parts.lease.isHeld ||
      this.reader.isBehind ||
      !this.#outbox.isHandedOn ||
      this.#isClosing()
    )
      return;
    this.#end('drained', GOING_AWAY, 'service is stopping');
  }

  /** Ends the socket now. */
  shutDown(): void {
    if (!this.#isOver) this.#end('drained', GOING_AWAY, 'service is stopping');
  }

  /** Called several times a second. @param nowMs by `seenClock` */
  beat(nowMs: number): void {
    this.guard(() => this.#beat(nowMs));
  }

  #beat(nowMs: number): void {
    if (this.#isOver) return;
    const { lease, protocol, shared } = this.#parts;
    this.reader.beat(shared.clock());
    if (this.#checkLife(nowMs)) return;
    if (protocol.contextIdleMsMax !== null)
      for (const context of this.#contexts.values()) context.endIdle(nowMs, protocol.contextIdleMsMax);
    this.#review();
    if (lease.isHeld && nowMs - this.#busyMs >= shared.bounds.slotIdleMsMax) lease.giveBack();
    if (shared.isDraining()) this.drain();
  }

  /** The socket is closed: cancels everything. Idempotent. */
  closed(code: number, cause?: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const outcome = this.#outcome;
    for (const context of this.#contexts.values()) {
      this.#ended(context, outcome === null || outcome === 'client' ? 'aborted' : outcome);
      context.abandon();
    }
    this.#waiting?.cancel();
    this.#contexts.clear();
    this.#outbox.close();
    this.#parts.lease.giveBack();
    const { id, lease, onOver, route, shared, trace, use } = this.#parts;
    shared.log.info(
      {
        ...{ requestId: id, ...traceFields(trace), keyId: use.key.keyId, route, code, cause },
        ...{ spokenCharacters: lease.settledCharacters, status: 101, outcome: outcome ?? 'client' },
        ...{ contexts: this.#openedContexts, frames: this.#frames, characters: this.#characters },
        ...this.#firstAudio?.fields(this.#firstTextMs),
        totalMs: Math.round((shared.clock() - this.#startMs) * 10) / 10,
      },
      'socket',
    );
    onOver();
    forgetLastMatch();
  }

  /** Does the acts of a message in their order, and stops at a refusal. @param from the first one */
  #do(acts: readonly SocketAct[], from: number): void {
    for (let index = from; index < acts.length; index += 1) {
      const act = acts[index]!;
      if (this.#isOver || this.#waits(acts, index) || !this.#act(act)) return;
    }
  }

  /** @returns whether an act waits for credit. Then the rest of the message, and further messages, wait too */
  #waits(acts: readonly SocketAct[], index: number): boolean {
    const act = acts[index]!;
    if (act.type !== 'text' && act.type !== 'flush' && act.type !== 'close' && act.type !== 'finish')
      return false;
    const context = this.#contexts.get(act.contextId);
    if (context?.isOpen !== true) return false;
    this.#waiting = context.waitForCredit(act.type === 'text' ? act.text : null, () =>
      this.guard(() => {
        this.#waiting = null;
        if (this.#act(act)) this.#do(acts, index + 1);
        if (!this.isWaiting) this.reader.hold(false);
      }),
    );
    if (this.isWaiting) this.reader.hold(true);
    return this.isWaiting;
  }

  /** @returns false if it was refused */
  #act(act: SocketAct): boolean {
    if (act.type === 'end') {
      this.#isEnding = true;
      this.#endIfAsked();
      return true;
    }
    const { contextId } = act;
    if (act.type === 'refused') return this.#refuse(act.reason, act.text, contextId, act.flushId);
    const context = this.#contexts.get(contextId);
    if (act.type === 'start') return this.#start(act, context !== undefined);
    // A closing context takes no frames but a cancel.
    if (context === undefined || !(context.isOpen || act.type === 'cancel')) {
      const flushId = act.type === 'flush' ? act.flushId : null;
      return this.#refuse(
        'contextUnknown',
        `unknown context_id: ${quoted(contextId ?? 'null', this.#parts.shared.bounds)}`,
        contextId,
        flushId,
      );
    }
    context.keep();
    switch (act.type) {
      case 'keep':
        return true;
      case 'text':
        this.#busyMs = this.#parts.shared.seenClock();
        this.#firstTextMs ??= this.#parts.shared.clock();
        context.text(act.text, act.pieces);
        // A refusal may have ended it.
        return context.isOpen;
      case 'flush':
        context.flush(act.flushId ?? undefined);
        return true;
      case 'close':
        context.close();
        return true;
      case 'finish':
        context.finish();
        return true;
      case 'cancel':
        context.cancel();
        return true;
    }
  }

  #start(frame: StartFrame, isTaken: boolean): boolean {
    const { contextId } = frame;
    const refusal = this.#startRefusal(frame, isTaken);
    if (refusal !== null) return this.#refuse(...refusal, contextId, null, frame.settings.voiceId);
    const context = this.#open(frame);
    if (context === 'contextPoolExhausted')
      return this.#refuse(context, errors.unavailable.socketText, contextId);
    if (context === 'contextsOfAccountExhausted')
      return this.#refuse(context, errors.contextsExhausted.socketText, contextId);
    this.#openedContexts++;
    // An idle socket has no map of its own.
    if (this.#contexts === NO_CONTEXTS) this.#contexts = new Map();
    this.#contexts.set(contextId, context);
    context.begin(this.#parts.protocol.started(frame, contextId));
    return true;
  }

  /** @returns why no context opens; `null`: one may open */
  #startRefusal({ contextId, settings }: StartFrame, isTaken: boolean): [RefusalReason, string] | null {
    const { shared, use } = this.#parts;
    const { bounds, isDraining, speech } = shared;
    const speakerIds = voicesOf(use.key, speech.voices.speakerIds);
    const id = quoted(contextId ?? 'null', bounds);
    if (isTaken) return ['frameInvalid', `invalid frame: context_id already in use: ${id}`];
    if (!speakerIds.includes(settings.voiceId))
      return ['voiceUnknown', unknownVoiceMessage(settings.voiceId, speakerIds, bounds)];
    if (isDraining()) return ['draining', errors.unavailable.socketText];
    if (this.#contexts.size >= bounds.contextsPerSocketMax)
      return [refusalOf('contextsExhausted'), errors.contextsExhausted.socketText];
    return null;
  }

  /** @returns the context, or why it cannot be opened */
  #open({ contextId, settings, timestamps, format }: StartFrame): SocketContext | OpenRefusal {
    const { budgets, id, lease, protocol, route, shared, use } = this.#parts;
    const { bounds, clock, log, metrics, seenClock, speech } = shared;
    const share = lease.share();
    const settingsNow = () => settingsOf(settings, use.key.speaking);
    const options = {
      // The contexts of a socket count as one listener.
      ...{ lease: share, group: this, format, framing: protocol.framing, timestamps },
      ...{ settings: settingsNow(), settingsNow },
      ...(contextId !== null && { clientContextId: contextId }),
    };
    const context = new SocketContext({
      ...{ clientContextId: contextId, voiceId: settings.voiceId, protocol, lease, share },
      ...{
        outbox: this.#outbox,
        flushIdBudget: budgets.flushIds,
        clock,
        seenClock,
        flushesPendingMax: bounds.flushesPendingMax,
      },
      open: (sink) => speech.open(options, (frame) => this.guard(() => sink(frame))),
      onChange: (changed) => this.#onChange(changed),
      onAudio: (durationMs) => this.#life.handed(durationMs, seenClock()),
      onFirstAudio: (reply, figure, ms) => {
        this.#firstAudio ??= reply;
        metrics.firstAudio(figure, route, format.encoding, ms);
      },
      onRefused: (code, refused) => this.#noteRefusal(refusalOf(code), refused),
      onOver: (over) => this.#onContextOver(over),
      onFault: (reason) => {
        metrics.failed(route);
        log.error({ requestId: id, reason }, 'context of a socket failed');
      },
    });
    return context.openRefusal ?? context;
  }

  #endIfAsked(): void {
    if (!this.#isEnding || this.#isOver || this.#contexts.size > 0) return;
    this.#outbox.flush();
    if (this.#outbox.isHandedOn) this.#end('client', NORMAL, '');
  }

  #onContextOver(context: SocketContext): void {
    this.#ended(context, 'aborted');
    this.#contexts.delete(context.clientContextId);
    this.#review();
    this.#endIfAsked();
  }

  #onChange(context: SocketContext): void {
    if (context.activity === 'speaking') this.#busyMs = this.#parts.shared.seenClock();
    else this.#review();
  }

  /** Gives the lease back if no context speaks or holds text. */
  #review(): void {
    if (!this.#parts.lease.isHeld) return;
    let holds = false;
    for (const { activity } of this.#contexts.values()) {
      if (activity === 'speaking') {
        this.#busyMs = this.#parts.shared.seenClock();
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

  /** @returns false */
  #refuse(
    reason: RefusalReason,
    text: string,
    contextId: string | null,
    flushId: string | null = null,
    voiceId = '',
  ): boolean {
    const { protocol } = this.#parts;
    this.#parts.shared.metrics.refused(reason);
    this.#list('refused', undefined, reason, askedVoice(voiceId));
    this.#outbox.answer(this.#lane, protocol.error(reason, text, contextId, flushId));
    return false;
  }

  /** @param context whose text or flush it was, or which it ends */
  #noteRefusal(refusal: RefusalReason, context: SocketContext): void {
    this.#parts.shared.metrics.refused(refusal);
    this.#list('refused', context, refusal);
  }

  /** @param outcome unless the context ended by itself. The refusal that ended one was listed when it came */
  #ended(context: SocketContext, outcome: RequestOutcome): void {
    this.#characters += context.characters;
    if (context.outcome !== 'refused') this.#list(context.outcome ?? outcome, context);
  }

  #list(
    outcome: RequestOutcome,
    context?: SocketContext,
    refusal?: RefusalReason,
    voice = context?.voiceId,
  ): void {
    const { id, route, shared, use } = this.#parts;
    const { accountId, keyId } = use.key;
    shared.metrics.ended({
      ...{ requestId: id, keyId, accountId, route, status: 101, outcome, refusal, voice },
      ...(refusal === undefined && {
        characters: context?.characters,
        firstAudioMs: context?.firstAudioMs,
      }),
      totalMs: context === undefined ? 0 : shared.clock() - context.openedMs,
    });
  }

  /** The library calls the close handler inside `end`. */
  #end(outcome: SessionOutcome, code: number, reason: string): void {
    this.#outcome ??= outcome;
    this.#outbox.flush();
    this.#parts.socket.end(code, reason);
  }

  #drop(outcome: SessionOutcome): void {
    if (this.#isOver) return;
    this.#outcome ??= outcome;
    this.#parts.socket.close();
  }
}
