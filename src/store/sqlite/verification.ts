/**
 * Finds damage in a store: SQLite checks its pages, we check its contents. Read only.
 *
 * A start reads small stores whole. Of a larger store it reads everything but the ledger, and adds up the balances from
 * the hours. `npm run store -- verify` reads everything.
 */
import { DatabaseSync } from 'node:sqlite';
import { FINDINGS_MAX, wrongBalances, wrongDays, wrongKeys } from '../sql/sums.js';
import { StoreError } from '../store.js';
import {
  checkOrigin,
  damagedStore,
  isTooLarge,
  pragma,
  sqlite,
  sqliteKind,
  storePath,
  toStoreError,
} from './database.js';
import { migrations } from './schema.js';

interface SchemaRow {
  readonly type: string;
  readonly name: string;
  readonly sql: string;
}

const all = <T>(database: DatabaseSync, sql: string): T[] => database.prepare(sql).all() as unknown as T[];

const readSchema = (database: DatabaseSync): SchemaRow[] =>
  all(
    database,
    "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT GLOB 'sqlite_*'",
  );

const schemaOf = (version: number): SchemaRow[] => {
  using database = new DatabaseSync(':memory:');
  for (const script of migrations.slice(0, version)) database.exec(script);
  return readSchema(database);
};

/** Without its triggers a store has wrong balances; without its unique indexes it charges twice. */
const checkSchema = (database: DatabaseSync, version: number): string[] => {
  const found = new Map(readSchema(database).map((row) => [`${row.type} ${row.name}`, row.sql]));
  const wanted = new Map(schemaOf(version).map((row) => [`${row.type} ${row.name}`, row.sql]));
  const findings: string[] = [];
  for (const [name, sql] of wanted) {
    if (!found.has(name)) findings.push(`the ${name} is missing`);
    else if (found.get(name) !== sql) findings.push(`the ${name} is not ours`);
  }
  // Another index or view is harmless; another trigger can change what is written.
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
    // Headings.
    .filter((line) => !line.startsWith('***'));
  return findings.length === 1 && findings[0] === 'ok' ? [] : findings;
};

const foreignKeys = (database: DatabaseSync): string[] =>
  all<{ table: string; rowid: number; parent: string }>(database, 'PRAGMA foreign_key_check').map(
    ({ table, rowid, parent }) => `row ${rowid} of ${table} belongs to a row of ${parent} that is missing`,
  );

const fromLedger = 'SELECT account_id, sum(amount) AS amount FROM ledger GROUP BY account_id';

/** The same sums without reading the ledger: the entries that are in no hour are in a partial index. */
const fromHours = `
  SELECT account_id, sum(amount) AS amount FROM (
    SELECT account_id, amount FROM ledger INDEXED BY ledger_beside_hours WHERE kind = 'grant' OR key_id IS NULL
    UNION ALL
    SELECT account_id, refunded - credits FROM usage_hours JOIN api_keys ON api_keys.id = key_id
  ) GROUP BY account_id
`;

const findingsOf = (database: DatabaseSync, text: string): string[] =>
  all<{ finding: string }>(database, text).map(({ finding }) => finding);

// Entries of the first schema have no number of characters, and those before the fifth no voice.
const hoursOfLedger = (more: string) => `
  SELECT key_id, at_ms / 3600000 AS hour, sum(begins_request) AS requests,
    coalesce(sum(characters) FILTER (WHERE kind = 'usage'), 0) AS characters,
    coalesce(sum(-amount) FILTER (WHERE kind = 'usage'), 0) AS credits,
    coalesce(sum(amount) FILTER (WHERE kind = 'refund'), 0) AS refunded,
    min(at_ms) AS first_at_ms, max(at_ms) AS last_at_ms ${more}
  FROM ledger WHERE kind <> 'grant' AND key_id IS NOT NULL GROUP BY key_id, hour ${more && ', voice'}
`;
const hoursKept = (more: string) => `
  SELECT key_id, hour, requests, characters, credits, refunded, first_at_ms, last_at_ms ${more} FROM usage_hours
`;
const wrongHours = (ofLedger: string, kept: string) => `
  SELECT DISTINCT key_id AS key, hour FROM (
    SELECT * FROM (${ofLedger} EXCEPT ${kept})
    UNION ALL SELECT * FROM (${kept} EXCEPT ${ofLedger})
  ) ORDER BY 1, 2 LIMIT ${FINDINGS_MAX}
`;
const wrongHoursOf = (version: number): string =>
  version < 5
    ? wrongHours(hoursOfLedger(''), hoursKept(''))
    : wrongHours(
        hoursOfLedger(", voice, coalesce(sum(audio_ms) FILTER (WHERE kind = 'usage'), 0) AS audio_ms"),
        hoursKept(', voice, audio_ms'),
      );

const hours = (database: DatabaseSync, version: number): string[] =>
  all<{ key: string; hour: number }>(database, wrongHoursOf(version)).map(({ key, hour }) => {
    const date = new Date(hour * 3_600_000);
    const time = Number.isNaN(date.getTime()) ? `hour ${hour}` : date.toISOString().slice(0, 13);
    return `the use of key ${key} in ${time} is not the sum of its entries`;
  });

/** Stops at the first check with findings: the later ones rely on it. */
const firstFindings = (checks: readonly (() => string[])[]): string[] => {
  for (const check of checks) {
    const findings = check();
    if (findings.length > 0) return findings.slice(0, FINDINGS_MAX);
  }
  return [];
};

/** Turns an error that shows damage into a finding. */
const asFinding = (error: unknown): string[] => {
  const kind = sqliteKind(error);
  // A plain error: our own statement does not fit the schema.
  if (kind === sqlite.corrupt || kind === sqlite.notadb || kind === sqlite.error || isTooLarge(error))
    return [(error as Error).message];
  throw error;
};

/**
 * Reads the whole store, of this schema or an older one.
 *
 * @returns what is wrong; empty for a good store
 * @throws {StoreError} it is not a store of ours, or has a newer schema
 */
export const findDamage = (database: DatabaseSync, path: string): string[] => {
  try {
    const version = checkOrigin(database, path);
    return firstFindings([
      () => checkSchema(database, version),
      () => integrityOf(database, null),
      () => foreignKeys(database),
      () => [
        ...findingsOf(database, wrongBalances(fromLedger)),
        ...(version > 1 ? hours(database, version) : []),
        ...(version > 8 ? findingsOf(database, wrongDays) : []),
        ...(version > 3
          ? findingsOf(database, wrongKeys(version > 8 ? undefined : 'coalesce(characters, 0)'))
          : []),
      ],
    ]);
  } catch (error) {
    return asFinding(error);
  }
};

/** Those that a start reads however large the store is. */
const smallTables = ['accounts', 'api_keys', 'users', 'sessions', 'links'];

const findQuickly = (database: DatabaseSync, path: string): string[] => {
  try {
    return firstFindings([
      () => checkSchema(database, checkOrigin(database, path)),
      () => smallTables.flatMap((table) => integrityOf(database, table)),
      () => [wrongBalances(fromHours), wrongKeys()].flatMap((text) => findingsOf(database, text)),
    ]);
  } catch (error) {
    return asFinding(error);
  }
};

const bytesOf = (database: DatabaseSync): number =>
  pragma(database, 'page_count') * pragma(database, 'page_size');

/**
 * Finds damage at the start rather than at a request.
 *
 * @param wholeBytesMax size up to which a store is read whole
 * @throws {StoreError} the store is damaged
 */
export const verifyAtStart = (dataDir: string, database: DatabaseSync, wholeBytesMax: number): void => {
  const path = storePath(dataDir);
  try {
    const find = bytesOf(database) <= wholeBytesMax ? findDamage : findQuickly;
    const [finding] = find(database, path);
    if (finding !== undefined) throw damagedStore(path, finding);
  } catch (error) {
    if (error instanceof StoreError) throw error;
    throw toStoreError(dataDir, error);
  }
};
