/**
 * Threads that throw, exit, exhaust their heaps and hang, under load: one at a time, the next when the service is whole
 * again. Neighbours must not notice the end of a synthesis thread. The end of an actor thread ends the contexts on it, and
 * their clients must see that.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../../src/limits.js';
import { dialectEndpoints, EndpointClient, endpointsOf, type Endpoint } from '../../rig/endpoints.js';
import { freeDialectPorts, type Service } from '../../rig/service.js';
import { Tally } from '../../rig/tally.js';
import { scenarioOf, type Fault } from '../beside.js';
import { comesTrue } from '../checks.js';
import { unmet } from '../scenario.js';
import { actorFaults, breaking, synthesisFaults, type ThreadFault } from './faults.js';

/** A heap of half a gigabyte takes seconds to fill. */
const heapShare = 0.2;
/** Each hangs until the watchdog acts. */
const hangShare = 0.03;
/** A context on a thread that hangs waits for the watchdog, and then for another thread. */
const hangLateMsMax = limits.threadHangMsMax + 2 * limits.watchdogBeatMs + 10_000;
/** A thread that fills its heap does nothing else, and its contexts wait. */
const heapLateMsMax = 30_000;
const wholeMsMax = 30_000;
const endMsMax = 60_000;

const injectedBy: Readonly<Record<ThreadFault, string>> = {
  throw: 'an exception in a step of the engine',
  exit: 'process.exit in a step of the engine',
  heap: 'a synthesis thread’s heap filled in a step of the engine',
  spin: 'a step of the engine that loops in JavaScript for ever',
  'actor-throw': 'an exception that nothing catches in an actor thread',
  'actor-exit': 'process.exit in an actor thread',
  'actor-heap': 'an actor thread’s heap filled',
  'actor-spin': 'an actor thread that loops for ever',
};

/** How the answer to a client ended. */
export const endOf = async (client: EndpointClient): Promise<string> => {
  const end = await Promise.race([client.ended(), sleep(endMsMax, 'no end', { ref: false })]);
  client.leave();
  return end === 'cut' && client.heardMs === 0 ? 'no answer' : end;
};

const format = { encoding: 'pcm', sampleRateHz: 24_000 } as const;
type Through = 'dialects' | 'public port';

/** The endpoints of all dialects, or that of the public port for streams. */
export const endpointsFor = async (
  service: Service,
  text: string,
  through: Through = 'dialects',
): Promise<readonly Endpoint[]> => {
  const { dialectPorts, port } = service;
  const [key = ''] = await service.makeKeys(1);
  const parts = { port, dialectPorts, key, voice: 'wren', text, format };
  return through === 'dialects' ? dialectEndpoints(parts) : [endpointsOf(parts).requests[0]];
};

/** @returns endpoints that do not speak to their end, in words */
export const silentOf = async (service: Service, through?: Through): Promise<string[]> => {
  const silent: string[] = [];
  for (const endpoint of await endpointsFor(service, 'Still here.', through))
    if ((await endOf(new EndpointClient(endpoint))) !== 'whole') silent.push(`${endpoint.name} is silent`);
  return silent;
};

const restartsOf = async (service: Service): Promise<number> => {
  const { actor, synthesis } = (await service.status()).threadRestarts;
  return actor + synthesis;
};

const threadFault = (kind: ThreadFault, through: Through): Fault => {
  const [fillsHeap, hangs] = [kind.includes('heap'), kind.includes('spin')];
  return {
    fault: `thread: ${kind}${through === 'dialects' ? ', through each dialect' : ''}`,
    injected: injectedBy[kind],
    logsErrors: true,
    neighbours: {
      mayFail: kind.startsWith('actor-'),
      ...(fillsHeap && { lateMsMax: heapLateMsMax }),
      ...(hangs && { lateMsMax: hangLateMsMax }),
      ...(through === 'dialects' && { httpClients: 4, useDialects: true }),
    },
    async inject({ count, progress, service }) {
      const endpoints = await endpointsFor(service, breaking(kind), through);
      const share = fillsHeap ? heapShare : hangs ? hangShare : 1;
      const times = Math.ceil(count * share) * endpoints.length;
      const restartsBefore = await restartsOf(service);
      const ends = new Tally();
      let slowestMs = 0;
      for (let i = 0; i < times; i++) {
        progress(`${i} of ${times}, ${ends.toString()}`);
        ends.add(await endOf(new EndpointClient(endpoints[i % endpoints.length]!)));
        const startMs = performance.now();
        await comesTrue(async () => (await service.unreadyReasons()) === '', wholeMsMax);
        slowestMs = Math.max(slowestMs, performance.now() - startMs);
      }
      const restarts = (await restartsOf(service)) - restartsBefore;
      const conditions = {
        'every request that met the fault failed': ends.of('failed') + ends.of('cut') === times,
        'a thread was replaced each time': restarts === (kind === 'throw' ? 0 : times),
        'the service was whole again in time': slowestMs < wholeMsMax,
      };
      return {
        count: times,
        saw: `requests ended: ${ends.toString()}; ${restarts} threads replaced, whole again after at most ${Math.round(slowestMs)} ms`,
        wrong: [...unmet(conditions), ...(await silentOf(service, through))],
      };
    },
  };
};

const fragile = { entry: new URL('./fragile-service.js', import.meta.url), synthesisThreads: 2 };

/** One death for each endpoint and round. */
export const deathsThroughDialects = scenarioOf(
  { name: 'deaths', about: 'a synthesis thread ends in speech of each dialect', defaultCount: 20 },
  [threadFault('exit', 'dialects')],
  { ...fragile, env: freeDialectPorts, actorThreads: 1 },
);

export const threads = scenarioOf(
  {
    name: 'threads',
    about: 'synthesis and actor threads that throw, exit, exhaust their heaps and hang, under load',
    defaultCount: 100,
  },
  [...synthesisFaults, ...actorFaults].map((kind) => threadFault(kind, 'public port')),
  { ...fragile, actorThreads: 2 },
);
