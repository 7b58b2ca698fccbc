/** Statements of one connection, each prepared once. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Sql, SqlValue } from '../sql/sql.js';

/** Rows of SQLite have no prototype. */
const plain = (row: object): unknown => ({ ...row });

export class Statements implements Sql {
  readonly now = '?';
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, StatementSync>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  all<Row>(text: string, ...parameters: SqlValue[]): Row[] {
    return this.#prepare(text)
      .all(...parameters)
      .map(plain) as Row[];
  }

  named<Row>(text: string, parameters: Readonly<Record<string, SqlValue>>): Row[] {
    return this.#prepare(text).all(parameters).map(plain) as Row[];
  }

  #prepare(text: string): StatementSync {
    const known = this.#prepared.get(text);
    if (known !== undefined) return known;
    const statement = this.#database.prepare(text);
    this.#prepared.set(text, statement);
    return statement;
  }
}
