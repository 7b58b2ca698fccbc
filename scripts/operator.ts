/** Acts on the store in a data folder as `npm run keys` does, while a service may be running. */
import { administer, type Administration } from '../src/accounts/administration.js';
import { limits } from '../src/limits.js';
import { sqliteStore } from '../src/store/sqlite/driver.js';

/** Creates the store if there is none. */
export const operate = <T>(
  dataDir: string,
  work: (administration: Administration) => Promise<T>,
): Promise<T> => administer(sqliteStore(dataDir, limits), true, work);

/** Creates keys of an account (`null`: of a new account each), all with these credits. */
export const createKeys = (
  dataDir: string,
  keys: readonly (readonly [account: string | null, credits: number | null])[],
): Promise<string[]> =>
  operate(dataDir, async (administration) => {
    const created: string[] = [];
    for (const [account, credits] of keys)
      created.push((await administration.createKey(account, credits)).key);
    return created;
  });
