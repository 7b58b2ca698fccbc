/** Opens the store of the service at its start, with the accounts and keys that the start needs. */
import { ConfigError } from '../config.js';
import type { Bounds } from '../limits.js';
import type { Log } from '../log.js';
import { openStore, type Store } from '../store/ledger.js';
import { AdministrationError, type StoreDriver } from '../store/store.js';
import { administer, FIRST_ACCOUNT } from './administration.js';

export interface OpenedStore {
  readonly store: Store;
  /** The hidden key of the account that pays for Wyoming; `null`: Wyoming is off. */
  readonly wyomingKeyId: number | null;
}

export interface OpeningParts {
  readonly driver: StoreDriver;
  readonly bounds: Bounds;
  readonly log: Log;
  /** Receives the key that the first start on an empty store makes. */
  readonly onFirstKey: (key: string) => void;
  /** `null`: Wyoming is off. */
  readonly wyoming: { readonly account: string | null } | null;
}

/**
 * Opening checks the store before anything is written to it.
 *
 * @throws {ConfigError} there is no account of that name
 * @throws {StoreError}
 */
export const openWithKeys = async (parts: OpeningParts): Promise<OpenedStore> => {
  const { bounds, driver, log, onFirstKey, wyoming } = parts;
  const store = await openStore(driver, bounds, log);
  try {
    return await administer(driver, true, async (administration) => {
      await administration.createFirstKey(onFirstKey);
      const payer = wyoming === null ? null : (wyoming.account ?? FIRST_ACCOUNT);
      return { store, wyomingKeyId: payer === null ? null : await administration.playgroundKey(payer) };
    });
  } catch (error) {
    await store.close();
    if (error instanceof AdministrationError) throw new ConfigError(`WYOMING_ACCOUNT: ${error.message}`);
    throw error;
  }
};
