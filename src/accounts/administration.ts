/**
 * What operators and members do with accounts and keys, from the command line and from the console. Each act is one commit
 * with its row in the audit table, effective at once in every process.
 */
import { randomBytes } from 'node:crypto';
import { noSpeakingDefaults, type SpeakingDefaults } from '../api/speech-settings.js';
import {
  AdministrationError,
  conflict,
  invalid,
  type Account,
  type KeyProperties,
  type ListedKey,
  type StoreAdministration,
  type StoreDriver,
  type Restriction,
  type StoredKey,
  type StoredProperties,
  type StoreTransaction,
  type StoreView,
} from '../store/store.js';
import { commandLine, describe, quoted, record, refuseMember, type Actor, type FindActor } from './audit.js';
import {
  checkCredits,
  checkInstalled,
  checkName,
  checkProperties,
  checkSpeaking,
  CREDITS_MAX,
  handleOf,
  type Installed,
} from './checks.js';
import { generateKey, hashKey, looksLikeKey, PLAYGROUND, prefixOf } from './keys.js';
import { findAccount, findKey, type AccountTarget, type KeyTarget } from './targets.js';

/** The account that a first start makes. */
export const FIRST_ACCOUNT = 'default';

const noProperties: StoredProperties = {
  ...{ name: '', expiresAtMs: null, creditLimit: null, voices: null, byOperator: [] },
  ...noSpeakingDefaults,
};

export interface CreatedKey {
  readonly keyId: number;
  /** The whole key: the store has only its hash. */
  readonly key: string;
  readonly account: Account;
}

/** The hidden key of an account, by its id. */
export interface PlaygroundKey {
  readonly accountId: number;
  readonly keyId: number;
}

export interface RevokedKey {
  readonly prefix: string;
  readonly account: string;
  readonly alreadyRevoked: boolean;
}

/** The parts of an act: it changes the store, and is recorded. */
interface Acting {
  readonly store: StoreTransaction;
  readonly actor: Actor;
  readonly record: (action: string, subject: string, details?: string) => Promise<void>;
}

const freeName = async (view: StoreView): Promise<string> => {
  for (let number = (await view.countAccounts()) + 1; ; number += 1) {
    const name = `account-${number}`;
    if ((await view.findAccount({ name })) === null) return name;
  }
};

/** Names that differ only in their case would be mistaken for each other. */
const refuseTaken = async (view: StoreView, name: string): Promise<void> => {
  const taken = (await view.accountNames()).find((other) => handleOf(other) === handleOf(name));
  if (taken !== undefined)
    throw conflict(`There is an account "${taken}" already: give another name`, 'name');
};

/** The name of an account is unique, and a deleted one gives its name up. */
const nameOfDeleted = async (view: StoreView, { accountId, name }: Account): Promise<string> => {
  let given = `${name} (deleted ${accountId})`;
  while ((await view.findAccount({ name: given })) !== null) given += '*';
  return given;
};

const restrictions: readonly Restriction[] = ['expiresAtMs', 'creditLimit', 'voices'];

/**
 * @param before the restrictions that an operator set
 * @returns the same after the changes
 * @throws {AdministrationError} a member changes one of them
 */
const restrictedBy = (
  { accountId }: Actor,
  changes: Partial<KeyProperties>,
  before: readonly Restriction[],
): readonly Restriction[] =>
  restrictions.filter((name) => {
    const isSet = before.includes(name);
    if (changes[name] === undefined) return isSet;
    if (accountId !== null && isSet)
      throw new AdministrationError('An operator set this: ask an operator to change it', 'forbidden', name);
    return accountId === null && changes[name] !== null;
  });

const inCredits = (amount: number | null): string =>
  amount === null ? 'not metered' : `${amount} credit${amount === 1 ? '' : 's'}`;

const inAccount = ({ name }: Account, details: string): string =>
  `account ${quoted(name)}${details === '' ? '' : `; ${details}`}`;

export interface AdministrationOptions {
  /** By default the command line acts. */
  readonly actor?: FindActor;
  readonly nowMs?: () => number;
}

export class Administration {
  readonly #store: StoreAdministration;
  readonly #findActor: FindActor;
  readonly #nowMs: () => number;

  constructor(
    store: StoreAdministration,
    { actor = commandLine, nowMs = Date.now }: AdministrationOptions = {},
  ) {
    this.#store = store;
    this.#findActor = actor;
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
    installed: Installed = {},
  ): Promise<CreatedKey> {
    if (name !== null) checkName('an account', name);
    if (credits !== null) checkCredits(credits, 0);
    const checked = checkProperties(properties, this.#nowMs());
    checkInstalled(checked, installed);
    return this.#act(async (acting) => {
      const { store, actor } = acting;
      const isThere = name !== null && (await store.findAccount({ name })) !== null;
      if (!isThere) {
        if (name !== null) await refuseTaken(store, name);
        const accountId = await this.#addAccount(acting, name ?? (await freeName(store)), credits);
        return this.#addKey(acting, accountId, checked);
      }
      const account = await findAccount(store, actor, name);
      if (credits !== null) await this.#credit(acting, account, credits);
      return this.#addKey(acting, account.accountId, checked);
    });
  }

  /**
   * In a store without keys, creates the account "default", which is not metered, and a key.
   *
   * @param deliver gets the key before the commit: if it throws, there is no key
   * @returns whether a key was created
   */
  createFirstKey(deliver: (key: string) => void): Promise<boolean> {
    return this.#act(async (acting) => {
      const { store } = acting;
      if (await store.hasKeys()) return false;
      const existing = await store.findAccount({ name: FIRST_ACCOUNT });
      const accountId = existing?.accountId ?? (await this.#addAccount(acting, FIRST_ACCOUNT, null));
      deliver((await this.#addKey(acting, accountId, {})).key);
      return true;
    });
  }

  /** @returns its id */
  async createAccount(name: string, credits: number | null): Promise<number> {
    checkName('an account', name);
    if (credits !== null) checkCredits(credits, 0);
    return this.#act(async (acting) => {
      refuseMember(acting.actor);
      await refuseTaken(acting.store, name);
      return this.#addAccount(acting, name, credits);
    });
  }

  /** Creates a key of an account that exists. */
  async createKeyOf(
    accountId: number,
    properties: Partial<KeyProperties>,
    installed: Installed,
  ): Promise<CreatedKey> {
    const checked = checkProperties(properties, this.#nowMs());
    checkInstalled(checked, installed);
    return this.#act(async (acting) => {
      await findAccount(acting.store, acting.actor, { accountId });
      return this.#addKey(acting, accountId, checked);
    });
  }

  /** The hidden key of an account, which is made at first use. */
  async playgroundKey(target: AccountTarget): Promise<PlaygroundKey> {
    const find = async (view: StoreView, actor: Actor): Promise<PlaygroundKey | null> => {
      const { accountId } = await findAccount(view, actor, target);
      const keyId = await view.findPlaygroundKey(accountId);
      return keyId === null ? null : { accountId, keyId };
    };
    const known = await this.#store.read(async (view) => find(view, await this.#findActor(view)));
    if (known !== null) return known;
    return this.#act(async ({ store, actor, record }) => {
      const made = await find(store, actor);
      if (made !== null) return made;
      const { accountId, name } = await findAccount(store, actor, target);
      await record('playground.open', name);
      const properties = [PLAYGROUND, noProperties, this.#nowMs()] as const;
      return {
        accountId,
        keyId: await store.addKey('playground', accountId, randomBytes(32), ...properties),
      };
    });
  }

  /**
   * Adds credits to an account that is metered.
   *
   * @param target a key, the prefix of one, or an account
   */
  async credit(target: AccountTarget, credits: number): Promise<Account> {
    checkCredits(credits, 1);
    return this.#act(async (acting) => {
      const { store, actor } = acting;
      refuseMember(actor);
      const named =
        typeof target === 'string' && looksLikeKey(target)
          ? { accountId: (await findKey(store, actor, target)).account.accountId }
          : target;
      const account = await findAccount(store, actor, named);
      await this.#credit(acting, account, credits);
      return findAccount(store, actor, { accountId: account.accountId });
    });
  }

  /**
   * From now on the account runs out of credit, or never does. Credits that were left stay, and use beyond them while it
   * was not metered is free.
   *
   * @param credits that it gets when it becomes metered
   */
  async meter(target: AccountTarget, isMetered: boolean, credits = 0): Promise<Account> {
    checkCredits(credits, 0);
    return this.#act(async (acting) => {
      const { store, actor, record } = acting;
      refuseMember(actor);
      const account = await findAccount(store, actor, target);
      const { accountId, name, balance } = account;
      if (account.metered === isMetered)
        throw conflict(`Account "${name}" is ${isMetered ? 'metered' : 'not metered'} already`);
      await store.setMetered(accountId, isMetered);
      if (isMetered) await this.#grant(acting, account, credits + Math.max(0, -balance));
      const details = isMetered ? `${inCredits(credits)} more` : inCredits(null);
      await record('account.meter', name, details);
      return findAccount(store, actor, { accountId });
    });
  }

  revoke(target: KeyTarget): Promise<RevokedKey> {
    return this.#act(async ({ store, actor, record }) => {
      const { keyId, prefix, account, revokedAtMs } = await findKey(store, actor, target);
      await store.revokeKey(keyId, this.#nowMs());
      if (revokedAtMs === null) await record('key.revoke', prefix, inAccount(account, ''));
      return { prefix, account: account.name, alreadyRevoked: revokedAtMs !== null };
    });
  }

  /**
   * Changes some properties of a key, its name among them.
   *
   * @returns the key as it is now
   */
  async change(
    target: KeyTarget,
    changes: Partial<KeyProperties>,
    installed: Installed = {},
  ): Promise<StoredKey> {
    const checked = checkProperties(changes, this.#nowMs());
    return this.#act(async ({ store, actor, record }) => {
      const key = await findKey(store, actor, target);
      if (key.revokedAtMs !== null)
        throw conflict(`Key ${key.prefix}... was revoked, and stays so: create another one`);
      checkInstalled(checked, installed, key);
      const byOperator = restrictedBy(actor, checked, key.byOperator);
      const changed = { ...key, ...checked, byOperator };
      await store.setKey(key.keyId, changed);
      await record('key.change', key.prefix, inAccount(key.account, describe(checked)));
      return changed;
    });
  }

  /** Changes some of what an account sets for its keys. @returns the account as it is now */
  async changeAccount(
    target: AccountTarget,
    changes: Partial<SpeakingDefaults>,
    installed: Installed = {},
  ): Promise<Account> {
    checkSpeaking(changes);
    return this.#act(async ({ store, actor, record }) => {
      refuseMember(actor);
      const account = await findAccount(store, actor, target);
      checkInstalled(changes, installed, account);
      const changed = { ...account, ...changes };
      await store.setSpeaking(account.accountId, changed);
      await record('account.change', account.name, describe(changes));
      return changed;
    });
  }

  /** Refuses all keys of an account until it is resumed. @returns whether it was not suspended before */
  suspend(target: AccountTarget): Promise<boolean> {
    return this.#setSuspended(target, true);
  }

  /** @returns whether it was suspended */
  resume(target: AccountTarget): Promise<boolean> {
    return this.#setSuspended(target, false);
  }

  /** Revokes its keys and removes its users and invitations. Its ledger stays, and its name is free again. */
  deleteAccount(target: AccountTarget): Promise<void> {
    return this.#act(async ({ store, actor, record }) => {
      refuseMember(actor);
      const account = await findAccount(store, actor, target);
      const { accountId } = account;
      const users = await store.listUsers(accountId);
      for (const { userId } of users) await store.removeUser(userId);
      await store.removeLinks({ kind: 'invitation', accountId });
      await store.deleteAccount(accountId, await nameOfDeleted(store, account), this.#nowMs());
      const names = users.map(({ name }) => name).join(', ');
      await record('account.delete', account.name, names === '' ? '' : `users ${names}`);
    });
  }

  /** What holds for the requests of a key, or of the keys of an account that set nothing. */
  speakingOf(target: string): Promise<{ readonly account: string; readonly speaking: SpeakingDefaults }> {
    return this.#store.read(async (view) => {
      const actor = await this.#findActor(view);
      const key = looksLikeKey(target) ? await findKey(view, actor, target) : null;
      const account = key?.account ?? (await findAccount(view, actor, target));
      const speaking = {
        normalizeText: key?.normalizeText ?? account.normalizeText,
        speed: key?.speed ?? account.speed,
        lexiconId: key?.lexiconId ?? account.lexiconId,
      };
      return { account: account.name, speaking };
    });
  }

  /** All keys, revoked ones included, in the order of their creation. */
  list(): Promise<readonly ListedKey[]> {
    return this.#store.read(async (view) => view.listKeys(null));
  }

  #setSuspended(target: AccountTarget, isSuspended: boolean): Promise<boolean> {
    return this.#act(async ({ store, actor, record }) => {
      refuseMember(actor);
      const { accountId, name, suspendedAtMs } = await findAccount(store, actor, target);
      if ((suspendedAtMs !== null) === isSuspended) return false;
      await store.setSuspended(accountId, isSuspended ? this.#nowMs() : null);
      await record(isSuspended ? 'account.suspend' : 'account.resume', name);
      return true;
    });
  }

  #act<T>(work: (acting: Acting) => Promise<T>): Promise<T> {
    return this.#store.transact(async (store) => {
      const actor = await this.#findActor(store);
      return work({
        store,
        actor,
        record: (action, subject, details = '') =>
          record(store, actor, { atMs: this.#nowMs(), action, subject, details }),
      });
    });
  }

  /** @returns its id */
  async #addAccount({ store, record }: Acting, name: string, credits: number | null): Promise<number> {
    const accountId = await store.addAccount(name, credits !== null, this.#nowMs());
    if (credits !== null && credits > 0) await store.grant(accountId, credits, this.#nowMs());
    await record('account.create', name, inCredits(credits));
    return accountId;
  }

  async #addKey(
    { store, actor, record }: Acting,
    accountId: number,
    properties: Partial<KeyProperties>,
  ): Promise<CreatedKey> {
    const key = generateKey();
    const all = { ...noProperties, ...properties, byOperator: restrictedBy(actor, properties, []) };
    const keyId = await store.addKey('api', accountId, hashKey(key), prefixOf(key), all, this.#nowMs());
    const account = await findAccount(store, actor, { accountId });
    const set = Object.fromEntries(Object.entries(properties).filter(([, value]) => value !== null));
    await record('key.create', prefixOf(key), inAccount(account, describe(set)));
    return { keyId, key, account };
  }

  async #credit(acting: Acting, account: Account, credits: number): Promise<void> {
    const { metered, name } = account;
    if (!metered)
      throw conflict(
        `Account "${name}" is not metered: it needs no credit. To let it spend ` +
          `${inCredits(credits)} and no more: npm run keys -- meter "${name}" on --credits ${credits}`,
      );
    await this.#grant(acting, account, credits);
    await acting.record('account.credit', name, inCredits(credits));
  }

  async #grant({ store }: Acting, { accountId, balance }: Account, credits: number): Promise<void> {
    if (balance + credits > CREDITS_MAX)
      throw invalid('credits', `A balance is at most ${CREDITS_MAX} credits`);
    if (credits > 0) await store.grant(accountId, credits, this.#nowMs());
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
