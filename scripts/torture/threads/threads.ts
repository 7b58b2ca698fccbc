/**
 * Threads that throw, exit, exhaust their heaps and hang, in speech through each endpoint: one at a time, the next when the service
 * is whole again. Neighbours must not notice the end of a synthesis thread. The end of an actor thread ends the contexts on it, and
 * their clients must see that.
 */
import { limits } from '../../../src/limits.js';
import { EndpointClient } from '../../rig/endpoints.js';
import { freeDialectPorts, type Service } from '../../rig/service.js';
import { Tally } from '../../rig/tally.js';
import { scenarioOf, type Fault } from '../beside.js';
import { comesTrue, endOf, endpointsFor, silentOf } from '../checks.js';
import { unmet } from '../scenario.js';
import { breaking, threadFaults, type ThreadFault } from './faults.js';

/** A heap of half a gigabyte takes seconds to fill. */
const heapShare = 0.2;
/** Each hangs until the watchdog acts. */
const hangShare = 0.03;
/** A context on a thread that hangs waits for the watchdog, and then for another thread. */
const hangLateMsMax = limits.threadHangMsMax + 2 * limits.watchdogBeatMs + 10_000;
/** A thread that fills its heap does nothing else, and its contexts wait. */
const heapLateMsMax = 30_000;
const wholeMsMax = 30_000;

/** An actor thread sees the name of a fault only in the times of words. The names of the endpoints that ask for them. */
const withTimes = /^HTTP$|times|WebSocket/;

const restartsOf = async (service: Service): Promise<number> => {
  const { actor, synthesis } = (await service.status()).threadRestarts;
  return actor + synthesis;
};

const threadFault = ([kind, injected]: readonly [ThreadFault, string]): Fault => {
  const [fillsHeap, hangs] = [kind.includes('heap'), kind.includes('spin')];
  return {
    ...{ fault: `thread: ${kind}`, injected, logsErrors: true },
    neighbours: {
      ...{ httpClients: 4, useDialects: true, mayFail: kind.startsWith('actor-') },
      ...(fillsHeap && { lateMsMax: heapLateMsMax }),
      ...(hangs && { lateMsMax: hangLateMsMax }),
    },
    async inject({ count, progress, service }) {
      const all = await endpointsFor(service, breaking(kind));
      const endpoints = kind.startsWith('actor-') ? all.filter(({ name }) => withTimes.test(name)) : all;
      const times = Math.ceil(count * (fillsHeap ? heapShare : hangs ? hangShare : 1));
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
        wrong: [...unmet(conditions), ...(await silentOf(service))],
      };
    },
  };
};

export const threads = scenarioOf(
  {
    name: 'threads',
    about:
      'synthesis and actor threads that throw, exit, exhaust their heaps and hang, in speech of each kind',
    defaultCount: 200,
  },
  Object.entries(threadFaults).map((fault) => threadFault(fault as [ThreadFault, string])),
  {
    ...{ entry: new URL('./fragile-service.js', import.meta.url), env: freeDialectPorts },
    ...{ synthesisThreads: 2, actorThreads: 2 },
  },
);
