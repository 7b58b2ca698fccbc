/** What listeners of a crowd met, in figures. */
import { percentile } from '../../rig/statistics.js';

/** What the service said to a visit. `failed`: broken off, or never answered. */
type Outcome = 'admitted' | 'refused' | 'failed';

/** One utterance of one listener. */
export interface Visit {
  readonly dueMs: number;
  outcome: Outcome;
  /** From the moment it was due to its first audio; `null`: none came. */
  firstAudioMs: number | null;
  /** The longest time without audio in its middle. */
  dryMs: number;
  /** From the last byte of the request to the refusal; `null`: it was not refused. */
  refusalMs: number | null;
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

const countOf = (visits: readonly { readonly outcome: Outcome }[], wanted: Outcome): number =>
  visits.filter(({ outcome }) => outcome === wanted).length;

/** `null` without values. */
export const spreadOf = (values: readonly number[]) => {
  if (values.length === 0) return null;
  const at = (share: number) => Math.round(percentile(values, share) * 100) / 100;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) };
};
export type Spread = ReturnType<typeof spreadOf>;

export const visitBars = {
  /** A gap above it spoils a visit in an overload. */
  dryMsMax: 100,
  /** A player's own buffer covers a shorter gap. */
  dryToleranceMs: 20,
} as const;

export type VisitFigures = ReturnType<typeof figuresOf>;

export const figuresOf = (visits: readonly Visit[]) => {
  const { dryMsMax, dryToleranceMs } = visitBars;
  const admitted = visits.filter(({ outcome }) => outcome === 'admitted');
  return {
    offered: visits.length,
    admitted: admitted.length,
    refused: countOf(visits, 'refused'),
    failed: countOf(visits, 'failed'),
    /** Of the admitted; a visit without audio counts as infinitely late. */
    firstAudioMs: spreadOf(admitted.map(({ firstAudioMs }) => firstAudioMs ?? Infinity)),
    /** Admitted visits that ran dry for long. */
    dry: admitted.filter(({ dryMs }) => dryMs > dryMsMax).length,
    /** Admitted visits that ran dry at all, and the longest gap. */
    everDry: admitted.filter(({ dryMs }) => dryMs > dryToleranceMs).length,
    dryMsMax: Math.max(0, ...admitted.map(({ dryMs }) => dryMs)),
    refusalMs: spreadOf(visits.flatMap(({ refusalMs }) => refusalMs ?? [])),
    clientLateMs: spreadOf(visits.map(({ clientLateMs }) => clientLateMs)),
  };
};

export const wholeFiguresOf = (visits: readonly WholeVisit[]) => {
  const served = visits.filter(({ outcome }) => outcome === 'admitted');
  const speeds = served.map(({ audioMs, waitedMs }) => audioMs / waitedMs);
  return {
    asked: visits.length,
    served: served.length,
    refused: countOf(visits, 'refused'),
    failed: countOf(visits, 'failed'),
    /** Seconds of speech for each second of waiting, of the slowest; `null` without one. */
    slowestSpeed: speeds.length === 0 ? null : Math.min(...speeds),
  };
};
