/** The time series of a soak: a row a step, of what the load and the service tell. */
import { cpus } from 'node:os';
import type { CpuTimes } from '../rig-old/threads.js';
import type { ServiceSample } from './monitor.js';
import type { LoadTick } from './protocol.js';

export interface Step {
  /** Since the load began. */
  readonly atMs: number;
  readonly phase: 'calibration' | 'warm-up' | 'measured' | 'rest';
  readonly sockets: number;
  readonly streams: number;
  readonly speechPerSecond: number;
  readonly firstAudioMs: { readonly p50: number; readonly p95: number; readonly p99: number } | null;
  readonly underruns: number;
  readonly unjudged: number;
  readonly faults: number;
  readonly loadLateP99Ms: number;
  readonly pssBytes: number | null;
  readonly rssBytes: number | null;
  readonly frontHeapBytes: number | null;
  readonly loadRssBytes: number;
  readonly loopDelayP99Ms: number | null;
  readonly loopDelayMaxMs: number | null;
  readonly probeP99Ms: number;
  readonly bufferedBytes: number | null;
  /** By the service's own count, since its start; and the chunks of audio among which they are. */
  readonly serviceUnderruns: number | null;
  readonly serviceChunks: number | null;
  /** In cores, over the step. */
  readonly cpu: { readonly [role in keyof CpuTimes]: number } | null;
  readonly loadCpu: number;
  /** What all other programs of the machine took; `null` where the system does not tell. */
  readonly othersCpu: number | null;
}

/** Clock ticks of `/proc` are hundredths of a second. */
const msPerTick = 10;

/** What a step is told from: the difference of two of these. */
export interface Reading {
  readonly atMs: number;
  readonly tick: LoadTick;
  readonly sample: ServiceSample;
  /** Of all the machine's cores so far. */
  readonly busyMs: number;
}

/** Milliseconds that the machine's cores were busy so far. */
export const machineBusyMs = (): number =>
  cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0);

export const totalFaults = ({ faults }: LoadTick): number =>
  Object.values(faults).reduce((sum, value) => sum + value, 0);

const cpuCores = (before: CpuTimes | null, after: CpuTimes | null, ms: number): Step['cpu'] => {
  if (before === null || after === null) return null;
  const cores = (role: keyof CpuTimes) => ((after[role] - before[role]) * msPerTick) / ms;
  return {
    front: cores('front'),
    actor: cores('actor'),
    synthesis: cores('synthesis'),
    other: cores('other'),
  };
};

export const stepOf = (before: Reading, after: Reading, phase: Step['phase']): Step => {
  const ms = Math.max(1, after.atMs - before.atMs);
  const { tick, sample } = after;
  // A reset between the two begins the count anew.
  const audioMs = tick.audioMs >= before.tick.audioMs ? tick.audioMs - before.tick.audioMs : tick.audioMs;
  const { p50, p95, p99, count } = tick.firstAudioMs;
  const cpu = cpuCores(before.sample.cpu, sample.cpu, ms);
  const loadCpu = (tick.cpuMs - before.tick.cpuMs) / ms;
  const ours = cpu === null ? null : cpu.front + cpu.actor + cpu.synthesis + cpu.other + loadCpu;
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
