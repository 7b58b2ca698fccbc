/** What a soak came to: for programs, for browsers, and in words for a terminal. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { packageVersion } from '../rig-old/package-version.js';
import { describeMachine, type Machine } from '../rig-old/machine.js';
import { formatTable } from '../table.js';
import { verdictOf, type Invariant } from './invariants.js';
import { loadTrend, restTrend } from './memory.js';
import type { SoakOptions } from './options.js';
import { renderPage } from './page.js';
import type { SoakResult } from './soak.js';

export interface SoakReport {
  readonly startedAt: string;
  readonly version: string;
  readonly machine: Machine;
  readonly settings: {
    readonly minutes: number;
    readonly sockets: number;
    readonly contexts: number;
    readonly calibrated: SoakResult['calibrated'];
    readonly streams: number;
    readonly seed: number;
    /** `null`: it was started for the soak. */
    readonly url: string | null;
  };
  readonly endedEarly: boolean;
  readonly measuredMs: number;
  readonly warmUpMs: number;
  readonly passed: boolean;
  readonly summary: Readonly<Record<string, number | null>>;
  readonly invariants: readonly Invariant[];
  readonly faults: SoakResult['faults'];
  readonly rests: SoakResult['findings']['rests'];
  readonly series: SoakResult['steps'];
}

/** In cores: above it, a soak says that it was not alone. */
const othersCpuMax = 0.2;

const mean = (values: readonly number[]): number | null =>
  values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;

const round = (value: number | null, digits = 2): number | null =>
  value === null ? null : Number(value.toFixed(digits));

const summaryOf = ({ findings, last, steps }: SoakResult): SoakReport['summary'] => {
  const measured = steps.filter(({ phase }) => phase === 'warm-up' || phase === 'measured');
  const cpu = measured.flatMap((step) => (step.cpu === null ? [] : [step.cpu]));
  const underLoad = loadTrend(findings.steps, findings.rests, ({ pssBytes }) => pssBytes).trend;
  const atRest = restTrend(findings.rests);
  const { p50, p95, p99, max, count } = findings.firstAudioMs;
  return {
    turns: last?.turns ?? null,
    contexts: last?.contexts ?? null,
    lives: last?.lives ?? null,
    httpRequests: last?.requests ?? null,
    frames: last?.frames ?? null,
    audioHours: last === null ? null : round(last.audioMs / 3_600_000, 3),
    speechSecondsPerSecond: round(mean(measured.map(({ speechPerSecond }) => speechPerSecond)), 1),
    meanStreams: round(mean(measured.map(({ streams }) => streams)), 1),
    firstAudioTurns: count,
    firstAudioP50Ms: round(p50),
    firstAudioP95Ms: round(p95),
    firstAudioP99Ms: round(p99),
    firstAudioMaxMs: round(max),
    underruns: findings.underruns,
    underrunsUnjudged: findings.unjudged,
    serviceUnderruns: steps.at(-1)?.serviceUnderruns ?? null,
    pssAtRestSlopeMBPerHour: round(atRest?.slopePerHour ?? null),
    pssAtRestSlopeStandardErrorMBPerHour: round(atRest?.standardErrorPerHour ?? null),
    pssSlopeMBPerHour: round(underLoad?.slopePerHour ?? null),
    pssSlopeStandardErrorMBPerHour: round(underLoad?.standardErrorPerHour ?? null),
    serviceCpuCores: round(
      mean(cpu.map(({ front, actor, synthesis, other }) => front + actor + synthesis + other)),
    ),
    frontCpuCores: round(mean(cpu.map(({ front }) => front)), 3),
    loadCpuCores: round(mean(measured.map(({ loadCpu }) => loadCpu))),
    othersCpuCores: round(mean(measured.flatMap(({ othersCpu }) => (othersCpu === null ? [] : [othersCpu])))),
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

/** @returns the paths of what was written */
export const writeReport = (options: SoakOptions, startedAt: Date, result: SoakResult): string[] => {
  const report = reportOf(options, startedAt, result);
  mkdirSync(options.out, { recursive: true });
  const [json, html] = ['soak.json', 'soak.html'].map((name) => resolve(options.out, name)) as [
    string,
    string,
  ];
  writeFileSync(json, `${JSON.stringify(report, null, 1)}\n`);
  const asset = (name: string) => readFileSync(new URL(import.meta.resolve(`uplot/dist/${name}`)), 'utf8');
  writeFileSync(
    html,
    renderPage(report, { script: asset('uPlot.iife.min.js'), style: asset('uPlot.min.css') }),
  );
  return [json, html];
};

const verdict = (passed: boolean | null): string =>
  passed === null ? 'not judged' : passed ? 'kept' : 'BROKEN';

/** For a terminal: the table of invariants, and the first occurrences of what broke them. */
export const describeVerdict = (result: SoakResult, seed: number): string => {
  const { calibrated, invariants, endedEarly, measuredMs, warmUpMs } = result;
  const rows = invariants.map(({ name, passed, found }) => [verdict(passed), name, found]);
  const broken = invariants.filter(({ passed }) => passed === false);
  const examples = broken.flatMap(({ name, examples: first }) =>
    first.length === 0 ? [] : [`\n${name} (seed ${String(seed)}):\n`, ...first.map((line) => `  ${line}\n`)],
  );
  const clients =
    calibrated === null
      ? ''
      : `${String(calibrated.contexts)} streaming clients: ${(calibrated.share * 100).toFixed(0)} % of the ${String(calibrated.held)} that the machine held\n`;
  const minutes = (measuredMs / 60_000).toFixed(1);
  const before = warmUpMs < 1_000 ? '' : ` after ${(warmUpMs / 60_000).toFixed(1)} of warm-up`;
  const end = endedEarly ? ', ended early' : '';
  const sum = verdictOf(invariants);
  const others = summaryOf(result)['othersCpuCores'] ?? 0;
  const busy =
    others > othersCpuMax
      ? `Other programs took ${others.toFixed(2)} cores: what came late may be theirs.\n`
      : '';
  return `${formatTable(rows)}${examples.join('')}\n${minutes} minutes${before}${end}: ${sum}\n${clients}${busy}`;
};
