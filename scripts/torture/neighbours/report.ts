/** What the neighbours' process is told, and what it tells. */

export interface NeighboursPlan {
  readonly port: number;
  readonly key: string;
  readonly voice: string;
  /** Listeners over HTTP and over WebSockets; nine of both at most, the slots of a key. */
  readonly streams: number;
  readonly sockets: number;
  readonly seed: number;
  /** An utterance may fail, as long as it is seen to: a stream cut or answered 5xx, a context told of an error. */
  readonly toleratesFailures: boolean;
}

export type NeighboursCommand =
  { readonly type: 'start'; readonly plan: NeighboursPlan } | { readonly type: 'end' };

export interface NeighboursReport {
  /** Utterances that ended, well or not. */
  readonly utterances: number;
  /** Those that failed as they may. */
  readonly failures: number;
  readonly audioMs: number;
  readonly firstAudioMsMax: number;
  readonly dryMsMax: number;
  /** Requests for `/healthz`, and the slowest answer. */
  readonly probes: number;
  readonly probeMsMax: number;
  readonly faultCount: number;
  /** The first of them. */
  readonly faults: readonly string[];
}

/**
 * Far above what a loaded machine needs, far below what a person calls broken: the torture and the service share the
 * cores, and what is to be found is a service that hangs.
 */
const usualLateMsMax = 10_000;

/** @param lateMsMax that the kind of fault allows */
export const isUndisturbed = (report: NeighboursReport, lateMsMax = usualLateMsMax): boolean =>
  report.faultCount === 0 &&
  report.utterances > 0 &&
  Math.max(report.firstAudioMsMax, report.dryMsMax, report.probeMsMax) < lateMsMax;

const ms = (value: number): string => `${String(Math.round(value))} ms`;

const verdictOf = (report: NeighboursReport, lateMsMax: number): string => {
  const { faultCount, faults } = report;
  if (faultCount > 0) return `${String(faultCount)} FAULTS: ${faults.slice(0, 3).join('; ')}`;
  if (report.utterances === 0) return 'NOTHING HEARD';
  return isUndisturbed(report, lateMsMax) ? 'none disturbed' : `DISTURBED, by ${ms(lateMsMax)} or more`;
};

/** @param lateMsMax see `isUndisturbed` */
export const describeNeighbours = (report: NeighboursReport, lateMsMax = usualLateMsMax): string => {
  const heard = `${String(report.utterances)} utterances (${String(Math.round(report.audioMs / 1000))} s)`;
  const late = `first audio at most ${ms(report.firstAudioMsMax)}, dry ${ms(report.dryMsMax)}`;
  const probes = `${String(report.probes)} health probes, slowest ${ms(report.probeMsMax)}`;
  const failures = report.failures === 0 ? '' : `, ${String(report.failures)} of them failed visibly`;
  return `neighbours: ${heard}${failures}, ${late}; ${probes}; ${verdictOf(report, lateMsMax)}`;
};
