/** What a desk of the console needs beside a store, without files. */
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
