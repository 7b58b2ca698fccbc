/**
 * One connection: cuts its bytes into events, handles them in order, and sends the answers.
 *
 *   reading --text is complete--> speaking (further events wait) --all sent--> reading
 *   reading --describe, ping--> answering (further events wait) --the socket has the answer--> reading
 *   any --(refused, fault, silent, reader stalled, flooding, drained, client gone)--> closed
 *
 * An event is handled when it comes. Those that came with it or wait behind it are handled in the turns of the
 * client's network: the client has shown no key, so only what it has spoken counts for the account that pays.
 *
 * A client that closes its side has gone, so its speech is cancelled.
 */
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import typia from 'typia';
import type { PlaygroundKey } from '../../accounts/administration.js';
import type { Admission } from '../../accounts/admission.js';
import { voicesOf } from '../../accounts/keys.js';
import type { Slots } from '../../accounts/lease.js';
import { unknownVoiceMessage } from '../../api/error-shape.js';
import { settingsOf, type SpeechSettings } from '../../api/speech-settings.js';
import { errors, type ErrorCode, type ErrorRow } from '../../errors.js';
import { describeFault } from '../../fault.js';
import type { KeyUse } from '../../front/keys-in-use.js';
import { endRequest } from '../../front/request-end.js';
import type { InFlight, Pulsed, Services } from '../../front/services.js';
import type { AccountTurn, Inlet, Waiting } from '../../front/turns.js';
import { SocketLease, type LeaseShare } from '../../front/ws/socket-lease.js';
import type { Waiting as CreditWait } from '../../store/reservations.js';
import { refusalOf, type RefusalReason } from '../../metrics.js';
import type { RequestOutcome } from '../../recent-requests.js';
import { FirstAudio } from '../../speech/first-audio.js';
import type { Speech, SpeechContext } from '../../speech/speech.js';
import type { ActiveKey } from '../../store/store.js';
import { codePointCount } from '../../text/code-points.js';
import { isBlank } from '../../text/words.js';
import type { Frame } from '../../threads/messages.js';
import { encodeEvent, EventFault, EventReader, type WyomingEvent } from './events.js';
import { infoOf, voiceFor, type WantedVoice } from './info.js';

interface TextData {
  text: string;
}

interface VoiceData {
  voice?: WantedVoice | null;
}

const isText = typia.createIs<TextData>();
const isVoice = typia.createIs<VoiceData>();
const isSynthesize = typia.createIs<TextData & VoiceData>();

export interface ConnectionParts {
  readonly services: Services;
  readonly speech: Speech;
  readonly admission: Admission;
  /** The hidden key of the account that pays. */
  readonly payer: PlaygroundKey;
  /** Of the client: see `networkOf`. */
  readonly network: string;
  /** Texts with a context, by network: a silent one keeps its context, and not its slot. */
  readonly texts: Slots;
  readonly isDraining: () => boolean;
}

/** Routes in the log and the metrics. */
export const WHOLE_ROUTE = 'wyoming:synthesize';
export const STREAMED_ROUTE = 'wyoming:synthesize-start';

/** How the service or the client ended an utterance early. */
type EarlyEnd = Exclude<RequestOutcome, 'complete' | 'refused'>;

export class WyomingConnection implements Pulsed, Inlet, Waiting {
  readonly parts: ConnectionParts;
  readonly #socket: Socket;
  readonly #turn: AccountTurn;
  readonly #reader: EventReader;
  #utterance: Utterance | null = null;
  /** When the last event came, or the socket last took audio. */
  #busyMs: number;
  /** When the socket last took bytes, or had none to take. */
  #progressMs: number;
  #unsentWrites = 0;
  /** The socket does not have all of an answer: a client may send any number of requests and read no answer. */
  #isAnswering = false;
  /** Its network uses more than its part of this thread. */
  #isHeld = false;
  /** When it was last seen not held. */
  #keptUpMs: number;
  /** The bytes that wait have reached their bound. */
  #isBehind = false;
  #isClosed = false;

  constructor(parts: ConnectionParts, socket: Socket) {
    const { network, services } = parts;
    const { bodyBudget, bounds, pulse, turns } = services;
    this.parts = parts;
    this.#socket = socket;
    this.#busyMs = this.#progressMs = this.#keptUpMs = pulse.seenClock();
    const member = `wyoming ${network}`;
    this.#turn = turns.of(member);
    this.#reader = new EventReader(bounds, bodyBudget.of(member));
    this.#turn.open(this);
    pulse.add(this);
    socket.setNoDelay(true);
    socket.on('data', (bytes) => this.#guard(() => this.#onData(bytes)));
    socket.on('end', () => this.#close('aborted'));
    // 'close' follows an error.
    socket.on('error', () => undefined);
    socket.on('close', () => this.#close('aborted'));
  }

  pause(): void {
    this.#isHeld = true;
    this.#socket.pause();
  }

  resume(): void {
    this.#isHeld = false;
    if (!this.#isBehind) this.#socket.resume();
  }

  beat(nowMs: number): void {
    const { readerStallMsMax, socketSilenceMsMax, wyomingHeldMsMax, wyomingIdleMsMax } =
      this.parts.services.bounds;
    this.#guard(() => this.#utterance?.beat(nowMs));
    if (this.#isClosed) return;
    // A paused socket does not report that its client has gone. Without this end, the service would handle all that it sent before.
    if (!this.#isHeld) this.#keptUpMs = nowMs;
    else if (nowMs - this.#keptUpMs >= wyomingHeldMsMax) {
      this.#close('flooded');
      return;
    }
    if (this.#unsentWrites > 0) {
      if (nowMs - this.#progressMs >= readerStallMsMax) this.#close('reader-stalled');
      return;
    }
    if (this.#utterance?.isEnding === true || this.#isHeld) return;
    // Between two events a client may rest; within one it may not.
    const isResting = this.#utterance === null && !this.#reader.isMidEvent;
    const idleMsMax = isResting ? wyomingIdleMsMax : socketSilenceMsMax;
    if (nowMs - (this.#utterance?.wordsMs ?? this.#busyMs) >= idleMsMax) this.#close('silent');
  }

  /** Ends it now. Idempotent. */
  close(): void {
    this.#close('failed');
  }

  /** An exception ends this connection and no other. */
  #guard(react: () => void): void {
    if (this.#isClosed) return;
    try {
      react();
    } catch (error) {
      if (error instanceof EventFault) this.#refuse('frameInvalid', `invalid event: ${error.message}`);
      else if (this.#utterance !== null) this.#utterance.fail(describeFault(error));
      else {
        this.parts.services.log.error(describeFault(error), 'connection of Wyoming failed');
        this.#close('failed');
      }
    }
  }

  #onData(bytes: Buffer): void {
    // The time for an event begins with its first byte.
    if (!this.#reader.isMidEvent) this.#busyMs = this.parts.services.pulse.seenClock();
    if (!this.#turn.time(bytes.length, () => this.#reader.push(bytes))) {
      this.#refuse('bodiesOfAccountExhausted', errors.unavailable.socketText);
      return;
    }
    if (this.#turn.isFree) this.#turn.run(bytes.length, () => void this.#readOne());
    this.readLater();
    if (this.#isClosed) return;
    this.#boundBytes();
    if (!this.#turn.isFree) this.#turn.pause(this);
  }

  get nextBytes(): number {
    return this.#reader.nextBytes;
  }

  /** Handles the next event. */
  piece(): boolean {
    let isMore = false;
    this.#guard(() => (isMore = this.#readOne()));
    return isMore;
  }

  /** The answer or the speech before the next event is sent, and no text waits for credit. */
  get #mayRead(): boolean {
    const utterance = this.#utterance;
    return (
      !this.#isClosed &&
      !this.#isAnswering &&
      utterance?.isEnding !== true &&
      (utterance?.waiting ?? null) === null
    );
  }

  /** @returns whether more may follow at once */
  #readOne(): boolean {
    if (!this.#mayRead) return false;
    const event = this.#reader.next();
    if (event !== null) {
      this.#busyMs = this.parts.services.pulse.seenClock();
      this.#onEvent(event);
    }
    if (this.#isClosed) return false;
    this.#reader.trim();
    this.#boundBytes();
    return event !== null && this.#reader.heldBytes > 0 && this.#mayRead;
  }

  /** Reads from the socket no more than may wait. */
  #boundBytes(): void {
    const isBehind = this.#reader.heldBytes > this.parts.services.bounds.bodyBytesMax;
    if (isBehind === this.#isBehind) return;
    this.#isBehind = isBehind;
    if (isBehind) this.#socket.pause();
    else if (!this.#isHeld) this.#socket.resume();
  }

  #onEvent(event: WyomingEvent): void {
    const data: unknown = event.data;
    switch (event.type) {
      case 'describe':
        this.#answer(encodeEvent('info', this.#info()));
        return;
      case 'ping':
        if (!isText(data)) this.#answer(encodeEvent('pong'));
        else if (data.text.length > this.parts.services.bounds.wyomingPingTextMax)
          throw new EventFault('the text of a ping is too long');
        else this.#answer(encodeEvent('pong', { text: data.text }));
        return;
      case 'synthesize':
        // Within a stream it repeats the whole text, for services that take no streams.
        if (this.#utterance !== null) return;
        if (!isSynthesize(data)) throw new EventFault('synthesize needs a text, and a voice may have a name');
        this.#begin(WHOLE_ROUTE, data.voice, data.text);
        return;
      case 'synthesize-start':
        if (!isVoice(data))
          throw new EventFault('the voice of synthesize-start may have a name and a language');
        // A new stream replaces one that was never stopped.
        this.#utterance?.abandon('aborted');
        this.#begin(STREAMED_ROUTE, data.voice);
        return;
      case 'synthesize-chunk':
        if (!isText(data)) throw new EventFault('synthesize-chunk needs a text');
        this.#utterance?.text(data.text);
        return;
      case 'synthesize-stop':
        this.#utterance?.end();
        return;
      default:
      // An event for another kind of service.
    }
  }

  #info(): object {
    const { admission, speech } = this.parts;
    const payer = admission.byId(this.parts.payer.keyId);
    const { voices } = speech;
    return infoOf(voices, payer.ok ? voicesOf(payer.key, voices.speakerIds) : voices.speakerIds);
  }

  /** @param text all of it, if it is known */
  #begin(route: string, wanted: WantedVoice | null | undefined, text?: string): void {
    const { admission, isDraining, services, speech } = this.parts;
    const { bounds } = services;
    const payer = admission.byId(this.parts.payer.keyId);
    if (!payer.ok) {
      const isAway = payer.code === 'unavailable';
      this.#refuse(
        isAway ? 'storeUnavailable' : payer.code,
        isAway ? errors.unavailable.socketText : 'The account that pays for Wyoming is suspended or deleted',
        route,
      );
      return;
    }
    const speakerIds = voicesOf(payer.key, speech.voices.speakerIds);
    const voiceId = voiceFor(wanted ?? {}, speech.voices, speakerIds);
    if (!speakerIds.includes(voiceId)) {
      this.#refuse('voiceUnknown', unknownVoiceMessage(voiceId, speakerIds, bounds), route);
      return;
    }
    if (isDraining()) {
      this.#refuse('draining', errors.unavailable.socketText, route);
      return;
    }
    // An assistant speaks of times and temperatures.
    const settings = settingsOf({ voiceId, normalizesByDefault: true }, payer.key.speaking);
    const utterance = new Utterance(this, payer.key, settings, route);
    this.#utterance = utterance;
    if (text === undefined) return;
    utterance.text(text);
    utterance.end();
  }

  /** Not in this call: the connection may be handling an event. */
  readLater(): void {
    if (this.#mayRead && this.#reader.heldBytes > 0) this.#turn.wait(this);
  }

  #answer(bytes: Buffer): void {
    this.#isAnswering = true;
    this.send(bytes, () => {
      this.#isAnswering = false;
      this.readLater();
    });
  }

  #refuse(refusal: RefusalReason, text: string, route = WHOLE_ROUTE): void {
    const { payer: key, services } = this.parts;
    services.metrics.refused(refusal);
    endRequest(services, {
      ...{ requestId: randomUUID(), key, route, outcome: 'refused', refusal },
      startMs: services.clock(),
      firstAudio: undefined,
    });
    this.send(encodeEvent('error', { text, code: refusal }));
    this.end();
  }

  /** @param onHanded called when the socket has all of it */
  send(bytes: Buffer, onHanded: () => void = () => undefined): void {
    if (this.#isClosed) return;
    const { pulse } = this.parts.services;
    if (this.#unsentWrites++ === 0) this.#progressMs = pulse.seenClock();
    this.#socket.write(bytes, (error) => {
      this.#unsentWrites--;
      if (error || this.#isClosed) return;
      this.#busyMs = this.#progressMs = pulse.seenClock();
      this.#guard(onHanded);
    });
  }

  /** An utterance is over. */
  spoken(utterance: Utterance): void {
    if (this.#utterance !== utterance) return;
    this.#utterance = null;
    this.readLater();
  }

  /** Bytes that wait for the socket. */
  get queuedBytes(): number {
    return this.#socket.writableLength;
  }

  /** Sends the bytes that wait, and closes: a client that waits for audio reads no event after an error. */
  end(): void {
    if (this.#isClosed) return;
    this.#release('failed');
    this.#socket.end();
    // Further bytes are read and dropped: closing at once would destroy the error before the client reads it.
    const timer = setTimeout(() => this.#socket.destroy(), this.parts.services.bounds.wyomingEndMsMax);
    this.#socket.once('close', () => clearTimeout(timer));
  }

  #close(outcome: EarlyEnd): void {
    if (!this.#isClosed) this.#release(outcome);
    this.#socket.destroy();
  }

  #release(outcome: EarlyEnd): void {
    this.#isClosed = true;
    this.parts.services.pulse.delete(this);
    this.#turn.close(this);
    this.#turn.drop(this);
    this.#reader.close();
    const utterance = this.#utterance;
    this.#utterance = null;
    utterance?.abandon(outcome);
  }
}

const BYTES_A_SAMPLE = 2;
/** The answer to blank text is this much silence, as on the other ports: players refuse a file without a sample. */
const SILENCE_MS = 100;

type Refused = Exclude<ErrorCode, 'internal'>;

/**
 * One text that the service speaks for a connection: whole, or in pieces as they arrive.
 *
 *   open --words--> begun --end--> ending --(socket has the last event)--> over;   open --end--> ending
 *   open, ending --(refused, fault)--> over   error;  any --(client gone, dropped)--> over   nothing
 *
 * Its first words open its context, take slot and credit, and put it in flight. A silent one gives slot and credit back, and keeps its context; a drain ends it.
 */
class Utterance implements InFlight {
  readonly route: string;
  readonly sender: { readonly queuedBytes: number };
  /** When words last came or were spoken. At first: when it was opened. */
  wordsMs: number;
  /** Its text is complete. */
  isEnding = false;
  /** For credit that the database reserves. */
  waiting: CreditWait | null = null;
  readonly #connection: WyomingConnection;
  readonly #parts: ConnectionParts;
  readonly #key: ActiveKey;
  readonly #settings: SpeechSettings;
  readonly #id = randomUUID();
  readonly #startMs: number;
  readonly #sampleRateHz: number;
  readonly #share: LeaseShare;
  readonly #lease: SocketLease;
  readonly #use: KeyUse;
  #context: SpeechContext | null = null;
  /** Blank text that waits for words. It reserves no credit, so it may not end a held sentence either. */
  #gap = '';
  #firstAudio: FirstAudio | undefined;
  #characters = 0;
  #hasAudio = false;
  #isOver = false;

  /** @param settings their voice exists */
  constructor(connection: WyomingConnection, key: ActiveKey, settings: SpeechSettings, route: string) {
    const { admission, network, services, speech } = connection.parts;
    const { bounds, clock, keys, pulse, textBudget } = services;
    this.#connection = this.sender = connection;
    this.#parts = connection.parts;
    this.#key = key;
    this.#settings = settings;
    this.route = route;
    this.#startMs = clock();
    this.wordsMs = pulse.seenClock();
    this.#sampleRateHz = speech.voices.sampleRateHz(settings.voiceId);
    this.#use = keys.use(key, (now) => {
      if (now === null && !this.#isOver) this.#refuse('keyUnknown');
    });
    this.#lease = new SocketLease({
      ...{ admission, use: this.#use, slotsOf: network },
      requestId: this.#id,
      charactersMax: bounds.bodyBytesMax,
      textBudget: textBudget.of(key.accountId),
      onHeld: () => undefined,
    });
    this.#share = this.#lease.share();
  }

  /** Its first words came. @returns `null`: they were refused */
  #begin(): SpeechContext | null {
    const { isDraining, network, services, speech, texts } = this.#parts;
    if (isDraining()) this.#refuse('unavailable', 'draining');
    else if (!texts.hasFree(network)) this.#refuse('slotsExhausted');
    if (this.#isOver) return null;
    services.registry.add(this);
    const opened = speech.open(
      {
        ...{ lease: this.#share, settings: this.#settings },
        format: { encoding: 'pcm', sampleRateHz: this.#sampleRateHz },
        framing: 'raw-pieces',
        timestamps: false,
      },
      (frame) => this.#guard(() => this.#take(frame)),
    );
    if (typeof opened === 'string') this.#refuse('unavailable', opened);
    else this.#context = opened;
    if (this.#context !== null) texts.take(network);
    return this.#context;
  }

  get hasContext(): boolean {
    return this.#context !== null;
  }

  beat(nowMs: number): void {
    const { isDraining, services } = this.#parts;
    const { slotIdleMsMax } = services.bounds;
    if (this.waiting !== null || this.#context?.activity === 'speaking') this.wordsMs = nowMs;
    if (this.#context === null || this.isEnding || nowMs - this.wordsMs < slotIdleMsMax) return;
    this.#lease.giveBack();
    if (isDraining()) this.#refuse('unavailable', 'draining');
  }

  text(more: string): void {
    const { bounds, clock, metrics, pulse } = this.#parts.services;
    if (this.#isOver || more === '') return;
    const text = this.#gap + more;
    const isWords = !isBlank(more);
    this.#gap = isWords || this.#lease.isHeld ? '' : text.slice(0, bounds.segmentCharactersMax);
    if (this.#gap !== '') return;
    if (isWords) this.wordsMs = pulse.seenClock();
    const context = this.#context ?? this.#begin();
    if (context === null) return;
    this.#firstAudio ??= new FirstAudio(clock(), 0, (figure, ms) =>
      metrics.firstAudio(figure, this.route, 'pcm', ms),
    );
    this.#reserve(context, text);
  }

  /** Adds the text when all that is unspoken has credit: at once, unless the database decides. */
  #reserve(context: SpeechContext, text: string): void {
    this.waiting = this.#lease.wait(text, true, () =>
      this.#guard(() => {
        this.waiting = null;
        this.#add(context, text);
        this.#connection.readLater();
      }),
    );
    if (this.waiting === null) this.#add(context, text);
  }

  #add(context: SpeechContext, text: string): void {
    const characters = codePointCount(text);
    const refusal = this.#share.add(characters, true);
    if (refusal !== null) this.#refuse(refusal);
    else if (context.admits(text)) {
      this.#characters += characters;
      context.append(text);
      if (this.isEnding) this.end();
    } else this.#refuse('overloaded');
  }

  /** No text follows. */
  end(): void {
    this.isEnding = true;
    const context = this.#context;
    if (this.#isOver || this.waiting !== null) return;
    if (context === null) this.#finish();
    else if (context.activity === 'holding' && !this.#lease.isHeld) this.#reserve(context, '');
    else context.end();
  }

  /** The client is gone, or the service drops it: nothing more is sent. Idempotent. */
  abandon(outcome: EarlyEnd): void {
    this.#over(outcome, undefined);
  }

  /** The service ends it. */
  drop(outcome: 'failed'): void {
    this.abandon(outcome);
    this.#connection.end();
  }

  /** @param cause for the log; it must not quote the client */
  fail(cause: Readonly<Record<string, unknown>>): void {
    if (this.#isOver) return;
    const { log, metrics } = this.#parts.services;
    log.error({ requestId: this.#id, route: this.route, ...cause }, 'request failed');
    metrics.failed(this.route);
    this.#sendError('internal', 'internal');
    this.#over('failed', errors.internal.status);
    this.#connection.end();
  }

  #guard(react: () => void): void {
    try {
      if (!this.#isOver) react();
    } catch (error) {
      this.fail(describeFault(error));
    }
  }

  #take(frame: Frame): void {
    switch (frame.type) {
      case 'audio':
        this.#sendAudio(frame.bytes, () => {
          this.#firstAudio?.handed(this.#parts.services.clock(), frame);
          this.#context?.handed(frame);
        });
        return;
      case 'closed':
        this.#finish();
        return;
      case 'failed':
        if (frame.code === undefined) this.fail({ reason: frame.reason });
        else this.#refuse(frame.code);
        return;
      case 'spoken':
      case 'flushed':
        return;
      case 'timestamps':
      case 'head':
        throw new Error(`bare audio has no ${frame.type}`);
    }
  }

  #sendAudio(samples: Uint8Array, onHanded: () => void = () => undefined): void {
    const format = { rate: this.#sampleRateHz, width: BYTES_A_SAMPLE, channels: 1 };
    if (!this.#hasAudio) this.#send(encodeEvent('audio-start', format));
    this.#hasAudio = true;
    this.#send(encodeEvent('audio-chunk', format, samples), onHanded);
  }

  #finish(): void {
    if (!this.#hasAudio)
      this.#sendAudio(new Uint8Array((this.#sampleRateHz * BYTES_A_SAMPLE * SILENCE_MS) / 1_000));
    const ends = ['audio-stop', ...(this.route === STREAMED_ROUTE ? ['synthesize-stopped'] : [])];
    this.#send(Buffer.concat(ends.map((type) => encodeEvent(type))), () => this.#over('complete', 200));
  }

  #send(bytes: Buffer, onHanded: () => void = () => undefined): void {
    this.#connection.send(bytes, () => {
      if (!this.#isOver) onHanded();
    });
  }

  #refuse(code: Refused, reason: RefusalReason = refusalOf(code)): void {
    const { services } = this.#parts;
    services.metrics.refused(reason);
    this.#sendError(code, reason);
    this.#over('refused', errors[code].status, reason);
    this.#connection.end();
  }

  #sendError(code: ErrorCode, name: string): void {
    const row: ErrorRow = errors[code];
    this.#connection.send(encodeEvent('error', { text: row.socketText ?? code, code: name }));
  }

  #over(outcome: RequestOutcome, status: number | undefined, refusal?: RefusalReason): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.isEnding = true;
    const { network, services, texts } = this.#parts;
    this.waiting?.cancel();
    this.#context?.release();
    if (this.#context !== null) texts.give(network);
    this.#share.close();
    this.#lease.giveBack();
    this.#use.end();
    services.registry.delete(this);
    endRequest(services, {
      ...{ requestId: this.#id, key: this.#key, route: this.route, status, outcome, refusal },
      voice: this.#settings.voiceId,
      characters: this.#characters,
      startMs: this.#startMs,
      firstAudio: this.#firstAudio,
    });
    this.#connection.spoken(this);
  }
}
