/** What the console shows of accounts, keys, usage and balances. */
import type {
  BalanceChange,
  ListedAccount,
  ListedKey,
  StoreAdministration,
  StoreView,
  UsagePosition,
  UsageQuestion,
  UsageRow,
} from '../store/store.js';
import { csvTable } from '../api/csv.js';
import { monotonicMs } from '../monotonic.js';
import { alertsOf, EXPIRING_MS, type Alert, type RefusedCharacters } from './alerts.js';
import { refuseMember, type Actor, type FindActor } from './audit.js';
import { PLAYGROUND } from './keys.js';
import { findAccount, findKeyById } from './targets.js';

const DAY_MS = 86_400_000;
const RECENT_MS = 30 * DAY_MS;
/** Rows of one page: the front thread reads and writes this many in about 2 ms. */
const USAGE_ROWS_MAX = 1_000;
/** A page ends with the part of its period in which so much time has passed: other calls wait meanwhile. */
const USAGE_PAGE_MS = 20;
/** The days that one part covers. A part with few rows doubles the days of the next one. */
const USAGE_PART_DAYS_MAX = 32;
const FEW_ROWS = 500;
/** More than a year of days. */
const BALANCE_ROWS_MAX = 500;

/** A change of a balance, and the balance after it. */
export interface BalanceRow extends BalanceChange {
  readonly balance: number;
}

export interface UsagePage {
  readonly rows: readonly UsageRow[];
  /** The `after` of the question for the next rows; `null` if there are no more. A page may have few rows, or none. */
  readonly next: UsagePosition | null;
}

/** A page of the file of usage, in UTF-8. The first one has the header. */
export interface UsageFilePage extends Pick<UsagePage, 'next'> {
  readonly bytes: Uint8Array;
}

export const usageTable = csvTable<UsageRow>({
  time: ({ atMs }) => new Date(atMs).toISOString(),
  account: ({ account }) => account,
  key: ({ key }) => key,
  key_name: ({ keyName }) => keyName,
  voice: ({ voice }) => voice,
  requests: ({ requests }) => requests,
  characters: ({ characters }) => characters,
  credits: ({ credits }) => credits,
  refunded: ({ refunded }) => refunded,
  audio_seconds: ({ audioMs }) => audioMs / 1_000,
});

export interface NamesQuestion {
  readonly accountId: number | null;
  readonly accountIds: readonly number[];
  readonly keyIds: readonly number[];
}

export interface Names {
  /** By prefix; "Playground" for the hidden key of an account. */
  readonly keys: readonly { readonly keyId: number; readonly key: string; readonly keyName: string }[];
  readonly accounts: readonly { readonly accountId: number; readonly account: string }[];
}

/** Each part has whole days, but for the ends of the period. */
const readUsagePage = async (view: StoreView, question: UsageQuestion): Promise<UsagePage> => {
  const { accountId, toMs } = question;
  const endMs = monotonicMs() + USAGE_PAGE_MS;
  const rows: UsageRow[] = [];
  let { after } = question;
  for (let days = 1; ;) {
    const fromMs = await view.findUse(accountId, Math.max(question.fromMs, after?.atMs ?? 0));
    if (fromMs === null || fromMs >= toMs) return { rows, next: null };
    const partEndMs = Math.min(toMs, (Math.floor(fromMs / DAY_MS) + days) * DAY_MS);
    const part = { ...question, fromMs, toMs: partEndMs, ...(after !== undefined && { after }) };
    const found = await view.readUsageRows(part, USAGE_ROWS_MAX - rows.length);
    rows.push(...found);
    const last = rows.length < USAGE_ROWS_MAX ? undefined : rows.at(-1);
    if (last !== undefined) {
      const { atMs, keyId, voice } = last;
      return { rows, next: { atMs, keyId, voice } };
    }
    after = { atMs: partEndMs, keyId: 0, voice: '' };
    if (monotonicMs() >= endMs) return { rows, next: after };
    days = found.length < FEW_ROWS ? Math.min(2 * days, USAGE_PART_DAYS_MAX) : 1;
  }
};

export class Overview {
  readonly #store: StoreAdministration;
  readonly #findActor: FindActor;
  readonly #nowMs: () => number;

  constructor(store: StoreAdministration, findActor: FindActor, nowMs: () => number) {
    this.#store = store;
    this.#findActor = findActor;
    this.#nowMs = nowMs;
  }

  accounts(): Promise<readonly ListedAccount[]> {
    return this.#read((view, actor) => {
      refuseMember(actor);
      return view.listAccounts(null, this.#nowMs() - RECENT_MS);
    });
  }

  account(accountId: number): Promise<ListedAccount> {
    return this.#read(async (view, actor) => {
      await findAccount(view, actor, { accountId });
      const [account] = await view.listAccounts(accountId, this.#nowMs() - RECENT_MS);
      if (account === undefined) throw new Error(`account ${accountId} is not listed`);
      return account;
    });
  }

  keysOf(accountId: number): Promise<readonly ListedKey[]> {
    return this.#read(async (view, actor) => {
      await findAccount(view, actor, { accountId });
      return view.listKeys({ accountId });
    });
  }

  /**
   * Those that stop requests come first.
   *
   * @param accountId `null`: of all accounts, for operators
   */
  alerts(accountId: number | null, refused: RefusedCharacters): Promise<readonly Alert[]> {
    return this.#read(async (view, actor) => {
      if (accountId === null) refuseMember(actor);
      else await findAccount(view, actor, { accountId });
      const nowMs = this.#nowMs();
      const period = { expiresFromMs: nowMs, expiresToMs: nowMs + EXPIRING_MS };
      const expiring = Map.groupBy(
        await view.findKeys({ accountId, ...period }),
        ({ account }) => account.accountId,
      );
      const accounts = await view.listAccounts(accountId, nowMs - RECENT_MS);
      const alerts = accounts.flatMap((account) =>
        alertsOf(account, expiring.get(account.accountId) ?? [], refused),
      );
      const isOut = ({ cause }: Alert): number => Number(cause === 'credit.out');
      return alerts.sort((one, other) => isOut(other) - isOut(one));
    });
  }

  key(keyId: number): Promise<ListedKey> {
    return this.#read(async (view, actor) => {
      await findKeyById(view, actor, keyId);
      const [key] = await view.listKeys({ keyId });
      if (key === undefined) throw new Error(`key ${keyId} is not listed`);
      return key;
    });
  }

  usage(question: UsageQuestion): Promise<UsagePage> {
    return this.#read(async (view, actor) => {
      if (question.accountId === null) refuseMember(actor);
      else await findAccount(view, actor, { accountId: question.accountId });
      return readUsagePage(view, question);
    });
  }

  /** On this thread, because members choose names, and long ones take time. */
  async usageFile(question: UsageQuestion): Promise<UsageFilePage> {
    const { next, rows } = await this.usage(question);
    const header = question.after === undefined ? usageTable.header : '';
    return { next, bytes: new TextEncoder().encode(header + usageTable.records(rows)) };
  }

  /** Revoked and deleted ones included. @param accountId the keys are of this account; `null`: of all, for operators */
  names({ accountId, accountIds, keyIds }: NamesQuestion): Promise<Names> {
    return this.#read(async (view, actor) => {
      if (accountId === null) refuseMember(actor);
      else await findAccount(view, actor, { accountId });
      const known = new Map((await view.findKeys({ keyIds })).map((key) => [key.keyId, key]));
      const keys = keyIds.map((keyId) => {
        const found = known.get(keyId);
        return { keyId, key: found?.prefix ?? PLAYGROUND, keyName: found?.name ?? '' };
      });
      const accounts = accountIds.map(async (id) => ({
        accountId: id,
        account: (await view.findAccount({ accountId: id }))?.name ?? '',
      }));
      return { keys, accounts: await Promise.all(accounts) };
    });
  }

  /** The newest first. */
  balance(accountId: number): Promise<readonly BalanceRow[]> {
    return this.#read(async (view, actor) => {
      let { balance } = await findAccount(view, actor, { accountId });
      const changes = await view.readBalanceChanges(accountId, BALANCE_ROWS_MAX);
      return changes.map((change) => {
        const row = { ...change, balance };
        balance -= change.amount;
        return row;
      });
    });
  }

  #read<T>(work: (view: StoreView, actor: Actor) => T | Promise<T>): Promise<T> {
    return this.#store.read(async (view) => work(view, await this.#findActor(view)));
  }
}
