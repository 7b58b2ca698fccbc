/** How the last requests ended, for the console: in memory only, and nothing that a client wrote but the id of a voice. */
import type { Bounds } from './limits.js';
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
/** Numbers of dropped rows that the search for the oldest one passes in a call. */
const MISSES_MAX = 1_000;

type RequestBounds = Pick<Bounds, 'requestsKeptMax' | 'requestsOfAccountMax'>;

/**
 * The last requests of each account. A full account loses its own oldest one, so that it takes none from others; when the whole
 * is full, the oldest of all goes.
 */
export class RecentRequests {
  readonly #bounds: RequestBounds;
  /** By number, the oldest first. */
  readonly #rows = new Map<number, KeptRequest>();
  /** The numbers of each account, the oldest first. */
  readonly #accounts = new Map<number, Set<number>>();
  #lastNumber = 0;
  /** At most that of the oldest row. */
  #oldestNumber = 1;

  constructor(bounds: RequestBounds) {
    this.#bounds = bounds;
  }

  add(request: EndedRequest, atMs = Date.now()): void {
    const accountId = accountOf(request);
    const { requestsKeptMax, requestsOfAccountMax } = this.#bounds;
    const full = this.#accounts.get(accountId);
    if (full?.size === requestsOfAccountMax) this.#drop(full.values().next().value!);
    else if (this.#rows.size === requestsKeptMax) this.#drop(this.#oldest());
    const number = ++this.#lastNumber;
    this.#rows.set(number, { number, atMs, request });
    const own = this.#accounts.get(accountId) ?? new Set();
    this.#accounts.set(accountId, own.add(number));
  }

  page({ accountId, before, keyId, status }: RequestFilter): PageOfRequests {
    const rows: KeptRequest[] = [];
    const keyIds = new Set<number>();
    let next: number | null = null;
    for (const row of this.#newestFirst()) {
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
    for (const { request } of this.#newestFirst()) {
      const { accountId, characters, refusal } = request;
      if (refusal === 'creditExhausted' && accountId !== undefined && !found.has(accountId))
        found.set(accountId, characters ?? 0);
    }
    return found;
  }

  /** A map passes all that were dropped lately before its first row. So the number goes on by itself, but not across a large gap. */
  #oldest(): number {
    for (let misses = 0; !this.#rows.has(this.#oldestNumber); misses++)
      if (misses < MISSES_MAX) this.#oldestNumber++;
      else this.#oldestNumber = this.#rows.keys().next().value!;
    return this.#oldestNumber;
  }

  #newestFirst(): readonly KeptRequest[] {
    return [...this.#rows.values()].reverse();
  }

  #drop(number: number): void {
    const accountId = accountOf(this.#rows.get(number)!.request);
    const own = this.#accounts.get(accountId);
    own?.delete(number);
    if (own?.size === 0) this.#accounts.delete(accountId);
    this.#rows.delete(number);
  }
}
