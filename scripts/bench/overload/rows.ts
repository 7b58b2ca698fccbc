/** The table of an overload. */
import { percentile, median } from '../../rig/statistics.js';
import { type Row, barredRow, row } from '../report.js';
import type { BurstFigures } from './burst.js';
import type { CrowdFigures } from './crowd.js';
import { type Spread, visitBars } from './figures.js';
import { bars, compareRuns, type Overload } from './phases.js';

const count = (value: number): string => value.toLocaleString('en');
const ms = (value: number | undefined): string =>
  value === undefined ? 'none' : value === Infinity ? 'never' : `${value.toFixed(value < 10 ? 1 : 0)} ms`;
const percent = (part: number, whole: number): string =>
  whole === 0 ? 'none' : `${((100 * part) / whole).toFixed(1)} %`;
const spreadText = (spread: Spread | null): string =>
  spread === null ? 'none' : `p50 ${ms(spread.p50)}, p95 ${ms(spread.p95)}, p99 ${ms(spread.p99)}`;

/** One line of a phase, for the log. */
export const describeCrowd = (figures: CrowdFigures): string => {
  const { clientCores, drainMs, faults, owedMs, servedPerSecond, visits, wholes } = figures;
  const { admitted, clientLateMs, dry, everDry, failed, firstAudioMs, late, offered, refusalMs, refused } =
    visits;
  const parts = [
    `${count(offered)} offered, ${count(admitted)} admitted, ${count(refused)} refused, ${count(failed)} failed`,
    `first audio ${spreadText(firstAudioMs)}`,
    `late ${percent(late, admitted)}, dry ${percent(dry, admitted)} (ever ${everDry}, up to ${ms(visits.dryMsMax)})`,
    `served ${servedPerSecond.toFixed(0)} s/s, owed ${(owedMs / 1000).toFixed(1)} s, drained in ${ms(drainMs)}`,
    ...(refusalMs === null ? [] : [`refusal p95 ${ms(refusalMs.p95)}`]),
    ...(wholes.asked === 0
      ? []
      : [`files ${wholes.served} of ${wholes.asked}, slowest ${wholes.slowestSpeed?.toFixed(2) ?? '-'} x`]),
    `client late p99 ${ms(clientLateMs?.p99)}, ${clientCores.toFixed(2)} cores`,
    ...(faults === 'nothing' ? [] : [`faults: ${faults}`]),
  ];
  return parts.join('; ');
};

export interface Capacity {
  readonly listeners: number;
  /** The least that did not hold; `null`: unknown. */
  readonly failed: number | null;
  /** Of the last trial that held; `null`: the number was given. */
  readonly figures: CrowdFigures | null;
}

export const capacityRow = ({ failed, figures, listeners }: Capacity): Row => {
  const how =
    figures === null
      ? 'given'
      : `${failed === null ? 'the most that was tried' : `${failed} did not hold`}; first audio ${spreadText(figures.visits.firstAudioMs)}`;
  return row(
    `Capacity: listeners, none dry, p99 of first audio within ${bars.capacityFirstAudioP99MsMax} ms`,
    `${count(listeners)} (${how})`,
  );
};

export const calmRows = (refusing: readonly CrowdFigures[], late: readonly CrowdFigures[]): Row[] => {
  const sum = (pick: (figures: CrowdFigures) => number) =>
    refusing.reduce((total, run) => total + pick(run), 0);
  const [offered, refused] = [sum(({ visits }) => visits.offered), sum(({ visits }) => visits.refused)];
  const wholesRefused = sum(({ wholes }) => wholes.refused);
  const failed = sum(({ visits, wholes }) => visits.failed + wholes.failed);
  const dry = sum(({ visits }) => visits.everDry);
  const dryMsMax = Math.max(...refusing.map(({ visits }) => visits.dryMsMax));
  const p99 = (runs: readonly CrowdFigures[]) =>
    runs.map(({ visits }) => visits.firstAudioMs?.p99 ?? Infinity);
  const { isNoWorse, others, spread, these } = compareRuns(p99(refusing), p99(late));
  return [
    barredRow(
      '0.8 x capacity: refused or failed',
      `${refused + wholesRefused} refused, ${failed} failed of ${count(offered)}`,
      'none',
      refused + wholesRefused + failed === 0 && offered > 0,
    ),
    barredRow(
      '0.8 x: listeners that ran dry',
      dry === 0 ? 'none' : `${dry} (up to ${ms(dryMsMax)})`,
      'none',
      dry === 0,
    ),
    barredRow(
      '0.8 x: p99 of first audio, against `OVERLOAD=late`',
      `${ms(these)}, against ${ms(others)} (equal runs differ by up to ${ms(spread)})`,
      'no worse by more than equal runs differ',
      isNoWorse,
    ),
  ];
};

/** First audio that is normal: how long, and when it was measured. */
export interface NormalFirstAudio {
  readonly p95Ms: number;
  readonly when: string;
}

/** @param probes of an idle machine; `null`: refused */
export const idleFirstAudio = (probes: readonly (number | null)[]): NormalFirstAudio => ({
  p95Ms: percentile(
    probes.map((value) => value ?? Infinity),
    0.95,
  ),
  when: 'of an idle machine',
});

export const calmFirstAudio = (runs: readonly CrowdFigures[]): NormalFirstAudio => ({
  p95Ms: median(runs.map(({ visits }) => visits.firstAudioMs?.p95 ?? Infinity)),
  when: 'at 0.8 x',
});

export const overloadRows = (
  factor: Overload,
  listeners: number,
  normal: NormalFirstAudio,
  figures: CrowdFigures,
): Row[] => {
  const { servedPerSecond, visits, wholes } = figures;
  const { admitted, dry, failed, firstAudioMs, late, offered, refusalMs, refused, spoilt } = visits;
  const what = `${factor} x`;
  const servedRatio = servedPerSecond / listeners;
  const afterMs = median(figures.probes.map((value) => value ?? Infinity));
  const lost = failed + wholes.failed;
  return [
    barredRow(
      `${factor} x capacity: admitted visits late by more than ${visitBars.firstAudioMsMax} ms, or dry for more than ${visitBars.dryMsMax} ms`,
      `${percent(spoilt, admitted)} (late ${late}, dry ${dry} of ${count(admitted)}; first audio ${spreadText(firstAudioMs)})`,
      `at most ${bars.spoiltShareMax * 100} %`,
      admitted > 0 && spoilt <= bars.spoiltShareMax * admitted,
    ),
    barredRow(
      `${what}: speech served`,
      `${servedPerSecond.toFixed(0)} s a second (${servedRatio.toFixed(2)} x capacity)`,
      `at least ${bars.servedRatioMin} x`,
      servedRatio >= bars.servedRatioMin,
    ),
    barredRow(
      `${what}: time to a refusal`,
      `${spreadText(refusalMs)} (${count(refused)} of ${count(offered)} refused)`,
      `p95 at most ${bars.refusalP95MsMax} ms`,
      (refusalMs?.p95 ?? 0) <= bars.refusalP95MsMax,
    ),
    barredRow(
      `${what}: visits and files without an answer, or broken off`,
      lost === 0 ? 'none' : `${lost} (${figures.faults})`,
      'none',
      lost === 0,
    ),
    row(
      `${what}: whole files meanwhile`,
      `${wholes.served} served, ${wholes.refused} refused of ${wholes.asked}; slowest ${wholes.slowestSpeed?.toFixed(1) ?? '-'} x real time`,
    ),
    barredRow(
      `${what}: first audio a second after the load`,
      `p50 ${ms(afterMs)}`,
      `at most the p95 ${normal.when}, ${ms(normal.p95Ms)}`,
      afterMs <= normal.p95Ms,
    ),
  ];
};

export const burstRow = (connections: number, figures: BurstFigures): Row => {
  const { lost, refused, served, tookMs } = figures;
  return barredRow(
    `${count(connections)} connections at once: lost`,
    `${lost === 0 ? 'none' : `${lost} (${figures.faults})`} (${count(served)} served, ${count(refused)} refused, in ${(tookMs / 1000).toFixed(1)} s)`,
    'none',
    lost === 0,
  );
};
