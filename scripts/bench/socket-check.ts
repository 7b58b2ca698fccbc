/**
 * Sockets of several contexts that speak at once, each socket played at real time: what it got is heard one second a
 * second, and it is not read while it is well ahead. Every frame is checked.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServerFrame } from '../rig-old/server-frame.js';
import { CheckedContext } from '../rig-old/checked-context.js';
import type { LoadCommand, LoadResult, Target } from './protocol.js';
import { seededRandom } from '../rig-old/random.js';
import { SocketConnection } from '../rig-old/socket-connection.js';
import { encodeStart, socketPath } from '../rig-old/context-start.js';
import { sentences } from '../rig-old/texts.js';

type Command = Extract<LoadCommand, { type: 'check' }>;

const tickMs = 20;
/** Of all its contexts together: above the one the socket is not read, below the other turns begin. */
const aheadMsMax = 4_000;
const aheadMsMin = 2_000;
const turnsMax = 5;
const cancelledShare = 0.15;
/** For what is still to come when the run ends. */
const endMsMax = 30_000;
const faultsToldMax = 10;
/** Over which the sockets begin. */
const spreadMs = 5_000;

class Tally {
  frames = 0;
  turns = 0;
  contexts = 0;
  audioMs = 0;
  faultCount = 0;
  readonly faults: string[] = [];

  fault(what: string): void {
    this.faultCount++;
    if (this.faults.length < faultsToldMax) this.faults.push(what);
  }
}

class CheckedSocket {
  readonly #target: Target;
  readonly #name: string;
  readonly #tally: Tally;
  readonly #connection: SocketConnection;
  readonly #random: () => number;
  readonly #contexts = new Map<string, CheckedContext>();
  #opened = 0;
  #sentence: number;
  #endedMs = 0;
  #playingSinceMs: number | null = null;
  #isPaused = false;
  #isEnding = false;

  constructor(target: Target, key: string, index: number, tally: Tally) {
    this.#target = target;
    this.#name = String(index);
    this.#sentence = index;
    this.#random = seededRandom(index);
    this.#tally = tally;
    this.#connection = new SocketConnection(
      { port: target.port, path: socketPath, key, wantsAll: true },
      {
        onAudio: () => undefined,
        onMessage: (json) => this.#onMessage(json),
        onError: (error) => {
          tally.fault(`socket ${this.#name}: ${error.message}`);
          this.#contexts.clear();
          this.#isEnding = true;
        },
      },
    );
  }

  opened(): Promise<void> {
    return this.#connection.opened();
  }

  get isOver(): boolean {
    return this.#isEnding && this.#contexts.size === 0;
  }

  openContext(): void {
    const id = `${this.#name}.${String(this.#opened++)}`;
    const context = new CheckedContext({
      id,
      turns: 1 + Math.floor(this.#random() * turnsMax),
      isCancelled: this.#random() < cancelledShare,
      write: (frame) => this.#connection.write(frame),
      random: this.#random,
      nextText: () => sentences[this.#sentence++ % sentences.length]!,
      onOver: () => {
        this.#contexts.delete(id);
        this.#tally.turns += context.turns;
        this.#tally.audioMs += context.durationMs;
        this.#endedMs += context.durationMs;
        if (!this.#isEnding) this.openContext();
      },
      onFault: (what) => this.#tally.fault(what),
    });
    this.#contexts.set(id, context);
    this.#tally.contexts++;
    this.#connection.write(encodeStart(this.#target, id, { timestamps: true }));
  }

  tick(nowMs: number): void {
    if (this.#isEnding) return;
    const aheadMs = this.#aheadMs(nowMs);
    if (aheadMs < aheadMsMin) {
      this.#setPaused(false);
      for (const context of this.#contexts.values()) if (context.isIdle) context.speak();
    } else if (aheadMs > aheadMsMax) this.#setPaused(true);
  }

  /** What is spoken is spoken to the end, and read at once. */
  end(): void {
    this.#isEnding = true;
    this.#setPaused(false);
    for (const context of this.#contexts.values()) context.close();
  }

  close(): void {
    for (const id of this.#contexts.keys()) this.#tally.fault(`${id}: never closed`);
    this.#connection.close();
  }

  /** Milliseconds of speech that are not heard yet. */
  #aheadMs(nowMs: number): number {
    let receivedMs = this.#endedMs;
    for (const context of this.#contexts.values()) receivedMs += context.durationMs;
    if (receivedMs === 0) return 0;
    this.#playingSinceMs ??= nowMs;
    const aheadMs = receivedMs - (nowMs - this.#playingSinceMs);
    if (aheadMs >= 0) return aheadMs;
    // It ran dry: what comes next is played when it comes.
    this.#playingSinceMs = nowMs - receivedMs;
    return 0;
  }

  #setPaused(isPaused: boolean): void {
    if (this.#isPaused === isPaused) return;
    this.#isPaused = isPaused;
    if (isPaused) this.#connection.pause();
    else this.#connection.resume();
  }

  #onMessage(json: string): void {
    this.#tally.frames++;
    const frame = JSON.parse(json) as ServerFrame;
    const context = this.#contexts.get(frame.context_id ?? '');
    if (context !== undefined) context.onFrame(frame);
    else this.#tally.fault(`socket ${this.#name}: a frame of no context that is open: ${json.slice(0, 200)}`);
  }
}

export const check = async (command: Command): Promise<LoadResult> => {
  const { target, sockets: count, contextsPerSocket, durationMs } = command;
  const tally = new Tally();
  const sockets = Array.from(
    { length: count },
    (_, i) => new CheckedSocket(target, target.keys[i % target.keys.length]!, i, tally),
  );
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
  const { frames, turns, contexts, audioMs, faultCount, faults } = tally;
  return { type: 'check', frames, turns, contexts, audioMs, faultCount, faults };
};
