/**
 * Threads that throw, exit, exhaust their heaps and hang, under load: one at a time, the next when the service is whole
 * again. Who listens meanwhile must not notice the end of a synthesis thread; the end of an actor thread ends what was
 * being spoken on it, and must be seen to.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../../src/limits.js';
import { ByteClient, speechRequest } from '../floods/clients.js';
import { countOne, formatCounts } from '../floods/flood.js';
import { leftoversOf } from '../leftovers.js';
import { Neighbours } from '../neighbours/neighbours.js';
import { describeNeighbours, isUndisturbed } from '../neighbours/report.js';
import type { Scenario, TortureOptions, TortureRow } from '../scenario.js';
import { TortureService } from '../service.js';
import { speakersOf } from '../speakers.js';
import { actorFaults, breaking, synthesisFaults, type ThreadFault } from './faults.js';

const fragileEntry = new URL('./fragile-service.js', import.meta.url);
/** Heaps of half a gigabyte take their time to fill. */
const heapShare = 0.2;
/** Each hangs for as long as the watchdog bears it. */
const hangShare = 0.03;
/** What waits on a thread that hangs waits until it is given up, and then for another. */
const hangLateMsMax = limits.threadHangMsMax + 2 * limits.watchdogBeatMs + 10_000;
/** All that while the thread does nothing else, and its contexts wait. */
const heapLateMsMax = 30_000;
const wholeMsMax = 30_000;
const victimMsMax = 30_000;
const settleMs = 500;

const isActorFault = (fault: ThreadFault): boolean => actorFaults.some((name) => name === fault);

const injectedBy: Readonly<Record<ThreadFault, string>> = {
  throw: 'an exception in a step of the engine',
  exit: 'process.exit in a step of the engine',
  heap: 'a synthesis thread’s heap filled in a step of the engine',
  spin: 'a step of the engine that spins in JavaScript for ever',
  'actor-throw': 'an exception that nothing catches in an actor thread',
  'actor-exit': 'process.exit in an actor thread',
  'actor-heap': 'an actor thread’s heap filled',
  'actor-spin': 'an actor thread that spins for ever',
};

const timesOf = (fault: ThreadFault, count: number): number => {
  if (fault.includes('heap')) return Math.ceil(count * heapShare);
  return fault.includes('spin') ? Math.ceil(count * hangShare) : count;
};

const lateMsMaxOf = (fault: ThreadFault): number | undefined => {
  if (fault.includes('heap')) return heapLateMsMax;
  return fault.includes('spin') ? hangLateMsMax : undefined;
};

/** @returns how its answer ended: `500`, `cut`, or what must not be */
const fell = async (port: number, key: string, voice: string, fault: ThreadFault): Promise<string> => {
  const client = new ByteClient(port);
  client.socket.write(speechRequest(key, voice, breaking(fault), '/v1/tts/stream', true));
  const endMs = performance.now() + victimMsMax;
  while (!client.isClosed && !client.isWhole && performance.now() < endMs) {
    if (client.statuses[0] === '500') break;
    await sleep(5);
  }
  const status = client.statuses[0] ?? 'no answer';
  const end = client.isWhole ? 'whole' : client.isClosed ? 'cut' : 'still open';
  client.reset();
  return status === '200' ? end : status;
};

/** @returns milliseconds until the service says that its threads are whole */
const wholeAgain = async (port: number): Promise<number> => {
  const startMs = performance.now();
  while (performance.now() - startMs < wholeMsMax) {
    const response = await fetch(`http://127.0.0.1:${String(port)}/readyz`);
    await response.arrayBuffer();
    if (response.status === 200) break;
    await sleep(10);
  }
  return performance.now() - startMs;
};

const torture = async (
  service: TortureService,
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
    const ends = new Map<string, number>();
    let wholeMsSum = 0;
    let slowestMs = 0;
    for (let i = 0; i < times; i++) {
      progress(`${fault}: ${String(i)} of ${String(times)}, ${formatCounts(ends)}`);
      countOne(ends, await fell(service.port, key, voice, fault));
      const wholeMs = await wholeAgain(service.port);
      wholeMsSum += wholeMs;
      slowestMs = Math.max(slowestMs, wholeMs);
    }
    const report = await neighbours.end();
    const left = await leftoversOf(service, filesBefore, [key], voice);
    const died = deaths() - deathsBefore;
    const outcome = [
      `each hit request failed (${formatCounts(ends)})`,
      `${String(died)} threads ended`,
      `whole again after ${String(Math.round(wholeMsSum / times))} ms, at most ${String(Math.round(slowestMs))}`,
      left.length === 0 ? 'nothing left over' : `LEFT: ${left.join('; ')}`,
      describeNeighbours(report, lateMsMaxOf(fault)),
    ];
    const failed = (ends.get('500') ?? 0) + (ends.get('cut') ?? 0);
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
  const service = await TortureService.start({
    entry: fragileEntry,
    env: { SYNTHESIS_THREADS: '2', ACTOR_THREADS: '2' },
    onLine: (line) => {
      if (/"msg":"(?:synthesis thread gone|actor thread gone|a synthesis thread hangs)/.test(line)) deaths++;
    },
  });
  try {
    const voice = (await speakersOf(service))[0]!;
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
