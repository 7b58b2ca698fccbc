/** Connections to PostgreSQL. Errors of the client and of the database become `StoreError`s. */
import type { Socket } from 'node:net';
import pg from 'pg';
import type { Bounds } from '../../limits.js';
import type { Sql, SqlValue } from '../sql/sql.js';
import { CHECK_FIRST, StoreError, type StoreFault } from '../store.js';
import { SCHEMA } from './schema.js';

export type PostgresBounds = Pick<
  Bounds,
  | 'keysPerAccountMax'
  | 'storeAnswerMsMax'
  | 'storeConnectMsMax'
  | 'storePollMs'
  | 'storeStaleMsMax'
  | 'storeKeysMax'
>;

/** Milliseconds that a close waits for the peer: in a network cut, it never answers. */
const END_MS_MAX = 1_000;

/** The name of a service's sessions in `pg_stat_activity`. */
export const SERVICE_NAME = 'syrinx';
/** The name of a command's sessions. */
export const COMMAND_NAME = 'syrinx command';

/** The address without its password, for messages. */
export const shownUrl = (url: string): string => {
  const shown = new URL(url);
  shown.password = '';
  shown.search = '';
  return shown.href;
};

type TypeId = Parameters<typeof pg.types.getTypeParser>[0];

/** A number holds all our integers: the statements clamp sums. */
const parserOf = (id: TypeId): ((text: string) => unknown) =>
  id === pg.types.builtins.INT8 || id === pg.types.builtins.NUMERIC
    ? Number
    : (pg.types.getTypeParser(id) as (text: string) => unknown);

const types = { getTypeParser: parserOf as typeof pg.types.getTypeParser };

/** By SQLSTATE, as PostgreSQL's manual lists it. */
const faults: Readonly<Record<string, StoreFault>> = {
  '25006': 'unwritable',
  '42501': 'unwritable',
  '53100': 'full',
  '53200': 'busy',
  '53300': 'busy',
  '55P03': 'busy',
  '40001': 'busy',
  '40P01': 'busy',
  '57014': 'busy',
  '3D000': 'missing',
  XX001: 'damaged',
  XX002: 'damaged',
};

const remedies: Partial<Readonly<Record<StoreFault, string>>> = {
  unwritable: 'connect to the primary, as a user that may write to the schema',
  full: 'make room on its disk',
  busy: 'try again when its other work is done',
  missing: 'create the database, or correct STORE_URL',
  damaged: 'restore a backup of the database',
  unreachable: 'start it, or correct STORE_URL',
};

/** @param error of the client or of the database */
const toStoreError = (url: string, error: unknown): StoreError => {
  const { code = '', message } = error as Error & { code?: string };
  // Class 08 is a broken connection, 25P03 a session that it ended, and 57P a server that starts or stops.
  const isAnswer = error instanceof pg.DatabaseError && !/^(?:08|25P03|57P)/.test(code);
  const reason = (message === '' ? code : message).replaceAll(/\s+/g, ' ');
  // Class 22: a text with a zero byte, or a number beyond its type.
  if (isAnswer && code.startsWith('22'))
    return new StoreError('unfit', `The store ${shownUrl(url)} does not take a value: ${reason}`);
  const fault = isAnswer ? (faults[code] ?? 'unusable') : 'unreachable';
  const remedy = remedies[fault] ?? 'see the log of the database';
  return new StoreError(fault, `The store ${shownUrl(url)} cannot be used (${reason}): ${remedy}`);
};

interface Translated {
  readonly text: string;
  /** Of `:name` parameters, in the order of their numbers. */
  readonly names: readonly string[];
}

/**
 * From the common SQL to that of PostgreSQL: parameters get numbers, and the scalar minimum and maximum their names.
 * `CROSS JOIN` sets the order of a join in SQLite only.
 */
export const translate = (text: string): Translated => {
  const names: string[] = [];
  let count = 0;
  return {
    names,
    text: text
      .replaceAll('max(min(', 'greatest(least(')
      .replaceAll('CROSS JOIN', 'JOIN')
      .replaceAll('?', () => `$${++count}`)
      .replaceAll(/(?<!:):([a-z]+)/gi, (_, name: string) => {
        if (!names.includes(name)) names.push(name);
        return `$${names.indexOf(name) + 1}`;
      }),
  };
};

/** One session of the database. After an error of the connection it cannot be used again. */
export class Session implements Sql {
  /** A host whose clock is wrong must not delete what others need. A query of its own is asked once, so an index can be used. */
  readonly now = '(SELECT least(?, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))';
  readonly #client: pg.Client;
  readonly #url: string;
  readonly #translated = new Map<string, Translated>();
  #isLost = false;

  private constructor(client: pg.Client, url: string) {
    this.#client = client;
    this.#url = url;
  }

  static async open(
    url: string,
    { bounds, name, channel, onNotification }: ConnectionOptions,
  ): Promise<Session> {
    const client = new pg.Client({
      connectionString: url,
      application_name: name,
      connectionTimeoutMillis: bounds.storeConnectMsMax,
      query_timeout: bounds.storeAnswerMsMax,
      keepAlive: true,
      types,
    });
    const session = new Session(client, url);
    // An 'error' without a listener would end the process. The statement under way fails by itself.
    client.on('error', () => (session.#isLost = true));
    client.once('end', () => (session.#isLost = true));
    try {
      await client.connect();
      const limitMs = String(bounds.storeAnswerMsMax);
      // PostgreSQL expects many hours of each key: to compile a view of an account then takes 100 ms, to run it 1 ms.
      await client.query(
        `SET search_path = ${SCHEMA}; SET statement_timeout = ${limitMs};
         SET idle_in_transaction_session_timeout = ${limitMs}; SET jit = off;
         SET default_transaction_isolation = 'read committed';
         SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`,
      );
      if (channel !== undefined) {
        client.on('notification', ({ payload = '' }) => onNotification?.(payload));
        await client.query(`LISTEN ${channel}`);
      }
      return session;
    } catch (error) {
      session.drop();
      throw toStoreError(url, error);
    }
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  async all<Row>(text: string, ...parameters: SqlValue[]): Promise<Row[]> {
    return this.query<Row>(this.#translate(text).text, parameters);
  }

  async named<Row>(text: string, parameters: Readonly<Record<string, SqlValue>>): Promise<Row[]> {
    const { text: translated, names } = this.#translate(text);
    return this.query<Row>(
      translated,
      names.map((name) => parameters[name] ?? null),
    );
  }

  /** @param text in PostgreSQL's own dialect. @throws {StoreError} */
  async query<Row>(text: string, parameters: readonly unknown[] = []): Promise<Row[]> {
    try {
      const { rows } = await this.#client.query({ text, values: [...parameters] });
      return rows as Row[];
    } catch (error) {
      const failure = toStoreError(this.#url, error);
      // The connection is gone, or an answer is still to come that would be taken for that of the next statement.
      if (failure.fault === 'unreachable') this.drop();
      throw failure;
    }
  }

  /** Ends it without waiting for the database. */
  drop(): void {
    this.#isLost = true;
    const { stream } = (this.#client as unknown as { readonly connection: { readonly stream: Socket } })
      .connection;
    stream.destroy();
  }

  async end(): Promise<void> {
    if (this.#isLost) return;
    const timer = setTimeout(() => this.drop(), END_MS_MAX);
    await this.#client.end().catch(() => undefined);
    clearTimeout(timer);
  }

  #translate(text: string): Translated {
    const known = this.#translated.get(text);
    if (known !== undefined) return known;
    const translated = translate(text);
    this.#translated.set(text, translated);
    return translated;
  }
}

export interface ConnectionOptions {
  readonly bounds: PostgresBounds;
  /** Shown by `pg_stat_activity`. */
  readonly name: string;
  /** It listens to this channel. */
  readonly channel?: string;
  readonly onNotification?: (payload: string) => void;
}

/** Begins a transaction that reads one state of the store. */
export const SNAPSHOT = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY';

/** Holds one session at a time, and opens a new one when the last was lost. */
export class PostgresConnection {
  readonly #url: string;
  readonly #options: ConnectionOptions;
  #opening: Promise<Session> | null = null;
  #session: Session | null = null;
  #isClosed = false;

  constructor(url: string, options: ConnectionOptions) {
    this.#url = url;
    this.#options = options;
  }

  /** @throws {StoreError} the database cannot be reached, or refuses */
  async session(): Promise<Session> {
    if (this.#isClosed) throw new StoreError('unreachable', 'The connection to the store is closed');
    if (this.#session !== null && !this.#session.isLost) return this.#session;
    this.#opening ??= this.#open().finally(() => (this.#opening = null));
    return this.#opening;
  }

  /**
   * Runs `work` as one transaction. If `work` throws, nothing has changed.
   *
   * @param begin its first statements
   * @throws {StoreError} `uncertain`: its commit has no answer, so it may be done
   */
  async transact<T>(begin: string, work: (sql: Session) => Promise<T>): Promise<T> {
    const session = await this.session();
    let mayBeDone = false;
    try {
      await session.query(begin);
      const result = await work(session);
      mayBeDone = begin !== SNAPSHOT && !session.isLost;
      await session.query('COMMIT');
      return result;
    } catch (error) {
      if (!session.isLost) await session.query('ROLLBACK').catch(() => session.drop());
      else if (mayBeDone)
        throw new StoreError(
          'uncertain',
          `It is not known whether the change was made: the store ${shownUrl(this.#url)} did not answer (${(error as Error).message}). ${CHECK_FIRST}`,
        );
      throw error;
    }
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#opening?.catch(() => undefined);
    const session = this.#session;
    this.#session = null;
    await session?.end();
  }

  async #open(): Promise<Session> {
    const session = await Session.open(this.#url, this.#options);
    this.#session = session;
    return session;
  }
}
