/** What an operator does to accounts and keys: each act is one commit, effective at once in every process. */
import type { DatabaseSync } from 'node:sqlite';
import { transact, wordStoreError } from '../store/sqlite/database.js';
import { newWriter, prepareAppend } from '../store/sqlite/entries.js';
import { prepareMark } from '../store/sqlite/mark.js';
import { openDatabase, type HeldDatabase } from '../store/sqlite/opening.js';
import { generateKey, hashKey, looksLikeKey, prefixOf } from './keys.js';

/** An act that the store's contents do not allow. The message is one line for the operator. */
export class AdministrationError extends Error {
  override readonly name = 'AdministrationError';
}

/** Credits of one grant, and of a balance after it: far from where integers end. */
export const CREDITS_MAX = 1_000_000_000_000;
const ACCOUNT_NAME_MAX = 64;

export interface Account {
  readonly accountId: number;
  readonly name: string;
  readonly metered: boolean;
  readonly balance: number;
}

export interface CreatedKey {
  /** The only time that it is seen whole. */
  readonly key: string;
  readonly account: Account;
}

export interface Credited {
  readonly account: Account;
  /** The account was never out of credit before; from now on it is when the credits are spent. */
  readonly becameMetered: boolean;
}

export interface ListedKey {
  readonly prefix: string;
  readonly account: string;
  readonly createdAtMs: number;
  readonly revokedAtMs: number | null;
  readonly metered: boolean;
  readonly balance: number;
}

export interface RevokedKey {
  readonly prefix: string;
  readonly account: string;
  readonly alreadyRevoked: boolean;
}

interface AccountRow {
  readonly id: number;
  readonly name: string;
  readonly metered: number;
  readonly balance: number;
}

interface KeyRow {
  readonly id: number;
  readonly account_id: number;
  readonly prefix: string;
  readonly account: string;
  readonly revoked_at_ms: number | null;
}

const balanceColumn = 'max(min(balance, 9007199254740991), -9007199254740991) AS balance';
const accountBy = (column: 'id' | 'name') =>
  `SELECT id, name, metered, ${balanceColumn} FROM accounts WHERE ${column} = ?`;
const keyBy = (column: 'hash' | 'prefix') => `
  SELECT api_keys.id, account_id, prefix, revoked_at_ms, accounts.name AS account
  FROM api_keys JOIN accounts ON accounts.id = account_id WHERE ${column} = ?
`;
const listAll = `
  SELECT prefix, name AS account, api_keys.created_at_ms AS createdAtMs, revoked_at_ms AS revokedAtMs,
    metered, ${balanceColumn}
  FROM api_keys JOIN accounts ON accounts.id = account_id ORDER BY api_keys.id
`;

const checkCredits = (credits: number, min: number): void => {
  if (!Number.isSafeInteger(credits) || credits < min || credits > CREDITS_MAX)
    throw new AdministrationError(`Credits are a whole number from ${min} to ${CREDITS_MAX}`);
};

const checkName = (name: string): void => {
  if (
    !/^[^\s\p{C}](?:[^\p{C}]*[^\s\p{C}])?$/u.test(name) ||
    name.length > ACCOUNT_NAME_MAX ||
    looksLikeKey(name)
  )
    throw new AdministrationError(
      `An account's name has 1 to ${ACCOUNT_NAME_MAX} printable characters, no space at its ends, and is no key`,
    );
};

const toAccount = (row: AccountRow): Account => ({
  accountId: row.id,
  name: row.name,
  metered: row.metered === 1,
  balance: row.balance,
});

export class Administration {
  readonly #dataDir: string;
  readonly #database: DatabaseSync;
  readonly #hold: HeldDatabase['hold'];
  readonly #mark: () => void;
  readonly #nowMs: () => number;

  /** @throws {StoreError} when the store cannot be read and written; so for every act below */
  constructor(dataDir: string, nowMs: () => number = Date.now) {
    this.#dataDir = dataDir;
    const { database, hold } = openDatabase(dataDir);
    this.#database = database;
    this.#hold = hold;
    this.#mark = this.#worded(() => prepareMark(dataDir, database));
    this.#nowMs = nowMs;
  }

  /**
   * Makes a key, and its account unless one of that name exists. Without credits a new account is not metered.
   *
   * @param account its name; `null` makes a new account with a name of its own
   */
  createKey(account: string | null, credits: number | null): CreatedKey {
    if (account !== null) checkName(account);
    if (credits !== null) checkCredits(credits, 0);
    return this.#transact(() => {
      const existing = account === null ? undefined : this.#account('name', account);
      const accountId = existing?.accountId ?? this.#insertAccount(account, credits !== null);
      if (credits !== null && existing !== undefined) this.#credit(existing, credits);
      else if (credits !== null && credits > 0) this.#grant(accountId, credits);
      const key = this.#insertKey(accountId);
      return { key, account: this.#accountById(accountId) };
    });
  }

  /**
   * Makes an account that is not metered and its key, but only in a store without any key.
   *
   * @param deliver gets the key before the commit: when it throws, there is no key
   * @returns `null` when the store has one
   */
  createFirstKey(account: string, deliver: (key: string) => void): CreatedKey | null {
    return this.#transact(() => {
      if (this.#database.prepare('SELECT 1 FROM api_keys').get() !== undefined) return null;
      const accountId = this.#account('name', account)?.accountId ?? this.#insertAccount(account, false);
      const key = this.#insertKey(accountId);
      deliver(key);
      return { key, account: this.#accountById(accountId) };
    });
  }

  /**
   * Adds credits. An account that was not metered becomes so, with these credits: what it used before is not owed.
   *
   * @param target a key, the prefix of one, or an account's name
   */
  credit(target: string, credits: number): Credited {
    checkCredits(credits, 1);
    return this.#transact(() => {
      const account = looksLikeKey(target)
        ? this.#accountById(this.#key(target).account_id)
        : this.#account('name', target);
      if (account === undefined)
        throw new AdministrationError(`There is no account "${target}": see \`npm run keys -- list\``);
      const becameMetered = this.#credit(account, credits);
      return { account: this.#accountById(account.accountId), becameMetered };
    });
  }

  /** @param target a key, or the prefix that `list` shows of it */
  revoke(target: string): RevokedKey {
    return this.#transact(() => {
      const { id, prefix, account, revoked_at_ms } = this.#key(target);
      this.#database
        .prepare('UPDATE api_keys SET revoked_at_ms = ? WHERE id = ? AND revoked_at_ms IS NULL')
        .run(this.#nowMs(), id);
      return { prefix, account, alreadyRevoked: revoked_at_ms !== null };
    });
  }

  /** All keys, revoked ones too, in the order of their making. */
  list(): ListedKey[] {
    return this.#worded(() => {
      const rows = this.#database.prepare(listAll).all() as unknown as (Omit<ListedKey, 'metered'> & {
        metered: number;
      })[];
      return rows.map((row) => ({ ...row, metered: row.metered === 1 }));
    });
  }

  /** Idempotent. */
  close(): void {
    if (this.#database.isOpen) this.#database.close();
    this.#hold.release();
  }

  #transact<T>(work: () => T): T {
    return this.#worded(() => {
      const result = transact(this.#database, work);
      this.#mark();
      return result;
    });
  }

  #worded<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw wordStoreError(this.#dataDir, error);
    }
  }

  #account(column: 'id' | 'name', value: number | string): Account | undefined {
    const row = this.#database.prepare(accountBy(column)).get(value) as AccountRow | undefined;
    return row === undefined ? undefined : toAccount(row);
  }

  #accountById(accountId: number): Account {
    const account = this.#account('id', accountId);
    if (account === undefined) throw new Error(`account ${accountId} is not in the store`);
    return account;
  }

  #key(target: string): KeyRow {
    const find = (column: 'hash' | 'prefix', value: string | Uint8Array) =>
      this.#database.prepare(keyBy(column)).all(value) as unknown as KeyRow[];
    const whole = find('hash', hashKey(target));
    const found = whole.length > 0 ? whole : find('prefix', target);
    const [key] = found;
    // A key that is wrong in one letter must not be shown whole.
    const shown = target.length > prefixOf(target).length ? `${prefixOf(target)}...` : target;
    if (key === undefined)
      throw new AdministrationError(`There is no key "${shown}": see \`npm run keys -- list\``);
    if (found.length > 1)
      throw new AdministrationError(`Several keys begin with "${shown}": give the whole key`);
    return key;
  }

  #insertAccount(name: string | null, metered: boolean): number {
    const { lastInsertRowid } = this.#database
      .prepare('INSERT INTO accounts (name, metered, created_at_ms) VALUES (?, ?, ?)')
      .run(name ?? this.#freeName(), metered ? 1 : 0, this.#nowMs());
    return Number(lastInsertRowid);
  }

  #freeName(): string {
    const row = this.#database.prepare('SELECT count(*) AS accounts FROM accounts').get();
    for (let number = Number(row?.['accounts']) + 1; ; number += 1) {
      const name = `account-${number}`;
      if (this.#account('name', name) === undefined) return name;
    }
  }

  #insertKey(accountId: number): string {
    const key = generateKey();
    this.#database
      .prepare('INSERT INTO api_keys (account_id, hash, prefix, created_at_ms) VALUES (?, ?, ?, ?)')
      .run(accountId, hashKey(key), prefixOf(key), this.#nowMs());
    return key;
  }

  /** @returns whether the account became metered */
  #credit(account: Account, credits: number): boolean {
    // What an unmetered account used made its balance negative: it is forgiven, so that the credits are there to spend.
    const forgiven = account.metered ? 0 : -account.balance;
    if (account.balance + forgiven + credits > CREDITS_MAX)
      throw new AdministrationError(`A balance is at most ${CREDITS_MAX} credits`);
    if (credits + forgiven !== 0) this.#grant(account.accountId, credits + forgiven);
    if (!account.metered)
      this.#database.prepare('UPDATE accounts SET metered = 1 WHERE id = ?').run(account.accountId);
    return !account.metered;
  }

  #grant(accountId: number, amount: number): void {
    prepareAppend(this.#database)({
      writer: newWriter(),
      entry: 1,
      accountId,
      keyId: null,
      requestId: null,
      kind: 'grant',
      amount,
      characters: null,
      beginsRequest: false,
      atMs: this.#nowMs(),
    });
  }
}
