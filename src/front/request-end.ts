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

export const endRequest = (services: Services, request: EndingRequest): void => {
  const { clock, keylessLines, linesLeftOut, log, metrics } = services;
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
  if (key === undefined && keylessLines.waitMs('') > 0)
    linesLeftOut.add({ route }, 'lines of requests without a key were left out: there are too many');
  else {
    if (key === undefined) keylessLines.take('');
    log.info(
      {
        requestId,
        ...trace,
        keyId: key?.keyId,
        ...{ route, method, status, outcome, refusal, characters, ...times, totalMs },
      },
      'request',
    );
  }
  forgetLastMatch();
};
