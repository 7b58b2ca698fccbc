/** The store of a service that has ended, as its operator's commands read it. */
import { verifyStore } from '../../src/store/sqlite/backup.js';
import { prefixOf } from '../../src/accounts/keys.js';
import { readUsage } from '../../src/accounts/usage.js';

export interface StoreFindings {
  /** Characters by key, or why they cannot be read. */
  readonly ledger: ReadonlyMap<string, number> | Error;
  /** Entries of a store that is good throughout, or what is wrong with it. */
  readonly entries: number | Error;
}

const tried = <T>(read: () => T): T | Error => {
  try {
    return read();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
};

/** What was charged to keys; none of them is left out. Never throws. */
export const readStore = (dataDir: string, keys: readonly string[]): StoreFindings => ({
  ledger: tried(() => {
    const used = readUsage(dataDir, { account: null, sinceMs: null }).flatMap((account) => account.keys);
    const byPrefix = new Map(used.map(({ prefix, characters }) => [prefix, characters]));
    return new Map(keys.map((key) => [key, byPrefix.get(prefixOf(key)) ?? 0]));
  }),
  entries: tried(() => verifyStore(dataDir).entries),
});
