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

const totalFaults = ({ faults }: LoadTick): number =>
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

const inMs = (value: number | null | undefined): string => `${value?.toFixed(0) ?? '-'} ms`;
const inCores = (cores: number | null): string => (cores === null ? '-' : `${(cores * 100).toFixed(0)} %`);

/** @param leftMs of the phase; `null`: unknown */
export const describeStep = (step: Step, leftMs: number | null): string =>
  [
    `${(step.atMs / 1_000).toFixed(0)} s, ${step.phase}${leftMs === null ? '' : `, ${(Math.max(0, leftMs) / 60_000).toFixed(1)} min left`}`,
    `${step.sockets} sockets, ${step.streams} streams, ${step.speechPerSecond.toFixed(0)} s of speech a second`,
    `first audio p50 ${inMs(step.firstAudioMs?.p50)}, p99 ${inMs(step.firstAudioMs?.p99)}`,
    `${step.underruns} underruns, ${step.faults} faults`,
    `PSS ${step.pssBytes === null ? '-' : (step.pssBytes / 2 ** 20).toFixed(0)} MiB, event loop p99 ${inMs(step.loopDelayP99Ms)}`,
    `CPU: service ${inCores(step.cpu === null ? null : totalCpu(step.cpu))}, load ${inCores(step.loadCpu)}`,
  ].join(' | ');
