/** Who acts, and the audit table, which has every act. */
import type { Awaitable } from '../store/awaitable.js';
import type { Act, PeopleTransaction } from '../store/people.js';
import { AdministrationError, type KeyProperties, type StoreView } from '../store/store.js';

/** Rows of the audit table, and their age: older ones go. */
const ACTS_MAX = 1_000_000;
const ACTS_MS_MAX = 400 * 86_400_000;
/** Rows of refused sign-ins among them, so that password guessing cannot push out the other rows. */
const REFUSALS_MAX = 10_000;
export const REFUSED_SIGN_IN = 'session.refuse';

export interface Actor {
  readonly name: string;
  /** The only account that it sees and changes; `null` for all accounts. */
  readonly accountId: number | null;
}

/** Finds out who acts, in the transaction of the act. */
export type FindActor = (view: StoreView) => Awaitable<Actor>;

export const commandLine: FindActor = () => ({ name: 'command line', accountId: null });

/** A user of the console, with the role that it has now. */
export const userById =
  (userId: number): FindActor =>
  async (view) => {
    const user = await view.findUser({ userId });
    if (user === null) throw new AdministrationError('You are signed out: sign in again', 'signedOut');
    return { name: user.name, accountId: user.accountId };
  };

export const refuseMember = (actor: Actor): void => {
  if (actor.accountId !== null) throw new AdministrationError('Only operators can do this', 'forbidden');
};

/** Changes of a key or an account, in words. */
export const describe = (changes: Partial<KeyProperties>): string => {
  const { name, expiresAtMs, creditLimit, voices, normalizeText, speed, lexiconId } = changes;
  const unset = 'not set';
  const parts = [
    name !== undefined && (name === '' ? 'no name' : `name ${name}`),
    expiresAtMs !== undefined &&
      (expiresAtMs === null ? 'no expiry' : `expires ${new Date(expiresAtMs).toISOString()}`),
    creditLimit !== undefined && (creditLimit === null ? 'no limit' : `limit ${creditLimit}`),
    voices !== undefined && (voices === null ? 'all voices' : `voices ${voices.join(', ')}`),
    normalizeText !== undefined &&
      `normalize ${normalizeText === null ? unset : normalizeText ? 'on' : 'off'}`,
    speed !== undefined && `speed ${speed ?? unset}`,
    lexiconId !== undefined && `lexicon ${lexiconId ?? unset}`,
  ];
  return parts.filter((part) => part !== false).join('; ');
};

/** Adds a row to the audit table, and removes the oldest beyond its bounds. */
export const record = async (store: PeopleTransaction, act: Act): Promise<void> => {
  await store.record(act);
  await store.trimActs({ beforeMs: act.atMs - ACTS_MS_MAX });
  await store.trimActs({ action: null, rowsMax: ACTS_MAX });
  if (act.action === REFUSED_SIGN_IN) await store.trimActs({ action: act.action, rowsMax: REFUSALS_MAX });
};
