/**
 * Copies a store of one kind into an empty one of another, in one transaction of each. The target's triggers add up
 * balances and usage from the entries. Before the commit each row of both is compared.
 */
import type { Awaitable } from './awaitable.js';
import type { Sql, SqlValue } from './sql/sql.js';
import { AdministrationError } from './store.js';

/** A store that no service uses during the copy. */
export interface CopySide {
  /** For messages. */
  readonly place: string;
  /** Runs `work` as one transaction, without a time limit. */
  transact<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
  /** The largest id that a user ever had; 0 if none. */
  lastUserId(sql: Sql): Promise<number>;
  /** New rows get larger ids than those that were copied. */
  continueIds(sql: Sql, lastUserId: number): Promise<void>;
  /** @returns what is wrong with it; empty for a good store */
  findDamage(): Awaitable<string[]>;
  close(): Awaitable<void>;
}

interface Table {
  readonly name: string;
  /** The columns of the primary key, each with a value below that of every row. */
  readonly keys: readonly (readonly [column: string, beforeAll: number | string])[];
  /** The columns that are copied. */
  readonly columns: readonly string[];
  /** The columns that triggers of the target fill. They are only compared. */
  readonly kept?: readonly string[];
}

const byId = [['id', 0]] as const;
const byHash = [['hash', '']] as const;

const tables: readonly Table[] = [
  {
    name: 'accounts',
    keys: byId,
    columns: [
      ...['id', 'name', 'metered', 'created_at_ms', 'suspended_at_ms', 'deleted_at_ms'],
      ...['normalize_text', 'speed', 'lexicon'],
    ],
    kept: ['balance'],
  },
  {
    name: 'api_keys',
    keys: byId,
    columns: [
      ...['id', 'account_id', 'kind', 'hash', 'prefix', 'created_at_ms', 'revoked_at_ms', 'name'],
      ...['expires_at_ms', 'credit_limit', 'voices', 'normalize_text', 'speed', 'lexicon', 'by_operator'],
    ],
    kept: ['spent', 'charged_characters'],
  },
  {
    name: 'ledger',
    keys: byId,
    columns: [
      ...['id', 'writer', 'entry', 'account_id', 'key_id', 'request_id', 'kind', 'amount', 'characters'],
      ...['voice', 'audio_ms', 'begins_request', 'at_ms'],
    ],
  },
  {
    name: 'users',
    keys: byId,
    columns: ['id', 'name', 'handle', 'role', 'account_id', 'password', 'created_at_ms', 'last_seen_at_ms'],
  },
  {
    name: 'sessions',
    keys: byHash,
    columns: ['hash', 'user_id', 'created_at_ms', 'seen_at_ms', 'name', 'expires_at_ms'],
  },
  { name: 'links', keys: byHash, columns: ['hash', 'kind', 'account_id', 'expires_at_ms'] },
  {
    name: 'audit',
    keys: byId,
    columns: ['id', 'at_ms', 'actor', 'account_id', 'action', 'subject', 'details'],
  },
  {
    name: 'usage_hours',
    keys: [
      ['key_id', 0],
      ['hour', 0],
      ['voice', ''],
    ],
    columns: [],
    kept: [
      ...['key_id', 'hour', 'voice', 'requests', 'characters', 'credits', 'refunded', 'audio_ms'],
      ...['first_at_ms', 'last_at_ms'],
    ],
  },
  {
    name: 'usage_days',
    keys: [
      ['account_id', 0],
      ['day', -1],
    ],
    columns: [],
    kept: ['account_id', 'day', 'characters', 'amount', 'last_at_ms'],
  },
];

/** Rows of one statement: SQLite takes 32,766 parameters. */
const PAGE_ROWS = 1_000;

type Row = Readonly<Record<string, SqlValue>>;

async function* pagesOf(sql: Sql, { name, keys, columns, kept = [] }: Table): AsyncGenerator<Row[]> {
  const names = keys.map(([column]) => column).join(', ');
  const text = `
    SELECT ${[...columns, ...kept].join(', ')} FROM ${name}
    WHERE (${names}) > (${keys.map(() => '?').join(', ')}) ORDER BY ${names} LIMIT ${PAGE_ROWS}
  `;
  let after: SqlValue[] = keys.map(([, beforeAll]) => beforeAll);
  for (;;) {
    const rows = await sql.all<Row>(text, ...after);
    if (rows.length > 0) yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE_ROWS) return;
    after = keys.map(([column]) => last[column] ?? null);
  }
}

const insert = async (sql: Sql, { name, columns }: Table, rows: readonly Row[]): Promise<void> => {
  const places = `(${columns.map(() => '?').join(', ')})`;
  await sql.all(
    `INSERT INTO ${name} (${columns.join(', ')}) VALUES ${rows.map(() => places).join(', ')}`,
    ...rows.flatMap((row) => columns.map((column) => row[column] ?? null)),
  );
};

/** Bytes are of different classes in the two stores. */
const asText = (row: Row): string =>
  JSON.stringify(
    Object.entries(row).map(([name, value]) => [
      name,
      value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value,
    ]),
  );

const moreRows = ({ name }: Table): AdministrationError =>
  new AdministrationError(`The copy has more rows of ${name} than the store: nothing was copied`);

/** @returns the number of rows @throws {AdministrationError} a row differs, or is missing */
const compare = async (source: Sql, target: Sql, table: Table): Promise<number> => {
  let count = 0;
  const others = pagesOf(target, table);
  for await (const rows of pagesOf(source, table)) {
    const { value: copied = [] } = (await others.next()) as { value?: Row[] };
    for (const [index, row] of rows.entries()) {
      const other = copied[index];
      if (other !== undefined && asText(row) === asText(other)) continue;
      // Only its place: a row can have the hash of a password.
      const place = table.keys.map(([column]) => `${column} ${String(row[column])}`).join(', ');
      throw new AdministrationError(
        `The copy differs from the store in ${table.name} (${place}): nothing was copied`,
      );
    }
    if (copied.length !== rows.length) throw moreRows(table);
    count += rows.length;
  }
  if ((await others.next()).done !== true) throw moreRows(table);
  return count;
};

export interface Copied {
  readonly accounts: number;
  readonly keys: number;
  readonly entries: number;
}

const refuseDamage = async (side: CopySide): Promise<void> => {
  const [finding] = await side.findDamage();
  if (finding !== undefined)
    throw new AdministrationError(`${side.place} is damaged (${finding}): nothing was copied`);
};

/** @throws {AdministrationError} the source is damaged, the target is not empty, or the copy differs: nothing is copied then */
export const copyStore = async (source: CopySide, target: CopySide): Promise<Copied> => {
  await refuseDamage(source);
  const copied = await source.transact((from) =>
    target.transact(async (to) => {
      for (const { name } of tables)
        if ((await to.all(`SELECT 1 FROM ${name} LIMIT 1`)).length > 0)
          throw new AdministrationError(`${target.place} is not empty: copy into a new store`);
      for (const table of tables)
        if (table.columns.length > 0)
          for await (const rows of pagesOf(from, { ...table, kept: [] })) await insert(to, table, rows);
      await target.continueIds(to, await source.lastUserId(from));
      const counts = new Map<string, number>();
      for (const table of tables) counts.set(table.name, await compare(from, to, table));
      const countOf = (name: string): number => counts.get(name) ?? 0;
      return { accounts: countOf('accounts'), keys: countOf('api_keys'), entries: countOf('ledger') };
    }),
  );
  await refuseDamage(target);
  return copied;
};
