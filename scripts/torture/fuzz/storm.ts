/**
 * Writes each input to a connection of its own, many at a time, and counts the answers. Connections that we end are reset
 * and come from many addresses of the loopback: otherwise those in TIME_WAIT would use up the ports.
 */
import { type Socket, connect } from 'node:net';
import { Tally } from '../../rig/tally.js';
import type { Input } from './input.js';

export interface StormParts {
  readonly portOf: (input: Input) => number;
  readonly inputAt: (index: number) => Input;
  readonly count: number;
  readonly parallel: number;
  /** Addresses of the clients from 127.0.0.2 on, where the system has them. */
  readonly addresses: number;
  /** Called for a wrong answer, and for a connection that the service keeps too long. */
  readonly onFault: (index: number, what: string) => void;
  /** The service still runs. */
  readonly isAlive: () => boolean;
}

/**
 * Milliseconds that a client waits for an answer, or for more of it: a multiple of the mean time of answers, because on a
 * busy machine all clients would leave before theirs.
 */
const quietMs = { min: 60, max: 2_000, answersMin: 3 } as const;
/** A patient client waits so many times longer, for speech. */
const patience = 6;
/** The weight of one answer in the mean time. */
const answerWeight = 0.02;
/** The service must have closed the connection of a client that half-closed, and of one that lingers. */
const closedMsMax = 20_000;
const lingerMsMax = 45_000;
const sweepMs = 20;
/** The part of an answer that is read. */
const lookedBytesMax = 64 * 1024;

const statusLine = /HTTP\/1\.1 (\d{3}) /g;
const frameKinds = [
  'context_started',
  'audio_chunk',
  'flush_completed',
  'context_closed',
  'isFinal',
  'error',
] as const;

export class Storm {
  /** Connections by status (`none` without an answer) and by kind of frame that they received. */
  readonly answers = new Tally();
  /** Inputs by kind. */
  readonly kinds = new Tally();
  done = 0;
  #next = 0;
  readonly #parts: StormParts;
  readonly #open = new Set<Shot>();
  readonly #over = Promise.withResolvers<undefined>();
  #sweep: NodeJS.Timeout | null = null;
  /** From a connection to its first answer. */
  #answerMsMean = 0;

  constructor(parts: StormParts) {
    this.#parts = parts;
  }

  /** Resolves when all inputs are done, or the service has ended. */
  async run(): Promise<void> {
    this.#sweep = setInterval(() => this.#onSweep(), sweepMs);
    this.#fill();
    await this.#over.promise;
    clearInterval(this.#sweep);
  }

  /** Indices of the inputs under way. */
  get underWay(): number[] {
    return [...this.#open].map(({ index }) => index);
  }

  #fill(): void {
    const { addresses, count, inputAt, isAlive, onFault, parallel, portOf } = this.#parts;
    if (!isAlive()) this.#next = count;
    while (this.#open.size < parallel && this.#next < count) {
      const index = this.#next++;
      const input = inputAt(index);
      this.kinds.add(input.kind);
      const address = addresses > 1 ? `127.0.0.${2 + (index % addresses)}` : '127.0.0.1';
      const shot: Shot = new Shot(
        index,
        input,
        { port: portOf(input), address },
        (answers, fault, answerMs) => {
          if (answerMs !== null) this.#answerMsMean += answerWeight * (answerMs - this.#answerMsMean);
          this.#open.delete(shot);
          this.done++;
          for (const answer of answers) this.answers.add(answer);
          if (fault !== null && isAlive()) onFault(index, fault);
          // Not inside this callback.
          if (this.#open.size === parallel - 1) setImmediate(() => this.#fill());
        },
      );
      this.#open.add(shot);
    }
    if (this.#open.size === 0 && this.#next >= count) this.#over.resolve(undefined);
  }

  #onSweep(): void {
    const nowMs = performance.now();
    const waitMs = Math.min(quietMs.max, Math.max(quietMs.min, quietMs.answersMin * this.#answerMsMean));
    for (const shot of this.#open) shot.sweep(nowMs, waitMs);
    this.#fill();
  }
}

/** @param answerMs until the first answer; `null` without one */
type OnOver = (answers: readonly string[], fault: string | null, answerMs: number | null) => void;

/** One input and its connection. */
class Shot {
  readonly index: number;
  readonly #input: Input;
  readonly #socket: Socket;
  readonly #onOver: OnOver;
  readonly #startMs = performance.now();
  readonly #answers: string[] = [];
  #heardMs = this.#startMs;
  #heardBytes = 0;
  #answerMs: number | null = null;
  #isUpgraded = false;
  #isAfterUpgradeDone = false;
  #fault: string | null = null;
  #isLeaving = false;
  #isOver = false;

  constructor(index: number, input: Input, to: { port: number; address: string }, onOver: OnOver) {
    this.index = index;
    this.#input = input;
    this.#onOver = onOver;
    this.#socket = connect({ host: '127.0.0.1', port: to.port, localAddress: to.address, noDelay: true });
    this.#socket.on('connect', () => this.#send());
    this.#socket.on('data', (bytes) => this.#onData(bytes));
    this.#socket.on('error', (error: NodeJS.ErrnoException) => {
      // A reset is a valid answer; a refused connection is not.
      if (error.syscall === 'connect') this.#fault = `no connection: ${error.message}`;
    });
    this.#socket.on('close', () => this.#close());
  }

  /** @param waitMs how long to wait for an answer */
  sweep(nowMs: number, waitMs: number): void {
    const silentMs = nowMs - this.#heardMs;
    const { ending } = this.#input;
    if (ending === 'linger') {
      // WebSockets and connections of Wyoming may be silent for a minute; anything else may not.
      const mayRest = this.#isUpgraded || this.#input.dialect === 'wyoming';
      if (mayRest && silentMs > waitMs * patience) this.#leave(null);
      else if (silentMs > lingerMsMax) this.#leave('the service keeps the connection');
    } else if (ending === 'half-close' && !this.#isWaitingForUpgrade) {
      if (silentMs > closedMsMax)
        this.#leave('the service keeps a connection that its client has half-closed');
    } else if (silentMs > waitMs * (ending === 'patient' ? patience : 1)) this.#leave(null);
  }

  get #isWaitingForUpgrade(): boolean {
    return this.#input.afterUpgrade !== null && !this.#isAfterUpgradeDone;
  }

  #send(): void {
    const { bytes, cuts } = this.#input;
    let from = 0;
    for (const cut of cuts) {
      this.#socket.write(bytes.subarray(from, cut));
      from = cut;
    }
    this.#socket.write(bytes.subarray(from));
    if (this.#input.afterUpgrade === null) this.#end();
  }

  #end(): void {
    if (this.#input.ending === 'half-close') this.#socket.end();
    else if (this.#input.ending === 'reset') setImmediate(() => this.#leave(null));
  }

  #onData(bytes: Buffer): void {
    this.#heardMs = performance.now();
    this.#answerMs ??= this.#heardMs - this.#startMs;
    this.#heardBytes += bytes.length;
    if (this.#heardBytes > lookedBytesMax) {
      // It speaks; the rest of a long answer would only cost CPU.
      if (this.#input.ending !== 'half-close') this.#leave(null);
      return;
    }
    const text = bytes.toString('latin1');
    if (this.#isUpgraded) {
      this.#onFrames(text);
      return;
    }
    for (const [, status = ''] of text.matchAll(statusLine)) {
      this.#answers.push(status);
      if (status === '500') this.#fault = 'answered 500';
    }
    if (this.#answers.length === 0) return;
    this.#isUpgraded = this.#answers.at(-1) === '101';
    const { afterUpgrade } = this.#input;
    if (afterUpgrade === null || this.#isAfterUpgradeDone) return;
    this.#isAfterUpgradeDone = true;
    if (this.#isUpgraded) this.#socket.write(afterUpgrade);
    this.#end();
  }

  #onFrames(text: string): void {
    for (const kind of frameKinds) if (text.includes(`"${kind}"`)) this.#answers.push(kind);
  }

  #leave(fault: string | null): void {
    if (this.#isLeaving) return;
    this.#isLeaving = true;
    this.#fault ??= fault;
    this.#socket.resetAndDestroy();
  }

  #close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const seen = this.#answers.length === 0 ? ['none'] : [...new Set(this.#answers)];
    this.#onOver(seen, this.#fault, this.#answerMs);
  }
}
