/**
 * WebSockets of several contexts that speak at once. Each socket is played at real time: its audio is heard one second a
 * second, and it is not read while it is well ahead. Every frame is checked.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { CheckedContext } from '../rig/checked-context.js';
import { Playback, ReadAhead } from '../rig/playback.js';
import { seededRandom } from '../rig/random.js';
import { SocketConnection, type ServerFrame } from '../rig/socket.js';
import { sentences } from '../rig/texts.js';
import { keyOf, type Target } from './streams.js';

const tickMs = 20;
/** Of all contexts of a socket together. */
const aheadMsMin = 2_000;
const aheadMsMax = 4_000;
const utterancesMax = 5;
const cancelledShare = 0.15;
/** For what is still spoken when the run ends. */
const endMsMax = 30_000;
const faultsKeptMax = 10;
/** Over which the sockets begin. */
const spreadMs = 5_000;

/** What the sockets received, and what was wrong with it. */
class Findings {
  frames = 0;
  utterances = 0;
  contexts = 0;
  audioMs = 0;
  faultCount = 0;
  /** The first of them. */
  readonly faults: string[] = [];

  fault(what: string): void {
    this.faultCount++;
    if (this.faults.length < faultsKeptMax) this.faults.push(what);
  }
}

class CheckedSocket {
  readonly #target: Target;
  readonly #name: string;
  readonly #findings: Findings;
  readonly #connection: SocketConnection;
  readonly #random: () => number;
  readonly #contexts = new Map<string, CheckedContext>();
  readonly #playback = new Playback();
  readonly #readAhead: ReadAhead;
  #opened = 0;
  #sentence: number;
  /** Audio of contexts that are over. */
  #endedMs = 0;
  #isEnding = false;

  constructor(target: Target, index: number, findings: Findings) {
    this.#target = target;
    this.#name = String(index);
    this.#sentence = index;
    this.#random = seededRandom(index);
    this.#findings = findings;
    this.#connection = new SocketConnection(
      { port: target.port, key: keyOf(target, index) },
      {
        onMessage: (json) => this.#onMessage(json),
        onError: (error) => {
          findings.fault(`socket ${this.#name}: ${error.message}`);
          this.#contexts.clear();
          this.#isEnding = true;
        },
      },
    );
    this.#readAhead = new ReadAhead(this.#connection, aheadMsMin, aheadMsMax);
    this.#playback.begin(performance.now());
  }

  opened(): Promise<void> {
    return this.#connection.opened();
  }

  get isOver(): boolean {
    return this.#isEnding && this.#contexts.size === 0;
  }

  openContext(): void {
    const id = `${this.#name}.${this.#opened++}`;
    const context = new CheckedContext({
      id,
      voice: this.#target.voice,
      utterances: 1 + Math.floor(this.#random() * utterancesMax),
      isCancelled: this.#random() < cancelledShare,
      write: (frame) => this.#connection.write(frame),
      random: this.#random,
      nextText: () => sentences[this.#sentence++ % sentences.length]!,
      onOver: () => {
        this.#contexts.delete(id);
        this.#findings.utterances += context.utterances;
        this.#findings.audioMs += context.durationMs;
        this.#endedMs += context.durationMs;
        if (!this.#isEnding) this.openContext();
      },
      onFault: (what) => this.#findings.fault(what),
    });
    this.#contexts.set(id, context);
    this.#findings.contexts++;
  }

  tick(nowMs: number): void {
    if (this.#isEnding) return;
    let receivedMs = this.#endedMs;
    for (const context of this.#contexts.values()) receivedMs += context.durationMs;
    this.#playback.audio(receivedMs, nowMs);
    const aheadMs = this.#playback.aheadMs(nowMs);
    this.#readAhead.update(aheadMs);
    if (aheadMs >= aheadMsMin) return;
    for (const context of this.#contexts.values()) if (context.isIdle) context.speak();
  }

  /** Begins nothing else, and reads everything at once. */
  end(): void {
    this.#isEnding = true;
    this.#readAhead.resume();
    for (const context of this.#contexts.values()) context.close();
  }

  close(): void {
    for (const id of this.#contexts.keys()) this.#findings.fault(`${id}: never closed`);
    this.#connection.close();
  }

  #onMessage(json: string): void {
    this.#findings.frames++;
    const frame = JSON.parse(json) as ServerFrame;
    const context = this.#contexts.get(frame.context_id ?? '');
    if (context !== undefined) context.onFrame(frame);
    else this.#findings.fault(`socket ${this.#name}: a frame of no open context: ${json.slice(0, 200)}`);
  }
}

export interface CheckOrder {
  readonly target: Target;
  readonly sockets: number;
  readonly contextsPerSocket: number;
  readonly durationMs: number;
}

export const checkSockets = async (order: CheckOrder): Promise<Omit<Findings, 'fault'>> => {
  const { contextsPerSocket, durationMs, sockets: count, target } = order;
  const findings = new Findings();
  const sockets = Array.from({ length: count }, (_, i) => new CheckedSocket(target, i, findings));
  await Promise.all(sockets.map((socket) => socket.opened()));
  const startedMs = performance.now();
  let started = 0;
  for (let nowMs = startedMs; nowMs - startedMs < durationMs; nowMs = performance.now()) {
    for (; started < count && (started * spreadMs) / count <= nowMs - startedMs; started++)
      for (let i = 0; i < contextsPerSocket; i++) sockets[started]!.openContext();
    for (const socket of sockets) socket.tick(nowMs);
    await sleep(tickMs);
  }
  for (const socket of sockets) socket.end();
  const endMs = performance.now() + endMsMax;
  while (performance.now() < endMs && !sockets.every(({ isOver }) => isOver)) await sleep(tickMs);
  for (const socket of sockets) socket.close();
  return findings;
};
