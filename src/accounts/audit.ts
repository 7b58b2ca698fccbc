/** Who acts, and the audit table, which has every act. */
import type { Awaitable } from '../store/awaitable.js';
import type { NewAct } from '../store/people.js';
import {
  AdministrationError,
  type KeyProperties,
  type StoreTransaction,
  type StoreView,
} from '../store/store.js';

/** Rows of the audit table without those of members, and the age of all rows: older ones go. */
const ACTS_MAX = 1_000_000;
const ACTS_MS_MAX = 400 * 86_400_000;
/** Rows of the members of one account: they push out no others. */
const MEMBERS_ACTS_MAX = 10_000;
/** Rows of refused sign-ins, so that password guessing cannot push out the other rows. */
const REFUSALS_MAX = 10_000;
/** Finding the oldest of a million rows takes milliseconds. */
const TRIM_EVERY = 100;
export const REFUSED_SIGN_IN = 'session.refuse';

export interface Actor {
  readonly name: string;
  /** The only account that it sees and changes; `null` for all accounts. */
  readonly accountId: number | null;
}

/** Finds out who acts, in the transaction of the act. */
export type FindActor = (view: StoreView) => Awaitable<Actor>;

export const commandLine: FindActor = () => ({ name: 'command line', accountId: null });

export const refuseMember = (actor: Actor): void => {
  if (actor.accountId !== null) throw new AdministrationError('Only operators can do this', 'forbidden');
};

/** A name in the details of an act: without quotes, one such as "till; limit 5" would read as two changes. */
export const quoted = (name: string): string => JSON.stringify(name);

/** Changes of a key or an account, in words. */
export const describe = (changes: Partial<KeyProperties>): string => {
  const { name, expiresAtMs, creditLimit, voices, normalizeText, speed, lexiconId } = changes;
  const unset = 'not set';
  const parts = [
    name !== undefined && (name === '' ? 'no name' : `name ${quoted(name)}`),
    expiresAtMs !== undefined &&
      (expiresAtMs === null
        ? 'no expiry'
        : `expires ${new Date(expiresAtMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`),
    creditLimit !== undefined && (creditLimit === null ? 'no limit' : `limit ${creditLimit}`),
    voices !== undefined && (voices === null ? 'all voices' : `voices ${voices.join(', ')}`),
    normalizeText !== undefined &&
      `normalize ${normalizeText === null ? unset : normalizeText ? 'on' : 'off'}`,
    speed !== undefined && `speed ${speed ?? unset}`,
    lexiconId !== undefined && `lexicon ${lexiconId === null ? unset : quoted(lexiconId)}`,
  ];
  return parts.filter((part) => part !== false).join('; ');
};

/** Adds a row to the audit table, and removes the oldest beyond its bounds. */
export const record = async (
  store: StoreTransaction,
  actor: Actor,
  act: Omit<NewAct, 'actor' | 'accountId'>,
): Promise<void> => {
  const { accountId, name } = actor;
  const id = await store.record({ ...act, actor: name, accountId });
  await store.trimActs({ nowMs: act.atMs, msMax: ACTS_MS_MAX });
  if (act.action === REFUSED_SIGN_IN) await store.trimActs({ action: act.action, rowsMax: REFUSALS_MAX });
  else if (accountId !== null) await store.trimActs({ accountId, rowsMax: MEMBERS_ACTS_MAX });
  else if (id % TRIM_EVERY === 0) await store.trimActs({ accountId, rowsMax: ACTS_MAX });
};
