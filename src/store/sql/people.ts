/** Users, sessions, one-time links and the audit table, as parts of a transaction. */
import type {
  ActFilter,
  AuditRow,
  KnownSession,
  LinkKind,
  NewAct,
  NewUser,
  PeopleTransaction,
  Role,
  StoredLink,
  StoredSession,
  StoredToken,
  StoredUser,
  TokenTerms,
  User,
} from '../people.js';
import type { Sql, SqlValue } from './sql.js';

interface UserRow {
  readonly id: number;
  readonly name: string;
  readonly role: Role;
  readonly account_id: number | null;
  readonly account: string | null;
  readonly password: string;
  readonly created_at_ms: number;
  readonly last_seen_at_ms: number | null;
}

interface SessionRow {
  readonly user_id: number;
  readonly created_at_ms: number;
  readonly seen_at_ms: number;
  readonly name: string | null;
  readonly expires_at_ms: number | null;
}

interface LinkRow {
  readonly kind: LinkKind;
  readonly account_id: number | null;
  readonly expires_at_ms: number;
}

interface ActRow {
  readonly id: number;
  readonly at_ms: number;
  readonly actor: string;
  readonly action: string;
  readonly subject: string;
  readonly details: string;
  readonly account: string | null;
}

const selectUsers = `
  SELECT users.id, users.name, role, account_id, accounts.name AS account, password, users.created_at_ms, last_seen_at_ms
  FROM users LEFT JOIN accounts ON accounts.id = account_id
`;

/** SQLite needs a limit before an offset, and PostgreSQL takes no negative one. */
const NO_LIMIT = 1_000_000;

const toUser = (row: UserRow): User => ({
  userId: row.id,
  name: row.name,
  role: row.role,
  accountId: row.account_id,
  account: row.account,
  createdAtMs: row.created_at_ms,
  lastSeenAtMs: row.last_seen_at_ms,
});

const toTerms = ({ name, expires_at_ms: expiresAtMs }: SessionRow): TokenTerms | null =>
  name === null || expiresAtMs === null ? null : { name, expiresAtMs };

const toLink = (row: LinkRow): StoredLink => ({
  kind: row.kind,
  accountId: row.account_id,
  expiresAtMs: row.expires_at_ms,
});

const toAuditRow = (row: ActRow): AuditRow => ({
  auditId: row.id,
  atMs: row.at_ms,
  actor: row.actor,
  action: row.action,
  subject: row.subject,
  details: row.details,
  account: row.account,
});

/** In a pattern of LIKE. */
const likeOf = (text: string): string => text.replaceAll(/[\\%_]/g, String.raw`\$&`);

export class People implements PeopleTransaction {
  protected readonly sql: Sql;

  constructor(sql: Sql) {
    this.sql = sql;
  }

  protected async first<Row>(text: string, ...parameters: SqlValue[]): Promise<Row | undefined> {
    return (await this.sql.all<Row>(text, ...parameters))[0];
  }

  /** @param text ends with RETURNING id */
  protected async insert(text: string, ...parameters: SqlValue[]): Promise<number> {
    const row = await this.first<{ id: number }>(text, ...parameters);
    if (row === undefined) throw new Error('the statement inserted no row');
    return row.id;
  }

  async findUser(by: { readonly userId: number } | { readonly handle: string }): Promise<StoredUser | null> {
    const row =
      'userId' in by
        ? await this.first<UserRow>(`${selectUsers} WHERE users.id = ?`, by.userId)
        : await this.first<UserRow>(`${selectUsers} WHERE handle = ?`, by.handle);
    return row === undefined ? null : { ...toUser(row), password: row.password };
  }

  async listUsers(accountId: number | null): Promise<User[]> {
    const rows = await this.sql.all<UserRow>(
      `${selectUsers} WHERE account_id IS NOT DISTINCT FROM ? ORDER BY handle`,
      accountId,
    );
    return rows.map(toUser);
  }

  async countOperators(): Promise<number> {
    return this.count("SELECT count(*) AS count FROM users WHERE role = 'operator'");
  }

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

  async removeUser(userId: number): Promise<void> {
    await this.sql.all('DELETE FROM sessions WHERE user_id = ?', userId);
    await this.sql.all('DELETE FROM users WHERE id = ?', userId);
  }

  async findSession(hash: string): Promise<StoredSession | null> {
    const row = await this.first<SessionRow>('SELECT * FROM sessions WHERE hash = ?', hash);
    return row === undefined
      ? null
      : {
          userId: row.user_id,
          createdAtMs: row.created_at_ms,
          seenAtMs: row.seen_at_ms,
          token: toTerms(row),
        };
  }

  async listSessions(sessionsMax: number): Promise<KnownSession[]> {
    const rows = await this.sql.all<{ readonly hash: string; readonly user_id: number }>(
      'SELECT hash, user_id FROM sessions ORDER BY seen_at_ms DESC LIMIT ?',
      sessionsMax,
    );
    return rows.reverse().map(({ hash, user_id: userId }) => ({ hash, userId }));
  }

  async listTokens(userId: number): Promise<StoredToken[]> {
    const rows = await this.sql.all<SessionRow>(
      'SELECT * FROM sessions WHERE user_id = ? AND name IS NOT NULL ORDER BY name',
      userId,
    );
    return rows.flatMap((row) => {
      const terms = toTerms(row);
      return terms === null ? [] : [{ ...terms, createdAtMs: row.created_at_ms, seenAtMs: row.seen_at_ms }];
    });
  }

  async addSession(hash: string, userId: number, atMs: number, token?: TokenTerms): Promise<void> {
    await this.sql.all(
      'INSERT INTO sessions (hash, user_id, created_at_ms, seen_at_ms, name, expires_at_ms) VALUES (?, ?, ?, ?, ?, ?)',
      ...[hash, userId, atMs, atMs, token?.name ?? null, token?.expiresAtMs ?? null],
    );
    await this.sql.all('UPDATE users SET last_seen_at_ms = ? WHERE id = ?', atMs, userId);
  }

  async seeSession(hash: string, atMs: number): Promise<void> {
    await this.sql.all('UPDATE sessions SET seen_at_ms = ? WHERE hash = ?', atMs, hash);
    await this.sql.all(
      'UPDATE users SET last_seen_at_ms = ? WHERE id = (SELECT user_id FROM sessions WHERE hash = ?)',
      ...[atMs, hash],
    );
  }

  async endSessions(
    by:
      | { readonly hash: string }
      | { readonly userId: number; readonly exceptHash: string | null }
      | { readonly userId: number; readonly token: string }
      | { readonly beganBeforeMs: number; readonly seenBeforeMs: number },
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
        'DELETE FROM sessions WHERE name IS NULL AND (created_at_ms < ? OR seen_at_ms < ?)',
        ...[by.beganBeforeMs, by.seenBeforeMs],
      );
  }

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
    const row = await this.first<LinkRow>('SELECT * FROM links WHERE hash = ?', hash);
    return row === undefined ? null : toLink(row);
  }

  async listLinks(kind: LinkKind, accountId: number | null): Promise<StoredLink[]> {
    const rows = await this.sql.all<LinkRow>(
      'SELECT * FROM links WHERE kind = ? AND account_id IS NOT DISTINCT FROM ? ORDER BY expires_at_ms',
      ...[kind, accountId],
    );
    return rows.map(toLink);
  }

  async countLinks(): Promise<number> {
    return this.count('SELECT count(*) AS count FROM links');
  }

  async addLink(hash: string, { kind, accountId, expiresAtMs }: StoredLink): Promise<void> {
    await this.sql.all('INSERT INTO links VALUES (?, ?, ?, ?)', hash, kind, accountId, expiresAtMs);
  }

  async removeLinks(
    by:
      | { readonly hash: string }
      | { readonly kind: LinkKind; readonly accountId?: number | null }
      | { readonly expiredAtMs: number },
  ): Promise<void> {
    if ('hash' in by) await this.sql.all('DELETE FROM links WHERE hash = ?', by.hash);
    else if ('expiredAtMs' in by)
      await this.sql.all('DELETE FROM links WHERE expires_at_ms <= ?', by.expiredAtMs);
    else if (by.accountId === undefined) await this.sql.all('DELETE FROM links WHERE kind = ?', by.kind);
    else
      await this.sql.all(
        'DELETE FROM links WHERE kind = ? AND account_id IS NOT DISTINCT FROM ?',
        ...[by.kind, by.accountId],
      );
  }

  async listActs(
    beforeId: number | null,
    rowsMax: number,
    { kind = '', search = '' }: ActFilter = {},
  ): Promise<AuditRow[]> {
    const rows = await this.sql.all<ActRow>(
      `SELECT audit.*, accounts.name AS account FROM audit LEFT JOIN accounts ON accounts.id = account_id
      WHERE audit.id < ? AND action LIKE ? ESCAPE '\\'
        AND lower(actor || ' ' || action || ' ' || subject || ' ' || details || ' ' || coalesce(accounts.name, ''))
          LIKE lower(?) ESCAPE '\\'
      ORDER BY audit.id DESC LIMIT ?`,
      ...[beforeId ?? Number.MAX_SAFE_INTEGER, kind === '' ? '%' : `${likeOf(kind)}.%`],
      ...[`%${likeOf(search)}%`, rowsMax],
    );
    return rows.map(toAuditRow);
  }

  async record({ atMs, actor, accountId, action, subject, details }: NewAct): Promise<number> {
    return this.insert(
      'INSERT INTO audit (at_ms, actor, account_id, action, subject, details) VALUES (?, ?, ?, ?, ?, ?) RETURNING id',
      ...[atMs, actor, accountId, action, subject, details],
    );
  }

  async trimActs(
    by:
      | { readonly beforeMs: number }
      | (({ readonly action: string } | { readonly accountId: number | null }) & {
          readonly rowsMax: number;
        }),
  ): Promise<void> {
    if ('beforeMs' in by) {
      await this.sql.all('DELETE FROM audit WHERE at_ms < ?', by.beforeMs);
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
