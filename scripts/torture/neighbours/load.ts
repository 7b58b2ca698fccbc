/** The neighbours' process: they listen from `start` to `end`. */
import { setTimeout as sleep } from 'node:timers/promises';
import { exchange } from '../../rig/http.js';
import { serveLoad, type LoadProcess } from '../../rig/load-process.js';
import { seededRandom } from '../../rig/random.js';
import { sumOf } from '../../rig/statistics.js';
import { sentences } from '../../rig/texts.js';
import { SocketListener, StreamListener } from './listeners.js';

interface NeighboursPlan {
  readonly port: number;
  readonly key: string;
  readonly voice: string;
  /** Listeners over HTTP and over WebSockets; together at most nine, the slots of a key. */
  readonly streams: number;
  readonly sockets: number;
  readonly seed: number;
  readonly toleratesFailures: boolean;
}

export interface NeighboursReport {
  /** Utterances that ended, well or not. */
  readonly utterances: number;
  /** Failures that were tolerated. */
  readonly failures: number;
  readonly audioMs: number;
  readonly firstAudioMsMax: number;
  readonly dryMsMax: number;
  /** Requests for `/healthz`, and the slowest answer. */
  readonly probes: number;
  readonly probeMsMax: number;
  readonly faultCount: number;
  /** The first of them. */
  readonly faults: readonly string[];
}

const tickMs = 20;
const probeEveryMs = 200;
/** For what is still spoken at the end. */
const endMsMax = 20_000;
const faultsKeptMax = 10;

class Listening {
  readonly #plan: NeighboursPlan;
  readonly #listeners: readonly (SocketListener | StreamListener)[];
  readonly #faults: string[] = [];
  #faultCount = 0;
  #utterances = 0;
  #failures = 0;
  #probes = 0;
  #probeMsMax = 0;
  #probedMs: number | null = null;
  #nextProbeMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(plan: NeighboursPlan) {
    this.#plan = plan;
    let sentence = plan.seed;
    const parts = (name: string) => ({
      ...plan,
      name,
      nextText: () => sentences[sentence++ % sentences.length]!,
      random,
      onUtterance: () => this.#utterances++,
      onFault: (what: string) => this.#fault(what),
      onFailure: (what: string) => {
        if (plan.toleratesFailures) this.#failures++;
        else this.#fault(what);
      },
    });
    const random = seededRandom(plan.seed);
    this.#listeners = [
      ...Array.from({ length: plan.sockets }, (_, i) => new SocketListener(parts(`socket ${i}`))),
      ...Array.from({ length: plan.streams }, (_, i) => new StreamListener(parts(`stream ${i}`))),
    ];
  }

  async start(): Promise<void> {
    await Promise.all(this.#listeners.map((listener) => listener.opened()));
    this.#timer = setInterval(() => {
      const nowMs = performance.now();
      for (const listener of this.#listeners) listener.tick(nowMs);
      this.#probe(nowMs);
    }, tickMs);
  }

  async end(): Promise<NeighboursReport> {
    const listeners = this.#listeners;
    const endMs = performance.now() + endMsMax;
    // A fault may take less time than an utterance.
    while (performance.now() < endMs && this.#utterances === 0) await sleep(tickMs);
    for (const listener of listeners) listener.end();
    while (performance.now() < endMs && !listeners.every(({ isOver }) => isOver)) await sleep(tickMs);
    clearInterval(this.#timer);
    for (const listener of listeners) listener.close();
    return {
      utterances: this.#utterances,
      failures: this.#failures,
      audioMs: sumOf(listeners.map(({ playback }) => playback.audioMs)),
      firstAudioMsMax: Math.max(0, ...listeners.map(({ playback }) => playback.firstAudioMsMax)),
      dryMsMax: Math.max(0, ...listeners.map(({ playback }) => playback.dryMsMax)),
      probes: this.#probes,
      probeMsMax: this.#probeMsMax,
      faultCount: this.#faultCount,
      faults: this.#faults,
    };
  }

  /** On a new connection each time: whether the service still accepts connections is half of the question. */
  #probe(nowMs: number): void {
    if (this.#probedMs !== null) this.#probeMsMax = Math.max(this.#probeMsMax, nowMs - this.#probedMs);
    else if (nowMs >= this.#nextProbeMs) {
      this.#nextProbeMs = nowMs + probeEveryMs;
      void this.#askHealth(nowMs);
    }
  }

  async #askHealth(nowMs: number): Promise<void> {
    this.#probedMs = nowMs;
    const { error, status } = await exchange(this.#plan.port, { path: '/healthz' });
    if (error !== null) this.#fault(`health probe: ${error.message}`);
    else if (status !== 200) this.#fault(`health probe: ${status}`);
    else this.#probeMsMax = Math.max(this.#probeMsMax, performance.now() - nowMs);
    this.#probes++;
    this.#probedMs = null;
  }

  #fault(what: string): void {
    this.#faultCount++;
    if (this.#faults.length < faultsKeptMax) this.#faults.push(what);
  }
}

let listening: Listening | null = null;

const calls = {
  start: (plan: NeighboursPlan): Promise<void> => {
    listening = new Listening(plan);
    return listening.start();
  },
  end: (): Promise<NeighboursReport> => {
    if (listening === null) throw new Error('the neighbours have not started');
    return listening.end();
  },
};
export type NeighboursLoad = LoadProcess<typeof calls>;

serveLoad(calls);
