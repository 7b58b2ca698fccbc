/** Finds sums that are not those of their entries. PostgreSQL itself checks its pages. Read only. */
import { FINDINGS_MAX, wrongBalances, wrongDays, wrongKeys } from '../sql/sums.js';
import { StoreError } from '../store.js';
import { SNAPSHOT, type PostgresConnection } from './connection.js';

const entries = 'SELECT account_id, sum(amount) AS amount FROM ledger GROUP BY account_id';

/** The same sums without reading the ledger: the entries that are in no hour are in a partial index. */
const hours = `
  SELECT account_id, sum(amount) AS amount FROM (
    SELECT account_id, amount FROM ledger WHERE kind = 'grant' OR key_id IS NULL
    UNION ALL
    SELECT account_id, refunded - credits FROM usage_hours JOIN api_keys ON api_keys.id = key_id
  ) AS parts GROUP BY account_id
`;

const hoursOfLedger = `
  SELECT key_id, at_ms / 3600000 AS hour, voice, sum(begins_request)::bigint,
    coalesce(sum(characters) FILTER (WHERE kind = 'usage'), 0)::bigint,
    coalesce(sum(-amount) FILTER (WHERE kind = 'usage'), 0)::bigint,
    coalesce(sum(amount) FILTER (WHERE kind = 'refund'), 0)::bigint,
    coalesce(sum(audio_ms) FILTER (WHERE kind = 'usage'), 0)::bigint, min(at_ms), max(at_ms)
  FROM ledger WHERE kind <> 'grant' AND key_id IS NOT NULL GROUP BY 1, 2, 3
`;

const wrongHours = `
  SELECT DISTINCT 'the use of key ' || key_id || ' in hour ' || hour || ' is not the sum of its entries' AS finding
  FROM (
    (${hoursOfLedger} EXCEPT SELECT * FROM usage_hours)
    UNION ALL (SELECT * FROM usage_hours EXCEPT ${hoursOfLedger})
  ) AS wrong ORDER BY 1 LIMIT ${FINDINGS_MAX}
`;

/** Milliseconds of each check of a start: below what a statement of a service may take. */
const QUICK_MS_MAX = 2_000;

const find = (connection: PostgresConnection, limitMs: number, texts: readonly string[]): Promise<string[]> =>
  connection.transact(SNAPSHOT, async (session) => {
    await session.query(`SET LOCAL statement_timeout = ${limitMs}`);
    const found: string[] = [];
    for (const text of texts)
      for (const { finding } of await session.query<{ finding: string }>(text)) found.push(finding);
    return found.slice(0, FINDINGS_MAX);
  });

/**
 * Reads the whole store, and may take long.
 *
 * @returns what is wrong; empty for a good store
 * @throws {StoreError} the store cannot be read
 */
export const findDamage = (connection: PostgresConnection): Promise<string[]> =>
  find(connection, 0, [wrongBalances(entries), wrongHours, wrongDays, wrongKeys()]);

/**
 * What a start looks for, without reading the ledger. With a long history this, too, takes minutes: then nothing is found.
 *
 * @throws {StoreError} the store cannot be read
 */
export const findQuickly = async (connection: PostgresConnection): Promise<string[]> => {
  try {
    return await find(connection, QUICK_MS_MAX, [wrongBalances(hours), wrongKeys()]);
  } catch (error) {
    if (error instanceof StoreError && error.fault === 'busy') return [];
    throw error;
  }
};
