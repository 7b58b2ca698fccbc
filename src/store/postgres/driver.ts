/** The store in a PostgreSQL database: creates its tables, opens it, and acts on it. */
import { Transaction } from '../sql/transaction.js';
import { readUsage } from '../sql/usage.js';
import {
  StoreError,
  type StoreAdministration,
  type StoreDriver,
  type StoreTransaction,
  type StoreView,
} from '../store.js';
import {
  COMMAND_NAME,
  PostgresConnection,
  shownUrl,
  SNAPSHOT,
  type PostgresBounds,
  type Session,
} from './connection.js';
import { PostgresReader } from './reader.js';
import { ACTS_LOCK } from './host-schema.js';
import { migrations, SCHEMA, VERSION } from './schema.js';
import { PostgresSharing, type SharingBounds } from './sharing.js';
import { findQuickly } from './verification.js';
import { PostgresWriter } from './writer.js';

/** The number of the lock that a migration holds: "Syrx" in ASCII. */
const LOCK = 0x53797278;

const versionOf = async (connection: PostgresConnection): Promise<number> => {
  const session = await connection.session();
  const [there] = await session.query<{ name: string | null }>(
    `SELECT to_regclass('${SCHEMA}.version')::text AS name`,
  );
  if ((there?.name ?? null) === null) return 0;
  const [row] = await session.query<{ version: number }>(`SELECT version FROM ${SCHEMA}.version`);
  return row?.version ?? 0;
};

/** Names and voice ids have letters of all scripts. An entry that the database cannot take would stop the ledger. */
const checkEncoding = async (session: Session, url: string): Promise<void> => {
  const [row] = await session.query<{ encoding: string }>(
    "SELECT current_setting('server_encoding') AS encoding",
  );
  if (row?.encoding !== 'UTF8')
    throw new StoreError(
      'unusable',
      `The database ${shownUrl(url)} has the encoding ${row?.encoding}: create it with ENCODING 'UTF8'`,
    );
};

/** A row whose transaction is still to come is from a dump of another cluster. A reader takes it for new at each poll. */
const isForeign = 'changed >= pg_snapshot_xmax(pg_current_snapshot())';
const stampForeign = ['accounts', 'api_keys']
  .map((table) => `UPDATE ${SCHEMA}.${table} SET changed = pg_current_xact_id() WHERE ${isForeign}`)
  .join('; ');

const findForeign = `SELECT 1 FROM accounts WHERE ${isForeign} UNION ALL SELECT 1 FROM api_keys WHERE ${isForeign} LIMIT 1`;

/**
 * @param create whether to create the tables if there are none
 * @throws {StoreError} there are none, or they are of a newer version
 */
const prepare = async (
  connection: PostgresConnection,
  url: string,
  bounds: PostgresBounds,
  create: boolean,
): Promise<void> => {
  const version = await versionOf(connection);
  if (version > VERSION)
    throw new StoreError(
      'newer',
      `The store ${shownUrl(url)} was written by a newer syrinx (version ${version}; this one knows ${VERSION}): run ` +
        'that version, or set STORE_URL to another database',
    );
  if (version === 0 && !create)
    throw new StoreError(
      'missing',
      `There is no store in ${shownUrl(url)}: start the service once, or correct STORE_URL`,
    );
  const session = await connection.session();
  if (version === VERSION && (!create || (await session.query(findForeign)).length === 0)) return;
  if (version === 0) await checkEncoding(session, url);
  // It may read a long history.
  const patient = new PostgresConnection(url, {
    bounds: { ...bounds, storeAnswerMsMax: 0 },
    name: COMMAND_NAME,
  });
  try {
    await patient.transact(`BEGIN; SELECT pg_advisory_xact_lock(${LOCK})`, async (session) => {
      await session.query(
        `CREATE SCHEMA IF NOT EXISTS ${SCHEMA};
       CREATE TABLE IF NOT EXISTS ${SCHEMA}.version (version BIGINT NOT NULL)`,
      );
      // Another process may have migrated it while this one waited for the lock.
      const from = await versionOf(patient);
      for (const script of migrations.slice(from)) await session.query(script);
      await session.query(`DELETE FROM ${SCHEMA}.version; INSERT INTO ${SCHEMA}.version VALUES (${VERSION})`);
      await session.query(`SELECT pg_advisory_xact_lock(${ACTS_LOCK}); ${stampForeign}`);
    });
  } finally {
    await patient.close();
  }
};

/** Acts on the store, each in one transaction. */
class PostgresAdministration implements StoreAdministration {
  readonly #connection: PostgresConnection;
  readonly #bounds: PostgresBounds;
  /** Settles when the acts so far are done: there is one connection, and so one transaction at a time. */
  #previous: Promise<unknown> = Promise.resolve();

  constructor(connection: PostgresConnection, bounds: PostgresBounds) {
    this.#connection = connection;
    this.#bounds = bounds;
  }

  /** The lock makes other acts and the ledger wait, for `storeStaleMsMax` if this host stops in an act. It does not hold up readers. */
  transact<T>(work: (transaction: StoreTransaction) => Promise<T>): Promise<T> {
    const idle = `SET LOCAL idle_in_transaction_session_timeout = ${this.#bounds.storeStaleMsMax}`;
    return this.#inTurn(`BEGIN; ${idle}; SELECT pg_advisory_xact_lock(${ACTS_LOCK})`, work);
  }

  read<T>(work: (view: StoreView) => Promise<T>): Promise<T> {
    return this.#inTurn(SNAPSHOT, work);
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  #inTurn<T>(begin: string, work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const done = this.#previous.then(() =>
      this.#connection.transact(begin, (session) => work(new Transaction(session, this.#bounds))),
    );
    this.#previous = done.catch(() => undefined);
    return done;
  }
}

/** Opens a connection to a store, for a command. */
export const connect = async (
  url: string,
  bounds: PostgresBounds,
  create: boolean,
): Promise<PostgresConnection> => {
  const connection = new PostgresConnection(url, { bounds, name: COMMAND_NAME });
  try {
    await prepare(connection, url, bounds, create);
    return connection;
  } catch (error) {
    await connection.close();
    throw error;
  }
};

export const damagedStore = (url: string, finding: string): StoreError =>
  new StoreError(
    'damaged',
    `The store ${shownUrl(url)} is damaged (${finding}): restore a backup of the database`,
  );

/** @param dataDir for the journal */
export const postgresStore = (url: string, dataDir: string, bounds: SharingBounds): StoreDriver => ({
  openReader: async (writer) => {
    const connection = await connect(url, bounds, true);
    try {
      const [finding] = await findQuickly(connection);
      if (finding !== undefined) throw damagedStore(url, finding);
    } finally {
      await connection.close();
    }
    const reader = new PostgresReader(url, bounds, writer);
    try {
      await reader.start();
      return reader;
    } catch (error) {
      await reader.close();
      throw error;
    }
  },
  startWriter: (writer) => new PostgresWriter(url, bounds, writer),
  share: (writer, log) => PostgresSharing.open(url, dataDir, writer, bounds, log),
  administer: async (create) => new PostgresAdministration(await connect(url, bounds, create), bounds),
  readUsage: async (period) => {
    // Of a long history it takes longer than a statement of a service may.
    const connection = await connect(url, { ...bounds, storeAnswerMsMax: 0 }, false);
    try {
      return await connection.transact(SNAPSHOT, (session) => readUsage(session, period));
    } finally {
      await connection.close();
    }
  },
});
