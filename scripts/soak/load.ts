/** The load of a soak, a process of its own: all clients, driven by one timer, and a report every second. */
import { setTimeout as sleep } from 'node:timers/promises';
import { sendEvent, serveLoad, type LoadProcess } from '../rig/load-process.js';
import { LoopClock } from '../rig/loop-clock.js';
import type { ClientParts, SoakClient } from './client.js';
import { ElevenLabsClient } from './elevenlabs-client.js';
import { HttpClient } from './http-client.js';
import { IdleSockets } from './idle-sockets.js';
import type { Charges, Counts, LoadEvent, Quantiles, Target } from './measures.js';
import { Durations, Meter } from './meter.js';
import { dialectClientsOf, keyOfClient, keyOfHttpClient, type KeyRing } from './population.js';
import { SocketClient } from './socket-client.js';
import { WyomingClient } from './wyoming-client.js';

/** The resolution of sending words and of reading at playback speed. */
const tickMs = 20;
const reportMs = 1_000;
const reportsPerStep = 5;
/** Clients begin one after the other: a soak does not test how many can begin at once. */
const spreadMsEach = 200;
const spreadMsMax = 10_000;
/** For what is still spoken when all clients stop. */
const stopMsMax = 90_000;

type Allowances = Pick<ClientParts, 'mayRefuse' | 'mayFail' | 'answerMsMax' | 'drainMs'>;

interface LoadSettings extends Partial<Allowances> {
  readonly target: Target;
  readonly seed: number;
  readonly idleSockets: number;
  readonly httpClients: number;
}

const usual: Allowances = { mayRefuse: false, mayFail: false, answerMsMax: 15_000, drainMs: null };

interface Population {
  /** Clients that stream over WebSockets, from now on. */
  readonly contexts: number;
  readonly keys: KeyRing;
}

interface LoadResult {
  readonly firstAudioMs: Quantiles;
  readonly charges: Charges;
  readonly counts: Readonly<Record<keyof Counts, number>>;
}

/** How long so many clients take to begin. */
const spreadMsOf = (clients: number): number => Math.min(spreadMsMax, clients * spreadMsEach);

const report = (event: LoadEvent): void => sendEvent(event);

class Load {
  readonly #settings: LoadSettings;
  readonly #meter: Meter;
  readonly #clock: LoopClock;
  readonly #loopLate = new Durations();
  readonly #idle = new IdleSockets();
  /** Over HTTP, and of the dialects. */
  readonly #others: SoakClient[] = [];
  #clients: SocketClient[] = [];
  #leaving: SocketClient[] = [];
  #made = 0;
  #lastTickMs: number;
  #nextReportMs: number;
  #reports = 0;
  readonly #timer: NodeJS.Timeout;

  constructor(settings: LoadSettings) {
    this.#settings = settings;
    const nowMs = performance.now();
    this.#meter = new Meter(nowMs, (fault) => report({ type: 'fault', ...fault }));
    this.#clock = new LoopClock(tickMs, nowMs);
    this.#lastTickMs = nowMs;
    this.#nextReportMs = nowMs + reportMs;
    this.#timer = setInterval(() => this.#tick(), tickMs);
  }

  /** Resolves when the last client has begun. */
  async populate({ contexts, keys }: Population): Promise<void> {
    const { httpClients, idleSockets } = this.#settings;
    const shared = { ...usual, ...this.#settings, clock: this.#clock, meter: this.#meter };
    if (this.#made === 0 && this.#others.length === 0) {
      await this.#idle.open({ ...shared, key: keys.idle }, idleSockets);
      this.#others.push(...this.#makeOthers(httpClients, keys, shared));
    }
    for (const client of this.#clients.splice(contexts)) {
      client.stop();
      this.#leaving.push(client);
    }
    const nowMs = performance.now();
    const more = Math.max(0, contexts - this.#clients.length);
    const spreadMs = spreadMsOf(more);
    // No number is used twice: a client that left may still speak with its key.
    for (let i = 0; i < more; i++) {
      const client = this.#made++;
      const key = keyOfClient(keys, client);
      const beginMs = nowMs + (i / more) * spreadMs;
      this.#clients.push(new SocketClient({ ...shared, client, key, beginMs }));
    }
    await sleep(spreadMs);
  }

  #makeOthers(httpClients: number, keys: KeyRing, shared: Omit<ClientParts, 'client' | 'key' | 'beginMs'>) {
    const { elevenlabs, openai, wyoming } = shared.target.dialectPorts;
    const counts = dialectClientsOf(httpClients);
    const made: SoakClient[] = [];
    const add = (count: number, make: (parts: ClientParts) => SoakClient): void => {
      for (let i = 0; i < count; i++) {
        const client = made.length;
        const key = keyOfHttpClient(keys, client);
        made.push(make({ ...shared, client, key, beginMs: performance.now() + client * spreadMsEach }));
      }
    };
    add(httpClients, (parts) => new HttpClient({ ...parts, openAiPort: null }));
    if (elevenlabs !== undefined)
      add(counts.elevenlabs, (parts) => new ElevenLabsClient({ ...parts, port: elevenlabs }));
    if (openai !== undefined) add(counts.openai, (parts) => new HttpClient({ ...parts, openAiPort: openai }));
    if (wyoming !== undefined) add(counts.wyoming, (parts) => new WyomingClient({ ...parts, port: wyoming }));
    return made;
  }

  reset(): void {
    this.#meter.reset();
  }

  set isDisturbed(isDisturbed: boolean) {
    this.#meter.isDisturbed = isDisturbed;
  }

  async rest(): Promise<void> {
    const all = [...this.#clients, ...this.#leaving, ...this.#others];
    for (const client of all) client.stop();
    const endMs = performance.now() + stopMsMax;
    const isOver = () => all.every(({ isGone }) => isGone);
    while (performance.now() < endMs && !isOver()) await sleep(tickMs);
    if (!isOver()) this.#meter.fault('answers', 'load', 'some clients did not end in time');
  }

  /** Resolves when the last client has begun. */
  async resume(): Promise<void> {
    const nowMs = performance.now();
    const all = [...this.#clients, ...this.#others];
    const spreadMs = spreadMsOf(all.length);
    for (const [i, client] of all.entries()) client.resume(nowMs + (i / all.length) * spreadMs);
    await sleep(spreadMs);
  }

  async stop(): Promise<LoadResult> {
    await this.rest();
    this.#idle.close();
    clearInterval(this.#timer);
    this.#report();
    const { charges, counts, firstAudio } = this.#meter;
    return { firstAudioMs: firstAudio.quantiles(), charges, counts };
  }

  #tick(): void {
    const nowMs = performance.now();
    this.#loopLate.record(Math.max(0, nowMs - this.#lastTickMs - tickMs));
    this.#lastTickMs = nowMs;
    this.#clock.tick(nowMs);
    for (const client of this.#clients) client.tick(nowMs);
    for (const client of this.#leaving) client.tick(nowMs);
    if (this.#leaving.some(({ isGone }) => isGone))
      this.#leaving = this.#leaving.filter(({ isGone }) => !isGone);
    for (const client of this.#others) client.tick(nowMs);
    this.#idle.tick(nowMs);
    if (nowMs < this.#nextReportMs) return;
    this.#nextReportMs = nowMs + reportMs;
    this.#report();
  }

  #report(): void {
    const meter = this.#meter;
    const endsStep = ++this.#reports % reportsPerStep === 0;
    const { user, system } = process.cpuUsage();
    report({
      type: 'tick',
      ...meter.counts,
      faults: meter.faults,
      firstAudioMs: meter.stepFirstAudio.quantiles(),
      loopLateMs: this.#loopLate.quantiles(),
      endsStep,
      cpuMs: (user + system) / 1000,
    });
    if (!endsStep) return;
    meter.stepFirstAudio.reset();
    this.#loopLate.reset();
  }
}

let load: Load | null = null;
const begun = (): Load => {
  if (load === null) throw new Error('the load has not begun');
  return load;
};

const calls = {
  begin: (settings: LoadSettings): void => {
    load = new Load(settings);
  },
  /** Resolves when its sockets are open and all clients have begun. */
  populate: (population: Population) => begun().populate(population),
  /** Sets counts to zero, except those of faults. */
  reset: () => begun().reset(),
  /** Another program on the machine begins or ends to delay audio. */
  disturb: (isDisturbed: boolean): void => {
    begun().isDisturbed = isDisturbed;
  },
  /** Stops all clients; each ends what it speaks. Resolves when no client speaks. */
  rest: () => begun().rest(),
  /** Resolves when all clients have begun again, one after the other. */
  resume: () => begun().resume(),
  /** Resolves when all clients have left. */
  stop: () => begun().stop(),
};
/** The load as the soak sees it. */
export type SoakLoad = LoadProcess<typeof calls, LoadEvent>;

serveLoad(calls);
