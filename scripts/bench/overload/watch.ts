/** Looks at the service from outside while it is loaded: how full it says it is, what it refuses, where its CPU time goes. */
import { sumOf } from '../../rig/exposition.js';
import { machineBusyMs } from '../../rig/machine.js';
import { type CpuTimes, cpuBetween, readCpuTimes } from '../../rig/process-facts.js';
import type { Service } from '../../rig/service.js';

const lookMs = 2_000;
const idleMsMax = 15_000;
const idleLookMs = 50;

/** One look; rates are since the look before. `null`: the service or the system does not report it. */
export interface Look {
  readonly atMs: number;
  /** 1 is full. */
  readonly capacityRatio: number | null;
  readonly refusedByOverload: number | null;
  readonly streams: number | null;
  /** In cores. */
  readonly cpu: CpuTimes | null;
  /** Cores that everything on the machine used. */
  readonly machineCores: number;
}

/** Waits until nothing is spoken any more. @throws when that does not come */
export const awaitIdle = async (service: Service): Promise<void> => {
  const endMs = performance.now() + idleMsMax;
  for (;;) {
    const samples = await service.metrics();
    const busy = (sumOf(samples, 'syrinx_streams') ?? 0) + (sumOf(samples, 'syrinx_contexts') ?? 0);
    if (busy === 0) return;
    if (performance.now() > endMs)
      throw new Error(`${busy} streams and contexts are left ${idleMsMax} ms after a load`);
    await new Promise((resolve) => setTimeout(resolve, idleLookMs));
  }
};

/** Runs `work`, and looks at the service meanwhile. */
export const watched = async <T>(
  service: Service,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly looks: readonly Look[] }> => {
  const looks: Look[] = [];
  const startedMs = performance.now();
  const read = () => ({ atMs: performance.now(), cpu: readCpuTimes(service.pid), busyMs: machineBusyMs() });
  let before = read();
  const look = async (): Promise<void> => {
    const samples = await service.metrics();
    const after = read();
    const elapsedMs = Math.max(1, after.atMs - before.atMs);
    looks.push({
      atMs: Math.round(after.atMs - startedMs),
      capacityRatio: sumOf(samples, 'syrinx_capacity_ratio'),
      refusedByOverload: sumOf(samples, 'syrinx_refusals_total', { reason: 'overloaded' }),
      streams: sumOf(samples, 'syrinx_streams'),
      cpu: before.cpu === null || after.cpu === null ? null : cpuBetween(before.cpu, after.cpu, elapsedMs),
      machineCores: (after.busyMs - before.busyMs) / elapsedMs,
    });
    before = after;
  };
  const timer = setInterval(() => void look(), lookMs);
  try {
    return { result: await work(), looks };
  } finally {
    clearInterval(timer);
  }
};
