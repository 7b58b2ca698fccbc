/** Finds sums that are not those of what they add up, in the SQL that all stores share. A row is one `finding`. */

/** A damaged store can have a finding for each row: the first ones are enough. */
export const FINDINGS_MAX = 20;

/** @param sums a statement: `account_id` and `amount` */
export const wrongBalances = (sums: string): string => `
  SELECT 'account "' || name || '" has a balance of ' || balance || ', and the sum of its entries is '
    || coalesce(amount, 0) AS finding
  FROM accounts LEFT JOIN (${sums}) AS sums ON account_id = accounts.id
  WHERE balance <> coalesce(amount, 0) ORDER BY accounts.id LIMIT ${FINDINGS_MAX}
`;

// The hours are right if they are the sums of the ledger, which is checked beside this.
/** @param charged what older versions do not keep */
export const wrongKeys = (charged = 'charged_characters'): string => `
  SELECT 'key ' || prefix || '... has spent ' || spent || ' for ' || ${charged}
    || ' characters, and the sum of its entries is ' || coalesce(amount, 0) || ' for ' || coalesce(characters, 0) AS finding
  FROM api_keys LEFT JOIN (
    SELECT key_id, sum(credits - refunded) AS amount, sum(characters) AS characters FROM usage_hours GROUP BY key_id
  ) AS used ON key_id = api_keys.id
  WHERE spent <> coalesce(amount, 0) OR ${charged} <> coalesce(characters, 0)
  ORDER BY api_keys.id LIMIT ${FINDINGS_MAX}
`;

const daysOfHours = `
  SELECT account_id, hour / 24 AS day, CAST(sum(characters) AS BIGINT), CAST(sum(refunded - credits) AS BIGINT), max(last_at_ms)
  FROM usage_hours JOIN api_keys ON api_keys.id = key_id GROUP BY 1, 2
`;
const days = 'SELECT account_id, day, characters, amount, last_at_ms FROM usage_days';

export const wrongDays = `
  SELECT DISTINCT 'the use of account ' || account_id || ' on day ' || day || ' is not the sum of its hours' AS finding
  FROM (
    SELECT * FROM (${days} EXCEPT ${daysOfHours}) AS more
    UNION ALL SELECT * FROM (${daysOfHours} EXCEPT ${days}) AS fewer
  ) AS wrong ORDER BY 1 LIMIT ${FINDINGS_MAX}
`;
