/** The load of a soak, a process of its own: all clients, driven by one timer, and a report every five seconds. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Changes } from '../rig/changes.js';
import { sendEvent, serveLoad, type LoadProcess } from '../rig/load-process.js';
import { LoopClock } from '../rig/loop-clock.js';
import type { ClientParts, SoakClient } from './client.js';
import { ElevenLabsClient, WyomingClient } from './dialect-clients.js';
import { HttpClient } from './http-client.js';
import { openIdleSockets } from './idle-sockets.js';
import type { LoadEvent, LoadTick, Target } from './measures.js';
import { Durations, Meter } from './meter.js';
import { dialectClientsOf, keyOfClient, keyOfHttpClient, type KeyRing } from './population.js';
import { SocketClient } from './socket-client.js';

const tickMs = 20;
/** The steps of the time series. */
const reportMs = 5_000;
/** Clients begin one after the other: a soak does not test how many can begin at once. */
const spreadMsEach = 200;
const spreadMsMax = 10_000;
/** For what is still spoken when all clients stop. */
const stopMsMax = 90_000;

type Allowances = Pick<ClientParts, 'mayRefuse' | 'mayFail' | 'answerMsMax' | 'drainMs'>;

const usual: Allowances = { mayRefuse: false, mayFail: false, answerMsMax: 15_000, drainMs: null };

interface Population extends Partial<Allowances> {
  readonly target: Target;
  readonly seed: number;
  readonly idleSockets: number;
  readonly httpClients: number;
  /** Clients that stream over WebSockets, from now on. */
  readonly contexts: number;
  readonly keys: KeyRing;
}

const beganMs = performance.now();
const clock = new LoopClock(tickMs, beganMs);
const meter = new Meter(beganMs, clock, (fault) =>
  sendEvent({ type: 'fault', ...fault } satisfies LoadEvent),
);
const ticks = new Changes();
const loopLate = new Durations();
/** Over HTTP, and of the dialects. */
const others: SoakClient[] = [];
let clients: SocketClient[] = [];
/** They may still speak. */
let leaving: SocketClient[] = [];
let made = 0;
let closeIdle: (() => void) | null = null;

const look = (): LoadTick => {
  const { counts, faults, firstAudioMs } = meter;
  const { user, system } = process.cpuUsage();
  return {
    ...{ ...counts, faults, firstAudioMs },
    loopLateMs: loopLate.quantiles(),
    cpuMs: (user + system) / 1000,
  };
};

let lastTickMs = beganMs;
let nextReportMs = beganMs + reportMs;
const timer = setInterval(() => {
  const nowMs = performance.now();
  loopLate.record(Math.max(0, nowMs - lastTickMs - tickMs));
  lastTickMs = nowMs;
  clock.tick(nowMs);
  ticks.notify();
  if (nowMs < nextReportMs) return;
  nextReportMs = nowMs + reportMs;
  sendEvent({ type: 'tick', ...look() } satisfies LoadEvent);
}, tickMs);

/** Resolves when the last of them has begun. */
const run = async (begun: readonly SoakClient[]): Promise<void> => {
  const spreadMs = Math.min(spreadMsMax, begun.length * spreadMsEach);
  for (const [i, client] of begun.entries()) void client.run((i / begun.length) * spreadMs);
  await sleep(spreadMs);
};

const makeOthers = (
  httpClients: number,
  keys: KeyRing,
  shared: Omit<ClientParts, 'client' | 'key'>,
): void => {
  const { elevenlabs, openai, wyoming } = shared.target.dialectPorts;
  const counts = dialectClientsOf(httpClients);
  const add = (count: number, make: (parts: ClientParts) => SoakClient): void => {
    for (let i = 0; i < count; i++) {
      const client = others.length;
      others.push(make({ ...shared, client, key: keyOfHttpClient(keys, client) }));
      void others.at(-1)!.run(client * spreadMsEach);
    }
  };
  add(httpClients, (parts) => new HttpClient({ ...parts, openAiPort: null }));
  if (elevenlabs !== undefined)
    add(counts.elevenlabs, (parts) => new ElevenLabsClient({ ...parts, port: elevenlabs }));
  if (openai !== undefined) add(counts.openai, (parts) => new HttpClient({ ...parts, openAiPort: openai }));
  if (wyoming !== undefined) add(counts.wyoming, (parts) => new WyomingClient({ ...parts, port: wyoming }));
};

const calls = {
  /** Resolves when its sockets are open and all clients have begun. Only the number of contexts may change later. */
  populate: async ({ contexts, keys, idleSockets, httpClients, ...settings }: Population): Promise<void> => {
    const shared = { ...usual, ...settings, meter, ticks };
    if (closeIdle === null) {
      closeIdle = await openIdleSockets({ ...shared, key: keys.idle }, idleSockets);
      makeOthers(httpClients, keys, shared);
    }
    const surplus = clients.splice(contexts);
    for (const client of surplus) client.stop();
    leaving = [...leaving, ...surplus].filter(({ isGone }) => !isGone);
    const more: SocketClient[] = [];
    // No number is used twice: a client that left may still speak with its key.
    for (; clients.length + more.length < contexts; made++)
      more.push(new SocketClient({ ...shared, client: made, key: keyOfClient(keys, made) }));
    clients = [...clients, ...more];
    await run(more);
  },
  /** Sets counts to zero, except those of faults. */
  reset: (): void => {
    meter.reset();
    loopLate.reset();
  },
  /** What it counted since the last reset. */
  look,
  /** Another program on the machine begins or ends to delay audio. */
  disturb: (isDisturbed: boolean): void => {
    meter.isDisturbed = isDisturbed;
  },
  /** Stops all clients; each ends what it speaks. Resolves when no client speaks. */
  rest: async (): Promise<void> => {
    const all = [...clients, ...leaving, ...others];
    for (const client of all) client.stop();
    const endMs = performance.now() + stopMsMax;
    while (!all.every(({ isGone }) => isGone) && performance.now() < endMs) await sleep(tickMs);
    if (!all.every(({ isGone }) => isGone))
      meter.fault('answers', 'load', 'some clients did not end in time');
  },
  /** Resolves when all clients have begun again, one after the other. */
  resume: () => run([...clients, ...others]),
  /** Resolves when all clients have left. */
  stop: async () => {
    await calls.rest();
    closeIdle?.();
    clearInterval(timer);
    return { counts: look(), charges: meter.charges };
  },
};
/** The load as the soak sees it. */
export type SoakLoad = LoadProcess<typeof calls, LoadEvent>;

serveLoad(calls);
