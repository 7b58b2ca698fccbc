/**
 * The front thread's view of the store: a copy of the accounts, and of the keys that are not revoked, in memory. It queries
 * the database for what was committed since its last query: at each notification, and every `storePollMs`. It answers for
 * `storeStaleMsMax` after the last answered query, and then throws: so no revoked key is valid for longer than that.
 *
 * The copy is that of one snapshot, with the last entry of this reader's writer that the snapshot includes.
 */
import { performance } from 'node:perf_hooks';
import { noSpeakingDefaults, type SpeakingDefaults } from '../../api/speech-settings.js';
import { toSpeaking, toVoices } from '../sql/rows.js';
import { clamped } from '../sql/sql.js';
import {
  StoreError,
  type ActiveKey,
  type CreditState,
  type KeysListener,
  type StoreReader,
} from '../store.js';
import {
  PostgresConnection,
  SERVICE_NAME,
  shownUrl,
  translate,
  type PostgresBounds,
  type Session,
} from './connection.js';
import { CHANNEL } from './schema.js';

type SpeakingFields = readonly [normalizeText: number | null, speed: number | null, lexicon: string | null];
type AccountFields = readonly [
  id: number,
  name: string,
  metered: number,
  balance: number,
  suspended: boolean,
  ...speaking: SpeakingFields,
];
type KeyFields = readonly [
  id: number,
  accountId: number,
  hash: string,
  revoked: boolean,
  expiresAtMs: number | null,
  creditLimit: number | null,
  voices: string | null,
  spent: number,
  ...speaking: SpeakingFields,
];

interface Changes {
  /** The snapshot: what the transactions that it sees changed is in this answer, or was in an earlier one. */
  readonly mark: string;
  readonly committed: number;
  readonly accounts: readonly AccountFields[] | null;
  readonly keys: readonly KeyFields[] | null;
}

/** The snapshot before the first transaction. */
const BEGINNING = '1:1:';

const isNew = `changed >= pg_snapshot_xmin(CAST(:mark AS pg_snapshot))
        AND NOT pg_visible_in_snapshot(changed, CAST(:mark AS pg_snapshot))`;
// One statement reads one snapshot. A key that was revoked before the first query is not needed.
const changesSince = translate(`
  SELECT pg_current_snapshot()::text AS mark,
    coalesce((SELECT max(entry) FROM ledger WHERE writer = :writer), 0) AS committed,
    (SELECT json_agg(json_build_array(id, name, metered, ${clamped('balance')}, suspended_at_ms IS NOT NULL,
        normalize_text, speed, lexicon))
      FROM accounts WHERE ${isNew}) AS accounts,
    (SELECT json_agg(json_build_array(id, account_id, encode(hash, 'base64'), revoked_at_ms IS NOT NULL, expires_at_ms,
        credit_limit, voices, ${clamped('spent')}, normalize_text, speed, lexicon) ORDER BY id)
      FROM api_keys WHERE ${isNew} AND (CAST(:mark AS pg_snapshot)::text <> '${BEGINNING}' OR revoked_at_ms IS NULL)) AS keys
`).text;

type CopiedKey = Omit<ActiveKey, 'account'> &
  Pick<CreditState, 'creditLimit' | 'spent'> & { readonly hash: string };

type CopiedAccount = Pick<CreditState, 'metered' | 'balance'> & {
  readonly name: string;
  readonly suspended: boolean;
  readonly speaking: SpeakingDefaults;
};

const speakingOf = ([normalizeText, speed, lexiconId]: SpeakingFields): SpeakingDefaults =>
  normalizeText === null && speed === null && lexiconId === null
    ? noSpeakingDefaults
    : toSpeaking({ normalizeText, speed, lexiconId });

/** SHA-256 of a key, as `changesSince` returns it. */
const toText = (hash: Uint8Array): string => Buffer.from(hash).toString('base64');

export class PostgresReader implements StoreReader {
  readonly #url: string;
  readonly #bounds: PostgresBounds;
  readonly #writer: number;
  readonly #connection: PostgresConnection;
  readonly #accounts = new Map<number, CopiedAccount>();
  readonly #keys = new Map<number, CopiedKey>();
  readonly #keyIds = new Map<string, number>();
  #committedEntry = 0;
  /** The session that the copy came from. The next one may lead to another server. */
  #session: Session | null = null;
  #mark = BEGINNING;
  /** Monotonic clock, when the last answered query was sent. */
  #askedAtMs = -Infinity;
  #fault: StoreError | null = null;
  #running: Promise<void> = Promise.resolve();
  /** A refresh that has not sent its query yet. */
  #waiting: Promise<void> | null = null;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #onEnded: KeysListener = () => undefined;

  /** @param writer see `StoreDriver.openReader` */
  constructor(url: string, bounds: PostgresBounds, writer: number) {
    this.#url = url;
    this.#bounds = bounds;
    this.#writer = writer;
    this.#connection = new PostgresConnection(url, {
      bounds,
      name: SERVICE_NAME,
      channel: CHANNEL,
      onNotification: () => void this.refresh(),
    });
  }

  /** @throws {StoreError} the first query has no answer */
  async start(): Promise<void> {
    await this.refresh();
    this.probe();
  }

  refresh(): Promise<void> {
    this.#waiting ??= this.#running.then(() => {
      this.#waiting = null;
      this.#running = this.#isClosed ? Promise.resolve() : this.#ask();
      return this.#running;
    });
    return this.#waiting;
  }

  findActiveKey(by: { readonly hash: Uint8Array } | { readonly keyId: number }): ActiveKey | null {
    this.probe();
    const keyId = 'hash' in by ? this.#keyIds.get(toText(by.hash)) : by.keyId;
    const key = keyId === undefined ? undefined : this.#keys.get(keyId);
    const account = key && this.#accounts.get(key.accountId);
    if (key === undefined || account === undefined || account.suspended) return null;
    const { accountId, expiresAtMs, voices } = key;
    const speaking: SpeakingDefaults = {
      normalizeText: key.speaking.normalizeText ?? account.speaking.normalizeText,
      speed: key.speaking.speed ?? account.speaking.speed,
      lexiconId: key.speaking.lexiconId ?? account.speaking.lexiconId,
    };
    return { keyId: key.keyId, accountId, account: account.name, expiresAtMs, voices, speaking };
  }

  settledEntry(): number {
    return this.#committedEntry;
  }

  readCredit(keyId: number): CreditState | null {
    this.probe();
    const key = this.#keys.get(keyId);
    const account = key && this.#accounts.get(key.accountId);
    if (key === undefined || account === undefined) return null;
    const { metered, balance } = account;
    const { creditLimit, spent } = key;
    return { metered, balance, creditLimit, spent, committedEntry: this.#committedEntry };
  }

  watchKeys(listener: KeysListener): void {
    this.#onEnded = listener;
  }

  probe(): void {
    if (performance.now() - this.#askedAtMs <= this.#bounds.storeStaleMsMax) return;
    throw (
      this.#fault ??
      new StoreError(
        'unreachable',
        `The store ${shownUrl(this.#url)} cannot be used (no answer in ${this.#bounds.storeStaleMsMax} ms): see its load`,
      )
    );
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#connection.close();
  }

  async #ask(): Promise<void> {
    clearTimeout(this.#timer);
    const askedAtMs = performance.now();
    try {
      const session = await this.#connection.session();
      if (session !== this.#session) {
        this.#mark = BEGINNING;
        this.#session = session;
      }
      const [changes] = await session.query<Changes>(changesSince, [this.#writer, this.#mark]);
      if (changes === undefined) throw new Error('the query for changes returned no row');
      const touched = this.#touchedBy(changes);
      this.#apply(changes);
      this.#askedAtMs = askedAtMs;
      this.#fault = null;
      const ended = touched.filter((keyId) => !this.#isActive(keyId));
      if (ended.length > 0) this.#onEnded(ended);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      this.#fault = error;
    }
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.refresh(), this.#bounds.storePollMs);
  }

  #isActive(keyId: number): boolean {
    const key = this.#keys.get(keyId);
    return key !== undefined && this.#accounts.get(key.accountId)?.suspended === false;
  }

  /** Keys of the copy that these changes may end. */
  #touchedBy({ accounts, keys }: Changes): number[] {
    if (this.#mark === BEGINNING) return [...this.#keys.keys()];
    const suspended = new Set<number>();
    for (const [id, , , , isSuspended] of accounts ?? [])
      if (isSuspended && this.#accounts.get(id)?.suspended === false) suspended.add(id);
    const touched = (keys ?? []).flatMap(([keyId, , , revoked]) =>
      revoked && this.#keys.has(keyId) ? keyId : [],
    );
    if (suspended.size > 0)
      for (const { keyId, accountId } of this.#keys.values())
        if (suspended.has(accountId)) touched.push(keyId);
    return touched;
  }

  #apply({ mark, committed, accounts, keys }: Changes): void {
    if (this.#mark === BEGINNING) {
      this.#accounts.clear();
      this.#keys.clear();
      this.#keyIds.clear();
    }
    for (const [id, name, metered, balance, suspended, ...speaking] of accounts ?? [])
      this.#accounts.set(id, {
        ...{ name, metered: metered === 1, balance, suspended },
        speaking: speakingOf(speaking),
      });
    for (const [
      keyId,
      accountId,
      hash,
      revoked,
      expiresAtMs,
      creditLimit,
      voices,
      spent,
      ...speaking
    ] of keys ?? []) {
      if (revoked) {
        this.#keys.delete(keyId);
        this.#keyIds.delete(hash);
        continue;
      }
      this.#keys.set(keyId, {
        ...{ keyId, accountId, hash, expiresAtMs, creditLimit, spent },
        voices: toVoices(voices),
        speaking: speakingOf(speaking),
      });
      this.#keyIds.set(hash, keyId);
    }
    this.#committedEntry = committed;
    this.#mark = mark;
  }
}
