/** Users, sessions, one-time links and the audit table, as parts of a transaction. */
import type {
  ActFilter,
  AuditRow,
  KnownSession,
  LinkKind,
  NewAct,
  NewUser,
  StoredLink,
  StoredSession,
  StoredToken,
  StoredUser,
  TokenTerms,
  User,
} from '../people.js';
import { columnsOf, type Sql, type SqlValue } from './sql.js';

const userColumns = columnsOf([
  ...['users.id AS userId', 'users.name', 'role', 'account_id', 'accounts.name AS account'],
  ...['users.created_at_ms', 'last_seen_at_ms'],
]);
const fromUsers = 'FROM users LEFT JOIN accounts ON accounts.id = account_id';

type SessionRow = Omit<StoredSession, 'token'> & {
  readonly [Name in keyof TokenTerms]: TokenTerms[Name] | null;
};

const tokenColumns = columnsOf(['name', 'expires_at_ms', 'created_at_ms', 'seen_at_ms']);
const sessionColumns = `${tokenColumns}, user_id AS "userId"`;
const ofActs = ['audit.id AS auditId', 'at_ms', 'actor', 'action', 'subject', 'details'];
const actColumns = columnsOf([...ofActs, 'accounts.name AS account']);
const linkColumns = columnsOf(['kind', 'account_id', 'expires_at_ms']);

/** SQLite needs a limit before an offset, and PostgreSQL takes no negative one. */
const NO_LIMIT = 1_000_000;

/** Rows of the audit table that one act removes for their age. */
const TRIMMED_MAX = 10;

/** In a pattern of LIKE. */
const likeOf = (text: string): string => text.replaceAll(/[\\%_]/g, String.raw`\$&`);

export class People {
  protected readonly sql: Sql;

  constructor(sql: Sql) {
    this.sql = sql;
  }

  protected async first<Row>(text: string, ...parameters: SqlValue[]): Promise<Row | null> {
    return (await this.sql.all<Row>(text, ...parameters))[0] ?? null;
  }

  /** @param text ends with RETURNING id */
  protected async insert(text: string, ...parameters: SqlValue[]): Promise<number> {
    const row = await this.first<{ id: number }>(text, ...parameters);
    if (row === null) throw new Error('the statement inserted no row');
    return row.id;
  }

  async findUser(by: { readonly userId: number } | { readonly handle: string }): Promise<StoredUser | null> {
    const [column, value] = 'userId' in by ? ['users.id', by.userId] : ['handle', by.handle];
    return this.first(`SELECT ${userColumns}, password ${fromUsers} WHERE ${column} = ?`, value);
  }

  /** In the order of their names. @param accountId the members of one account; `null` for the operators */
  async listUsers(accountId: number | null): Promise<User[]> {
    return this.sql.all(
      `SELECT ${userColumns} ${fromUsers} WHERE account_id IS NOT DISTINCT FROM ? ORDER BY handle`,
      accountId,
    );
  }

  async countOperators(): Promise<number> {
    return this.count("SELECT count(*) AS count FROM users WHERE role = 'operator'");
  }

  /** @returns its id, which no user had before */
  async addUser({ name, handle, role, accountId, password }: NewUser, atMs: number): Promise<number> {
    return this.insert(
      `INSERT INTO users (name, handle, role, account_id, password, created_at_ms)
       VALUES (?, ?, ?, ?, ?, ?) RETURNING id`,
      ...[name, handle, role, accountId, password, atMs],
    );
  }

  async setPassword(userId: number, password: string): Promise<void> {
    await this.sql.all('UPDATE users SET password = ? WHERE id = ?', password, userId);
  }

  /** With its sessions. */
  async removeUser(userId: number): Promise<void> {
    await this.sql.all('DELETE FROM sessions WHERE user_id = ?', userId);
    await this.sql.all('DELETE FROM users WHERE id = ?', userId);
  }

  async findSession(hash: string): Promise<StoredSession | null> {
    const row = await this.first<SessionRow>(`SELECT ${sessionColumns} FROM sessions WHERE hash = ?`, hash);
    if (row === null) return null;
    const { name, expiresAtMs, ...session } = row;
    return { ...session, token: name === null || expiresAtMs === null ? null : { name, expiresAtMs } };
  }

  /** Tokens of programs too. Those that were seen last, the oldest of them first; some may have ended. */
  async listSessions(sessionsMax: number): Promise<KnownSession[]> {
    const rows = await this.sql.all<KnownSession>(
      'SELECT hash, user_id AS "userId" FROM sessions ORDER BY seen_at_ms DESC LIMIT ?',
      sessionsMax,
    );
    return rows.reverse();
  }

  /** In the order of their names. */
  async listTokens(userId: number): Promise<StoredToken[]> {
    return this.sql.all(
      `SELECT ${tokenColumns} FROM sessions WHERE user_id = ? AND name IS NOT NULL ORDER BY name`,
      userId,
    );
  }

  /** @param token absent: of a browser */
  async addSession(hash: string, userId: number, atMs: number, token?: TokenTerms): Promise<void> {
    await this.sql.all(
      'INSERT INTO sessions (hash, user_id, created_at_ms, seen_at_ms, name, expires_at_ms) VALUES (?, ?, ?, ?, ?, ?)',
      ...[hash, userId, atMs, atMs, token?.name ?? null, token?.expiresAtMs ?? null],
    );
    await this.sql.all('UPDATE users SET last_seen_at_ms = ? WHERE id = ?', atMs, userId);
  }

  /** Notes activity of a session, and of its user. */
  async seeSession(hash: string, atMs: number): Promise<void> {
    await this.sql.all('UPDATE sessions SET seen_at_ms = ? WHERE hash = ?', atMs, hash);
    await this.sql.all(
      'UPDATE users SET last_seen_at_ms = ? WHERE id = (SELECT user_id FROM sessions WHERE hash = ?)',
      ...[atMs, hash],
    );
  }

  /**
   * @param by one session; or all of a user but for one, tokens too; or a token of a user; or all of browsers that began or
   * were seen before these times
   */
  async endSessions(
    by:
      | { readonly hash: string }
      | { readonly userId: number; readonly exceptHash: string | null }
      | { readonly userId: number; readonly token: string }
      | { readonly nowMs: number; readonly msMax: number; readonly idleMsMax: number },
  ): Promise<void> {
    if ('hash' in by) await this.sql.all('DELETE FROM sessions WHERE hash = ?', by.hash);
    else if ('token' in by)
      await this.sql.all('DELETE FROM sessions WHERE user_id = ? AND name = ?', by.userId, by.token);
    else if ('userId' in by)
      await this.sql.all(
        'DELETE FROM sessions WHERE user_id = ? AND hash IS DISTINCT FROM ?',
        by.userId,
        by.exceptHash,
      );
    else
      await this.sql.all(
        `DELETE FROM sessions
         WHERE name IS NULL AND (created_at_ms < ${this.sql.now} - ? OR seen_at_ms < ${this.sql.now} - ?)`,
        ...[by.nowMs, by.msMax, by.nowMs, by.idleMsMax],
      );
  }

  /** Ends the sessions of a user's browsers that were seen least recently. */
  async keepSessions(userId: number, sessionsMax: number): Promise<void> {
    await this.sql.all(
      `DELETE FROM sessions WHERE hash IN (
         SELECT hash FROM sessions WHERE user_id = ? AND name IS NULL
         ORDER BY seen_at_ms DESC, created_at_ms DESC LIMIT ${NO_LIMIT} OFFSET ?
       )`,
      ...[userId, sessionsMax],
    );
  }

  async findLink(hash: string): Promise<StoredLink | null> {
    return this.first(`SELECT ${linkColumns} FROM links WHERE hash = ?`, hash);
  }

  /** In the order of their ends. */
  async listLinks(kind: LinkKind, accountId: number | null): Promise<StoredLink[]> {
    return this.sql.all(
      `SELECT ${linkColumns} FROM links WHERE kind = ? AND account_id IS NOT DISTINCT FROM ? ORDER BY expires_at_ms`,
      ...[kind, accountId],
    );
  }

  async countLinks(): Promise<number> {
    return this.count('SELECT count(*) AS count FROM links');
  }

  async addLink(hash: string, { kind, accountId, expiresAtMs }: StoredLink): Promise<void> {
    await this.sql.all('INSERT INTO links VALUES (?, ?, ?, ?)', hash, kind, accountId, expiresAtMs);
  }

  /** @param by one link, all of a kind, those that `listLinks` has, or all that have expired at a time */
  async removeLinks(
    by:
      | { readonly hash: string }
      | { readonly kind: LinkKind; readonly accountId?: number | null }
      | { readonly expiredAtMs: number },
  ): Promise<void> {
    if ('hash' in by) await this.sql.all('DELETE FROM links WHERE hash = ?', by.hash);
    else if ('expiredAtMs' in by)
      await this.sql.all(`DELETE FROM links WHERE expires_at_ms <= ${this.sql.now}`, by.expiredAtMs);
    else if (by.accountId === undefined) await this.sql.all('DELETE FROM links WHERE kind = ?', by.kind);
    else
      await this.sql.all(
        'DELETE FROM links WHERE kind = ? AND account_id IS NOT DISTINCT FROM ?',
        ...[by.kind, by.accountId],
      );
  }

  /** The newest first. @param beforeId only older rows; `null` for the newest */
  async listActs(
    beforeId: number | null,
    rowsMax: number,
    { kind = '', search = '' }: ActFilter = {},
  ): Promise<AuditRow[]> {
    return this.sql.all(
      `SELECT ${actColumns} FROM audit LEFT JOIN accounts ON accounts.id = account_id
      WHERE audit.id < ? AND action LIKE ? ESCAPE '\\'
        AND lower(actor || ' ' || action || ' ' || subject || ' ' || details || ' ' || coalesce(accounts.name, ''))
          LIKE lower(?) ESCAPE '\\'
      ORDER BY audit.id DESC LIMIT ?`,
      ...[beforeId ?? Number.MAX_SAFE_INTEGER, kind === '' ? '%' : `${likeOf(kind)}.%`],
      ...[`%${likeOf(search)}%`, rowsMax],
    );
  }

  /** @returns the id of the row */
  async record({ atMs, actor, accountId, action, subject, details }: NewAct): Promise<number> {
    return this.insert(
      'INSERT INTO audit (at_ms, actor, account_id, action, subject, details) VALUES (?, ?, ?, ?, ?, ?) RETURNING id',
      ...[atMs, actor, accountId, action, subject, details],
    );
  }

  /**
   * Removes the oldest rows of the audit table: those before a time, or beyond a number of one action, of the members of an
   * account, or of everybody else (`null`).
   */
  async trimActs(
    by:
      | { readonly nowMs: number; readonly msMax: number }
      | (({ readonly action: string } | { readonly accountId: number | null }) & {
          readonly rowsMax: number;
        }),
  ): Promise<void> {
    if ('nowMs' in by) {
      // A few for each act: one with a clock that is years ahead must not empty the table.
      await this.sql.all(
        `DELETE FROM audit WHERE id IN (
           SELECT id FROM audit WHERE at_ms < ${this.sql.now} - ? ORDER BY at_ms LIMIT ${TRIMMED_MAX}
         )`,
        ...[by.nowMs, by.msMax],
      );
      return;
    }
    const [part, values] =
      'action' in by
        ? ['action = ?', [by.action]]
        : by.accountId === null
          ? ['account_id IS NULL', []]
          : ['account_id = ?', [by.accountId]];
    await this.sql.all(
      `DELETE FROM audit WHERE ${part} AND id <= (
         SELECT id FROM audit WHERE ${part} ORDER BY id DESC LIMIT 1 OFFSET ?
       )`,
      ...[...values, ...values, by.rowsMax],
    );
  }

  protected async count(sql: string, ...parameters: SqlValue[]): Promise<number> {
    return (await this.first<{ count: number }>(sql, ...parameters))?.count ?? 0;
  }
}
