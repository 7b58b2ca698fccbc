/** What the users of an account must know soon: little credit, and keys that expire. */
import type { ListedAccount, StoredKey } from '../store/store.js';

const DAY_MS = 86_400_000;
/** Keys that expire so soon, and credit that lasts no longer at the pace of the last 30 days. */
const SOON_DAYS = 7;
const RECENT_DAYS = 30;
/** Keys that an alert names. */
const KEYS_MAX = 20;

export type AlertCause = 'credit.low' | 'credit.out' | 'keys.expiring';

export interface Alert {
  readonly accountId: number;
  readonly account: string;
  readonly cause: AlertCause;
  readonly balance: number;
  /** Of `keys.expiring`: those that expire within a week, 20 at most, the first one first. */
  readonly keys: readonly { readonly name: string; readonly prefix: string; readonly expiresAtMs: number }[];
}

/** How long before its expiry a key is reported. */
export const EXPIRING_MS = SOON_DAYS * DAY_MS;

/** Of accounts: the characters of the newest request that was refused for lack of credit. */
export type RefusedCharacters = ReadonlyMap<number, number>;

const creditCause = (
  { balance, metered, recentCharacters }: ListedAccount,
  refusedCharacters: number,
): AlertCause | null => {
  if (!metered) return null;
  if (balance <= 0 || balance < refusedCharacters) return 'credit.out';
  return balance < (recentCharacters / RECENT_DAYS) * SOON_DAYS ? 'credit.low' : null;
};

/** @param expiring its keys that expire soon, revoked ones too */
export const alertsOf = (
  account: ListedAccount,
  expiring: readonly StoredKey[],
  refused: RefusedCharacters,
): readonly Alert[] => {
  const { accountId, balance, name, suspendedAtMs } = account;
  if (suspendedAtMs !== null) return [];
  const shared = { accountId, account: name, balance };
  const cause = creditCause(account, refused.get(accountId) ?? 0);
  const keys = expiring
    .filter((key) => key.revokedAtMs === null)
    .map(({ expiresAtMs, name, prefix }) => ({ name, prefix, expiresAtMs: expiresAtMs! }))
    .sort((one, other) => one.expiresAtMs - other.expiresAtMs)
    .slice(0, KEYS_MAX);
  return [
    ...(cause === null ? [] : [{ ...shared, cause, keys: [] }]),
    ...(keys.length === 0 ? [] : [{ ...shared, cause: 'keys.expiring' as const, keys }]),
  ];
};
