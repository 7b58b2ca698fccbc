/** The time series of a soak: one row for each step, from the reports of the load and the samples of the service. */
import { type CpuTimes, cpuBetween, totalCpu } from '../rig/process-facts.js';
import type { LoadTick, ServiceSample, Step } from './measures.js';

/** A step is the difference of two readings. */
export interface Reading {
  readonly atMs: number;
  readonly tick: LoadTick;
  readonly sample: ServiceSample;
  /** Of all cores of the machine, so far. */
  readonly busyMs: number;
}

const coresBetween = (before: CpuTimes | null, after: CpuTimes | null, ms: number): CpuTimes | null =>
  before === null || after === null ? null : cpuBetween(before, after, ms);

export const stepOf = (before: Reading, after: Reading, phase: Step['phase']): Step => {
  const ms = Math.max(1, after.atMs - before.atMs);
  const { tick, sample } = after;
  // After a reset between the two, the count began at zero.
  const audioMs = tick.audioMs >= before.tick.audioMs ? tick.audioMs - before.tick.audioMs : tick.audioMs;
  const cpu = coresBetween(before.sample.cpu, sample.cpu, ms);
  const loadCpu = (tick.cpuMs - before.tick.cpuMs) / ms;
  const ours = cpu === null ? null : totalCpu(cpu) + loadCpu;
  return {
    atMs: Math.round(after.atMs),
    phase,
    streams: tick.streams,
    speechPerSecond: audioMs / ms,
    pssBytes: sample.pssBytes,
    frontHeapBytes: sample.frontHeapBytes,
    loopDelayP99Ms: sample.loopDelayP99Ms,
    serviceUnderruns: sample.serviceUnderruns,
    serviceChunks: sample.serviceChunks,
    cpu,
    loadCpu,
    othersCpu: ours === null ? null : Math.max(0, (after.busyMs - before.busyMs) / ms - ours),
  };
};

/** @param leftMs of the phase; `null`: unknown */
export const describeStep = (step: Step, { sockets, underruns }: LoadTick, leftMs: number | null): string => {
  const left = leftMs === null ? '' : `, ${(Math.max(0, leftMs) / 60_000).toFixed(1)} min left`;
  const memory = step.pssBytes === null ? '' : `, PSS ${(step.pssBytes / 2 ** 20).toFixed(0)} MiB`;
  const load = `${sockets} sockets, ${step.streams} streams, ${step.speechPerSecond.toFixed(0)} s of speech a second`;
  return `${(step.atMs / 1_000).toFixed(0)} s, ${step.phase}${left}: ${load}, ${underruns} underruns${memory}`;
};
