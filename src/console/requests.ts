/** The call `requests`: a page of the requests that the service remembers, with the names of their keys and accounts. */
import type { Names, NamesQuestion } from '../accounts/overview.js';
import { endOf, type KeptRequest, type RecentRequests } from '../recent-requests.js';
import type { RequestRow, RequestsPage, RequestsQuestion } from './contract.js';

const PAGE_ROWS = 100;
/** Of keys to choose from. */
const KEYS_MAX = 100;

const rounded = (ms: number): number => Math.round(ms * 10) / 10;

const rowOf = ({ atMs, request }: KeptRequest): RequestRow => {
  const { outcome, refusal, requestId, route } = request;
  const { accountId = null, characters = null, firstAudioMs, keyId = null, status = null } = request;
  return {
    ...{ requestId, atMs, accountId, keyId, route, characters, status },
    voice: request.voice ?? null,
    end: endOf(request),
    reason: refusal ?? outcome,
    firstAudioMs: firstAudioMs === undefined ? null : rounded(firstAudioMs),
    totalMs: rounded(request.totalMs),
  };
};

/** @param namesOf also refuses a member who asks for another account */
export const requestsPage = async (
  requests: RecentRequests,
  { accountId, before, keyId, status }: RequestsQuestion,
  namesOf: (question: NamesQuestion) => Promise<Names>,
): Promise<RequestsPage> => {
  const rows: RequestRow[] = [];
  let next: number | null = null;
  let last = 0;
  const keyIds = new Set<number>();
  for (const kept of requests) {
    const { number, request } = kept;
    if (accountId !== null && request.accountId !== accountId) continue;
    if (before === null && request.keyId !== undefined && keyIds.size < KEYS_MAX) keyIds.add(request.keyId);
    const isAsked =
      (before === null || number < before) &&
      (keyId === null || request.keyId === keyId) &&
      (status === null || status === (typeof status === 'number' ? request.status : endOf(request)));
    if (!isAsked || next !== null) continue;
    if (rows.length === PAGE_ROWS) next = last;
    else {
      rows.push(rowOf(kept));
      last = number;
    }
  }
  const accountIds = new Set<number>();
  for (const row of rows) {
    if (row.keyId !== null) keyIds.add(row.keyId);
    if (row.accountId !== null) accountIds.add(row.accountId);
  }
  const names = await namesOf({ accountId, accountIds: [...accountIds], keyIds: [...keyIds] });
  return { rows, next, ...names };
};
