/**
 * Reports usage. Sums by the hour, which triggers keep, cover all full hours; the ledger itself covers the parts of an
 * hour at the ends of a period. So a report is exact, and quick however long the ledger is.
 */
import { AdministrationError } from '../faults.js';
import type {
  Account,
  AccountUsage,
  BalanceChange,
  UsagePeriod,
  UsagePosition,
  UsageQuestion,
  UsageRow,
  Use,
} from '../records.js';
import { People } from './people.js';
import { accountPart, apart } from './rows.js';
import { clamped, columnsOf, type Sql } from './sql.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const names = ['requests', 'characters', 'credits', 'refunded', 'audio_ms'];
const sums = names.map((name) => `sum(${name}) AS ${name}`).join();
// A key without use has no sums.
const clampedSums = columnsOf(names.map((name) => `${clamped(`coalesce(${name}, 0)`)} AS ${name}`));
/** In the order of `names`. */
const sumsOfLedger = `
  sum(begins_request), coalesce(sum(characters) FILTER (WHERE kind = 'usage'), 0),
  coalesce(sum(-amount) FILTER (WHERE kind = 'usage'), 0),
  coalesce(sum(amount) FILTER (WHERE kind = 'refund'), 0),
  coalesce(sum(audio_ms) FILTER (WHERE kind = 'usage'), 0)
`;
const times = 'min(first_at_ms) AS first_at_ms, max(last_at_ms) AS last_at_ms';

// The join goes from a key to its hours: a range of the primary key each, in the order of the groups.
const useOf = (account: string) => `
  SELECT key_id, ${sums}, ${times} FROM (
    SELECT api_keys.id AS key_id, ${sums}, ${times}
    FROM api_keys CROSS JOIN usage_hours ON key_id = api_keys.id AND hour >= :hour
    ${account && `WHERE api_keys.account_id = ${account}`} GROUP BY api_keys.id
    UNION ALL
    SELECT key_id, ${sumsOfLedger}, min(at_ms), max(at_ms)
    FROM ledger WHERE at_ms >= :since AND at_ms < :hour * ${HOUR_MS} AND kind <> 'grant'
    ${account && `AND account_id = ${account}`} GROUP BY key_id
  ) AS parts GROUP BY key_id
`;

const report = (account: string) => `
  SELECT ${accountPart}, prefix, ${clampedSums}, ${columnsOf(['revoked_at_ms', 'first_at_ms', 'last_at_ms'])}
  FROM accounts LEFT JOIN api_keys ON api_keys.account_id = accounts.id
  LEFT JOIN (${useOf(account)}) AS used ON used.key_id = api_keys.id
  ${account && `WHERE accounts.id = ${account}`} ORDER BY accounts.id, api_keys.id
`;

/** The columns of a key are `null` for an account without keys. */
interface ReportRow extends Use {
  readonly prefix: string | null;
  readonly revokedAtMs: number | null;
}

const byAccount = (rows: readonly ReportRow[]): AccountUsage[] => {
  const found = new Map<number, { account: Account; keys: AccountUsage['keys'][number][] }>();
  for (const row of rows) {
    const [{ prefix, revokedAtMs, ...use }, account] = apart(row);
    const usage = found.get(account.accountId) ?? { account, keys: [] };
    found.set(account.accountId, usage);
    if (prefix !== null) usage.keys.push({ prefix, revoked: revokedAtMs !== null, use });
  }
  return [...found.values()];
};

/** See `StoreDriver.readUsage`. */
export const readUsage = async (sql: Sql, { account, sinceMs }: UsagePeriod): Promise<AccountUsage[]> => {
  const since = Math.max(0, sinceMs ?? 0);
  const parameters = { since, hour: Math.ceil(since / HOUR_MS) };
  if (account === null) return byAccount(await sql.named<ReportRow>(report(''), parameters));
  const [found] = await sql.all<{ id: number }>('SELECT id FROM accounts WHERE name = ?', account);
  if (found === undefined)
    throw new AdministrationError(`There is no account "${account}": see \`npm run keys -- list\``);
  return byAccount(await sql.named<ReportRow>(report(':account'), { ...parameters, account: found.id }));
};

/** SQLite refuses a parameter that a statement lacks. */
const named = (accountId: number | null) => accountId !== null && { account: accountId };
const ofAccount = (accountId: number | null) => (accountId === null ? 'true' : 'account_id = :account');

const partOfHour = (stepMs: number, account: string, from: string, to: string) => `
  SELECT key_id, at_ms / ${stepMs} * ${stepMs} AS step_ms, voice, ${sumsOfLedger}
  FROM ledger
  WHERE at_ms >= ${from} AND at_ms < ${to} AND kind <> 'grant' AND ${account}
  GROUP BY 1, 2, 3
`;

const stepColumns = columnsOf([
  ...['step_ms AS atMs', 'account_id', 'accounts.name AS account'],
  ...['key_id', 'prefix AS key', 'api_keys.name AS keyName', 'voice'],
]);

// The step is not a parameter: a number from JavaScript is a float there, and its division too.
const rowsOfSteps = (stepMs: number, account: string) => `
  SELECT ${stepColumns}, ${clampedSums}
  FROM (
    SELECT key_id, step_ms, voice, ${sums} FROM (
      SELECT key_id, hour * ${HOUR_MS} / ${stepMs} * ${stepMs} AS step_ms, voice, ${sums}
      FROM api_keys CROSS JOIN usage_hours ON key_id = api_keys.id AND hour >= :fromHour AND hour < :toHour
      WHERE ${account} GROUP BY 1, 2, 3
      UNION ALL ${partOfHour(stepMs, account, ':from', ':headEnd')}
      UNION ALL ${partOfHour(stepMs, account, ':tailStart', ':to')}
    ) AS parts GROUP BY 1, 2, 3
  ) AS steps JOIN api_keys ON api_keys.id = key_id JOIN accounts ON accounts.id = account_id
  WHERE (step_ms, key_id, voice) > (:afterMs, :afterKey, :afterVoice)
  ORDER BY step_ms, key_id, voice LIMIT :rows
`;

/** Before all rows. */
const FIRST: UsagePosition = { atMs: -1, keyId: 0, voice: '' };

// A seek in the primary key for each key, however long ago its use was.
const firstHour = (account: string) => `
  SELECT min(hour) AS hour FROM (
    SELECT (SELECT min(hour) FROM usage_hours WHERE key_id = api_keys.id AND hour >= :hour) AS hour
    FROM api_keys WHERE ${account}
  ) AS hours
`;

const balanceChanges = `
  SELECT at_ms AS "atMs", kind, ${clamped('amount')} AS amount FROM (
    SELECT at_ms, 'grant' AS kind, amount FROM ledger WHERE account_id = :account AND kind = 'grant'
    UNION ALL
    SELECT last_at_ms, 'spent', amount FROM usage_days WHERE account_id = :account
  ) AS changes WHERE amount <> 0 ORDER BY at_ms DESC, kind DESC LIMIT :rows
`;

/** Reads usage and balances. */
export class UsageReader extends People {
  /**
   * When an account, or any (`null`), was used next: to the hour.
   *
   * @returns at least `fromMs`; `null` if it was not
   */
  async findUse(accountId: number | null, fromMs: number): Promise<number | null> {
    const hour = Math.floor(fromMs / HOUR_MS);
    const text = firstHour(ofAccount(accountId));
    const rows = await this.sql.named<{ hour: number | null }>(text, { ...named(accountId), hour });
    const found = rows[0]?.hour ?? null;
    return found === null ? null : Math.max(fromMs, found * HOUR_MS);
  }

  /** In the order of time, keys and voices. @param rowsMax the rest follows `after` the last of these rows */
  async readUsageRows(
    { accountId, fromMs: startMs, toMs, step, after = FIRST }: UsageQuestion,
    rowsMax: number,
  ): Promise<UsageRow[]> {
    const fromMs = Math.max(startMs, after.atMs);
    const fromHour = Math.ceil(fromMs / HOUR_MS);
    // A period within one hour has no full hour, and the part at its start is all of it.
    const toHour = Math.max(fromHour, Math.floor(toMs / HOUR_MS));
    return this.sql.named(rowsOfSteps(step === 'hour' ? HOUR_MS : DAY_MS, ofAccount(accountId)), {
      ...named(accountId),
      from: fromMs,
      headEnd: Math.min(fromHour * HOUR_MS, toMs),
      fromHour,
      toHour,
      tailStart: toHour * HOUR_MS,
      to: toMs,
      afterMs: after.atMs,
      afterKey: after.keyId,
      afterVoice: after.voice,
      rows: rowsMax,
    });
  }

  /** The newest first. */
  async readBalanceChanges(accountId: number, rowsMax: number): Promise<BalanceChange[]> {
    return this.sql.named(balanceChanges, { account: accountId, rows: rowsMax });
  }
}
