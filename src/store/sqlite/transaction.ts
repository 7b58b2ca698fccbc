/** The parts of an act on accounts and keys. */
import { newWriter } from '../ledger.js';
import type {
  Account,
  BalanceChange,
  KeyKind,
  KeyProperties,
  ListedAccount,
  ListedKey,
  StoredKey,
  StoreTransaction,
  UsageQuestion,
  UsageRow,
} from '../store.js';
import { clamped } from './database.js';
import { People } from './people.js';
import {
  accountColumns,
  propertyValues,
  selectKeys,
  selectListedKeys,
  toAccount,
  toKey,
  toListedKey,
  type AccountRow,
  type KeyRow,
  type ListedKeyRow,
} from './rows.js';
import { readBalanceChanges, readUsageRows } from './usage.js';
import { appendSql, appendValues } from './writer.js';

const HOUR_MS = 3_600_000;

interface ListedAccountRow extends AccountRow {
  readonly created_at_ms: number;
  readonly keys: number;
  readonly users: number;
  readonly recent: number;
}

const listAccounts = `
  SELECT ${accountColumns}, created_at_ms,
    (SELECT count(*) FROM api_keys WHERE account_id = accounts.id AND kind = 'api' AND revoked_at_ms IS NULL) AS keys,
    (SELECT count(*) FROM users WHERE account_id = accounts.id) AS users,
    ${clamped(`(
      SELECT coalesce(sum(characters), 0)
      FROM api_keys CROSS JOIN usage_hours ON key_id = api_keys.id AND hour >= ?
      WHERE account_id = accounts.id
    )`)} AS recent
  FROM accounts WHERE deleted_at_ms IS NULL AND (? IS NULL OR id = ?) ORDER BY id
`;

export class Transaction extends People implements StoreTransaction {
  findAccount(by: { readonly name: string } | { readonly accountId: number }): Account | null {
    const select = `SELECT ${accountColumns} FROM accounts`;
    const row =
      'name' in by
        ? this.sql.all<AccountRow>(`${select} WHERE name = ?`, by.name)[0]
        : this.sql.all<AccountRow>(`${select} WHERE id = ?`, by.accountId)[0];
    return row === undefined ? null : toAccount(row);
  }

  accountNames(): string[] {
    return this.sql.all<{ name: string }>('SELECT name FROM accounts').map(({ name }) => name);
  }

  countAccounts(): number {
    return this.sql.all<{ count: number }>('SELECT count(*) AS count FROM accounts')[0]?.count ?? 0;
  }

  listAccounts(accountId: number | null, recentSinceMs: number): ListedAccount[] {
    const sinceHour = Math.ceil(recentSinceMs / HOUR_MS);
    return this.sql.all<ListedAccountRow>(listAccounts, sinceHour, accountId, accountId).map((row) => ({
      ...toAccount(row),
      createdAtMs: row.created_at_ms,
      keys: row.keys,
      users: row.users,
      recentCharacters: row.recent,
    }));
  }

  findKeys(
    by: { readonly hash: Uint8Array } | { readonly prefix: string } | { readonly keyId: number },
  ): StoredKey[] {
    const [column, value] =
      'hash' in by ? ['hash', by.hash] : 'prefix' in by ? ['prefix', by.prefix] : ['api_keys.id', by.keyId];
    return this.sql.all<KeyRow>(selectKeys(`${column} = ?`), value).map(toKey);
  }

  listKeys(by: { readonly accountId: number } | { readonly keyId: number } | null): ListedKey[] {
    const rows =
      by === null
        ? this.sql.all<ListedKeyRow>(selectListedKeys('true'))
        : 'keyId' in by
          ? this.sql.all<ListedKeyRow>(selectListedKeys('api_keys.id = ?'), by.keyId)
          : this.sql.all<ListedKeyRow>(selectListedKeys('account_id = ?'), by.accountId);
    return rows.map(toListedKey);
  }

  hasKeys(): boolean {
    return this.sql.all('SELECT 1 FROM api_keys LIMIT 1')[0] !== undefined;
  }

  findPlaygroundKey(accountId: number): number | null {
    const found = this.sql.all<{ id: number }>(
      "SELECT id FROM api_keys WHERE account_id = ? AND kind = 'playground'",
      accountId,
    )[0];
    return found?.id ?? null;
  }

  readUsageRows(question: UsageQuestion, rowsMax: number): UsageRow[] {
    return readUsageRows(this.sql, question, rowsMax);
  }

  readBalanceChanges(accountId: number, rowsMax: number): BalanceChange[] {
    return readBalanceChanges(this.sql, accountId, rowsMax);
  }

  addAccount(name: string, metered: boolean, atMs: number): number {
    return this.sql.run(
      'INSERT INTO accounts (name, metered, created_at_ms) VALUES (?, ?, ?)',
      ...[name, metered ? 1 : 0, atMs],
    );
  }

  addKey(
    kind: KeyKind,
    accountId: number,
    hash: Uint8Array,
    prefix: string,
    properties: KeyProperties,
    atMs: number,
  ): number {
    return this.sql.run(
      `INSERT INTO api_keys
         (kind, account_id, hash, prefix, created_at_ms, name, expires_at_ms, credit_limit, voices)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ...[kind, accountId, hash, prefix, atMs, ...propertyValues(properties)],
    );
  }

  setKey(keyId: number, properties: KeyProperties): void {
    this.sql.run(
      'UPDATE api_keys SET name = ?, expires_at_ms = ?, credit_limit = ?, voices = ? WHERE id = ?',
      ...[...propertyValues(properties), keyId],
    );
  }

  setMetered(accountId: number): void {
    this.sql.run('UPDATE accounts SET metered = 1 WHERE id = ?', accountId);
  }

  setSuspended(accountId: number, atMs: number | null): void {
    this.sql.run('UPDATE accounts SET suspended_at_ms = ? WHERE id = ?', atMs, accountId);
  }

  deleteAccount(accountId: number, name: string, atMs: number): void {
    this.sql.run('UPDATE accounts SET name = ?, deleted_at_ms = ? WHERE id = ?', name, atMs, accountId);
    this.sql.run(
      'UPDATE api_keys SET revoked_at_ms = ? WHERE account_id = ? AND revoked_at_ms IS NULL',
      ...[atMs, accountId],
    );
  }

  grant(accountId: number, amount: number, atMs: number): void {
    this.sql.run(
      appendSql,
      ...appendValues({
        writer: newWriter(),
        entry: 1,
        accountId,
        keyId: null,
        requestId: null,
        kind: 'grant',
        amount,
        characters: null,
        voice: '',
        audioMs: 0,
        beginsRequest: false,
        atMs,
      }),
    );
  }

  revokeKey(keyId: number, atMs: number): void {
    this.sql.run('UPDATE api_keys SET revoked_at_ms = ? WHERE id = ? AND revoked_at_ms IS NULL', atMs, keyId);
  }
}
