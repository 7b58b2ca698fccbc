/**
 * Finds damage in a store: what SQLite sees of its pages, and what we know of its contents. Read only.
 *
 * A start reads small stores whole. Of a larger one it reads all but the ledger, whose entries decide nothing any more
 * once they are in a balance: the balances are added up from the hours. `npm run store -- verify` reads everything.
 */
import { DatabaseSync } from 'node:sqlite';
import {
  StoreError,
  checkOrigin,
  damagedStore,
  isTooLarge,
  pragma,
  sqlite,
  sqliteKind,
  storePath,
  wordStoreError,
} from './database.js';
import { migrations } from './schema.js';

/** A damaged store can have as many as it has rows: the first ones tell enough. */
const FINDINGS_MAX = 20;

interface SchemaRow {
  readonly type: string;
  readonly name: string;
  readonly sql: string;
}

/** Rows of a query that names what it asks for. */
const ask = <T>(database: DatabaseSync, sql: string): T[] => database.prepare(sql).all() as unknown as T[];

const readSchema = (database: DatabaseSync): SchemaRow[] =>
  database
    .prepare("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%'")
    .all() as unknown as SchemaRow[];

const schemaOf = (version: number): SchemaRow[] => {
  const database = new DatabaseSync(':memory:');
  try {
    for (const script of migrations.slice(0, version)) database.exec(script);
    return readSchema(database);
  } finally {
    database.close();
  }
};

/** Without its triggers a store adds nothing up, and without its unique indexes it charges twice. */
const checkSchema = (database: DatabaseSync, version: number): string[] => {
  const found = new Map(readSchema(database).map((row) => [`${row.type} ${row.name}`, row.sql]));
  const wanted = new Map(schemaOf(version).map((row) => [`${row.type} ${row.name}`, row.sql]));
  const findings: string[] = [];
  for (const [name, sql] of wanted) {
    if (!found.has(name)) findings.push(`the ${name} is missing`);
    else if (found.get(name) !== sql) findings.push(`the ${name} is not ours`);
  }
  // An index or a view of someone's own is harmless; a trigger can change what is written.
  for (const name of found.keys())
    if (name.startsWith('trigger ') && !wanted.has(name)) findings.push(`the ${name} is not ours`);
  return findings;
};

const integrityOf = (database: DatabaseSync, table: string | null): string[] => {
  const which = table === null ? '' : `(${table})`;
  const findings = database
    .prepare(`PRAGMA integrity_check${which}`)
    .all()
    .flatMap((row) => String(row['integrity_check']).split('\n'))
    // A heading of what follows.
    .filter((line) => !line.startsWith('***'));
  return findings.length === 1 && findings[0] === 'ok' ? [] : findings;
};

const foreignKeys = (database: DatabaseSync): string[] =>
  ask<{ table: string; rowid: number; parent: string }>(database, 'PRAGMA foreign_key_check').map(
    ({ table, rowid, parent }) => `row ${rowid} of ${table} belongs to a row of ${parent} that is not there`,
  );

const fromLedger = 'SELECT account_id, sum(amount) AS amount FROM ledger GROUP BY account_id';

/** The same sums without reading the ledger: an entry is in an hour, or in the index of those that are in none. */
const fromHours = `
  SELECT account_id, sum(amount) AS amount FROM (
    SELECT account_id, amount FROM ledger INDEXED BY ledger_beside_hours WHERE kind = 'grant' OR key_id IS NULL
    UNION ALL
    SELECT account_id, refunded - credits FROM usage_hours JOIN api_keys ON api_keys.id = key_id
  ) GROUP BY account_id
`;

// As text: an integer of SQLite can be larger than a number holds.
const wrongBalances = (sums: string) => `
  SELECT name, CAST(balance AS TEXT) AS balance, CAST(coalesce(amount, 0) AS TEXT) AS amount
  FROM accounts LEFT JOIN (${sums}) AS sums ON account_id = accounts.id
  WHERE balance IS NOT coalesce(amount, 0) ORDER BY accounts.id LIMIT ${FINDINGS_MAX}
`;

const balances = (database: DatabaseSync, sums: string): string[] =>
  ask<{ name: string; balance: string; amount: string }>(database, wrongBalances(sums)).map(
    ({ name, balance, amount }) =>
      `account "${name}" has a balance of ${balance}, and its entries make ${amount}`,
  );

// Entries of the first schema did not say of how many characters they are.
const hoursOfLedger = `
  SELECT key_id, at_ms / 3600000 AS hour, sum(begins_request) AS requests,
    coalesce(sum(characters) FILTER (WHERE kind = 'usage'), 0) AS characters,
    coalesce(sum(-amount) FILTER (WHERE kind = 'usage'), 0) AS credits,
    coalesce(sum(amount) FILTER (WHERE kind = 'refund'), 0) AS refunded,
    min(at_ms) AS first_at_ms, max(at_ms) AS last_at_ms
  FROM ledger WHERE kind <> 'grant' AND key_id IS NOT NULL GROUP BY 1, 2
`;
const hoursKept = `
  SELECT key_id, hour, requests, characters, credits, refunded, first_at_ms, last_at_ms FROM usage_hours
`;
const wrongHours = `
  SELECT DISTINCT key_id AS key, hour FROM (
    SELECT * FROM (${hoursOfLedger} EXCEPT ${hoursKept})
    UNION ALL SELECT * FROM (${hoursKept} EXCEPT ${hoursOfLedger})
  ) ORDER BY 1, 2 LIMIT ${FINDINGS_MAX}
`;

const hours = (database: DatabaseSync): string[] =>
  ask<{ key: string; hour: number }>(database, wrongHours).map(({ key, hour }) => {
    const date = new Date(hour * 3_600_000);
    const time = Number.isNaN(date.getTime()) ? `hour ${hour}` : date.toISOString().slice(0, 13);
    return `the use of key ${key} in ${time} is not the sum of its entries`;
  });

/** One check after the other, for as long as a later one means something. */
const firstFindings = (checks: readonly (() => string[])[]): string[] => {
  for (const check of checks) {
    const findings = check();
    if (findings.length > 0) return findings.slice(0, FINDINGS_MAX);
  }
  return [];
};

/** Of an error that shows damage, what it says. */
const asFinding = (error: unknown): string[] => {
  const kind = sqliteKind(error);
  // The plain error is that of a statement which a store of ours takes.
  if (kind === sqlite.corrupt || kind === sqlite.notadb || kind === sqlite.error || isTooLarge(error))
    return [(error as Error).message];
  throw error;
};

/**
 * All that can be known to be wrong with a store, of this schema or an older one; empty for a good one.
 *
 * @throws {StoreError} it is no store of ours, or of a newer schema
 */
export const findDamage = (database: DatabaseSync, path: string): string[] => {
  try {
    const version = checkOrigin(database, path);
    return firstFindings([
      () => checkSchema(database, version),
      () => integrityOf(database, null),
      () => foreignKeys(database),
      () => [...balances(database, fromLedger), ...(version > 1 ? hours(database) : [])],
    ]);
  } catch (error) {
    return asFinding(error);
  }
};

const findQuickly = (database: DatabaseSync, path: string): string[] => {
  try {
    return firstFindings([
      () => checkSchema(database, checkOrigin(database, path)),
      () => [...integrityOf(database, 'accounts'), ...integrityOf(database, 'api_keys')],
      () => balances(database, fromHours),
    ]);
  } catch (error) {
    return asFinding(error);
  }
};

const bytesOf = (database: DatabaseSync): number =>
  pragma(database, 'page_count') * pragma(database, 'page_size');

/**
 * Finds damage at the start rather than at some request.
 *
 * @param wholeBytesMax of a store that is read whole
 * @throws {StoreError} when it finds any
 */
export const verifyAtStart = (dataDir: string, database: DatabaseSync, wholeBytesMax: number): void => {
  const path = storePath(dataDir);
  try {
    const find = bytesOf(database) <= wholeBytesMax ? findDamage : findQuickly;
    const [finding] = find(database, path);
    if (finding !== undefined) throw damagedStore(path, finding);
  } catch (error) {
    if (error instanceof StoreError) throw error;
    throw wordStoreError(dataDir, error);
  }
};
