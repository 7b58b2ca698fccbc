/** The result of a soak: `soak.json` for programs, a table for a terminal. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describeMachine, packageVersion, type Machine } from '../rig/machine.js';
import { totalCpu } from '../rig/process-facts.js';
import { mean } from '../rig/statistics.js';
import { formatTable } from '../table.js';
import { verdictOf, type Invariant } from './invariants.js';
import type { AtRest, Fault, Step } from './measures.js';
import { loadTrend, restTrend } from './memory.js';
import type { SoakOptions } from './options.js';
import type { Calibrated } from './phases.js';
import type { SoakResult } from './soak.js';

/** `soak.json`. */
export interface SoakReport {
  readonly startedAt: string;
  readonly version: string;
  readonly machine: Machine;
  readonly settings: {
    readonly minutes: number;
    readonly sockets: number;
    readonly contexts: number;
    readonly calibrated: Calibrated | null;
    readonly streams: number;
    readonly seed: number;
    /** `null`: the soak started the service. */
    readonly url: string | null;
  };
  readonly endedEarly: boolean;
  readonly measuredMs: number;
  readonly warmUpMs: number;
  readonly passed: boolean;
  readonly summary: Readonly<Record<string, number | null>>;
  readonly invariants: readonly Invariant[];
  readonly faults: readonly Fault[];
  readonly rests: readonly AtRest[];
  readonly series: readonly Step[];
}

/** In cores: above it, the soak reports that other programs were busy. */
const othersCpuMax = 0.2;

const meanOf = (values: readonly number[]): number | null => (values.length === 0 ? null : mean(values));

const round = (value: number | null, digits = 2): number | null =>
  value === null ? null : Number(value.toFixed(digits));

const summaryOf = ({ findings, last, steps }: SoakResult): SoakReport['summary'] => {
  const measured = steps.filter(({ phase }) => phase === 'warm-up' || phase === 'measured');
  const cpu = measured.flatMap((step) => (step.cpu === null ? [] : [step.cpu]));
  const underLoad = loadTrend(findings.steps, findings.rests, ({ pssBytes }) => pssBytes).trend;
  const atRest = restTrend(findings.rests);
  const { p50, p95, p99, max, count } = findings.firstAudioMs;
  return {
    replies: last?.replies ?? null,
    contexts: last?.contexts ?? null,
    lives: last?.lives ?? null,
    httpRequests: last?.requests ?? null,
    frames: last?.frames ?? null,
    audioHours: last === null ? null : round(last.audioMs / 3_600_000, 3),
    speechSecondsPerSecond: round(meanOf(measured.map(({ speechPerSecond }) => speechPerSecond)), 1),
    meanStreams: round(meanOf(measured.map(({ streams }) => streams)), 1),
    firstAudioReplies: count,
    firstAudioP50Ms: round(p50),
    firstAudioP95Ms: round(p95),
    firstAudioP99Ms: round(p99),
    firstAudioMaxMs: round(max),
    underruns: findings.underruns,
    underrunsUnjudged: findings.unjudged,
    refused: findings.refusals,
    serviceUnderruns: steps.at(-1)?.serviceUnderruns ?? null,
    pssAtRestSlopeMBPerHour: round(atRest?.slopePerHour ?? null),
    pssAtRestSlopeStandardErrorMBPerHour: round(atRest?.standardErrorPerHour ?? null),
    pssSlopeMBPerHour: round(underLoad?.slopePerHour ?? null),
    pssSlopeStandardErrorMBPerHour: round(underLoad?.standardErrorPerHour ?? null),
    serviceCpuCores: round(meanOf(cpu.map(totalCpu))),
    frontCpuCores: round(meanOf(cpu.map(({ front }) => front)), 3),
    loadCpuCores: round(meanOf(measured.map(({ loadCpu }) => loadCpu))),
    othersCpuCores: round(
      meanOf(measured.flatMap(({ othersCpu }) => (othersCpu === null ? [] : [othersCpu]))),
    ),
  };
};

const reportOf = (options: SoakOptions, startedAt: Date, result: SoakResult): SoakReport => ({
  startedAt: startedAt.toISOString(),
  version: packageVersion(),
  machine: describeMachine(),
  settings: {
    minutes: options.minutes,
    sockets: options.sockets,
    contexts: result.contexts,
    calibrated: result.calibrated,
    streams: options.streams,
    seed: options.seed,
    url: options.remote?.url.origin ?? null,
  },
  endedEarly: result.endedEarly,
  measuredMs: Math.round(result.measuredMs),
  warmUpMs: Math.round(result.warmUpMs),
  passed: result.invariants.every(({ passed }) => passed !== false),
  summary: summaryOf(result),
  invariants: result.invariants,
  faults: result.faults,
  rests: result.findings.rests,
  series: result.steps,
});

/** @returns the path of the file */
export const writeReport = (options: SoakOptions, startedAt: Date, result: SoakResult): string => {
  const path = resolve(options.out, 'soak.json');
  mkdirSync(options.out, { recursive: true });
  writeFileSync(path, `${JSON.stringify(reportOf(options, startedAt, result), null, 1)}\n`);
  return path;
};

const verdict = (passed: boolean | null): string =>
  passed === null ? 'not judged' : passed ? 'kept' : 'BROKEN';

/** For a terminal: the table of invariants, and the first faults that broke them. */
export const describeVerdict = (result: SoakResult, seed: number): string => {
  const { calibrated, invariants, endedEarly, measuredMs, warmUpMs } = result;
  const rows = invariants.map(({ name, passed, found }) => [verdict(passed), name, found]);
  const broken = invariants.filter(({ passed }) => passed === false);
  const examples = broken.flatMap(({ name, examples: first }) =>
    first.length === 0 ? [] : [`\n${name} (seed ${seed}):\n`, ...first.map((line) => `  ${line}\n`)],
  );
  const clients =
    calibrated === null
      ? ''
      : `${calibrated.contexts} streaming clients: ${(calibrated.share * 100).toFixed(0)} % of the ${calibrated.held} that the machine could serve\n`;
  const minutes = (measuredMs / 60_000).toFixed(1);
  const before = warmUpMs < 1_000 ? '' : ` after ${(warmUpMs / 60_000).toFixed(1)} of warm-up`;
  const end = endedEarly ? ', ended early' : '';
  const sum = verdictOf(invariants);
  const others = summaryOf(result)['othersCpuCores'] ?? 0;
  const busy =
    others > othersCpuMax
      ? `Other programs used ${others.toFixed(2)} cores, which may explain what came late.\n`
      : '';
  return `${formatTable(rows)}${examples.join('')}\n${minutes} minutes${before}${end}: ${sum}\n${clients}${busy}`;
};
