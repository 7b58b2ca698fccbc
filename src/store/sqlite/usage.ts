/**
 * Reports usage. Sums by the hour, which triggers keep, cover all full hours; the ledger itself covers the part of an
 * hour at the start of the period. So a report is exact, and quick however long the ledger is.
 */
import {
  AdministrationError,
  type Account,
  type AccountUsage,
  type UsagePeriod,
  type Use,
} from '../store.js';
import { accountColumns, toAccount, type AccountRow } from './administration.js';
import { clamped, openExisting, toStoreError, type SqliteBounds } from './database.js';

const HOUR_MS = 3_600_000;

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
  SELECT ${accountColumns}, prefix, revoked_at_ms,
    ${clamped('requests')} AS requests, ${clamped('characters')} AS characters,
    ${clamped('credits')} AS credits, ${clamped('refunded')} AS refunded, first_at_ms, last_at_ms
  FROM accounts LEFT JOIN api_keys ON api_keys.account_id = accounts.id
  LEFT JOIN (${useOf(account)}) AS used ON used.key_id = api_keys.id
  ${account && `WHERE accounts.id = ${account}`} ORDER BY accounts.id, api_keys.id
`;

/** The columns of a key are `null` for an account without keys, those of its use for a key without use. */
interface ReportRow extends AccountRow {
  readonly prefix: string | null;
  readonly revoked_at_ms: number | null;
  readonly requests: number | null;
  readonly characters: number | null;
  readonly credits: number | null;
  readonly refunded: number | null;
  readonly first_at_ms: number | null;
  readonly last_at_ms: number | null;
}

const toUse = (row: ReportRow): Use => ({
  requests: row.requests ?? 0,
  characters: row.characters ?? 0,
  credits: row.credits ?? 0,
  refunded: row.refunded ?? 0,
  firstAtMs: row.first_at_ms,
  lastAtMs: row.last_at_ms,
});

const byAccount = (rows: readonly ReportRow[]): AccountUsage[] => {
  const found = new Map<number, { account: Account; keys: AccountUsage['keys'][number][] }>();
  for (const row of rows) {
    const usage = found.get(row.account_id) ?? { account: toAccount(row), keys: [] };
    found.set(row.account_id, usage);
    if (row.prefix !== null)
      usage.keys.push({ prefix: row.prefix, revoked: row.revoked_at_ms !== null, use: toUse(row) });
  }
  return [...found.values()];
};

/** See `StoreDriver.readUsage`. */
export const readUsage = (
  dataDir: string,
  bounds: SqliteBounds,
  { account, sinceMs }: UsagePeriod,
): AccountUsage[] => {
  const database = openExisting(dataDir, bounds);
  try {
    const since = Math.max(0, sinceMs ?? 0);
    const parameters = { since, hour: Math.ceil(since / HOUR_MS) };
    if (account === null)
      return byAccount(database.prepare(report('')).all(parameters) as unknown as ReportRow[]);
    const id = database.prepare('SELECT id FROM accounts WHERE name = ?').get(account)?.['id'];
    if (id === undefined)
      throw new AdministrationError(`There is no account "${account}": see \`npm run keys -- list\``);
    const rows = database.prepare(report(':account')).all({ ...parameters, account: id });
    return byAccount(rows as unknown as ReportRow[]);
  } catch (error) {
    throw toStoreError(dataDir, error);
  } finally {
    database.close();
  }
};
