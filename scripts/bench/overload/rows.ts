/** The table of an overload. */
import { median, percentile, sumOf } from '../../rig/statistics.js';
import { count, row, type Row } from '../report.js';
import type { AttackKind } from '../../torture/greedy/attack.js';
import type { CrowdFigures } from './crowd.js';
import { type Spread, type VisitFigures, visitBars } from './figures.js';
import type { FileLength, GreedyOutcome } from './greedy.js';
import { bars, compareRuns, type Overload } from './phases.js';

const ms = (value: number | undefined): string =>
  value === undefined ? 'none' : value === Infinity ? 'never' : `${value.toFixed(value < 10 ? 1 : 0)} ms`;
const percent = (part: number, whole: number): string =>
  whole === 0 ? 'none' : `${((100 * part) / whole).toFixed(1)} %`;
const spreadText = (spread: Spread): string =>
  spread === null ? 'none' : `p50 ${ms(spread.p50)}, p95 ${ms(spread.p95)}, p99 ${ms(spread.p99)}`;

/** One line of a phase, for the log. */
export const describeCrowd = (figures: CrowdFigures): string => {
  const { clientCores, drainMs, faults, owedMs, servedPerSecond, visits, wholes } = figures;
  const { admitted, clientLateMs, dry, everDry, failed, firstAudioMs, offered, refusalMs, refused } = visits;
  const parts = [
    `${count(offered)} offered, ${count(admitted)} admitted, ${count(refused)} refused, ${count(failed)} failed`,
    `first audio ${spreadText(firstAudioMs)}`,
    `dry ${percent(dry, admitted)} (ever ${everDry}, up to ${ms(visits.dryMsMax)})`,
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
  /** Seconds of speech that the engine alone made in a second then. */
  readonly speed: number;
}

export const capacityRow = ({ failed, figures, listeners, speed }: Capacity): Row => {
  const how =
    figures === null
      ? 'given'
      : `${failed === null ? 'the most that was tried' : `${failed} did not hold`}; first audio ${spreadText(figures.visits.firstAudioMs)}`;
  return row(
    `Capacity: listeners, none dry, p99 of first audio within ${bars.capacityFirstAudioP99MsMax} ms`,
    `${count(listeners)} (${how}; the engine alone makes ${speed.toFixed(0)} s of speech a second)`,
  );
};

const dryText = ({ dryMsMax, everDry }: VisitFigures): string =>
  everDry === 0 ? 'none dry' : `${everDry} ever dry (up to ${ms(dryMsMax)})`;

/** The bar: no visit is refused, and none is lost. */
const servedRow = (what: string, figures: CrowdFigures, more: readonly string[] = []): Row => {
  const { failed, offered, refused } = figures.visits;
  const lost = failed === 0 ? [] : [`${failed} failed (${figures.faults})`];
  return row(
    `${what}: refused`,
    [`${refused} of ${count(offered)}`, ...lost, ...more].join('; '),
    'none',
    offered > 0 && refused + failed === 0,
  );
};

/** A load that must be carried whatever else comes with it. */
export const carriedRow = (what: string, figures: CrowdFigures): Row => {
  const { firstAudioMs } = figures.visits;
  const heard =
    firstAudioMs === null
      ? 'no audio'
      : `first audio p50 ${ms(firstAudioMs.p50)}, p95 ${ms(firstAudioMs.p95)}`;
  return servedRow(what, figures, [heard, dryText(figures.visits)]);
};

export const halfRows = (listeners: number, figures: CrowdFigures): Row[] => {
  const { dry, firstAudioMs } = figures.visits;
  const what = `Half of the capacity at once (${count(listeners)})`;
  return [
    servedRow(what, figures),
    row(
      `${what}: first audio`,
      spreadText(firstAudioMs),
      `p95 at most ${bars.halfFirstAudioP95MsMax} ms`,
      (firstAudioMs?.p95 ?? Infinity) <= bars.halfFirstAudioP95MsMax,
    ),
    row(
      `${what}: dry for more than ${visitBars.dryMsMax} ms`,
      `${dry}; ${dryText(figures.visits)}`,
      'none',
      dry === 0,
    ),
  ];
};

export const calmRows = (refusing: readonly CrowdFigures[], late: readonly CrowdFigures[]): Row[] => {
  const sum = (pick: (figures: CrowdFigures) => number) => sumOf(refusing.map(pick));
  const [offered, refused] = [sum(({ visits }) => visits.offered), sum(({ visits }) => visits.refused)];
  const wholesRefused = sum(({ wholes }) => wholes.refused);
  const failed = sum(({ visits, wholes }) => visits.failed + wholes.failed);
  const dry = sum(({ visits }) => visits.everDry);
  const dryMsMax = Math.max(...refusing.map(({ visits }) => visits.dryMsMax));
  const p99 = (runs: readonly CrowdFigures[]) =>
    runs.map(({ visits }) => visits.firstAudioMs?.p99 ?? Infinity);
  const { isNoWorse, others, spread, these } = compareRuns(p99(refusing), p99(late));
  return [
    row(
      '0.8 x capacity: refused or failed',
      `${refused + wholesRefused} refused, ${failed} failed of ${count(offered)}`,
      'none',
      refused + wholesRefused + failed === 0 && offered > 0,
    ),
    row(
      '0.8 x: listeners that ran dry',
      dry === 0 ? 'none' : `${dry} (up to ${ms(dryMsMax)})`,
      'none',
      dry === 0,
    ),
    row(
      '0.8 x: p99 of first audio, against `OVERLOAD=late`',
      `${ms(these)}, against ${ms(others)} (equal runs differ by up to ${ms(spread)})`,
      'no worse by more than equal runs differ',
      isNoWorse,
    ),
  ];
};

/** First audio that is normal: how long, and when it was measured. */
interface NormalFirstAudio {
  readonly p95Ms: number;
  readonly when: string;
}

type Probes = CrowdFigures['probes'];
const probedMs = (probes: Probes): number[] => probes.map((value) => value ?? Infinity);

export const idleFirstAudio = (probes: Probes): NormalFirstAudio => ({
  p95Ms: percentile(probedMs(probes), 0.95),
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
  const { admitted, dry, dryMsMax, failed, firstAudioMs, offered, refusalMs, refused } = visits;
  const what = `${factor} x`;
  const servedRatio = servedPerSecond / listeners;
  const afterMs = median(probedMs(figures.probes));
  const lost = failed + wholes.failed;
  return [
    row(
      `${factor} x capacity (${count(listeners)} now): admitted visits dry for more than ${visitBars.dryMsMax} ms`,
      `${percent(dry, admitted)} (${dry} of ${count(admitted)}; worst gap ${ms(dryMsMax)})`,
      `at most ${bars.dryShareMax * 100} %`,
      admitted > 0 && dry <= bars.dryShareMax * admitted,
    ),
    row(
      `${what}: first audio`,
      spreadText(firstAudioMs),
      `p95 at most ${bars.overloadFirstAudioP95MsMax} ms, p99 ${bars.overloadFirstAudioP99MsMax} ms`,
      (firstAudioMs?.p95 ?? Infinity) <= bars.overloadFirstAudioP95MsMax &&
        (firstAudioMs?.p99 ?? Infinity) <= bars.overloadFirstAudioP99MsMax,
    ),
    row(
      `${what}: speech served`,
      `${servedPerSecond.toFixed(0)} s a second (${servedRatio.toFixed(2)} x capacity)`,
      `at least ${bars.servedRatioMin} x`,
      servedRatio >= bars.servedRatioMin,
    ),
    row(
      `${what}: time to a refusal`,
      `${spreadText(refusalMs)} (${count(refused)} of ${count(offered)} refused)`,
      `p95 at most ${bars.refusalP95MsMax} ms`,
      (refusalMs?.p95 ?? 0) <= bars.refusalP95MsMax,
    ),
    row(
      `${what}: visits and files without an answer, or broken off`,
      lost === 0 ? 'none' : `${lost} (${figures.faults})`,
      'none',
      lost === 0,
    ),
    row(
      `${what}: whole files meanwhile`,
      `${wholes.served} served, ${wholes.refused} refused of ${wholes.asked}; slowest ${wholes.slowestSpeed?.toFixed(1) ?? '-'} x real time`,
    ),
    row(
      `${what}: first audio a second after the load`,
      `p50 ${ms(afterMs)}`,
      `at most the p95 ${normal.when}, ${ms(normal.p95Ms)}`,
      afterMs <= normal.p95Ms,
    ),
  ];
};

/** Each connection must be served or refused: by a 503, at the handshake of a WebSocket too, or by its error frame. */
export const burstRow = ({ drainMs, faults, visits }: CrowdFigures): Row => {
  const { admitted, failed, offered, refused } = visits;
  return row(
    `${count(offered)} connections at once: lost`,
    `${failed === 0 ? 'none' : `${failed} (${faults})`} (${count(admitted)} served, ${count(refused)} refused, in ${(drainMs / 1000).toFixed(1)} s)`,
    'none',
    failed === 0,
  );
};

const attackNames: Readonly<Record<AttackKind, string>> = {
  text: 'Flood of text, read',
  unread: 'Flood of text, not read',
  sockets: 'Greedy key, sockets',
  bodies: 'Greedy key, bodies',
  frames: 'Greedy key, frames',
  parsing: 'Greedy key, parsing',
};
const lengthNames: Readonly<Record<FileLength, string>> = { short: '2 s', long: '60 s' };

export const greedyRow = ({ attacked, calm, file, kind }: GreedyOutcome): Row => {
  const p95 = (waitsMs: readonly number[]) => (waitsMs.length === 0 ? Infinity : percentile(waitsMs, 0.95));
  const [p95Ms, calmP95Ms] = [p95(attacked.waitsMs), p95(calm.waitsMs)];
  const barMs = Math.max(bars.wholeP95RatioMax * calmP95Ms, bars.wholeP95MsFloor);
  const faults = attacked.faults === 'nothing' ? '' : `; ${attacked.faults}`;
  const worst = `worst of ${attacked.waitsMs.length} ${ms(Math.max(0, ...attacked.waitsMs))}`;
  return row(
    `${attackNames[kind]}: another key's whole file of ${lengthNames[file]}`,
    `p95 ${ms(p95Ms)}, ${worst} (calm p95 ${ms(calmP95Ms)}, worst ${ms(Math.max(0, ...calm.waitsMs))}${faults})`,
    `p95 at most ${bars.wholeP95RatioMax} x calm or ${bars.wholeP95MsFloor} ms: ${ms(barMs)}`,
    calmP95Ms < Infinity && p95Ms <= barMs,
  );
};

/** Says whether the figures can be trusted. @param others mean cores of other programs, by phase */
export const otherProgramsRow = (
  others: readonly { readonly name: string; readonly cores: number }[],
): Row => {
  const worst = others.reduce((most, one) => (one.cores > most.cores ? one : most), { name: '', cores: 0 });
  return row(
    'Cores that other programs used meanwhile',
    others.length === 0
      ? 'not known on this system'
      : `median ${median(others.map(({ cores }) => cores)).toFixed(2)}, most ${worst.cores.toFixed(2)} (${worst.name})`,
  );
};
