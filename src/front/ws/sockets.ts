/**
 * The open WebSockets: one timer for all of them, checks of their keys, and their drain.
 *
 *   serving --drain--> draining (a socket ends when it is quiet) --shutDown--> empty
 */
import type { Admission } from '../../accounts/admission.js';
import type { ActiveKey } from '../../store/store.js';
import type { Speech } from '../../speech/speech.js';
import { ByteBudget } from '../../byte-budget.js';
import { Registry, type Services } from '../services.js';
import type { SocketBudgets, SocketHandle } from './outbox.js';
import { Session } from './session.js';
import { SocketLease } from './socket-lease.js';

export const SOCKET_PATH = '/v1/tts/ws';

/** Beats in `keyRecheckMsMax`. Each beat checks a part of the keys. */
const BEATS_A_RECHECK = 4;

export interface SocketsParts {
  readonly services: Pick<Services, 'clock' | 'log' | 'metrics' | 'tick' | 'bounds'>;
  readonly speech: Speech;
  readonly admission: Pick<Admission, 'admit' | 'isActive'>;
}

interface SocketsOfKey {
  readonly sessions: Set<Session>;
  readonly contextBudget: ByteBudget;
}

export class Sockets {
  readonly #parts: SocketsParts;
  readonly #textBudget: ByteBudget;
  readonly #budgets: SocketBudgets;
  readonly #registry = new Registry<Session>();
  readonly #byKey = new Map<number, SocketsOfKey>();
  /** Keys that this round has not checked yet. */
  #unchecked: number[] = [];
  #timer: NodeJS.Timeout | null = null;
  #draining = false;

  constructor(parts: SocketsParts) {
    this.#parts = parts;
    const { bounds } = parts.services;
    this.#textBudget = new ByteBudget(bounds.socketCharactersInFlightMax);
    this.#budgets = {
      buffered: new ByteBudget(bounds.socketBufferedBytesInFlightMax),
      answers: new ByteBudget(bounds.socketAnswerBytesInFlightMax),
      flushIds: new ByteBudget(bounds.flushIdUnitsInFlightMax),
    };
  }

  get size(): number {
    return this.#registry.size;
  }

  /** Sockets that generate. */
  get speaking(): number {
    let speaking = 0;
    for (const { holdsSlot } of this.#registry.members) speaking += holdsSlot ? 1 : 0;
    return speaking;
  }

  /** Bytes queued for all sockets. */
  get bufferedBytes(): number {
    let bytes = 0;
    for (const session of this.#registry.members) bytes += session.bufferedBytes;
    return bytes;
  }

  get isFull(): boolean {
    return this.size >= this.#parts.services.bounds.socketsMax;
  }

  whenIdle(): Promise<void> {
    return this.#registry.whenIdle();
  }

  /** @param id of the handshake */
  open(id: string, key: ActiveKey, socket: SocketHandle): Session {
    const { admission, services, speech } = this.#parts;
    const { bounds, clock, log, metrics, tick } = services;
    let ofKey = this.#byKey.get(key.keyId);
    if (ofKey === undefined) {
      ofKey = { sessions: new Set(), contextBudget: new ByteBudget(bounds.contextsPerKeyMax) };
      this.#byKey.set(key.keyId, ofKey);
    }
    const lease = new SocketLease({
      admission,
      key,
      requestId: id,
      charactersMax: bounds.socketCharactersMax,
      textBudget: this.#textBudget,
    });
    const session = new Session({
      id,
      route: SOCKET_PATH,
      key,
      socket,
      speech,
      lease,
      tick,
      clock,
      log,
      metrics,
      bounds,
      budgets: this.#budgets,
      contextBudget: ofKey.contextBudget,
      isDraining: () => this.#draining,
      onOver: (over) => this.#forget(over),
    });
    this.#registry.add(session);
    ofKey.sessions.add(session);
    this.#timer ??= setInterval(() => this.#beat(), bounds.keyRecheckMsMax / BEATS_A_RECHECK);
    return session;
  }

  /** Takes no new contexts. Sockets end when they speak nothing. */
  drain(): void {
    this.#draining = true;
    for (const session of this.#registry.members) session.guard(() => session.drain());
  }

  /** Ends all of them now. */
  shutDown(): void {
    this.#draining = true;
    for (const session of this.#registry.members) session.guard(() => session.shutDown());
  }

  #beat(): void {
    const nowMs = this.#parts.services.clock();
    for (const session of this.#registry.members) session.guard(() => session.beat(nowMs));
    this.#checkKeys();
  }

  /** Checks a part of the keys in each beat, and each key once in `keyRecheckMsMax`. */
  #checkKeys(): void {
    if (this.#unchecked.length === 0) this.#unchecked = [...this.#byKey.keys()];
    const share = Math.ceil(this.#byKey.size / BEATS_A_RECHECK);
    for (const keyId of this.#unchecked.splice(0, share)) {
      const ofKey = this.#byKey.get(keyId);
      if (ofKey === undefined || this.#parts.admission.isActive(keyId)) continue;
      for (const session of [...ofKey.sessions]) session.guard(() => session.revoke());
    }
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
