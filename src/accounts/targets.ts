/** Finds the account or key of an act. An actor finds only its own. */
import {
  AdministrationError,
  notFound,
  type Account,
  type StoredKey,
  type StoreView,
} from '../store/store.js';
import type { Actor } from './audit.js';
import { hashKey, isPrefix, pastedPrefix, prefixOf } from './keys.js';

/** A key, or its beginning as lists show it, also with their dots; or its id. */
export type KeyTarget = string | { readonly keyId: number };
/** An account by its name, or by its id. */
export type AccountTarget = string | { readonly accountId: number };

const isOf = ({ accountId }: Actor, account: Account): boolean =>
  accountId === null || accountId === account.accountId;

export const findAccount = async (view: StoreView, actor: Actor, target: AccountTarget): Promise<Account> => {
  const account = await view.findAccount(typeof target === 'string' ? { name: target } : target);
  if (account !== null && account.deletedAtMs === null && isOf(actor, account)) return account;
  throw notFound(
    typeof target === 'string'
      ? `There is no account "${target}": see \`npm run keys -- list\``
      : 'There is no such account: it may have been deleted',
  );
};

export const findKeyById = async (view: StoreView, actor: Actor, keyId: number): Promise<StoredKey> => {
  const [key] = await view.findKeys({ keyIds: [keyId] });
  if (key !== undefined && key.account.deletedAtMs === null && isOf(actor, key.account)) return key;
  throw notFound('There is no such key: its account may have been deleted');
};

export const findKey = async (view: StoreView, actor: Actor, target: KeyTarget): Promise<StoredKey> => {
  if (typeof target !== 'string') return findKeyById(view, actor, target.keyId);
  const exact = await view.findKeys({ hash: hashKey(target) });
  const prefix = pastedPrefix(target);
  const found = exact.length > 0 || !isPrefix(prefix) ? exact : await view.findKeys({ prefix });
  const [key] = found;
  // A mistyped key is still nearly a secret: the message shows its prefix only.
  const shown = prefix.length > prefixOf(prefix).length ? `${prefixOf(prefix)}...` : target;
  if (key === undefined) throw notFound(`There is no key "${shown}": see \`npm run keys -- list\``);
  if (found.length > 1)
    throw new AdministrationError(`Several keys begin with "${shown}": give more of it, or the whole key`);
  return key;
};
