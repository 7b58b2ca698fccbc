/**
 * Neighbours: clients of a soak, in a process of their own, that have nothing to do with the fault. Every frame and record that
 * they receive is checked, and the time that they wait.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { exchange } from '../rig/http.js';
import { LoadProcess } from '../rig/load-process.js';
import type { Service } from '../rig/service.js';
import type { SoakLoad } from '../soak/load.js';
import { keysNeeded, otherKeysNeeded } from '../soak/population.js';
import { ms } from './checks.js';
import { unmet } from './scenario.js';

const loadEntry = new URL('../soak/load.js', import.meta.url);
const contexts = 2;
const probeEveryMs = 200;
/** A fault may take less time than a reply. */
const heardMsMax = 20_000;
/** Four times as long as a soak waits: a fault takes the cores, and whole files wait for listeners then. */
const answerMsMax = 60_000;

/**
 * Far above what a loaded machine needs, far below what a person calls broken: the torture and the service share the
 * cores, and the fault to find is a service that hangs.
 */
const usualLateMsMax = 10_000;

export interface NeighbourOptions {
  /** Besides two over WebSockets; by default two. */
  readonly httpClients?: number;
  /** Some more use the dialects of the service. */
  readonly useDialects?: boolean;
  /** An utterance may fail if its client sees that. */
  readonly mayFail?: boolean;
  /** What the kind of fault allows. */
  readonly lateMsMax?: number;
}

/** What they heard, and what was wrong with it. */
export interface NeighboursReport {
  readonly saw: string;
  readonly wrong: readonly string[];
}

export class Neighbours {
  readonly #load: SoakLoad;
  readonly #port: number;
  readonly #lateMsMax: number;
  readonly #faults: string[] = [];
  readonly #probing: Promise<void>;
  #heard = 0;
  #probes = 0;
  #probeMsMax = 0;
  #isOver = false;

  private constructor(port: number, lateMsMax: number) {
    this.#port = port;
    this.#lateMsMax = lateMsMax;
    this.#load = new LoadProcess(loadEntry, (event) => {
      if (event.type === 'tick') this.#heard = event.heard;
      // The scenario takes the cores that they need.
      else if (event.kind !== 'underruns') this.#faults.push(`${event.where}: ${event.what}`);
    });
    this.#probing = this.#probe();
  }

  /** Resolves when they listen, with keys of their own. */
  static async start(
    service: Service,
    seed: number,
    {
      httpClients = 2,
      useDialects = false,
      mayFail = false,
      lateMsMax = usualLateMsMax,
    }: NeighbourOptions = {},
  ): Promise<Neighbours> {
    const voices = await service.voices();
    const [idle = '', ...http] = await service.makeKeys(1 + otherKeysNeeded(httpClients));
    const sockets = await service.makeKeys(keysNeeded(contexts));
    const { port } = service;
    const dialectPorts = useDialects ? service.dialectPorts : {};
    const neighbours = new Neighbours(port, lateMsMax);
    try {
      await neighbours.#load.call('populate', {
        target: { host: '127.0.0.1', port, dialectPorts, voices },
        keys: { sockets, http, idle, isShared: false },
        ...{ seed, contexts, idleSockets: 0, httpClients, mayFail, answerMsMax },
      });
      return neighbours;
    } catch (error) {
      neighbours.close();
      throw error;
    }
  }

  /** They hear everything that was asked for to its end. */
  async end(): Promise<NeighboursReport> {
    const endMs = performance.now() + heardMsMax;
    while (performance.now() < endMs && this.#heard === 0) await sleep(probeEveryMs);
    const { counts } = await this.#load.call('stop');
    const { audioMs, dryMsMax, failures, firstAudioMs, heard } = counts;
    this.close();
    await this.#probing;
    const lateMs = Math.max(firstAudioMs.max, dryMsMax, this.#probeMsMax);
    const words = [
      `neighbours: ${heard} replies (${Math.round(audioMs / 1000)} s), ${failures} failures that they saw`,
      `first audio at most ${ms(firstAudioMs.max)}, dry ${ms(dryMsMax)}`,
      `${this.#probes} health probes, slowest ${ms(this.#probeMsMax)}`,
    ];
    const conditions = {
      'neighbours heard replies': heard > 0,
      [`none of them waited for ${ms(this.#lateMsMax)}`]: lateMs < this.#lateMsMax,
    };
    return { saw: words.join(', '), wrong: [...this.#faults, ...unmet(conditions)] };
  }

  /** Idempotent. */
  close(): void {
    this.#isOver = true;
    this.#load.close();
  }

  /** On a new connection each time: whether the service still accepts connections is half of the question. */
  async #probe(): Promise<void> {
    for (;;) {
      const askedMs = performance.now();
      const signal = AbortSignal.timeout(2 * this.#lateMsMax);
      const { error, status } = await exchange(this.#port, { path: '/healthz' }, { signal });
      if (this.#isOver) return;
      if (status !== 200) this.#faults.push(`health probe: ${error?.message ?? status}`);
      this.#probeMsMax = Math.max(this.#probeMsMax, performance.now() - askedMs);
      this.#probes++;
      await sleep(probeEveryMs);
    }
  }
}
