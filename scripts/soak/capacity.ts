/**
 * The capacity of this machine for the clients of a soak: the greatest number for which no listener runs dry, p99 of first
 * audio is within 200 ms, and the machine has time left. Each trial has a load of its own, with all the other clients of the
 * soak; all trials have one service that admits everyone.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { searchCapacity, type SearchSettings } from '../rig/capacity-search.js';
import { LoadProcess } from '../rig/load-process.js';
import { describeMachine, machineBusyMs } from '../rig/machine.js';
import type { Service } from '../rig/service.js';
import type { SoakLoad } from './load.js';
import type { LoadTick, Target } from './measures.js';
import type { SoakOptions } from './options.js';
import { type Calibrated, troubleOf } from './phases.js';
import { keysNeeded, otherKeysNeeded, type KeyRing } from './population.js';
import { fetchVoices, SoakError, startService, warm } from './service-access.js';

const search: SearchSettings = {
  first: 24,
  growth: 1.6,
  refinements: 3,
  max: 2_000,
  trials: 2,
  secondThoughts: 1,
};
/** Clients begin together; after that their replies are spread. */
const settleMs = 8_000;
/** Texts differ in length: in a shorter time the load is often far from its mean. */
const lookMs = 16_000;
const firstAudioP99MsMax = 200;
/** Of all cores. By deadlines, a full machine is late only when all slack is used up, which can take longer than a look. */
const busyShareMax = 0.97;

export class CapacityTrials {
  readonly #service: Service;
  readonly #target: Target;
  readonly #keys: KeyRing;
  readonly #options: SoakOptions;

  private constructor(service: Service, target: Target, keys: KeyRing, options: SoakOptions) {
    this.#service = service;
    this.#target = target;
    this.#keys = keys;
    this.#options = options;
  }

  static async start(options: SoakOptions): Promise<CapacityTrials> {
    const service = await startService('late');
    const httpKeys = otherKeysNeeded(options.streams);
    const [idle = '', ...others] = await service.makeKeys(1 + httpKeys + keysNeeded(search.max));
    const keys = { idle, http: others.slice(0, httpKeys), sockets: others.slice(httpKeys), isShared: false };
    const voices = await fetchVoices(service.url, idle);
    await warm(service.url, idle, voices[0] ?? '');
    const target = { host: '127.0.0.1', port: service.port, voices, dialectPorts: service.dialectPorts };
    return new CapacityTrials(service, target, keys, options);
  }

  /** @returns what is wrong with so many clients; `null`: nothing */
  async trouble(contexts: number): Promise<string | null> {
    const { seed, sockets, streams } = this.#options;
    let ticks: LoadTick[] = [];
    const load: SoakLoad = new LoadProcess(new URL('./load.js', import.meta.url), (event) => {
      if (event.type === 'tick') ticks.push(event);
    });
    try {
      await load.call('begin', {
        target: this.#target,
        seed,
        idleSockets: sockets,
        httpClients: streams,
        mayRefuse: false,
        drainMs: null,
      });
      await load.call('populate', { contexts, keys: this.#keys });
      await sleep(settleMs);
      await load.call('reset');
      ticks = [];
      const busyMs = machineBusyMs();
      await sleep(lookMs);
      const busyShare = (machineBusyMs() - busyMs) / lookMs / describeMachine().cores;
      const trouble = troubleOf(ticks, firstAudioP99MsMax);
      if (trouble !== null || busyShare <= busyShareMax) return trouble;
      return `the machine is ${(busyShare * 100).toFixed(0)} % busy`;
    } finally {
      await load.kill();
    }
  }

  async close(): Promise<void> {
    await this.#service.stop();
  }
}

/** @returns the clients of the soak, by its share of capacity. @throws {SoakError} where the machine carries none */
export const clientsOf = async (
  options: SoakOptions,
  share: number,
  say: (line: string) => void,
): Promise<Calibrated> => {
  const of = (held: number, trouble: string | null): Calibrated => ({
    contexts: Math.max(1, Math.round(held * share)),
    share,
    held,
    trouble,
  });
  if (options.capacity !== null) return of(options.capacity, null);
  const trials = await CapacityTrials.start(options);
  let last: string | null = null;
  try {
    const { held } = await searchCapacity(search, async (contexts) => {
      const trouble = await trials.trouble(contexts);
      say(`${contexts} streaming clients ${trouble === null ? 'held' : `did not hold: ${trouble}`}`);
      last = trouble ?? last;
      return trouble === null;
    });
    if (held === 0) throw new SoakError('the machine does not carry a single client');
    return of(held, last);
  } finally {
    await trials.close();
  }
};
