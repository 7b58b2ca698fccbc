/**
 * The open WebSockets: one timer for all of them, their budgets, and their drain. What concerns all of them is done in
 * slices.
 *
 *   serving --drain--> draining (a socket ends when it is quiet) --shutDown--> empty
 */
import type { Admission } from '../../accounts/admission.js';
import { Slots } from '../../accounts/lease.js';
import type { ActiveKey } from '../../store/store.js';
import type { Speech } from '../../speech/speech.js';
import { KeyedBudget, type Member } from '../../byte-budget.js';
import type { RefusalReason } from '../../metrics.js';
import { inSlices } from '../../slices.js';
import { Pulse, Registry, type Services } from '../services.js';
import type { SocketBudgets, SocketHandle } from './outbox.js';
import { specificationProtocol, type SocketProtocol } from './protocol.js';
import { Session, type Handshake, type SharedParts } from './session.js';
import { SocketLease } from './socket-lease.js';
import type { Reading } from './socket-reader.js';

export const SOCKET_PATH = '/v1/tts/ws';

/** An account's part must hold two of the largest messages, because the buffer of waiting messages grows by half. */
const WAITING_MESSAGES_LEAST = 2;
/** Milliseconds between two looks at all sockets. */
const BEAT_MS = 200;
/** What the strangers of one address may have of the sockets that wait for a key. */
const PART_OF_ADDRESS = 1 / 4;

export interface SocketsParts {
  readonly services: Pick<Services, 'clock' | 'keys' | 'log' | 'metrics' | 'tick' | 'turns' | 'bounds'>;
  readonly speech: Speech;
  readonly admission: Pick<Admission, 'admit'>;
}

/** The sockets of one route. */
interface OfRoute {
  open: number;
  speaking: number;
}

export class Sockets {
  /** The specification's. */
  readonly protocol: SocketProtocol;
  readonly #parts: SocketsParts;
  readonly #openBudget: KeyedBudget;
  /** What the operator allows each key. */
  readonly #ofKeys: Slots;
  /** Messages that arrive: the library holds them, and has one bound for all of a socket. */
  readonly #longBudget: KeyedBudget;
  /** Sockets whose key is not known, by address. */
  readonly #keyless: KeyedBudget;
  readonly #budgets: Readonly<Record<keyof SocketBudgets, KeyedBudget>>;
  /** Of the accounts that have sockets. */
  readonly #partsOfAccounts = new Map<number, SocketBudgets>();
  readonly #registry = new Registry<Session>();
  readonly #pulse: Pulse;
  #draining = false;
  readonly #byRoute = new Map<string, OfRoute>();
  readonly #queued = { bytes: 0 };
  readonly #shared: SharedParts;

  constructor(parts: SocketsParts) {
    this.#parts = parts;
    const { bounds, clock } = parts.services;
    this.#pulse = new Pulse(BEAT_MS, clock, bounds.sliceMsMax);
    this.protocol = specificationProtocol(bounds);
    this.#openBudget = new KeyedBudget(bounds.socketsMax, bounds.slotsPerKey);
    this.#ofKeys = new Slots(bounds.socketsPerKeyMax);
    this.#longBudget = new KeyedBudget(
      bounds.arrivingMessageBytesMax,
      bounds.slotsPerKey * bounds.socketMessageBytesMax,
    );
    this.#keyless = new KeyedBudget(bounds.keylessSocketsMax, 1, PART_OF_ADDRESS);
    this.#budgets = {
      buffered: new KeyedBudget(bounds.socketBufferedBytesInFlightMax, 0),
      answers: new KeyedBudget(bounds.socketAnswerBytesInFlightMax, 0),
      waiting: new KeyedBudget(
        bounds.waitingMessageBytesMax,
        WAITING_MESSAGES_LEAST * bounds.socketMessageBytesMax,
      ),
      text: new KeyedBudget(bounds.socketCharactersInFlightMax, bounds.socketTextBytesMax),
      flushIds: new KeyedBudget(
        bounds.flushIdUnitsInFlightMax,
        bounds.flushesPendingMax * bounds.socketIdMax,
      ),
    };
    const { log, metrics, tick } = parts.services;
    this.#shared = {
      ...{ bounds, clock, log, metrics, tick, speech: parts.speech, queued: this.#queued },
      seenClock: this.#pulse.seenClock,
      isDraining: () => this.#draining,
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
    if (this.size + this.#keyless.taken >= bounds.socketsMax) return 'socketPoolExhausted';
    if (key === null) return null;
    if (this.#openBudget.refusal(key.accountId, 1) !== null) return 'socketsOfAccountExhausted';
    return this.#ofKeys.hasFree(key.keyId) ? null : 'socketsOfKeyExhausted';
  }

  /** A socket waits for its key. @returns whether it may; then what to call, once, when it waits no more */
  waitForKey(network: string): (() => void) | null {
    if (this.#keyless.take(network, 1) !== null) return null;
    return () => this.#keyless.giveBack(network, 1);
  }

  /** @returns whether a socket may send the longest messages. Then call `giveBackLong`, once, when its connection has ended */
  takeLong(member: Member): boolean {
    return this.#longBudget.take(member, this.#parts.services.bounds.socketMessageBytesMax) === null;
  }

  giveBackLong(member: Member): void {
    this.#longBudget.giveBack(member, this.#parts.services.bounds.socketMessageBytesMax);
  }

  whenIdle(): Promise<void> {
    return this.#registry.whenIdle();
  }

  /** Ask `refusalOf` before. */
  open(
    handshake: Handshake,
    key: ActiveKey,
    protocol: SocketProtocol,
    socket: SocketHandle,
    reading: Reading,
  ): Session {
    const { admission, services } = this.#parts;
    const { bounds, keys, turns } = services;
    const { accountId, keyId } = key;
    const { id, route, trace } = handshake;
    const ofRoute = this.#countsOf(route);
    const use = keys.use(key, (now) =>
      session.guard(() => (now === null ? session.revoke() : session.reviewVoices())),
    );
    this.#openBudget.take(accountId, 1);
    this.#ofKeys.take(keyId);
    const budgets = this.#partsOf(accountId);
    const lease = new SocketLease({
      admission,
      use,
      requestId: id,
      charactersMax: bounds.socketCharactersMax,
      textBudget: budgets.text,
      onHeld: (isHeld) => (ofRoute.speaking += isHeld ? 1 : -1),
    });
    const session: Session = new Session({
      id,
      trace,
      route,
      protocol,
      socket,
      reading,
      lease,
      use,
      budgets,
      shared: this.#shared,
      turn: turns.of(accountId),
      onOver: () => {
        ofRoute.open--;
        use.end();
        this.#openBudget.giveBack(accountId, 1);
        if (this.#openBudget.takenBy(accountId) === 0) this.#partsOfAccounts.delete(accountId);
        this.#ofKeys.give(keyId);
        this.#registry.delete(session);
        this.#pulse.delete(session);
      },
    });
    ofRoute.open++;
    this.#registry.add(session);
    this.#pulse.add(session);
    return session;
  }

  /** Takes no new contexts. Sockets end when they speak nothing. */
  drain(): void {
    this.#draining = true;
    const { bounds, clock } = this.#parts.services;
    inSlices(this.#drains(), { clock, sliceMsMax: bounds.sliceMsMax });
  }

  /** Ends all of them now, without slices: the service serves no other client any more. */
  shutDown(): void {
    this.#draining = true;
    for (const session of this.#registry.members) session.guard(() => session.shutDown());
  }

  *#drains(): Generator<void> {
    for (const session of this.#registry) {
      session.guard(() => session.drain());
      yield;
    }
  }

  #countsOf(route: string): OfRoute {
    const known = this.#byRoute.get(route) ?? { open: 0, speaking: 0 };
    this.#byRoute.set(route, known);
    return known;
  }

  /** The same for all sockets of an account. */
  #partsOf(accountId: number): SocketBudgets {
    const known = this.#partsOfAccounts.get(accountId);
    if (known !== undefined) return known;
    const { answers, buffered, flushIds, text, waiting } = this.#budgets;
    const parts: SocketBudgets = {
      answers: answers.of(accountId),
      buffered: buffered.of(accountId),
      flushIds: flushIds.of(accountId),
      text: text.of(accountId),
      waiting: waiting.of(accountId),
    };
    this.#partsOfAccounts.set(accountId, parts);
    return parts;
  }
}
