/** A PostgreSQL store as one side of a copy. */
import type { CopySide } from '../copying.js';
import type { Sql } from '../sql/sql.js';
import { StoreError } from '../store.js';
import { SERVICE_NAME, shownUrl, type PostgresBounds, type Session } from './connection.js';
import { connect } from './driver.js';
import { SCHEMA } from './schema.js';
import { liveWriters } from './writer.js';
import { findDamage } from './verification.js';

const numbered = ['accounts', 'api_keys', 'ledger', 'audit', 'users'] as const;

/** The list of connections is otherwise that of the first query of a transaction. */
const lock = `
  LOCK TABLE ledger, accounts, api_keys, users, sessions, links, audit IN SHARE ROW EXCLUSIVE MODE;
  SELECT pg_stat_clear_snapshot()
`;

/** @throws {StoreError} */
const checkUnused = async (session: Session, place: string): Promise<void> => {
  const services = await session.query(
    'SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1',
    [SERVICE_NAME],
  );
  if (services.length > 0)
    throw new StoreError('held', `The store ${place} is in use: a service has it open: stop that first`);
  // What it has not sent yet would be refused by the copy, or missing in it.
  const [left] = await liveWriters(session);
  if (left !== undefined)
    throw new StoreError(
      'held',
      `The store ${place} is in use: ${left.host} (writer ${left.writer}) was stopped by force. Start and stop it once, ` +
        'or declare it dead with `npm run store -- declare-dead`',
    );
};

/**
 * @param create whether to create the tables if there are none
 * @throws {StoreError} there is no store, or a service uses it
 */
export const postgresSide = async (
  url: string,
  bounds: PostgresBounds,
  create: boolean,
): Promise<CopySide> => {
  // Comparing a table may take longer than a statement of a service may.
  const connection = await connect(url, { ...bounds, storeAnswerMsMax: 0 }, create);
  const place = shownUrl(url);
  return {
    place,
    transact: (work) =>
      connection.transact('BEGIN', async (session) => {
        // Without services first: while the lock waits, for a VACUUM for example, they would wait behind it.
        await checkUnused(session, place);
        await session.query(lock);
        await checkUnused(session, place);
        return work(session);
      }),
    lastUserId: async (sql: Sql) => {
      const [row] = await sql.all<{ last: number | null }>(
        `SELECT last_value AS last FROM pg_sequences WHERE schemaname = '${SCHEMA}' AND sequencename = 'users_id_seq'`,
      );
      return row?.last ?? 0;
    },
    continueIds: async (sql: Sql, lastUserId: number) => {
      for (const table of numbered)
        await sql.all(
          `SELECT setval(pg_get_serial_sequence('${SCHEMA}.${table}', 'id'), last) FROM (
             SELECT greatest(max(id), CAST(? AS BIGINT)) AS last FROM ${table}
           ) AS ids WHERE last > 0`,
          table === 'users' ? lastUserId : 0,
        );
    },
    findDamage: () => findDamage(connection),
    close: () => connection.close(),
  };
};
