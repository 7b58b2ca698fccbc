/** What listeners of a crowd met, in figures. */
import { percentile } from '../../rig/statistics.js';

/** What the service said to a visit. `failed`: broken off, or never answered. */
export type Outcome = 'admitted' | 'refused' | 'failed';

/** One utterance of one listener. */
export interface Visit {
  /** When it was due, from the beginning of the load. */
  readonly dueMs: number;
  readonly outcome: Outcome;
  /** From the moment it was due to its first audio; `null`: none came. */
  readonly firstAudioMs: number | null;
  /** The longest time without audio in its middle. */
  readonly dryMs: number;
  /** From the last byte of the request to the refusal; `null`: it was not refused. */
  readonly refusalMs: number | null;
  /** From the moment it was due until this client asked. */
  readonly clientLateMs: number;
}

/** A synchronous request. */
export interface WholeVisit {
  readonly outcome: Outcome;
  /** From the request to the whole answer, or the refusal. */
  readonly waitedMs: number;
  readonly audioMs: number;
}

export interface Spread {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

/** `null` without values. */
export const spreadOf = (values: readonly number[]): Spread | null => {
  if (values.length === 0) return null;
  const at = (share: number) => Math.round(percentile(values, share) * 100) / 100;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) };
};

export const visitBars = {
  /** A gap above it spoils a visit in an overload. */
  dryMsMax: 100,
  /** A player's own buffer covers a shorter gap. */
  dryToleranceMs: 20,
} as const;

export interface VisitFigures {
  readonly offered: number;
  readonly admitted: number;
  readonly refused: number;
  readonly failed: number;
  /** Of the admitted; a visit without audio counts as infinitely late. */
  readonly firstAudioMs: Spread | null;
  /** Admitted visits that ran dry for long. */
  readonly dry: number;
  /** Admitted visits that ran dry at all, and the longest gap. */
  readonly everDry: number;
  readonly dryMsMax: number;
  readonly refusalMs: Spread | null;
  readonly clientLateMs: Spread | null;
}

export const figuresOf = (visits: readonly Visit[]): VisitFigures => {
  const { dryMsMax, dryToleranceMs } = visitBars;
  const admitted = visits.filter(({ outcome }) => outcome === 'admitted');
  const firstAudioMs = admitted.map((visit) => visit.firstAudioMs ?? Infinity);
  return {
    offered: visits.length,
    admitted: admitted.length,
    refused: visits.filter(({ outcome }) => outcome === 'refused').length,
    failed: visits.filter(({ outcome }) => outcome === 'failed').length,
    firstAudioMs: spreadOf(firstAudioMs),
    dry: admitted.filter((visit) => visit.dryMs > dryMsMax).length,
    everDry: admitted.filter(({ dryMs }) => dryMs > dryToleranceMs).length,
    dryMsMax: Math.max(0, ...admitted.map(({ dryMs }) => dryMs)),
    refusalMs: spreadOf(visits.flatMap(({ refusalMs }) => (refusalMs === null ? [] : [refusalMs]))),
    clientLateMs: spreadOf(visits.map(({ clientLateMs }) => clientLateMs)),
  };
};

export interface WholeFigures {
  readonly asked: number;
  readonly served: number;
  readonly refused: number;
  readonly failed: number;
  /** Seconds of speech for each second of waiting, of the slowest; `null` without one. */
  readonly slowestSpeed: number | null;
  readonly waitedMsMax: number;
  readonly refusalMsMax: number;
}

export const wholeFiguresOf = (visits: readonly WholeVisit[]): WholeFigures => {
  const served = visits.filter(({ outcome }) => outcome === 'admitted');
  const refused = visits.filter(({ outcome }) => outcome === 'refused');
  const speeds = served.map(({ audioMs, waitedMs }) => audioMs / waitedMs);
  return {
    asked: visits.length,
    served: served.length,
    refused: refused.length,
    failed: visits.filter(({ outcome }) => outcome === 'failed').length,
    slowestSpeed: speeds.length === 0 ? null : Math.min(...speeds),
    waitedMsMax: Math.max(0, ...served.map(({ waitedMs }) => waitedMs)),
    refusalMsMax: Math.max(0, ...refused.map(({ waitedMs }) => waitedMs)),
  };
};
