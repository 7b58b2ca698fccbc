/**
 * What accounts and keys used, for an operator. Read from sums by the hour that the store keeps as it writes, and from
 * the ledger itself for the part of an hour at the start of the period: exact, and quick however long the ledger is.
 */
import type { DatabaseSync } from 'node:sqlite';
import { AdministrationError } from './administration.js';
import { openExisting, wordStoreError } from '../store/sqlite/database.js';

export interface Use {
  /** That were charged, whether or not it was refunded. */
  readonly requests: number;
  /** Code points charged. */
  readonly characters: number;
  /** Credits charged. */
  readonly credits: number;
  /** Of these, credits given back. */
  readonly refunded: number;
  /** Milliseconds since 1970 of the first and last charge in the period; `null` when there is none. */
  readonly firstAtMs: number | null;
  readonly lastAtMs: number | null;
}

export interface KeyUse extends Use {
  readonly prefix: string;
  readonly revoked: boolean;
}

export interface AccountUse extends Use {
  readonly account: string;
  readonly metered: boolean;
  /** Now, whatever the period. */
  readonly balance: number;
  /** In the order of their making; also those that were not used. */
  readonly keys: readonly KeyUse[];
}

export interface UsagePeriod {
  /** An account's name; `null` for all. */
  readonly account: string | null;
  /** Milliseconds since 1970; `null` for all of the time. */
  readonly sinceMs: number | null;
}

const HOUR_MS = 3_600_000;

/** To the integers that a number holds. */
const clamped = (sum: string) => `max(min(${sum}, 9007199254740991), -9007199254740991)`;

const sums = ['requests', 'characters', 'credits', 'refunded']
  .map((name) => `sum(${name}) AS ${name}`)
  .join();
const times = 'min(first_at_ms) AS first_at_ms, max(last_at_ms) AS last_at_ms';

// The join goes from a key to its hours: a range of the primary key each, in the order of the groups.
const useOf = (account: string) => `
  SELECT key_id, ${sums}, ${times} FROM (
    SELECT key_id, ${sums}, ${times}
    FROM api_keys CROSS JOIN usage_hours ON key_id = api_keys.id AND hour >= :hour
    ${account && `WHERE api_keys.account_id = ${account}`} GROUP BY api_keys.id
    UNION ALL
    SELECT key_id, sum(begins_request), coalesce(sum(characters) FILTER (WHERE kind = 'usage'), 0),
      coalesce(sum(-amount) FILTER (WHERE kind = 'usage'), 0),
      coalesce(sum(amount) FILTER (WHERE kind = 'refund'), 0), min(at_ms), max(at_ms)
    FROM ledger WHERE at_ms >= :since AND at_ms < :hour * ${HOUR_MS} AND kind <> 'grant'
    ${account && `AND account_id = ${account}`} GROUP BY key_id
  ) GROUP BY key_id
`;

const report = (account: string) => `
  SELECT accounts.id AS account_id, name, metered, ${clamped('balance')} AS balance, prefix, revoked_at_ms,
    ${clamped('requests')} AS requests, ${clamped('characters')} AS characters,
    ${clamped('credits')} AS credits, ${clamped('refunded')} AS refunded, first_at_ms, last_at_ms
  FROM accounts LEFT JOIN api_keys ON api_keys.account_id = accounts.id
  LEFT JOIN (${useOf(account)}) AS used ON used.key_id = api_keys.id
  ${account && `WHERE accounts.id = ${account}`} ORDER BY accounts.id, api_keys.id
`;

interface ReportRow {
  readonly account_id: number;
  readonly name: string;
  readonly metered: number;
  readonly balance: number;
  /** `null` for an account without a key. */
  readonly prefix: string | null;
  readonly revoked_at_ms: number | null;
  readonly requests: number | null;
  readonly characters: number | null;
  readonly credits: number | null;
  readonly refunded: number | null;
  readonly first_at_ms: number | null;
  readonly last_at_ms: number | null;
}

const toKeyUse = (row: ReportRow, prefix: string): KeyUse => ({
  prefix,
  revoked: row.revoked_at_ms !== null,
  requests: row.requests ?? 0,
  characters: row.characters ?? 0,
  credits: row.credits ?? 0,
  refunded: row.refunded ?? 0,
  firstAtMs: row.first_at_ms,
  lastAtMs: row.last_at_ms,
});

const earliest = (a: number | null, b: number | null) =>
  a === null || b === null ? (a ?? b) : Math.min(a, b);
const latest = (a: number | null, b: number | null) => (a === null || b === null ? (a ?? b) : Math.max(a, b));

const unused: Use = { requests: 0, characters: 0, credits: 0, refunded: 0, firstAtMs: null, lastAtMs: null };

const addUse = (sum: Use, use: Use): Use => ({
  requests: sum.requests + use.requests,
  characters: sum.characters + use.characters,
  credits: sum.credits + use.credits,
  refunded: sum.refunded + use.refunded,
  firstAtMs: earliest(sum.firstAtMs, use.firstAtMs),
  lastAtMs: latest(sum.lastAtMs, use.lastAtMs),
});

const byAccount = (rows: readonly ReportRow[]): AccountUse[] => {
  const accounts = new Map<number, AccountUse & { readonly keys: KeyUse[] }>();
  for (const row of rows) {
    const { account_id: id, name, metered, balance, prefix } = row;
    const account = accounts.get(id) ?? {
      ...unused,
      account: name,
      metered: metered === 1,
      balance,
      keys: [],
    };
    if (prefix === null) {
      accounts.set(id, account);
      continue;
    }
    const key = toKeyUse(row, prefix);
    account.keys.push(key);
    accounts.set(id, { ...account, ...addUse(account, key) });
  }
  return [...accounts.values()];
};

const accountId = (database: DatabaseSync, name: string): number => {
  const row = database.prepare('SELECT id FROM accounts WHERE name = ?').get(name);
  if (row === undefined)
    throw new AdministrationError(`There is no account "${name}": see \`npm run keys -- list\``);
  return Number(row['id']);
};

const read = (database: DatabaseSync, { account, sinceMs }: UsagePeriod): AccountUse[] => {
  const since = Math.max(0, sinceMs ?? 0);
  const parameters = { since, hour: Math.ceil(since / HOUR_MS) };
  const rows =
    account === null
      ? database.prepare(report('')).all(parameters)
      : database.prepare(report(':account')).all({ ...parameters, account: accountId(database, account) });
  return byAccount(rows as unknown as ReportRow[]);
};

/**
 * One consistent moment of the store, which may be in use.
 *
 * @throws {StoreError} there is no store, or it cannot be used
 * @throws {AdministrationError} there is no such account
 */
export const readUsage = (dataDir: string, period: UsagePeriod): AccountUse[] => {
  const database = openExisting(dataDir);
  try {
    return read(database, period);
  } catch (error) {
    throw wordStoreError(dataDir, error);
  } finally {
    database.close();
  }
};
