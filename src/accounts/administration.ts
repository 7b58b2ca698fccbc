/** What an operator does with accounts and keys. Each act is one commit, effective at once in every process. */
import { closeSync, fchmodSync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import {
  AdministrationError,
  type Account,
  type KeyProperties,
  type ListedKey,
  type StoreAdministration,
  type StoreDriver,
  type StoredKey,
  type StoreTransaction,
  type UsagePeriod,
  type Use,
} from '../store/store.js';
import { generateKey, hashKey, looksLikeKey, prefixOf } from './keys.js';

/** Credits of one grant, of a balance after it, and of a limit: far below the largest exact integer. */
export const CREDITS_MAX = 1_000_000_000_000;
const NAME_MAX = 64;
/** Each request of the key reads them. */
const VOICES_MAX = 100;
const VOICE_ID_MAX = 200;
/** Later years have another form in ISO 8601. */
const EXPIRY_MS_MAX = Date.UTC(10_000, 0, 1) - 1;
const FIRST_ACCOUNT = 'default';

const noProperties: KeyProperties = { name: '', expiresAtMs: null, creditLimit: null, voices: null };

export interface CreatedKey {
  /** The whole key: the store has only its hash. */
  readonly key: string;
  readonly account: Account;
}

export interface Credited {
  readonly account: Account;
  /** The account was not metered before. From now on it runs out when these credits are spent. */
  readonly becameMetered: boolean;
}

export interface RevokedKey {
  readonly prefix: string;
  readonly account: string;
  readonly alreadyRevoked: boolean;
}

const checkCredits = (credits: number, min: number): void => {
  if (!Number.isSafeInteger(credits) || credits < min || credits > CREDITS_MAX)
    throw new AdministrationError(`Credits are a whole number from ${min} to ${CREDITS_MAX}`);
};

const checkName = (what: string, name: string): void => {
  if (!/^[^\s\p{C}](?:[^\p{C}]*[^\s\p{C}])?$/u.test(name) || name.length > NAME_MAX || looksLikeKey(name))
    throw new AdministrationError(
      `The name of ${what} has 1 to ${NAME_MAX} printable characters, no space at either end, and does not look like ` +
        'a key',
    );
};

/** Checks what is to be changed, and sorts out repeated voices. */
const checkProperties = (changes: Partial<KeyProperties>, nowMs: number): Partial<KeyProperties> => {
  const { name, expiresAtMs, creditLimit, voices } = changes;
  if (name !== undefined && name !== '') checkName('a key', name);
  if (expiresAtMs !== undefined && expiresAtMs !== null)
    if (!Number.isSafeInteger(expiresAtMs) || expiresAtMs <= nowMs || expiresAtMs > EXPIRY_MS_MAX)
      throw new AdministrationError('A key expires in the future, and before the year 10000');
  if (creditLimit !== undefined && creditLimit !== null) checkCredits(creditLimit, 0);
  if (voices === undefined || voices === null) return changes;
  const distinct = [...new Set(voices)];
  // Stores and lists separate them by commas.
  const isId = (id: string): boolean => /^[^\s,\p{C}]+$/u.test(id) && id.length <= VOICE_ID_MAX;
  if (distinct.length < 1 || distinct.length > VOICES_MAX || !distinct.every(isId))
    throw new AdministrationError(
      `A key names 1 to ${VOICES_MAX} voices by their ids, as the speaker list has them`,
    );
  return { ...changes, voices: distinct };
};

const findNamed = async (store: StoreTransaction, name: string): Promise<Account> => {
  const account = await store.findAccount({ name });
  if (account === null)
    throw new AdministrationError(`There is no account "${name}": see \`npm run keys -- list\``);
  return account;
};

const findById = async (store: StoreTransaction, accountId: number): Promise<Account> => {
  const account = await store.findAccount({ accountId });
  if (account === null) throw new Error(`account ${accountId} is not in the store`);
  return account;
};

const findKey = async (store: StoreTransaction, target: string): Promise<StoredKey> => {
  const exact = await store.findKeys({ hash: hashKey(target) });
  const found = exact.length > 0 ? exact : await store.findKeys({ prefix: target });
  const [key] = found;
  // A mistyped key is still nearly a secret: the message shows its prefix only.
  const shown = target.length > prefixOf(target).length ? `${prefixOf(target)}...` : target;
  if (key === undefined)
    throw new AdministrationError(`There is no key "${shown}": see \`npm run keys -- list\``);
  if (found.length > 1)
    throw new AdministrationError(`Several keys begin with "${shown}": give the whole key`);
  return key;
};

const freeName = async (store: StoreTransaction): Promise<string> => {
  for (let number = (await store.countAccounts()) + 1; ; number += 1) {
    const name = `account-${number}`;
    if ((await store.findAccount({ name })) === null) return name;
  }
};

export class Administration {
  readonly #store: StoreAdministration;
  readonly #nowMs: () => number;

  constructor(store: StoreAdministration, nowMs: () => number = Date.now) {
    this.#store = store;
    this.#nowMs = nowMs;
  }

  /**
   * Creates a key, and its account unless that exists. Without credits a new account is not metered.
   *
   * @param name of the account; `null` for a new account with a generated name
   */
  async createKey(
    name: string | null,
    credits: number | null,
    properties: Partial<KeyProperties> = {},
  ): Promise<CreatedKey> {
    if (name !== null) checkName('an account', name);
    if (credits !== null) checkCredits(credits, 0);
    const checked = checkProperties(properties, this.#nowMs());
    return this.#store.transact(async (store) => {
      const existing = name === null ? null : await store.findAccount({ name });
      const accountId =
        existing?.accountId ??
        (await store.addAccount(name ?? (await freeName(store)), credits !== null, this.#nowMs()));
      if (credits !== null && existing !== null) await this.#credit(store, existing, credits);
      else if (credits !== null && credits > 0) await store.grant(accountId, credits, this.#nowMs());
      return this.#addKey(store, accountId, checked);
    });
  }

  /**
   * In a store without keys, creates the account "default", which is not metered, and a key.
   *
   * @param deliver gets the key before the commit: if it throws, there is no key
   * @returns whether a key was created
   */
  createFirstKey(deliver: (key: string) => void): Promise<boolean> {
    return this.#store.transact(async (store) => {
      if (await store.hasKeys()) return false;
      const existing = await store.findAccount({ name: FIRST_ACCOUNT });
      const accountId = existing?.accountId ?? (await store.addAccount(FIRST_ACCOUNT, false, this.#nowMs()));
      deliver((await this.#addKey(store, accountId, {})).key);
      return true;
    });
  }

  /**
   * Adds credits. An account that was not metered becomes metered with exactly these credits: its use so far is free.
   *
   * @param target a key, the prefix of one, or the name of an account
   */
  async credit(target: string, credits: number): Promise<Credited> {
    checkCredits(credits, 1);
    return this.#store.transact(async (store) => {
      const account = looksLikeKey(target)
        ? (await findKey(store, target)).account
        : await findNamed(store, target);
      await this.#credit(store, account, credits);
      return { account: await findById(store, account.accountId), becameMetered: !account.metered };
    });
  }

  /** @param target a key, or its prefix as `list` shows it */
  revoke(target: string): Promise<RevokedKey> {
    return this.#store.transact(async (store) => {
      const { keyId, prefix, account, revokedAtMs } = await findKey(store, target);
      await store.revokeKey(keyId, this.#nowMs());
      return { prefix, account: account.name, alreadyRevoked: revokedAtMs !== null };
    });
  }

  /**
   * Changes some properties of a key, its name among them.
   *
   * @param target a key, or its prefix as `list` shows it
   * @returns the key as it is now
   */
  async change(target: string, changes: Partial<KeyProperties>): Promise<StoredKey> {
    const checked = checkProperties(changes, this.#nowMs());
    return this.#store.transact(async (store) => {
      const key = await findKey(store, target);
      if (key.revokedAtMs !== null)
        throw new AdministrationError(`Key ${key.prefix}... was revoked, and stays so: create another one`);
      const changed = { ...key, ...checked };
      await store.setKey(key.keyId, changed);
      return changed;
    });
  }

  /** Refuses all keys of an account until it is resumed. @returns whether it was not suspended before */
  suspend(name: string): Promise<boolean> {
    return this.#setSuspended(name, true);
  }

  /** @returns whether it was suspended */
  resume(name: string): Promise<boolean> {
    return this.#setSuspended(name, false);
  }

  /** All keys, revoked ones included, in the order of their creation. */
  list(): Promise<readonly ListedKey[]> {
    return this.#store.listKeys();
  }

  #setSuspended(name: string, isSuspended: boolean): Promise<boolean> {
    return this.#store.transact(async (store) => {
      const { accountId, suspendedAtMs } = await findNamed(store, name);
      if ((suspendedAtMs !== null) === isSuspended) return false;
      await store.setSuspended(accountId, isSuspended ? this.#nowMs() : null);
      return true;
    });
  }

  async #addKey(
    store: StoreTransaction,
    accountId: number,
    properties: Partial<KeyProperties>,
  ): Promise<CreatedKey> {
    const key = generateKey();
    const all = { ...noProperties, ...properties };
    await store.addKey(accountId, hashKey(key), prefixOf(key), all, this.#nowMs());
    return { key, account: await findById(store, accountId) };
  }

  async #credit(store: StoreTransaction, account: Account, credits: number): Promise<void> {
    // The use of an unmetered account made its balance negative. Without the difference the credits would be gone.
    const forgiven = account.metered ? 0 : -account.balance;
    if (account.balance + forgiven + credits > CREDITS_MAX)
      throw new AdministrationError(`A balance is at most ${CREDITS_MAX} credits`);
    if (credits + forgiven !== 0) await store.grant(account.accountId, credits + forgiven, this.#nowMs());
    if (!account.metered) await store.setMetered(account.accountId);
  }
}

/**
 * Opens the store for `work`, and closes it afterwards.
 *
 * @param create whether to create the store if there is none
 * @throws {StoreError} see `StoreDriver.administer`
 */
export const administer = async <T>(
  driver: StoreDriver,
  create: boolean,
  work: (administration: Administration) => Promise<T>,
): Promise<T> => {
  const store = await driver.administer(create);
  try {
    return await work(new Administration(store));
  } finally {
    await store.close();
  }
};

export interface KeyUse extends Use {
  readonly prefix: string;
  readonly revoked: boolean;
}

export interface AccountUse extends Use {
  readonly account: string;
  readonly metered: boolean;
  /** The current balance, whatever the period. */
  readonly balance: number;
  /** All keys in the order of their creation, unused ones included. */
  readonly keys: readonly KeyUse[];
}

const earliest = (a: number | null, b: number | null) =>
  a === null || b === null ? (a ?? b) : Math.min(a, b);
const latest = (a: number | null, b: number | null) => (a === null || b === null ? (a ?? b) : Math.max(a, b));

const unused: Use = { requests: 0, characters: 0, credits: 0, refunded: 0, firstAtMs: null, lastAtMs: null };

const addUse = (sum: Use, use: Use): Use => ({
  requests: sum.requests + use.requests,
  characters: sum.characters + use.characters,
  credits: sum.credits + use.credits,
  refunded: sum.refunded + use.refunded,
  firstAtMs: earliest(sum.firstAtMs, use.firstAtMs),
  lastAtMs: latest(sum.lastAtMs, use.lastAtMs),
});

/** Throws as `StoreDriver.readUsage` does. */
export const readUsage = async (driver: StoreDriver, period: UsagePeriod): Promise<AccountUse[]> =>
  (await driver.readUsage(period)).map(({ account, keys }) => ({
    account: account.name,
    metered: account.metered,
    balance: account.balance,
    ...keys.map(({ use }) => use).reduce(addUse, unused),
    keys: keys.map(({ prefix, revoked, use }) => ({ prefix, revoked, ...use })),
  }));

export const firstKeyPath = (dataDir: string): string => join(dataDir, 'first-key');

/**
 * Keeps the first key in a file that only its owner can read (mode 0600), for a start without a terminal. The file
 * appears when it is complete.
 *
 * @returns its path
 */
export const writeFirstKey = (dataDir: string, key: string): string => {
  const path = firstKeyPath(dataDir);
  const temporary = `${path}.${process.pid}`;
  const file = openSync(temporary, 'w', 0o600);
  try {
    // `openSync` sets the mode of a new file only.
    fchmodSync(file, 0o600);
    writeSync(file, `${key}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
  return path;
};
