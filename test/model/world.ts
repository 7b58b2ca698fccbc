/** Some sockets of one key over one schedule of steps, and what must hold after each step. */
import type { GrowingLease } from '../../src/accounts/lease.js';
import { limits } from '../../src/limits.js';
import { errors } from '../../src/errors.js';
import { specificationProtocol } from '../../src/front/ws/protocol.js';
import { Session } from '../../src/front/ws/session.js';
import { SocketLease } from '../../src/front/ws/socket-lease.js';
import { Metrics } from '../../src/metrics.js';
import { activeKey, recordingLog, type LogLine } from '../support/front-server.js';
import { Books, type FakeSocket } from '../support/socket-session.js';
import { errorFrame, Peer, type Surroundings } from './peer.js';
import type { Step } from './schedules.js';
import { CONTEXTS_MAX, SteppedSpeech } from './speech.js';
import { Turns } from '../../src/front/turns.js';
import { wholeSocketBudgets } from '../support/whole-budget.js';

/** The test does not read them. */
const metrics = new Metrics();
const SOCKETS = 3;
const KEY = activeKey(7);
/** The same, without the only voice that there is. */
const MUTE_KEY = activeKey(7, ['bela']);
const MESSAGE_BYTES_MAX = 400;
/** Small, so that short schedules reach them. */
const bounds = {
  ...limits,
  contextsPerSocketMax: 3,
  socketCharactersMax: 60,
  socketCharactersInFlightMax: 100,
  socketBufferedBytesMax: 300,
  socketBufferedBytesInFlightMax: 24_000,
  socketAnswerBytesInFlightMax: 64_000,
  socketAnswerBytesMax: 900,
  senderQueueBytesMax: 1_800,
  socketSilenceMsMax: 9_000,
  socketPingMs: 3_000,
  readerStallMsMax: 6_000,
  stallRearmMs: 1_000,
};

export class World {
  readonly #books = new Books();
  readonly #speech: SteppedSpeech;
  readonly #peers: Peer[] = [];
  readonly #lines: LogLine[] = [];
  readonly #due: (() => void)[] = [];
  readonly #budgets = wholeSocketBudgets(bounds);
  readonly #queued = { bytes: 0 };
  /** Leases that sockets hold. */
  #held = 0;
  #over = 0;
  #key = KEY;
  #nowMs = 1_000_000;
  readonly #turns = new Turns({ clock: () => this.#nowMs, bounds, after: () => undefined });
  #draining = false;
  #granted = 0;
  #refusal: 'creditExhausted' | 'slotsExhausted' | null = null;

  /** How often each message, and each outcome of a socket, occurred. */
  readonly #met: Map<string, number>;

  constructor(met = new Map<string, number>()) {
    this.#met = met;
    this.#books.credit = 0;
    this.#grant(45);
    this.#books.slotsMax = 2;
    this.#speech = new SteppedSpeech((below, frame, characters) => {
      this.#peers.find((peer) => peer.owns(below))?.emitted(below, frame, characters);
    });
    for (let at = 0; at < SOCKETS; at++) this.#connect();
  }

  take(step: Step): void {
    const peer = this.#peers[step.socket];
    if (peer === undefined) throw new Error('no such socket');
    const allowed = this.#act(step, peer);
    if (step.endsTick) this.#endTick();
    for (const one of this.#peers) this.#check(one, allowed, step);
    this.#checkBooks();
  }

  /** Readers read, credit comes, work is done, and every client closes: nothing is left. */
  finish(): void {
    this.#grant(1_000_000);
    this.#books.slotsMax = SOCKETS;
    for (const { socket, session } of this.#peers) {
      socket.stalled = false;
      socket.bufferedBytes = 0;
      session.guard(() => session.drained());
    }
    this.#quiesce();
    for (const peer of this.#peers)
      for (const { id, state } of [...peer.contexts.values()])
        if (state === 'open') peer.say(JSON.stringify({ close_context: true, context_id: id }), this.#nowMs);
    this.#quiesce();
    for (const peer of this.#peers) {
      if (peer.isOver) continue;
      if (!peer.wire.isEmpty) throw new Error('a frame was lost');
      if (peer.contexts.size > 0) throw new Error('a context does not end');
      if (peer.lease.isHeld) throw new Error('a socket keeps its slot');
      peer.socket.close();
      this.#check(peer, ['client']);
    }
    if (this.#over !== SOCKETS) throw new Error(`${this.#over} sockets are over`);
    this.#checkBooks();
    if (this.#books.slots !== 0 || this.#books.reserved !== 0) throw new Error('books are not at zero');
    // Only a budget from which nothing is taken can be taken whole.
    if (!this.#budgets.text.take(bounds.socketCharactersInFlightMax))
      throw new Error('text is still counted');
    if (!this.#budgets.flushIds.take(bounds.flushIdUnitsInFlightMax))
      throw new Error('ids are still counted');
    if (this.#budgets.buffered.taken !== 0) throw new Error('bytes of buffers are still counted');
    if (this.#queued.bytes !== 0) throw new Error('bytes of queues are still counted');
    if (this.#budgets.answers.taken !== 0) throw new Error('answers are still counted');
    if (this.#speech.openContexts > 0) throw new Error('contexts are still open');
  }

  #grant(characters: number): void {
    this.#books.credit += characters;
    this.#granted += characters;
  }

  #connect(): void {
    const around: Surroundings = {
      speech: this.#speech,
      onMessage: (kind) => this.#meet(kind),
      nowMs: () => this.#nowMs,
      contextsPerSocketMax: bounds.contextsPerSocketMax,
      charactersMax: bounds.socketCharactersMax,
      hasContextLeft: () => this.#sum((peer) => peer.contexts.size) < CONTEXTS_MAX,
      hasTextLeft: (characters) =>
        this.#sum((peer) => peer.unspoken) + characters <= bounds.socketCharactersInFlightMax,
      knowsVoice: () => this.#key === KEY,
      isDraining: () => this.#draining,
      takeRefusal: () => {
        const refusal = this.#refusal;
        this.#refusal = null;
        return refusal;
      },
    };
    this.#peers.push(new Peer((socket) => this.#open(socket), around, this.#nowMs));
  }

  #open(socket: FakeSocket): { session: Session; lease: SocketLease } {
    const lease = new SocketLease({
      admission: {
        admit: (_key, characters) => {
          const admitted = this.#books.admit(characters);
          if (admitted.ok) return { ok: true, lease: this.#watched(admitted.lease) };
          this.#refusal = admitted.code as 'creditExhausted' | 'slotsExhausted';
          return admitted;
        },
      },
      use: { key: KEY },
      requestId: 'request',
      charactersMax: bounds.socketCharactersMax,
      textBudget: this.#budgets.text,
      onHeld: (isHeld) => (this.#held += isHeld ? 1 : -1),
    });
    const keyNow = () => this.#key;
    const session = new Session({
      id: `${this.#peers.length}`,
      trace: null,
      use: {
        get key() {
          return keyNow();
        },
      },
      socket,
      protocol: specificationProtocol(bounds),
      lease,
      route: '/v1/tts/ws',
      budgets: this.#budgets,
      reading: { pause: () => undefined, resume: () => undefined },
      turn: this.#turns.of(KEY.accountId),
      shared: {
        ...{ bounds, metrics, speech: this.#speech, queued: this.#queued },
        tick: { add: (action) => this.#due.push(action) },
        clock: () => this.#nowMs,
        seenClock: () => this.#nowMs,
        log: recordingLog(this.#lines),
        isDraining: () => this.#draining,
      },
      onOver: () => (this.#over += 1),
    });
    return { session, lease };
  }

  #watched(lease: GrowingLease): GrowingLease {
    return {
      ...lease,
      reserve: (characters) => {
        const refusal = lease.reserve(characters);
        if (refusal === 'creditExhausted') this.#refusal = refusal;
        return refusal;
      },
    };
  }

  /** @returns the outcomes that the step may lead a socket to */
  #act(step: Step, peer: Peer): readonly string[] {
    const { session, socket, wire } = peer;
    switch (step.act) {
      case 'frames':
        for (const message of step.messages) if (!peer.isOver) peer.say(message, this.#nowMs);
        return [];
      case 'fault':
        this.#speech.fault = step.fault;
        // The exception ends the socket whose frame opens the next context.
        if (!peer.isOver) peer.say(step.message, this.#nowMs);
        this.#speech.fault = 'none';
        return step.fault === 'throws' ? ['failed'] : [];
      case 'binary':
        if (peer.isOver) return [];
        peer.heardMs = this.#nowMs;
        session.guard(() => session.binaryMessage());
        wire.expect(wire.control, errorFrame('invalid frame: binary message', null));
        return [];
      case 'work': {
        const contexts = this.#speech.contexts.filter(({ released }) => !released);
        const below = contexts[step.count % Math.max(1, contexts.length)];
        for (let times = step.count % 5; times >= 0; times--) below?.step();
        return [];
      }
      case 'die':
        this.#speech.contexts.at(-1 - (step.count % 5))?.fail();
        return [];
      case 'stall':
        socket.stalled = true;
        return [];
      case 'drain':
        socket.bufferedBytes -= Math.min(socket.bufferedBytes, step.count * 20);
        socket.stalled = step.count % 2 === 0;
        peer.takenMs = this.#nowMs;
        session.guard(() => session.drained());
        return [];
      case 'pass':
        for (let beats = step.count; beats > 0; beats--) {
          this.#nowMs += 200;
          for (const { session: one } of this.#peers) one.guard(() => one.beat(this.#nowMs));
          this.#endTick();
        }
        return ['silent', 'reader-stalled'];
      case 'credit':
        this.#grant(step.count);
        this.#books.slotsMax = step.count % 4;
        return [];
      case 'voices':
        this.#key = this.#key === KEY ? MUTE_KEY : KEY;
        for (const one of this.#peers) {
          if (one.isOver) continue;
          one.reviewed();
          one.session.guard(() => one.session.reviewVoices());
        }
        return [];
      case 'revoke':
        for (const one of this.#peers) {
          if (one.isOver) continue;
          one.wire.onlyMessage = errorFrame(errors.keyUnknown.socketText, null);
          one.session.guard(() => one.session.revoke());
        }
        return ['revoked'];
      case 'gone':
        if (!peer.isOver) socket.close();
        return ['client'];
      case 'shutDown':
        this.#draining = true;
        if (step.count % 2 === 0) for (const one of this.#peers) one.session.guard(() => one.session.drain());
        else
          for (const one of this.#peers) {
            one.wire.isOrderly = true;
            one.session.guard(() => one.session.shutDown());
          }
        return step.count % 2 === 0 ? [] : ['shut down'];
    }
  }

  #endTick(): void {
    for (let next = this.#due.shift(); next !== undefined; next = this.#due.shift()) next();
    for (const peer of this.#peers) if (!peer.isOver && peer.socket.closed === null) peer.settle();
  }

  #check(peer: Peer, allowed: readonly string[], step?: Step): void {
    const { lease, session, socket, wire } = peer;
    if (socket.fault !== null) throw new Error(socket.fault);
    if (peer.isOver) return;
    if (socket.bufferedBytes === 0) peer.takenMs = this.#nowMs;
    if (socket.closed !== null) {
      this.#checkEnd(peer, allowed);
      return;
    }
    if (socket.bufferedBytes > bounds.socketBufferedBytesMax + MESSAGE_BYTES_MAX)
      throw new Error(`${socket.bufferedBytes} bytes in the buffer`);
    if (this.#line(peer, 'socket failed') !== undefined) throw new Error('a socket goes on after its fault');
    const isTickOver = this.#due.length === 0;
    if (
      isTickOver &&
      (wire.answerBytes > bounds.socketAnswerBytesMax || wire.bytes > bounds.senderQueueBytesMax)
    )
      throw new Error('more waits than is bounded');
    if (isTickOver && !wire.isEmpty && socket.bufferedBytes === 0)
      throw new Error('a message waits that could be sent');
    if (lease.settledCharacters !== wire.sentCharacters)
      throw new Error(`charged ${lease.settledCharacters} for ${wire.sentCharacters} that were sent`);
    if (session.contexts !== peer.contexts.size) throw new Error(`${session.contexts} contexts`);
    const contexts = [...peer.contexts.values()];
    if (!lease.isHeld && contexts.some(({ below }) => below.hasSegment))
      throw new Error('speech without a slot');
    // It is given back at the next beat at the latest.
    if (step?.act === 'pass' && lease.isHeld && contexts.every(({ below }) => below.activity === 'idle'))
      throw new Error('an idle socket holds a slot');
    if (
      step?.act === 'pass' &&
      isTickOver &&
      this.#nowMs - Math.max(peer.heardMs, peer.hearingUntilMs) > bounds.socketSilenceMsMax + 200 &&
      socket.bufferedBytes === 0
    )
      throw new Error('a silent socket is kept');
  }

  #checkEnd(peer: Peer, allowed: readonly string[]): void {
    const { lease, session, socket, wire } = peer;
    peer.isOver = true;
    const outcome = String(this.#line(peer, 'socket')?.fields['outcome']);
    this.#meet(outcome);
    const isExpected = {
      flooded: wire.answerBytes > bounds.socketAnswerBytesMax || wire.bytes > bounds.senderQueueBytesMax,
      silent: this.#nowMs - peer.heardMs >= bounds.socketSilenceMsMax,
      'reader-stalled': this.#nowMs - peer.takenMs >= bounds.readerStallMsMax,
      drained: allowed.includes('shut down')
        ? wire.isEmpty
        : this.#draining && wire.isEmpty && !peer.isClosing && !lease.isHeld,
      revoked: allowed.includes('revoked') && socket.closed?.code === 1008,
      client: allowed.includes('client'),
      failed: allowed.includes('failed'),
    }[outcome];
    if (isExpected !== true) {
      const why = this.#lines.filter(({ level }) => level !== 'info').map(({ fields }) => fields);
      throw new Error(`a socket ended: ${outcome}, ${JSON.stringify(why)}`);
    }
    for (const below of peer.everyContext)
      if (!below.released) throw new Error('a context outlives its socket');
    if (session.contexts > 0 || lease.isHeld) throw new Error('a socket that is over keeps something');
    if (lease.settledCharacters > wire.sentCharacters) throw new Error('charged for what was not sent');
    peer.contexts.clear();
  }

  #checkBooks(): void {
    const held = this.#peers.filter(({ lease }) => lease.isHeld);
    if (this.#books.slots !== held.length) throw new Error(`${this.#books.slots} slots for ${held.length}`);
    if (this.#held !== held.length) throw new Error(`${this.#held} leases counted of ${held.length}`);
    const unspoken = held.reduce((sum, peer) => sum + peer.unspoken, 0);
    if (this.#books.reserved !== unspoken)
      throw new Error(`${this.#books.reserved} reserved for ${unspoken} unspoken`);
    const settled = this.#sum(({ lease }) => lease.settledCharacters);
    if (this.#books.charged !== settled) throw new Error(`${this.#books.charged} charged of ${settled}`);
    if (this.#books.credit + settled !== this.#granted)
      throw new Error('the balance is not the sum of the ledger');
    if (this.#books.credit < 0) throw new Error('credit below zero');
  }

  /** Works until nothing is left to do. */
  #quiesce(): void {
    for (let moved = true; moved;) {
      moved = false;
      for (const below of this.#speech.contexts) moved = below.step() || moved;
      this.#endTick();
    }
    for (const peer of this.#peers) this.#check(peer, []);
    this.#checkBooks();
  }

  #meet(what: string): void {
    this.#met.set(what, (this.#met.get(what) ?? 0) + 1);
  }

  #line(peer: Peer, wanted: string): LogLine | undefined {
    const id = `${this.#peers.indexOf(peer)}`;
    return this.#lines.find(({ fields, message }) => message === wanted && fields['requestId'] === id);
  }

  #sum(of: (peer: Peer) => number): number {
    return this.#peers.reduce((sum, peer) => sum + of(peer), 0);
  }
}
