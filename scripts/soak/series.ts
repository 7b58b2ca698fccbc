/** The time series of a soak: one row per step, from the reports of the load and looks at the service. */
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

export const totalFaults = ({ faults }: LoadTick): number =>
  Object.values(faults).reduce((sum, value) => sum + value, 0);

const coresBetween = (before: CpuTimes | null, after: CpuTimes | null, ms: number): CpuTimes | null =>
  before === null || after === null ? null : cpuBetween(before, after, ms);

export const stepOf = (before: Reading, after: Reading, phase: Step['phase']): Step => {
  const ms = Math.max(1, after.atMs - before.atMs);
  const { tick, sample } = after;
  // After a reset between the two, the count began at zero.
  const audioMs = tick.audioMs >= before.tick.audioMs ? tick.audioMs - before.tick.audioMs : tick.audioMs;
  const { p50, p95, p99, count } = tick.firstAudioMs;
  const cpu = coresBetween(before.sample.cpu, sample.cpu, ms);
  const loadCpu = (tick.cpuMs - before.tick.cpuMs) / ms;
  const ours = cpu === null ? null : totalCpu(cpu) + loadCpu;
  return {
    atMs: Math.round(after.atMs),
    phase,
    sockets: tick.sockets,
    streams: tick.streams,
    speechPerSecond: audioMs / ms,
    firstAudioMs: count === 0 ? null : { p50, p95, p99 },
    underruns: tick.underruns,
    unjudged: tick.unjudged,
    faults: totalFaults(tick),
    loadLateP99Ms: tick.loopLateMs.p99,
    pssBytes: sample.pssBytes,
    rssBytes: sample.rssBytes,
    frontHeapBytes: sample.frontHeapBytes,
    loadRssBytes: tick.rssBytes,
    loopDelayP99Ms: sample.loopDelayMs?.p99 ?? null,
    loopDelayMaxMs: sample.loopDelayMs?.max ?? null,
    probeP99Ms: sample.probeP99Ms,
    bufferedBytes: sample.bufferedBytes,
    serviceUnderruns: sample.underruns,
    serviceChunks: sample.chunks,
    cpu,
    loadCpu,
    othersCpu: ours === null ? null : Math.max(0, (after.busyMs - before.busyMs) / ms - ours),
  };
};
