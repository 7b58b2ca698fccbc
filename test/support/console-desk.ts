/** What a desk of the console needs beside a store, without files. */
import { hashToken } from '../../src/accounts/tokens.js';
import type { StoreAdministration } from '../../src/store/store.js';
import type { AccountWords } from '../../src/accounts/console-calls.js';
import { limits } from '../../src/limits.js';
import { openWebhooks } from '../../workers/webhooks.js';

export const noWebhooks = openWebhooks({ folder: '/nowhere', allow: [], bounds: limits });

/** @param addition says what an act would write */
export const wordsWith = (addition: AccountWords['addition']): AccountWords => ({
  addition,
  removal: () => null,
  list: () => [],
  remove: () => undefined,
});

/** An operator with a session, as calls name their caller. */
export const signedIn = async (store: StoreAdministration) => {
  const user = { name: 'R', handle: 'r', role: 'operator', accountId: null, password: 'p' } as const;
  const tokenHash = hashToken('token');
  await store.transact(async (transaction) => {
    const userId = await transaction.addUser(user, Date.now());
    await transaction.addSession(tokenHash, userId, Date.now());
  });
  return { tokenHash };
};
