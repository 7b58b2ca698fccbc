/** What accounts ask of a store in one transaction, in the SQL that all stores share. */
import type { SpeakingDefaults } from '../../api/speech-settings.js';
import { conflict } from '../faults.js';
import {
  newWriter,
  type Account,
  type KeyKind,
  type ListedAccount,
  type ListedKey,
  type StoredKey,
  type StoredProperties,
} from '../records.js';
import {
  accountColumns,
  appendSql,
  appendValues,
  propertyColumns,
  propertyValues,
  selectKeys,
  selectListedKeys,
  speakingValues,
  toAccount,
  toKey,
  type AccountRow,
  type KeyRow,
  type RowOf,
} from './rows.js';
import { UsageReader } from './usage.js';
import { clamped, type Sql, type SqlValue } from './sql.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export interface KeyBounds {
  readonly keysPerAccountMax: number;
  /** Of all accounts. */
  readonly storeKeysMax: number;
}

/** Of one account. A member may make and revoke keys every day, for years. */
const REVOKED_KEYS_LISTED = 200;
const ofAccount = `account_id = ? AND (revoked_at_ms IS NULL OR api_keys.id IN (
  SELECT id FROM api_keys WHERE account_id = ? AND revoked_at_ms IS NOT NULL ORDER BY id DESC LIMIT ${REVOKED_KEYS_LISTED}
))`;

/** The part of a day at the start is added up from its hours. @param condition on columns of `accounts` */
const listAccounts = (condition: string): string => `
  SELECT ${accountColumns}, created_at_ms AS "createdAtMs",
    (SELECT count(*) FROM api_keys WHERE account_id = accounts.id AND kind = 'api' AND revoked_at_ms IS NULL) AS keys,
    (SELECT count(*) FROM users WHERE account_id = accounts.id) AS users,
    ${clamped(`(
      SELECT coalesce(sum(characters), 0) FROM (
        SELECT characters FROM usage_days WHERE account_id = accounts.id AND day >= :day
        UNION ALL
        SELECT characters FROM api_keys CROSS JOIN usage_hours ON key_id = api_keys.id AND hour >= :hour AND hour < :dayHour
        WHERE account_id = accounts.id
      ) AS parts
    )`)} AS "recentCharacters"
  FROM accounts WHERE deleted_at_ms IS NULL AND ${condition} ORDER BY id
`;

/** A page of the console has so many keys, or twice. */
const KEYS_AT_ONCE = 100;
const idPlaces = Array.from({ length: KEYS_AT_ONCE }, () => '?');

/** The parts of an act. All of them take effect in one commit, or none does. */
export class Transaction extends UsageReader {
  readonly #bounds: KeyBounds;

  constructor(sql: Sql, bounds: KeyBounds) {
    super(sql);
    this.#bounds = bounds;
  }

  async findAccount(by: { readonly name: string } | { readonly accountId: number }): Promise<Account | null> {
    const [column, value] = 'name' in by ? ['name', by.name] : ['id', by.accountId];
    const row = await this.first<AccountRow>(
      `SELECT ${accountColumns} FROM accounts WHERE ${column} = ?`,
      value,
    );
    return row && toAccount(row);
  }

  /** Deleted ones included. */
  async accountNames(): Promise<string[]> {
    const rows = await this.sql.all<{ name: string }>('SELECT name FROM accounts');
    return rows.map(({ name }) => name);
  }

  /** Deleted ones included. */
  async countAccounts(): Promise<number> {
    return this.count('SELECT count(*) AS count FROM accounts');
  }

  /**
   * Those that are not deleted, in the order of their creation.
   *
   * @param recentSinceMs see `ListedAccount.recentCharacters`
   */
  async listAccounts(accountId: number | null, recentSinceMs: number): Promise<ListedAccount[]> {
    const hour = Math.ceil(recentSinceMs / HOUR_MS);
    const day = Math.ceil(hour / 24);
    const since = { hour, day, dayHour: 24 * day };
    const rows = await (accountId === null
      ? this.sql.named<RowOf<ListedAccount>>(listAccounts('true'), since)
      : this.sql.named<RowOf<ListedAccount>>(listAccounts('id = :id'), { ...since, id: accountId }));
    return rows.map((row) => toAccount(row));
  }

  /** In the order of their creation. */
  async findKeys(
    by:
      | { readonly hash: Uint8Array }
      | { readonly prefix: string }
      | { readonly keyIds: readonly number[] }
      | { readonly accountId: number | null; readonly expiresFromMs: number; readonly expiresToMs: number },
  ): Promise<StoredKey[]> {
    const found: KeyRow[] = [];
    const find = async (condition: string, ...values: SqlValue[]): Promise<void> => {
      found.push(...(await this.sql.all<KeyRow>(selectKeys(condition), ...values)));
    };
    if ('expiresFromMs' in by) {
      const { accountId, expiresFromMs, expiresToMs } = by;
      const [ofAccount, values] = accountId === null ? ['true', []] : ['account_id = ?', [accountId]];
      await find(
        `${ofAccount} AND expires_at_ms > ? AND expires_at_ms <= ?`,
        ...values,
        expiresFromMs,
        expiresToMs,
      );
    } else if ('hash' in by) await find('hash = ?', by.hash);
    else if ('prefix' in by) await find(`substr(prefix, 1, ${by.prefix.length}) = ?`, by.prefix);
    else
      for (let at = 0; at < by.keyIds.length; at += KEYS_AT_ONCE) {
        // One statement serves every count.
        const ids = Array.from(idPlaces, (_, index) => by.keyIds[at + index] ?? by.keyIds[at]!);
        await find(`api_keys.id IN (${idPlaces.join()})`, ...ids);
      }
    return found.map((row) => toKey(row));
  }

  /** The same with their use, revoked ones included; of an account the newest of these. */
  async listKeys(
    by: { readonly accountId: number } | { readonly keyId: number } | null,
  ): Promise<ListedKey[]> {
    const [condition, ...value] =
      by === null
        ? ['true']
        : 'keyId' in by
          ? (['api_keys.id = ?', by.keyId] as const)
          : ([ofAccount, by.accountId, by.accountId] as const);
    const rows = await this.sql.all<KeyRow<ListedKey>>(selectListedKeys(condition), ...value);
    return rows.map((row) => toKey(row));
  }

  /** Whether there is any key, revoked ones included. */
  async hasKeys(): Promise<boolean> {
    return (await this.first('SELECT 1 FROM api_keys LIMIT 1')) !== null;
  }

  /** @returns its id; `null` if the account has none yet */
  async findPlaygroundKey(accountId: number): Promise<number | null> {
    const found = await this.first<{ id: number }>(
      "SELECT id FROM api_keys WHERE account_id = ? AND kind = 'playground'",
      accountId,
    );
    return found?.id ?? null;
  }

  /** @returns its id */
  async addAccount(name: string, metered: boolean, atMs: number): Promise<number> {
    return this.insert(
      'INSERT INTO accounts (name, metered, created_at_ms) VALUES (?, ?, ?) RETURNING id',
      ...[name, metered ? 1 : 0, atMs],
    );
  }

  /** @returns its id. @throws {AdministrationError} the account or the store has, or gets, too many keys */
  async addKey(
    kind: KeyKind,
    accountId: number,
    hash: Uint8Array,
    prefix: string,
    properties: StoredProperties,
    atMs: number,
  ): Promise<number> {
    if (kind === 'api') await this.#refuseFull(accountId, atMs);
    return this.insert(
      `INSERT INTO api_keys (kind, account_id, hash, prefix, created_at_ms, ${propertyColumns.join(', ')})
       VALUES (?, ?, ?, ?, ?, ${propertyColumns.map(() => '?').join(', ')}) RETURNING id`,
      ...[kind, accountId, hash, prefix, atMs, ...propertyValues(properties)],
    );
  }

  /** Replaces all its properties. */
  async setKey(keyId: number, properties: StoredProperties): Promise<void> {
    await this.sql.all(
      `UPDATE api_keys SET ${propertyColumns.map((column) => `${column} = ?`).join(', ')} WHERE id = ?`,
      ...[...propertyValues(properties), keyId],
    );
  }

  async setMetered(accountId: number, isMetered: boolean): Promise<void> {
    await this.sql.all('UPDATE accounts SET metered = ? WHERE id = ?', isMetered ? 1 : 0, accountId);
  }

  async setSpeaking(accountId: number, defaults: SpeakingDefaults): Promise<void> {
    await this.sql.all(
      'UPDATE accounts SET normalize_text = ?, speed = ?, lexicon = ? WHERE id = ?',
      ...[...speakingValues(defaults), accountId],
    );
  }

  /** @param atMs `null` resumes the account */
  async setSuspended(accountId: number, atMs: number | null): Promise<void> {
    await this.sql.all('UPDATE accounts SET suspended_at_ms = ? WHERE id = ?', atMs, accountId);
  }

  /** Revokes all its keys, the hidden one too. Gives it another name, so that a new account can have its own. */
  async deleteAccount(accountId: number, name: string, atMs: number): Promise<void> {
    await this.sql.all('UPDATE accounts SET name = ?, deleted_at_ms = ? WHERE id = ?', name, atMs, accountId);
    await this.sql.all(
      'UPDATE api_keys SET revoked_at_ms = ? WHERE account_id = ? AND revoked_at_ms IS NULL',
      ...[atMs, accountId],
    );
  }

  /** Appends a grant to the ledger. */
  async grant(accountId: number, amount: number, atMs: number): Promise<void> {
    await this.sql.all(
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

  /** A revoked key counts for a day: otherwise creating and revoking could fill the disk. */
  async #refuseFull(accountId: number, atMs: number): Promise<void> {
    const { keysPerAccountMax, storeKeysMax } = this.#bounds;
    const keys = "SELECT count(*) AS count FROM api_keys WHERE kind = 'api'";
    const ofAccount = await this.count(`${keys} AND account_id = ? AND revoked_at_ms IS NULL`, accountId);
    const remedy = 'or let an operator raise KEYS_PER_ACCOUNT';
    if (ofAccount >= keysPerAccountMax)
      throw conflict(
        `The account has ${ofAccount} keys, the most that an account may have: revoke those that nobody uses, ${remedy}`,
      );
    // Keys of a host whose clock was far ahead do not count until that time.
    const ofDay = await this.count(
      `${keys} AND account_id = ? AND created_at_ms > ? AND created_at_ms < ?`,
      ...[accountId, atMs - DAY_MS, atMs + DAY_MS],
    );
    if (ofDay >= keysPerAccountMax)
      throw conflict(
        `The account got ${ofDay} keys in 24 hours, the most that an account may get: try again later, ${remedy}`,
      );
    if (storeKeysMax < Infinity && (await this.count(`${keys} AND revoked_at_ms IS NULL`)) >= storeKeysMax)
      throw conflict(
        `The store has ${storeKeysMax} keys, the most that a service can hold in memory: revoke those that nobody uses`,
      );
  }

  /** A key that is revoked already stays as it is. */
  async revokeKey(keyId: number, atMs: number): Promise<void> {
    await this.sql.all(
      'UPDATE api_keys SET revoked_at_ms = ? WHERE id = ? AND revoked_at_ms IS NULL',
      atMs,
      keyId,
    );
  }
}
