/** A SQLite store as one side of a copy. */
import { existsSync } from 'node:fs';
import type { CopySide } from '../copying.js';
import type { Sql } from '../sql/sql.js';
import { prepareCommitMark } from './commit-mark.js';
import { missingStore, storePath, toStoreError, type SqliteBounds } from './database.js';
import { StoreHold } from './hold.js';
import { openDatabase } from './opening.js';
import { Statements } from './statements.js';
import { findDamage } from './verification.js';

/**
 * @param create whether to create the store if there is none
 * @throws {StoreError} there is no store, or another process has it open
 */
export const sqliteSide = (dataDir: string, bounds: SqliteBounds, create: boolean): CopySide => {
  const place = storePath(dataDir);
  if (!create && !existsSync(place)) throw missingStore(place);
  const { database, hold: shared } = openDatabase(dataDir, bounds);
  shared.release();
  let hold: StoreHold;
  try {
    hold = StoreHold.seize(dataDir, bounds.storeBusyMsMax);
  } catch (error) {
    database.close();
    throw error;
  }
  const writeCommitMark = prepareCommitMark(dataDir, database);
  return {
    place,
    transact: async (work) => {
      database.exec('BEGIN IMMEDIATE');
      try {
        const result = await work(new Statements(database));
        database.exec('COMMIT');
        writeCommitMark();
        return result;
      } catch (error) {
        if (database.isTransaction) database.exec('ROLLBACK');
        throw toStoreError(dataDir, error);
      }
    },
    lastUserId: async (sql: Sql) => {
      const [row] = await sql.all<{ seq: number }>("SELECT seq FROM sqlite_sequence WHERE name = 'users'");
      return row?.seq ?? 0;
    },
    continueIds: async (sql: Sql, lastUserId: number) => {
      await sql.all("DELETE FROM sqlite_sequence WHERE name = 'users'");
      await sql.all("INSERT INTO sqlite_sequence (name, seq) VALUES ('users', ?)", lastUserId);
    },
    findDamage: () => findDamage(database, place),
    close: () => {
      database.close();
      hold.release();
    },
  };
};
