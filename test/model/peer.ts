/** One socket with its session, and the messages that each frame of its client must lead to. */
import { parseClientFrame, type ClientFrame } from '../../src/api/ws-frames.js';
import { unknownVoiceMessage } from '../../src/api/error-shape.js';
import type { Frame } from '../../src/threads/messages.js';
import { errors, type SocketErrorCode } from '../../src/errors.js';
import { limits } from '../../src/limits.js';
import { codePointCount } from '../../src/text/code-points.js';
import type { Session } from '../../src/front/ws/session.js';
import { specificationProtocol } from '../../src/front/ws/protocol.js';
import type { SocketLease } from '../../src/front/ws/socket-lease.js';
import { FakeSocket } from '../support/socket-session.js';
import { AUDIO_FRAME_MS, type SteppedContext, type SteppedSpeech } from './speech.js';
import { ExpectedLane, Wire } from './wire.js';

const protocol = specificationProtocol(limits);
const contextStarted = (frame: Start, id: Id): string => protocol.started(frame, id) ?? '';
const contextClosed = (id: Id): string => protocol.cancelled(id);
const flushCompleted = (flushId: string, id: Id): string => protocol.flushed?.(flushId, id) ?? '';

export const errorFrame = (text: string, id: Id, flushId: string | null = null): string =>
  protocol.error('internal', text, id, flushId);

type Id = string | null;
type Start = Extract<ClientFrame, { type: 'start' }>;

/** A context that is not over. */
interface Open {
  readonly id: Id;
  readonly below: SteppedContext;
  /** The answer to its start. */
  readonly started: string;
  readonly lane: ExpectedLane;
  readonly flushes: { readonly flushId: string; readonly refusal: SocketErrorCode | null }[];
  state: 'open' | 'closing' | 'failed';
  refusal: SocketErrorCode | null;
}

/** What all sockets of the service share. */
export interface Surroundings {
  readonly speech: SteppedSpeech;
  /** Called for each message that is sent, with an error's text, or the message's first key. */
  readonly onMessage: (kind: string) => void;
  readonly nowMs: () => number;
  readonly contextsPerSocketMax: number;
  readonly charactersMax: number;
  /** The key may have one more context. */
  hasContextLeft(): boolean;
  /** So many more characters may wait, over all sockets. */
  hasTextLeft(characters: number): boolean;
  /** The key may use the only voice. */
  readonly knowsVoice: () => boolean;
  readonly isDraining: () => boolean;
  /** Why admission refused since the last call. */
  takeRefusal(): 'creditExhausted' | 'slotsExhausted' | null;
}

/** Checks each message against the wire before the socket has it. */
class WatchedSocket extends FakeSocket {
  readonly wire: Wire;
  fault: string | null = null;

  readonly #onMessage: (kind: string) => void;

  constructor(wire: Wire, onMessage: (kind: string) => void) {
    super();
    this.wire = wire;
    this.#onMessage = onMessage;
  }

  override send(message: string | Uint8Array): number {
    const text = typeof message === 'string' ? message : Buffer.from(message).toString();
    this.#onMessage(/^\{"(?:error":")?([^":]*)/.exec(text)?.[1] ?? '');
    // The session would treat the exception as its own fault.
    try {
      this.wire.send(text);
    } catch (error) {
      this.fault ??= String(error);
    }
    const result = super.send(text);
    this.sent.length = 0;
    return result;
  }
}

const said = (code: SocketErrorCode, id: Id, flushId: string | null = null): string =>
  errorFrame(errors[code].socketText, id, flushId);

export class Peer {
  readonly wire = new Wire();
  readonly socket: WatchedSocket;
  readonly session: Session;
  readonly lease: SocketLease;
  readonly contexts = new Map<Id, Open>();
  readonly #byContext = new Map<SteppedContext, Open>();
  readonly #around: Surroundings;
  isOver = false;
  heardMs: number;
  takenMs: number;
  #handedMs = 0;
  #audioFrames = 0;

  constructor(
    session: (socket: FakeSocket) => { session: Session; lease: SocketLease },
    around: Surroundings,
    nowMs: number,
  ) {
    this.#around = around;
    this.heardMs = this.takenMs = nowMs;
    this.socket = new WatchedSocket(this.wire, (kind) => {
      if (kind.includes('audio')) this.#handed();
      around.onMessage(kind);
    });
    ({ session: this.session, lease: this.lease } = session(this.socket));
    this.socket.onClosed = (code) => this.session.closed(code);
  }

  /** When even a slow listener has heard all that was sent. */
  get hearingUntilMs(): number {
    return this.#handedMs + this.#audioFrames * 2 * AUDIO_FRAME_MS;
  }

  #handed(): void {
    this.#handedMs = this.#around.nowMs();
    this.#audioFrames++;
  }

  get unspoken(): number {
    let characters = 0;
    for (const { below } of this.contexts.values()) characters += below.unspoken;
    return characters;
  }

  get isClosing(): boolean {
    return [...this.contexts.values()].some(({ state }) => state !== 'open');
  }

  /** Everything that was opened on this socket. */
  get everyContext(): Iterable<SteppedContext> {
    return this.#byContext.keys();
  }

  /** The client sends a message. */
  say(message: string, nowMs: number): void {
    this.heardMs = nowMs;
    const frame = parseClientFrame(Buffer.from(message), limits);
    const before = { unspoken: this.unspoken, hasContext: this.#around.hasContextLeft() };
    const context = frame.type === 'refused' ? undefined : this.contexts.get(frame.contextId);
    const held = context?.below.held ?? '';
    const room = (characters: number): boolean =>
      before.unspoken + characters <= this.#around.charactersMax && this.#around.hasTextLeft(characters);
    const added = frame.type === 'text' ? addedBy(held, frame.text) : 0;
    const hasRoom = room(added);
    const { speech } = this.#around;
    const { fault, contexts } = speech;
    const opened = contexts.length;
    this.session.guard(() => this.session.message(Buffer.from(message)));
    if (this.socket.closed !== null) return;
    const refused = this.#around.takeRefusal();
    if (frame.type === 'refused') {
      this.#answer(errorFrame(`invalid frame: ${frame.text}`, frame.contextId, frame.flushId));
      return;
    }
    const id = frame.contextId;
    if (frame.type === 'start') {
      if (context) this.#answer(errorFrame(`invalid frame: context_id already in use: ${id ?? 'null'}`, id));
      else if (frame.settings.voiceId !== 'ada' || !this.#around.knowsVoice())
        this.#answer(errorFrame(this.#unknownVoice(frame.settings.voiceId), id));
      else if (this.#around.isDraining()) this.#answer(said('unavailable', id));
      else if (this.contexts.size >= this.#around.contextsPerSocketMax)
        this.#answer(said('contextsExhausted', id));
      else if (fault === 'full') this.#answer(said('unavailable', id));
      else if (!before.hasContext) this.#answer(said('contextsExhausted', id));
      else this.#opened(frame, contexts[opened]);
      return;
    }
    if (context === undefined || (context.state !== 'open' && frame.type !== 'cancel')) {
      const flushId = frame.type === 'flush' ? frame.flushId : null;
      this.#answer(errorFrame(`unknown context_id: ${id ?? 'null'}`, id, flushId));
      return;
    }
    switch (frame.type) {
      case 'text':
        if (context.refusal !== null) {
          if (context.below.held !== '') throw new Error('text of a refused utterance was taken');
          return;
        }
        if (frame.text === '') return;
        context.refusal = hasRoom ? refused : 'textExhausted';
        if (context.refusal !== null) this.wire.expect(context.lane, said(context.refusal, id));
        this.#checkDropped(context, context.refusal);
        return;
      case 'flush': {
        const flushId = context.below.flushIds.at(-1) ?? '';
        if (frame.flushId === null ? flushId.length !== 36 : flushId !== frame.flushId)
          throw new Error(`flushed as ${flushId}`);
        context.flushes.push({ flushId, refusal: context.refusal ?? refused });
        context.refusal = null;
        return;
      }
      case 'close':
        if (context.refusal === null && refused !== null) this.wire.expect(context.lane, said(refused, id));
        context.state = 'closing';
        if (!context.below.ended) throw new Error('a context closes before the end of its text');
        return;
      case 'cancel': {
        // The answer to its start is still due.
        const isStartAnswered = context.lane.waiting[0]?.message !== context.started;
        this.wire.forget(context.lane);
        context.lane.isComplete = false;
        context.lane.isFinishing = true;
        if (!isStartAnswered) this.wire.expect(context.lane, context.started);
        this.wire.expect(context.lane, contextClosed(id));
        context.lane.isComplete = true;
        this.contexts.delete(id);
        if (!context.below.released) throw new Error('a cancelled context goes on');
      }
    }
  }

  /** The session is about to check the voices of its contexts. */
  reviewed(): void {
    if (this.#around.knowsVoice()) return;
    for (const context of this.contexts.values()) {
      if (context.lane.isComplete) continue;
      context.state = 'failed';
      this.wire.expect(context.lane, errorFrame(this.#unknownVoice('ada'), context.id));
      context.lane.isComplete = true;
    }
  }

  /** The stage below is about to hand over a frame. */
  emitted(below: SteppedContext, frame: Frame, characters: number): void {
    const context = this.#byContext.get(below);
    if (context === undefined) throw new Error('a frame of an unknown context');
    // Its voice was lost: what it still makes is dropped.
    if (context.lane.isComplete) return;
    const { id, lane } = context;
    switch (frame.type) {
      case 'audio':
      case 'timestamps':
        this.wire.expect(lane, Buffer.from(frame.bytes).toString(), false, characters);
        return;
      case 'flushed': {
        const flush = context.flushes.shift();
        if (flush?.flushId !== frame.flushId) throw new Error(`${frame.flushId} was not the next flush`);
        const { flushId, refusal } = flush;
        this.wire.expect(lane, refusal === null ? flushCompleted(flushId, id) : said(refusal, id, flushId));
        return;
      }
      case 'closed':
        if (context.flushes.length > 0) throw new Error('closed before its flushes');
        this.wire.expect(lane, flushCompleted(`${id ?? ''}:close`, id));
        this.wire.expect(lane, contextClosed(id));
        lane.isComplete = true;
        return;
      case 'failed':
        context.state = 'failed';
        this.wire.expect(lane, said('internal', id));
        lane.isComplete = true;
        return;
      case 'spoken':
      case 'head':
    }
  }

  owns(below: SteppedContext): boolean {
    return this.#byContext.has(below);
  }

  /** A context is over, and its id free, when its last frame is sent. */
  settle(): void {
    for (const [id, { below, lane }] of this.contexts)
      if (lane.isComplete && lane.waiting.length === 0) {
        if (!below.released) throw new Error('a context is over, but not released');
        this.contexts.delete(id);
      }
  }

  #unknownVoice(voiceId: string): string {
    return unknownVoiceMessage(voiceId, this.#around.knowsVoice() ? ['ada'] : [], limits);
  }

  #opened(frame: Start, below: SteppedContext | undefined): void {
    if (below === undefined) throw new Error('no context was opened');
    const id = frame.contextId;
    const context: Open = {
      id,
      below,
      started: contextStarted(frame, id),
      lane: new ExpectedLane(id),
      flushes: [],
      state: 'open',
      refusal: null,
    };
    this.contexts.set(id, context);
    this.#byContext.set(below, context);
    this.wire.expect(context.lane, context.started);
  }

  #checkDropped({ below }: Open, refusal: SocketErrorCode | null): void {
    if (refusal !== null && below.held !== '') throw new Error('half of a refused utterance is kept');
  }

  #answer(message: string): void {
    this.wire.expect(this.wire.control, message);
  }
}

/** Characters that a text adds to the held text. It may complete a surrogate pair at its end. */
const addedBy = (held: string, text: string): number => codePointCount(held + text) - codePointCount(held);
