/** How the last requests ended, for the console: in memory only, and nothing that a client wrote but the id of a voice. */
import type { RefusalReason } from './refusals.js';

/** `aborted`: the client left. `cancelled`: it cancelled a context. The service ends the others. */
export type RequestOutcome =
  | 'complete'
  | 'refused'
  | 'failed'
  | 'aborted'
  | 'cancelled'
  | 'reader-stalled'
  | 'body-late'
  | 'revoked'
  | 'silent'
  | 'flooded'
  | 'drained';

/** A request, or a context of a WebSocket, that is over; or a frame or text that was refused. */
export interface EndedRequest {
  /** The `x-request-id`; of a context, that of its WebSocket. */
  readonly requestId: string;
  /** Absent: it has shown no key. */
  readonly keyId?: number | undefined;
  readonly accountId?: number | undefined;
  /** As in the metrics. */
  readonly route: string;
  /** That exists, or that was asked for: see `askedVoice`. */
  readonly voice?: string | undefined;
  readonly characters?: number | undefined;
  /** Absent: no answer had begun. */
  readonly status?: number | undefined;
  readonly outcome: RequestOutcome;
  readonly refusal?: RefusalReason | undefined;
  readonly firstAudioMs?: number | undefined;
  readonly totalMs: number;
}

/** The id of a voice that does not exist; `undefined` if it may be a text or a key in the wrong place. */
export const askedVoice = (id: string): string | undefined =>
  /^(?!\w*sk[-_])[\w.+-]{1,40}$/.test(id) ? id : undefined;

/** The four ways to end. */
export type RequestEnd = 'complete' | 'refused' | 'failed' | 'stopped';

export const endOf = ({ outcome, refusal }: Pick<EndedRequest, 'outcome' | 'refusal'>): RequestEnd => {
  if (outcome === 'failed') return 'failed';
  if (outcome === 'refused' || refusal !== undefined) return 'refused';
  return outcome === 'complete' ? 'complete' : 'stopped';
};

/** A request with its place in the order of all. */
export interface KeptRequest {
  readonly number: number;
  readonly atMs: number;
  readonly request: EndedRequest;
}

interface Row extends KeptRequest {
  older: Row | null;
  newer: Row | null;
  /** Of the same account. */
  newerOwn: Row | null;
}

interface Own {
  oldest: Row;
  newest: Row;
  count: number;
}

/** Requests that have shown no key count as those of one account. */
const KEYLESS = 0;
const accountOf = ({ accountId }: EndedRequest): number => accountId ?? KEYLESS;

export interface RequestFilter {
  /** `null`: all accounts, and requests that have shown no key. */
  readonly accountId: number | null;
  readonly keyId: number | null;
  /** How it ended, or its HTTP status. */
  readonly status: RequestEnd | number | null;
  /** Older ones than this number; `null`: from the newest on. */
  readonly before: number | null;
}

export interface PageOfRequests {
  /** The newest first. */
  readonly rows: readonly KeptRequest[];
  /** The `before` of the next page. */
  readonly next: number | null;
  /** Keys of the rows, and at first also of other requests of the account, to choose from. */
  readonly keyIds: ReadonlySet<number>;
}

/** A browser draws so many in about 30 ms. */
const PAGE_ROWS = 50;
const KEYS_TO_CHOOSE_MAX = 100;

export interface RequestBounds {
  /** Of all accounts together. */
  readonly requestsKeptMax: number;
  readonly requestsOfAccountMax: number;
}

/**
 * The last requests of each account. A full account loses its own oldest one, so that it takes none from others; when the whole
 * is full, the oldest of all goes. To add one takes about a microsecond.
 */
export class RecentRequests {
  readonly #bounds: RequestBounds;
  readonly #accounts = new Map<number, Own>();
  #newest: Row | null = null;
  #oldest: Row | null = null;
  #count = 0;
  #lastNumber = 0;

  constructor(bounds: RequestBounds) {
    this.#bounds = bounds;
  }

  add(request: EndedRequest, atMs = Date.now()): void {
    const accountId = accountOf(request);
    const full = this.#accounts.get(accountId);
    if (full?.count === this.#bounds.requestsOfAccountMax) this.#drop(full.oldest);
    else if (this.#count === this.#bounds.requestsKeptMax && this.#oldest !== null) this.#drop(this.#oldest);
    const number = ++this.#lastNumber;
    const row: Row = { number, atMs, request, older: this.#newest, newer: null, newerOwn: null };
    if (this.#newest === null) this.#oldest = row;
    else this.#newest.newer = row;
    this.#newest = row;
    this.#count++;
    const own = this.#accounts.get(accountId);
    if (own === undefined) this.#accounts.set(accountId, { oldest: row, newest: row, count: 1 });
    else {
      own.newest.newerOwn = row;
      own.newest = row;
      own.count++;
    }
  }

  page({ accountId, before, keyId, status }: RequestFilter): PageOfRequests {
    const rows: KeptRequest[] = [];
    const keyIds = new Set<number>();
    let next: number | null = null;
    for (let row = this.#newest; row !== null; row = row.older) {
      const { number, request } = row;
      if (accountId !== null && request.accountId !== accountId) continue;
      if (before === null && request.keyId !== undefined && keyIds.size < KEYS_TO_CHOOSE_MAX)
        keyIds.add(request.keyId);
      const isAsked =
        next === null &&
        (before === null || number < before) &&
        (keyId === null || request.keyId === keyId) &&
        (status === null || status === (typeof status === 'number' ? request.status : endOf(request)));
      if (!isAsked) continue;
      if (rows.length === PAGE_ROWS) next = rows.at(-1)?.number ?? null;
      else rows.push(row);
    }
    for (const { request } of rows) if (request.keyId !== undefined) keyIds.add(request.keyId);
    return { rows, next, keyIds };
  }

  /** @returns by account: the characters of the newest request that was refused for lack of credit */
  refusedCharacters(): ReadonlyMap<number, number> {
    const found = new Map<number, number>();
    for (let row = this.#newest; row !== null; row = row.older) {
      const { accountId, characters, refusal } = row.request;
      if (refusal === 'creditExhausted' && accountId !== undefined && !found.has(accountId))
        found.set(accountId, characters ?? 0);
    }
    return found;
  }

  /** @param row the oldest of its account */
  #drop(row: Row): void {
    const accountId = accountOf(row.request);
    const own = this.#accounts.get(accountId);
    if (own === undefined || row.newerOwn === null) this.#accounts.delete(accountId);
    else {
      own.oldest = row.newerOwn;
      own.count--;
    }
    if (row.older === null) this.#oldest = row.newer;
    else row.older.newer = row.newer;
    if (row.newer === null) this.#newest = row.older;
    else row.newer.older = row.older;
    this.#count--;
  }
}
