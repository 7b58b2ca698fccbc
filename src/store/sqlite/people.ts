/** Users, sessions, one-time links and the audit table, as parts of a transaction. */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import type {
  Act,
  AuditRow,
  LinkKind,
  NewUser,
  PeopleTransaction,
  Role,
  StoredLink,
  StoredSession,
  StoredUser,
  User,
} from '../people.js';

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
}

const selectUsers = `
  SELECT users.id, users.name, role, account_id, accounts.name AS account, password, users.created_at_ms, last_seen_at_ms
  FROM users LEFT JOIN accounts ON accounts.id = account_id
`;

const toUser = (row: UserRow): User => ({
  userId: row.id,
  name: row.name,
  role: row.role,
  accountId: row.account_id,
  account: row.account,
  createdAtMs: row.created_at_ms,
  lastSeenAtMs: row.last_seen_at_ms,
});

const toAuditRow = (row: ActRow): AuditRow => ({
  auditId: row.id,
  atMs: row.at_ms,
  actor: row.actor,
  action: row.action,
  subject: row.subject,
  details: row.details,
});

/** Statements of one connection, each prepared once. */
export class Statements {
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, StatementSync>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  all<Row>(sql: string, ...parameters: SQLInputValue[]): Row[] {
    return this.#prepare(sql).all(...parameters) as unknown as Row[];
  }

  named<Row>(sql: string, parameters: Readonly<Record<string, SQLInputValue>>): Row[] {
    return this.#prepare(sql).all(parameters) as unknown as Row[];
  }

  /** @returns the id of the inserted row */
  run(sql: string, ...parameters: SQLInputValue[]): number {
    return Number(this.#prepare(sql).run(...parameters).lastInsertRowid);
  }

  /** All texts are literals of this folder, so there are few. */
  #prepare(sql: string): StatementSync {
    const known = this.#prepared.get(sql);
    if (known !== undefined) return known;
    const statement = this.#database.prepare(sql);
    this.#prepared.set(sql, statement);
    return statement;
  }
}

export class People implements PeopleTransaction {
  protected readonly sql: Statements;

  constructor(sql: Statements) {
    this.sql = sql;
  }

  findUser(by: { readonly userId: number } | { readonly handle: string }): StoredUser | null {
    const row =
      'userId' in by
        ? this.sql.all<UserRow>(`${selectUsers} WHERE users.id = ?`, by.userId)[0]
        : this.sql.all<UserRow>(`${selectUsers} WHERE handle = ?`, by.handle)[0];
    return row === undefined ? null : { ...toUser(row), password: row.password };
  }

  listUsers(accountId: number | null): User[] {
    return this.sql
      .all<UserRow>(`${selectUsers} WHERE account_id IS ? ORDER BY handle`, accountId)
      .map(toUser);
  }

  countOperators(): number {
    return this.#count("SELECT count(*) AS count FROM users WHERE role = 'operator'");
  }

  addUser({ name, handle, role, accountId, password }: NewUser, atMs: number): number {
    return this.sql.run(
      'INSERT INTO users (name, handle, role, account_id, password, created_at_ms) VALUES (?, ?, ?, ?, ?, ?)',
      ...[name, handle, role, accountId, password, atMs],
    );
  }

  setPassword(userId: number, password: string): void {
    this.sql.run('UPDATE users SET password = ? WHERE id = ?', password, userId);
  }

  removeUser(userId: number): void {
    this.sql.run('DELETE FROM sessions WHERE user_id = ?', userId);
    this.sql.run('DELETE FROM users WHERE id = ?', userId);
  }

  findSession(hash: string): StoredSession | null {
    const row = this.sql.all<SessionRow>('SELECT * FROM sessions WHERE hash = ?', hash)[0];
    return row === undefined
      ? null
      : { userId: row.user_id, createdAtMs: row.created_at_ms, seenAtMs: row.seen_at_ms };
  }

  addSession(hash: string, userId: number, atMs: number): void {
    this.sql.run('INSERT INTO sessions VALUES (?, ?, ?, ?)', hash, userId, atMs, atMs);
    this.sql.run('UPDATE users SET last_seen_at_ms = ? WHERE id = ?', atMs, userId);
  }

  seeSession(hash: string, atMs: number): void {
    this.sql.run('UPDATE sessions SET seen_at_ms = ? WHERE hash = ?', atMs, hash);
    this.sql.run(
      'UPDATE users SET last_seen_at_ms = ? WHERE id = (SELECT user_id FROM sessions WHERE hash = ?)',
      ...[atMs, hash],
    );
  }

  endSessions(
    by:
      | { readonly hash: string }
      | { readonly userId: number; readonly exceptHash: string | null }
      | { readonly beganBeforeMs: number; readonly seenBeforeMs: number },
  ): void {
    if ('hash' in by) this.sql.run('DELETE FROM sessions WHERE hash = ?', by.hash);
    else if ('userId' in by)
      this.sql.run('DELETE FROM sessions WHERE user_id = ? AND hash IS NOT ?', by.userId, by.exceptHash);
    else
      this.sql.run(
        'DELETE FROM sessions WHERE created_at_ms < ? OR seen_at_ms < ?',
        ...[by.beganBeforeMs, by.seenBeforeMs],
      );
  }

  keepSessions(userId: number, sessionsMax: number): void {
    this.sql.run(
      `DELETE FROM sessions WHERE hash IN (
         SELECT hash FROM sessions WHERE user_id = ? ORDER BY seen_at_ms DESC, created_at_ms DESC LIMIT -1 OFFSET ?
       )`,
      ...[userId, sessionsMax],
    );
  }

  findLink(hash: string): StoredLink | null {
    const row = this.sql.all<LinkRow>('SELECT * FROM links WHERE hash = ?', hash)[0];
    return row === undefined
      ? null
      : { kind: row.kind, accountId: row.account_id, expiresAtMs: row.expires_at_ms };
  }

  countLinks(): number {
    return this.#count('SELECT count(*) AS count FROM links');
  }

  addLink(hash: string, { kind, accountId, expiresAtMs }: StoredLink): void {
    this.sql.run('INSERT INTO links VALUES (?, ?, ?, ?)', hash, kind, accountId, expiresAtMs);
  }

  removeLinks(
    by:
      | { readonly hash: string }
      | { readonly kind: LinkKind }
      | { readonly accountId: number }
      | { readonly expiredAtMs: number },
  ): void {
    if ('hash' in by) this.sql.run('DELETE FROM links WHERE hash = ?', by.hash);
    else if ('kind' in by) this.sql.run('DELETE FROM links WHERE kind = ?', by.kind);
    else if ('accountId' in by) this.sql.run('DELETE FROM links WHERE account_id = ?', by.accountId);
    else this.sql.run('DELETE FROM links WHERE expires_at_ms <= ?', by.expiredAtMs);
  }

  listActs(beforeId: number | null, rowsMax: number): AuditRow[] {
    const rows = this.sql.all<ActRow>(
      'SELECT * FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?',
      ...[beforeId ?? Number.MAX_SAFE_INTEGER, rowsMax],
    );
    return rows.map(toAuditRow);
  }

  record({ atMs, actor, action, subject, details }: Act): void {
    this.sql.run(
      'INSERT INTO audit (at_ms, actor, action, subject, details) VALUES (?, ?, ?, ?, ?)',
      ...[atMs, actor, action, subject, details],
    );
  }

  trimActs(
    by: { readonly beforeMs: number } | { readonly rowsMax: number; readonly action: string | null },
  ): void {
    if ('beforeMs' in by) this.sql.run('DELETE FROM audit WHERE at_ms < ?', by.beforeMs);
    else if (by.action === null)
      this.sql.run('DELETE FROM audit WHERE id <= (SELECT max(id) FROM audit) - ?', by.rowsMax);
    else
      this.sql.run(
        `DELETE FROM audit WHERE action = ? AND id <= (
           SELECT id FROM audit WHERE action = ? ORDER BY id DESC LIMIT 1 OFFSET ?
         )`,
        ...[by.action, by.action, by.rowsMax],
      );
  }

  #count(sql: string): number {
    return this.sql.all<{ count: number }>(sql)[0]?.count ?? 0;
  }
}
