/** Looks at the service from outside while it is loaded: how full it says it is, what it refuses, where its CPU time goes. */
import { setTimeout as sleep } from 'node:timers/promises';
import { sumOf } from '../../rig/exposition.js';
import { machineBusyMs } from '../../rig/machine.js';
import { type CpuTimes, cpuBetween, cpuTimesOf, totalCpu } from '../../rig/process-facts.js';
import { describeExit, type Service } from '../../rig/service.js';
import { mean } from '../../rig/statistics.js';
import type { Target } from '../streams.js';

/** A service and how to reach it. */
export interface Subject {
  readonly service: Service;
  readonly target: Target;
}

export interface Subjects {
  /** It refuses what it cannot carry. */
  readonly refusing: Subject;
  /** It admits everyone. */
  readonly late: Subject;
  /** Runs `use` with a new service that refuses, which has only just become ready, and ends it. */
  readonly withFresh: <T>(use: (subject: Subject) => Promise<T>) => Promise<T>;
}

const lookMs = 2_000;
const idleMsMax = 15_000;
const idleLookMs = 50;

/** One look; rates are since the look before. NaN: the system does not report it. */
export interface Look {
  readonly atMs: number;
  /** 1 is full; `null`, as the next: the service does not report it. */
  readonly capacityRatio: number | null;
  readonly refusedByOverload: number | null;
  /** In cores. */
  readonly cpu: CpuTimes;
  /** Cores that everything on the machine used. */
  readonly machineCores: number;
}

/** Waits until nothing is spoken any more. @throws when that does not come, or the service has ended */
export const awaitIdle = async (service: Service): Promise<void> => {
  const endMs = performance.now() + idleMsMax;
  for (;;) {
    if (service.exit !== null) throw new Error(`the service ended with ${describeExit(service.exit)}`);
    const samples = await service.metrics();
    const busy = (sumOf(samples, 'syrinx_streams') ?? 0) + (sumOf(samples, 'syrinx_contexts') ?? 0);
    if (busy === 0) return;
    if (performance.now() > endMs)
      throw new Error(`${busy} streams and contexts are left ${idleMsMax} ms after a load`);
    await sleep(idleLookMs);
  }
};

/** Runs `work`, and looks at the service meanwhile. */
export const watched = async <T>(
  service: Service,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly looks: readonly Look[] }> => {
  const looks: Look[] = [];
  const startedMs = performance.now();
  const read = () => ({ atMs: performance.now(), cpu: cpuTimesOf(service.pid), busyMs: machineBusyMs() });
  let before = read();
  const look = async (): Promise<void> => {
    const samples = await service.metrics();
    const after = read();
    const elapsedMs = Math.max(1, after.atMs - before.atMs);
    looks.push({
      atMs: Math.round(after.atMs - startedMs),
      capacityRatio: sumOf(samples, 'syrinx_capacity_ratio'),
      refusedByOverload: sumOf(samples, 'syrinx_refusals_total', { reason: 'overloaded' }),
      cpu: cpuBetween(before.cpu, after.cpu, elapsedMs),
      machineCores: (after.busyMs - before.busyMs) / elapsedMs,
    });
    before = after;
  };
  const timer = setInterval(() => void look(), lookMs);
  try {
    const result = await work();
    clearInterval(timer);
    // Work may be shorter than the time between two looks.
    await look();
    return { result, looks };
  } finally {
    clearInterval(timer);
  }
};

/** Mean cores that other programs than the service and its client used; `null` where the system does not report it. */
export const otherCores = (looks: readonly Look[], clientCores: number): number | null => {
  const others = mean(looks.map(({ cpu, machineCores }) => machineCores - totalCpu(cpu) - clientCores));
  return Number.isNaN(others) ? null : Math.max(0, others);
};

/** For the log. */
export const describeLooks = (looks: readonly Look[]): string => {
  const cores = (role: keyof CpuTimes) => mean(looks.map(({ cpu }) => cpu[role])).toFixed(2);
  const ratios = looks.flatMap(({ capacityRatio }) => capacityRatio ?? []);
  const full = ratios.length === 0 ? '' : `; capacity ratio ${mean(ratios).toFixed(2)}`;
  const all = mean(looks.map(({ machineCores }) => machineCores)).toFixed(2);
  return `; cores: front ${cores('front')}, actors ${cores('actor')}, synthesis ${cores('synthesis')}, machine ${all}${full}`;
};
