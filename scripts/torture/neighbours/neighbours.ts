/**
 * Neighbours: listeners in a process of their own that have nothing to do with the fault. Every page and word that they
 * receive is checked, and the time that they wait.
 */
import { LoadProcess } from '../../rig/load-process.js';
import type { Service } from '../../rig/service.js';
import { ms } from '../checks.js';
import type { NeighboursLoad, NeighboursReport } from './load.js';

const loadEntry = new URL('./load.js', import.meta.url);

export class Neighbours {
  readonly #load: NeighboursLoad = new LoadProcess(loadEntry);

  /**
   * Resolves when they listen, with a key of their own: two over HTTP, two over WebSockets.
   *
   * @param toleratesFailures an utterance may fail if the client sees it: a stream is cut, or answered by an error
   */
  static async start(service: Service, seed: number, toleratesFailures = false): Promise<Neighbours> {
    const [voice = ''] = await service.voices();
    const [key = ''] = await service.makeKeys(1);
    const neighbours = new Neighbours();
    const { port } = service;
    const plan = { port, key, voice, streams: 2, sockets: 2, seed, toleratesFailures };
    try {
      await neighbours.#load.call('start', plan);
      return neighbours;
    } catch (error) {
      neighbours.close();
      throw error;
    }
  }

  /** They hear everything that was asked for to its end. */
  end(): Promise<NeighboursReport> {
    return this.#load.call('end');
  }

  /** Idempotent. */
  close(): void {
    this.#load.close();
  }
}

/**
 * Far above what a loaded machine needs, far below what a person calls broken: the torture and the service share the
 * cores, and the fault to find is a service that hangs.
 */
const usualLateMsMax = 10_000;

/** @param lateMsMax what the kind of fault allows */
export const isUndisturbed = (report: NeighboursReport, lateMsMax = usualLateMsMax): boolean =>
  report.faultCount === 0 &&
  report.utterances > 0 &&
  Math.max(report.firstAudioMsMax, report.dryMsMax, report.probeMsMax) < lateMsMax;

const verdictOf = (report: NeighboursReport, lateMsMax: number): string => {
  const { faultCount, faults } = report;
  if (faultCount > 0) return `${faultCount} FAULTS: ${faults.slice(0, 3).join('; ')}`;
  if (report.utterances === 0) return 'NOTHING HEARD';
  return isUndisturbed(report, lateMsMax) ? 'none disturbed' : `DISTURBED, by ${ms(lateMsMax)} or more`;
};

/** @param lateMsMax see `isUndisturbed` */
export const describeNeighbours = (report: NeighboursReport, lateMsMax = usualLateMsMax): string => {
  const heard = `${report.utterances} utterances (${Math.round(report.audioMs / 1000)} s)`;
  const late = `first audio at most ${ms(report.firstAudioMsMax)}, dry ${ms(report.dryMsMax)}`;
  const probes = `${report.probes} health probes, slowest ${ms(report.probeMsMax)}`;
  const failures = report.failures === 0 ? '' : `, ${report.failures} of them failed visibly`;
  return `neighbours: ${heard}${failures}, ${late}; ${probes}; ${verdictOf(report, lateMsMax)}`;
};
