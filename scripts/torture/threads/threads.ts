/**
 * Threads that throw, exit, exhaust their heaps and hang, under load: one at a time, the next when the service is whole
 * again. Neighbours must not notice the end of a synthesis thread. The end of an actor thread ends the contexts on it, and
 * their clients must see that.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../../src/limits.js';
import { exchange, speechRequest } from '../../rig/http.js';
import { Service } from '../../rig/service.js';
import { Tally } from '../../rig/tally.js';
import { describeLeftovers, leftoversOf } from '../checks.js';
import { describeNeighbours, isUndisturbed, Neighbours } from '../neighbours/neighbours.js';
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
const victimMsMax = 30_000;
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

/** @returns how the answer to a breaking text ended: `500`, `cut`, or anything else, which is wrong */
const endOf = async ({ port }: Service, key: string, voice: string, fault: ThreadFault): Promise<string> => {
  const request = speechRequest({ key, voice, text: breaking(fault), timestamps: true });
  const { isWhole, status } = await exchange(port, request, { signal: AbortSignal.timeout(victimMsMax) });
  if (status !== 200) return status === 0 ? 'no answer' : String(status);
  return isWhole ? 'whole' : 'cut';
};

/** @returns milliseconds until the service reports that its threads are whole */
const wholeAgain = async (service: Service): Promise<number> => {
  const startMs = performance.now();
  while (performance.now() - startMs < wholeMsMax && (await service.unreadyReasons()) !== '') await sleep(10);
  return performance.now() - startMs;
};

const torture = async (
  service: Service,
  fault: ThreadFault,
  voice: string,
  times: number,
  { progress, seed }: TortureOptions,
  deaths: () => number,
): Promise<TortureRow> => {
  const [key = ''] = await service.makeKeys(1);
  const filesBefore = service.openFiles;
  const deathsBefore = deaths();
  const neighbours = await Neighbours.start(service, seed, isActorFault(fault));
  try {
    const ends = new Tally();
    let wholeMsSum = 0;
    let slowestMs = 0;
    for (let i = 0; i < times; i++) {
      progress(`${fault}: ${i} of ${times}, ${ends.toString()}`);
      ends.add(await endOf(service, key, voice, fault));
      const wholeMs = await wholeAgain(service);
      wholeMsSum += wholeMs;
      slowestMs = Math.max(slowestMs, wholeMs);
    }
    const report = await neighbours.end();
    const left = await leftoversOf(service, filesBefore, [key]);
    const died = deaths() - deathsBefore;
    const outcome = [
      `every request that met the fault failed (${ends.toString()})`,
      `${died} threads ended`,
      `whole again after ${Math.round(wholeMsSum / times)} ms, at most ${Math.round(slowestMs)}`,
      describeLeftovers(left),
      describeNeighbours(report, lateMsMaxOf(fault)),
    ];
    const failed = ends.of('500') + ends.of('cut');
    const held =
      failed === times &&
      died === (fault === 'throw' ? 0 : times) &&
      slowestMs < wholeMsMax &&
      left.length === 0 &&
      isUndisturbed(report, lateMsMaxOf(fault));
    return {
      fault: `thread: ${fault}`,
      injected: injectedBy[fault],
      count: times,
      outcome: outcome.join('; '),
      held,
    };
  } finally {
    neighbours.close();
  }
};

const run = async (options: TortureOptions): Promise<readonly TortureRow[]> => {
  let deaths = 0;
  const service = await Service.start({
    entry: fragileEntry,
    synthesisThreads: 2,
    actorThreads: 2,
    onLine: (line) => {
      if (/"msg":"(?:(?:synthesis|actor) thread ended; |a synthesis thread hangs)/.test(line)) deaths++;
    },
  });
  try {
    const voice = (await service.voices())[0]!;
    await sleep(settleMs);
    const rows: TortureRow[] = [];
    for (const fault of [...synthesisFaults, ...actorFaults]) {
      rows.push(await torture(service, fault, voice, timesOf(fault, options.count), options, () => deaths));
      if (service.exit !== null) throw new Error(`the service ended at ${fault}: ${service.stderr}`);
    }
    return rows;
  } finally {
    await service.stop();
  }
};

export const threads: Scenario = {
  name: 'threads',
  about: 'synthesis and actor threads that throw, exit, exhaust their heaps and hang, under load',
  defaultCount: 100,
  run,
};
