/** Where requests end, on every listener: the metrics, the list of the console and the log get the same facts. */
import { forgetLastMatch } from '../last-match.js';
import { endOf, type EndedRequest } from '../recent-requests.js';
import type { FirstAudio } from '../speech/first-audio.js';
import type { ActiveKey } from '../store/store.js';
import type { Services } from './services.js';

export interface EndingRequest extends Omit<
  EndedRequest,
  'keyId' | 'accountId' | 'firstAudioMs' | 'totalMs'
> {
  readonly key: Pick<ActiveKey, 'keyId' | 'accountId'> | undefined;
  readonly startMs: number;
  readonly firstAudio: FirstAudio | undefined;
  /** For the log only. */
  readonly method?: string;
  readonly trace?: Readonly<Record<string, unknown>>;
}

/**
 * Writes the line of a request's end. A stranger must not fill the disk, so lines that anybody can cause have a rate.
 *
 * @param isBounded whether the rate counts
 */
export const logEnd = (
  { keylessLines, linesLeftOut, log }: Services,
  isBounded: boolean,
  line: Readonly<Record<string, unknown>> & { readonly route: string },
  message: string,
): void => {
  if (isBounded && keylessLines.waitMs('') > 0) {
    const warning =
      'lines of requests without a key, or of refused WebSockets, were left out: there are too many';
    linesLeftOut.add({ route: line.route }, warning);
    return;
  }
  if (isBounded) keylessLines.take('');
  log.info(line, message);
};

export const endRequest = (services: Services, request: EndingRequest): void => {
  const { clock, metrics } = services;
  const { characters, firstAudio, key, method, outcome, refusal, requestId } = request;
  const { route, startMs, status, trace, voice } = request;
  const times = firstAudio?.fields();
  const totalMs = Math.round((clock() - startMs) * 10) / 10;
  metrics.request(route, status ?? null);
  const facts = { requestId, route, status, outcome, refusal, characters, totalMs };
  const end = endOf(facts);
  // Probes of health, and the lists that the console's own page reads, would push out what a person looks for.
  const isOfKey = key !== undefined && (characters !== undefined || end === 'stopped');
  if (isOfKey || end === 'refused' || end === 'failed')
    metrics.ended({
      ...facts,
      ...{ keyId: key?.keyId, accountId: key?.accountId, voice, firstAudioMs: times?.firstAudioMs },
    });
  const line = {
    ...{ requestId, ...trace, keyId: key?.keyId },
    ...{ route, method, status, outcome, refusal, characters, ...times, totalMs },
  };
  logEnd(services, key === undefined, line, 'request');
  forgetLastMatch();
};
