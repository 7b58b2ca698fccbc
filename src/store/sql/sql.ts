/**
 * What the statements of this folder need of a database. They are written in the SQL that SQLite and PostgreSQL share;
 * `translate` in `src/store/postgres/connection.ts` has what differs.
 */
import type { Awaitable } from '../awaitable.js';

export type SqlValue = string | number | null | Uint8Array;

/** Statements of one connection, by their texts. All texts are literals, so there are few. */
export interface Sql {
  /** The time for a deletion: a `?` of the caller's clock; in a shared database, its own clock if that is behind. */
  readonly now: string;
  /** @param parameters one for each `?` */
  all<Row>(text: string, ...parameters: SqlValue[]): Awaitable<Row[]>;
  /** @param parameters one for each `:name` */
  named<Row>(text: string, parameters: Readonly<Record<string, SqlValue>>): Awaitable<Row[]>;
}

/** A sum or balance, clamped to the integers that a number holds. */
export const clamped = (sum: string): string => `max(min(${sum}, 9007199254740991), -9007199254740991)`;

/**
 * Columns with the names of our types: `users.created_at_ms` becomes `createdAtMs`, and `users.id AS user_id` `userId`.
 *
 * @param prefix of these names
 */
export const columnsOf = (columns: readonly string[], prefix = ''): string =>
  columns
    .map((column) => {
      const [value = '', name = value] = column.split(' AS ');
      const member = name
        .replace(/^\w+\./, '')
        .replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
      return `${value} AS "${prefix}${member}"`;
    })
    .join(', ');
