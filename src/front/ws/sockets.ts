/**
 * The open WebSockets: one timer for all of them, checks of their keys, and their drain. What concerns all of them is done
 * in slices.
 *
 *   serving --drain--> draining (a socket ends when it is quiet) --shutDown--> empty
 */
import type { Admission } from '../../accounts/admission.js';
import type { ActiveKey } from '../../store/store.js';
import type { Speech } from '../../speech/speech.js';
import { ByteBudget, KeyedBudget } from '../../byte-budget.js';
import type { RefusalReason } from '../../metrics.js';
import { inSlices } from '../../slices.js';
import { Registry, type Services } from '../services.js';
import type { Trace } from '../trace.js';
import type { SocketBudgets, SocketHandle } from './outbox.js';
import type { SocketProtocol } from './protocol.js';
import { Session } from './session.js';
import { SocketLease } from './socket-lease.js';
import { SocketReader, type ReadHandle } from './socket-reader.js';

export const SOCKET_PATH = '/v1/tts/ws';

/** Bytes of messages that wait above which all sockets of the key pause, whether they send or not. */
const MUCH_WAITING_BYTES = 1024 * 1024;
/** A key's part must hold two of the largest messages, because the buffer of waiting messages grows by half. */
const WAITING_MESSAGES_LEAST = 2;
/** Beats in `keyRecheckMsMax`. Each beat checks a part of the keys. */
const BEATS_A_RECHECK = 4;

export interface SocketsParts {
  readonly services: Pick<Services, 'clock' | 'log' | 'metrics' | 'tick' | 'turns' | 'bounds'>;
  readonly speech: Speech;
  readonly admission: Pick<Admission, 'admit' | 'renew' | 'watchKeys'>;
}

export interface OpenSocket {
  readonly session: Session;
  readonly reader: SocketReader;
}

/** A handshake: its `x-request-id`, its trace, and its route for the log and the metrics. */
export interface Handshake {
  readonly id: string;
  readonly trace: Trace | null;
  readonly route: string;
}

/** The sockets of one route. */
interface OfRoute {
  open: number;
  speaking: number;
}

interface SocketsOfKey {
  /** As it was read last. */
  key: ActiveKey;
  readonly sessions: Set<Session>;
  readonly contextBudget: ByteBudget;
}

export class Sockets {
  readonly #parts: SocketsParts;
  readonly #textBudget: KeyedBudget;
  readonly #flushIdBudget: KeyedBudget;
  readonly #waitingBudget: KeyedBudget;
  readonly #budgets: SocketBudgets;
  readonly #registry = new Registry<Session>();
  /** The key that was checked last is the last one. */
  readonly #byKey = new Map<number, SocketsOfKey>();
  #timer: NodeJS.Timeout | null = null;
  #draining = false;
  #isBeating = false;
  readonly #byRoute = new Map<string, OfRoute>();
  readonly #queued = { bytes: 0 };

  constructor(parts: SocketsParts) {
    this.#parts = parts;
    const { bounds } = parts.services;
    parts.admission.watchKeys?.((keyIds) => this.#inSlices(this.#checkNow(keyIds)));
    this.#textBudget = new KeyedBudget(bounds.socketCharactersInFlightMax, bounds.socketTextBytesMax);
    this.#flushIdBudget = new KeyedBudget(
      bounds.flushIdUnitsInFlightMax,
      bounds.flushesPendingMax * bounds.socketIdMax,
    );
    this.#waitingBudget = new KeyedBudget(
      bounds.waitingMessageBytesMax,
      WAITING_MESSAGES_LEAST * bounds.socketMessageBytesMax,
    );
    this.#budgets = {
      buffered: new ByteBudget(bounds.socketBufferedBytesInFlightMax),
      answers: new ByteBudget(bounds.socketAnswerBytesInFlightMax),
    };
  }

  get size(): number {
    return this.#registry.size;
  }

  /** How many sockets of a route are open, and how many of them generate. */
  ofRoute(route: string): Readonly<OfRoute> {
    return this.#countsOf(route);
  }

  /** Bytes queued for all sockets, here and in the library. */
  get bufferedBytes(): number {
    return this.#queued.bytes + this.#budgets.buffered.taken;
  }

  /** @returns why there is no room for one more of this key; `null`: there is */
  refusalOf(key: ActiveKey | null): RefusalReason | null {
    const { bounds } = this.#parts.services;
    if (this.size >= bounds.socketsMax) return 'socketPoolExhausted';
    const ofKey = key === null ? undefined : this.#byKey.get(key.keyId);
    return ofKey !== undefined && ofKey.sessions.size >= bounds.socketsPerKeyMax
      ? 'socketsOfKeyExhausted'
      : null;
  }

  whenIdle(): Promise<void> {
    return this.#registry.whenIdle();
  }

  open(
    { id, trace, route }: Handshake,
    key: ActiveKey,
    protocol: SocketProtocol,
    socket: SocketHandle,
    reading: Pick<ReadHandle, 'pause' | 'resume'>,
  ): OpenSocket {
    const { admission, services, speech } = this.#parts;
    const { bounds, clock, log, metrics, tick, turns } = services;
    const { keyId } = key;
    const ofRoute = this.#countsOf(route);
    const ofKey = this.#byKey.get(keyId) ?? {
      key,
      sessions: new Set<Session>(),
      contextBudget: new ByteBudget(bounds.contextsPerKeyMax),
    };
    ofKey.key = key;
    this.#byKey.set(keyId, ofKey);
    const lease = new SocketLease({
      admission,
      key,
      requestId: id,
      charactersMax: bounds.socketCharactersMax,
      textBudget: this.#textBudget.of(keyId),
      onHeld: (isHeld) => (ofRoute.speaking += isHeld ? 1 : -1),
    });
    const session: Session = new Session({
      id,
      trace,
      route,
      key: () => ofKey.key,
      protocol,
      socket,
      speech,
      lease,
      tick,
      clock,
      log,
      metrics,
      bounds,
      budgets: this.#budgets,
      queued: this.#queued,
      contextBudget: ofKey.contextBudget,
      flushIdBudget: this.#flushIdBudget.of(keyId),
      isBehind: () => reader.isBehind,
      onHeld: (isHeld) => reader.hold(isHeld),
      onBeat: (nowMs) => reader.beat(nowMs),
      isDraining: () => this.#draining,
      onOver: (over) => {
        ofRoute.open--;
        this.#forget(over);
      },
    });
    const reader: SocketReader = new SocketReader({
      session,
      socket: {
        ...reading,
        getBufferedAmount: () => socket.getBufferedAmount(),
        ping: (payload) => socket.ping(payload),
      },
      turn: turns.of(keyId),
      budget: this.#waitingBudget.of(keyId),
      isMuchWaiting: () => this.#waitingBudget.takenBy(keyId) > MUCH_WAITING_BYTES,
      tick,
      clock,
      bounds,
      onReadLater: (ms) => metrics.readLater(route, ms),
    });
    ofRoute.open++;
    this.#registry.add(session);
    ofKey.sessions.add(session);
    this.#timer ??= setInterval(() => this.#beat(), bounds.keyRecheckMsMax / BEATS_A_RECHECK);
    return { session, reader };
  }

  /** Takes no new contexts. Sockets end when they speak nothing. */
  drain(): void {
    this.#draining = true;
    this.#inSlices(this.#drains());
  }

  /** Ends all of them now, without slices: the service serves no other client any more. */
  shutDown(): void {
    this.#draining = true;
    for (const session of this.#registry.members) session.guard(() => session.shutDown());
  }

  #inSlices(work: Generator<void>): void {
    const { bounds, clock } = this.#parts.services;
    inSlices(work, { clock, sliceMsMax: bounds.sliceMsMax });
  }

  *#drains(): Generator<void> {
    for (const session of this.#registry) {
      session.guard(() => session.drain());
      yield;
    }
  }

  #beat(): void {
    // On a machine that is too slow for the sockets a beat may take longer than the time between two.
    if (!this.#isBeating) this.#inSlices(this.#beats());
  }

  *#beats(): Generator<void> {
    this.#isBeating = true;
    try {
      const { clock } = this.#parts.services;
      for (const session of this.#registry) {
        session.guard(() => session.beat(clock()));
        yield;
      }
      yield* this.#checkKeys();
    } finally {
      this.#isBeating = false;
    }
  }

  /** Checks a part of the keys in each beat, and each key once in `keyRecheckMsMax`. */
  *#checkKeys(): Generator<void> {
    let left = Math.ceil(this.#byKey.size / BEATS_A_RECHECK);
    for (const [keyId, ofKey] of this.#byKey) {
      if (left-- === 0) return;
      this.#byKey.delete(keyId);
      this.#byKey.set(keyId, ofKey);
      yield* this.#checkKey(ofKey);
      yield;
    }
  }

  *#checkNow(keyIds: readonly number[]): Generator<void> {
    for (const keyId of keyIds) {
      const ofKey = this.#byKey.get(keyId);
      if (ofKey !== undefined) yield* this.#checkKey(ofKey);
      yield;
    }
  }

  *#checkKey(ofKey: SocketsOfKey): Generator<void> {
    const key = this.#parts.admission.renew(ofKey.key);
    if (key !== null) ofKey.key = key;
    if (key !== null && key.voices === null) return;
    for (const session of ofKey.sessions) {
      session.guard(() => (key === null ? session.revoke() : session.reviewVoices()));
      yield;
    }
  }

  #countsOf(route: string): OfRoute {
    const known = this.#byRoute.get(route) ?? { open: 0, speaking: 0 };
    this.#byRoute.set(route, known);
    return known;
  }

  #forget(session: Session): void {
    const ofKey = this.#byKey.get(session.keyId);
    ofKey?.sessions.delete(session);
    if (ofKey?.sessions.size === 0) this.#byKey.delete(session.keyId);
    this.#registry.delete(session);
    if (this.#registry.size === 0 && this.#timer !== null) {
      clearInterval(this.#timer);
      this.#timer = null;
    }
  }
}
