/** Acts on the store of a service as `npm run keys` does, while services may be running. */
import { administer, type Administration } from '../src/accounts/administration.js';
import { limits } from '../src/limits.js';
import { storeAt } from '../src/store/driver.js';

/** Creates the store if there is none. @param storeUrl `null`: SQLite in the data folder */
export const operate = <T>(
  dataDir: string,
  work: (administration: Administration) => Promise<T>,
  storeUrl: string | null = null,
): Promise<T> => administer(storeAt({ dataDir, storeUrl }, limits), true, work);

/** Creates keys of an account (`null`: of a new account each), all with these credits. */
export const createKeys = (
  dataDir: string,
  keys: readonly (readonly [account: string | null, credits: number | null])[],
  storeUrl: string | null = null,
): Promise<string[]> =>
  operate(
    dataDir,
    async (administration) => {
      const created: string[] = [];
      for (const [account, credits] of keys)
        created.push((await administration.createKey(account, credits)).key);
      return created;
    },
    storeUrl,
  );
