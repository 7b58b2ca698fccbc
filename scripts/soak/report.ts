/** The result of a soak: `soak.json` for programs, a table for a terminal. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { version } from '../../src/version.js';
import { describeMachine } from '../rig/machine.js';
import { mean } from '../rig/statistics.js';
import { formatTable } from '../table.js';
import { judge, verdictOf, type Findings } from './invariants.js';
import type { Step } from './measures.js';
import type { SoakOptions } from './options.js';

export interface SoakResult {
  readonly contexts: number;
  /** How many the machine could serve; `null`: the number was asked for. */
  readonly held: number | null;
  readonly endedEarly: boolean;
  readonly measuredMs: number;
  readonly warmUpMs: number;
  readonly findings: Findings;
  /** Of all phases. */
  readonly series: readonly Step[];
}

/** In cores: above it, the soak reports that other programs were busy. */
const othersCpuMax = 0.2;

const summaryOf = ({ findings, series }: SoakResult) => {
  const { faults: _, firstAudioMs, ...counts } = findings.counts;
  const loaded = series.filter(({ phase }) => phase === 'warm-up' || phase === 'measured');
  const meanOf = (pick: (step: Step) => number | null): number | null => {
    const values = loaded.map(pick).filter((value) => value !== null);
    return values.length === 0 ? null : Number(mean(values).toFixed(2));
  };
  return {
    ...counts,
    firstAudioMs,
    speechSecondsPerSecond: meanOf(({ speechPerSecond }) => speechPerSecond),
    meanStreams: meanOf(({ streams }) => streams),
    serviceCpuCores: meanOf(({ serviceCpu }) => serviceCpu),
    loadCpuCores: meanOf(({ loadCpu }) => loadCpu),
    othersCpuCores: meanOf(({ othersCpu }) => othersCpu),
  };
};

const verdict = (passed: boolean | null): string =>
  passed === null ? 'not judged' : passed ? 'kept' : 'BROKEN';

/** Writes `soak.json`, and prints the table of invariants with the first faults that broke them. @returns whether all held */
export const report = (options: SoakOptions, startedAt: Date, result: SoakResult): boolean => {
  const { contexts, endedEarly, findings, held, measuredMs, series, warmUpMs } = result;
  const invariants = judge(findings);
  const summary = summaryOf(result);
  const passed = invariants.every((invariant) => invariant.passed !== false);
  const { remote, ...asked } = options;
  const written = {
    ...{ startedAt, version, machine: describeMachine() },
    // Without the keys.
    settings: { ...asked, contexts, held, url: remote?.url ?? null },
    ...{ endedEarly, measuredMs: Math.round(measuredMs), warmUpMs: Math.round(warmUpMs), passed },
    ...{ summary, invariants, faults: findings.faults, rests: findings.rests, series },
  };
  const path = resolve(options.out, 'soak.json');
  mkdirSync(options.out, { recursive: true });
  writeFileSync(path, `${JSON.stringify(written, null, 1)}\n`);

  const lines = [formatTable(invariants.map((one) => [verdict(one.passed), one.name, one.found]))];
  for (const { examples, name, passed: isKept } of invariants)
    if (isKept === false && examples.length > 0)
      lines.push(`${name} (seed ${options.seed}):`, ...examples.map((example) => `  ${example}`), '');
  const before = warmUpMs < 1_000 ? '' : ` after ${(warmUpMs / 60_000).toFixed(1)} of warm-up`;
  const end = endedEarly ? ', ended early' : '';
  lines.push(`${(measuredMs / 60_000).toFixed(1)} minutes${before}${end}: ${verdictOf(invariants)}`);
  if (held !== null) lines.push(`${contexts} streaming clients, of ${held} that the machine could serve`);
  const others = summary.othersCpuCores ?? 0;
  if (others > othersCpuMax)
    lines.push(`Other programs used ${others.toFixed(2)} cores, which may explain what came late.`);
  process.stdout.write(`${lines.join('\n')}\n\n${path}\n`);
  return passed;
};
