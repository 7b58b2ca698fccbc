/**
 * Threads that throw, exit, exhaust their heaps and hang, under load: one at a time, the next when the service is whole
 * again. Neighbours must not notice the end of a synthesis thread. The end of an actor thread ends the contexts on it, and
 * their clients must see that.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../../src/limits.js';
import { dialectEndpoints, EndpointClient, endpointsOf, type Endpoint } from '../../rig/endpoints.js';
import { freeDialectPorts, Service, type ServiceOptions } from '../../rig/service.js';
import { Tally } from '../../rig/tally.js';
import { comesTrue, describeLeftovers, leftoversOf } from '../checks.js';
import { describeNeighbours, isUndisturbed, Neighbours, type NeighbourOptions } from '../neighbours.js';
import type { Scenario, TortureOptions, TortureRow } from '../scenario.js';
import { actorFaults, breaking, synthesisFaults, type ThreadFault } from './faults.js';

const fragileEntry = new URL('./fragile-service.js', import.meta.url);
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
const settleMs = 500;

const isActorFault = (fault: ThreadFault): boolean => actorFaults.some((name) => name === fault);

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

const timesOf = (fault: ThreadFault, count: number): number => {
  if (fault.includes('heap')) return Math.ceil(count * heapShare);
  return fault.includes('spin') ? Math.ceil(count * hangShare) : count;
};

const lateMsMaxOf = (fault: ThreadFault): number | undefined => {
  if (fault.includes('heap')) return heapLateMsMax;
  return fault.includes('spin') ? hangLateMsMax : undefined;
};

/** How the answer to a client ended. */
export const endOf = async (client: EndpointClient): Promise<string> => {
  const end = await Promise.race([client.ended(), sleep(endMsMax, 'no end', { ref: false })]);
  client.leave();
  return end === 'cut' && client.heardMs === 0 ? 'no answer' : end;
};

const format = { encoding: 'pcm', sampleRateHz: 24_000 } as const;

/** The endpoints of all dialects, or that of the public port for streams. */
export const endpointsFor = async (
  service: Service,
  text: string,
  of: 'dialects' | 'public port' = 'dialects',
): Promise<readonly Endpoint[]> => {
  const { dialectPorts, port } = service;
  const [key = ''] = await service.makeKeys(1);
  const parts = { port, dialectPorts, key, voice: 'wren', text, format };
  return of === 'dialects' ? dialectEndpoints(parts) : [endpointsOf(parts).requests[0]];
};

/** @returns in words, whether each endpoint speaks to its end */
export const describeSpeech = async (endpoints: readonly Endpoint[]): Promise<string> => {
  const silent: string[] = [];
  for (const endpoint of endpoints)
    if ((await endOf(new EndpointClient(endpoint))) !== 'whole') silent.push(endpoint.name);
  return silent.length === 0 ? 'all speak afterwards' : `SILENT: ${silent.join(', ')}`;
};

interface Fragile {
  readonly service: Service;
  /** Threads that ended or hung so far. */
  readonly deaths: () => number;
}

const startFragile = async (options: ServiceOptions): Promise<Fragile> => {
  let deaths = 0;
  const service = await Service.start({
    entry: fragileEntry,
    ...options,
    onLine: (line) => {
      if (/"msg":"(?:(?:synthesis|actor) thread ended; |a synthesis thread hangs)/.test(line)) deaths++;
    },
  });
  await sleep(settleMs);
  return { service, deaths: () => deaths };
};

const torture = async (
  { service, deaths }: Fragile,
  fault: ThreadFault,
  through: 'dialects' | 'public port',
  { count, progress, seed }: TortureOptions,
): Promise<TortureRow> => {
  const filesBefore = service.openFiles;
  const deathsBefore = deaths();
  const endpoints = await endpointsFor(service, breaking(fault), through);
  const times = count * endpoints.length;
  const lateMsMax = lateMsMaxOf(fault);
  const options: NeighbourOptions = {
    mayFail: isActorFault(fault),
    ...(lateMsMax !== undefined && { lateMsMax }),
    ...(through === 'dialects' && { httpClients: 4, useDialects: true }),
  };
  const neighbours = await Neighbours.start(service, seed, options);
  try {
    const ends = new Tally();
    let slowestMs = 0;
    for (let i = 0; i < times; i++) {
      progress(`${fault}: ${i} of ${times}, ${ends.toString()}`);
      ends.add(await endOf(new EndpointClient(endpoints[i % endpoints.length]!)));
      const startMs = performance.now();
      await comesTrue(async () => (await service.unreadyReasons()) === '', wholeMsMax);
      slowestMs = Math.max(slowestMs, performance.now() - startMs);
    }
    const report = await neighbours.end();
    const spoken = await describeSpeech(await endpointsFor(service, 'Still here.', through));
    const left = await leftoversOf(service, filesBefore, await service.makeKeys(1));
    const died = deaths() - deathsBefore;
    const outcome = [
      `every request that met the fault failed (${ends.toString()})`,
      `${died} threads ended, whole again after at most ${Math.round(slowestMs)} ms`,
      spoken,
      describeLeftovers(left),
      describeNeighbours(report),
    ];
    return {
      fault: `thread: ${fault}${through === 'dialects' ? ', through each dialect' : ''}`,
      injected: injectedBy[fault],
      count: times,
      outcome: outcome.join('; '),
      held:
        ends.of('failed') + ends.of('cut') === times &&
        died === (fault === 'throw' ? 0 : times) &&
        slowestMs < wholeMsMax &&
        !spoken.includes('SILENT') &&
        left.length === 0 &&
        isUndisturbed(report),
    };
  } finally {
    neighbours.close();
  }
};

const run = async (options: TortureOptions): Promise<readonly TortureRow[]> => {
  const fragile = await startFragile({ synthesisThreads: 2, actorThreads: 2 });
  const { service } = fragile;
  try {
    const rows: TortureRow[] = [];
    for (const fault of [...synthesisFaults, ...actorFaults]) {
      const count = timesOf(fault, options.count);
      rows.push(await torture(fragile, fault, 'public port', { ...options, count }));
      if (service.exit !== null) throw new Error(`the service ended at ${fault}: ${service.stderr}`);
    }
    return rows;
  } finally {
    await service.stop();
  }
};

/** One death for each endpoint and round. */
export const deathsThroughDialects = async (options: TortureOptions): Promise<TortureRow> => {
  const fragile = await startFragile({ env: freeDialectPorts, synthesisThreads: 2, actorThreads: 1 });
  try {
    return await torture(fragile, 'exit', 'dialects', options);
  } finally {
    await fragile.service.stop();
  }
};

export const threads: Scenario = {
  name: 'threads',
  about: 'synthesis and actor threads that throw, exit, exhaust their heaps and hang, under load',
  defaultCount: 100,
  run,
};
