/** Opens the store of the service at its start, with the accounts and keys that the start needs. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ConfigError } from '../config.js';
import type { Bounds } from '../limits.js';
import type { Log } from '../log.js';
import { openStore, type Store } from '../store/ledger.js';
import { AdministrationError, StoreError, type StoreDriver, type StoreFault } from '../store/store.js';
import { administer, FIRST_ACCOUNT, type PlaygroundKey } from './administration.js';

/** Milliseconds between two attempts to open a store that is away, and between two lines in the log about it. */
const RETRY_MS = 1_000;
const REPORT_MS = 30_000;

export interface OpenedStore {
  readonly store: Store;
  /** The hidden key of the account that pays for Wyoming; `null`: Wyoming is off. */
  readonly wyomingPayer: PlaygroundKey | null;
}

export interface OpeningParts {
  readonly driver: StoreDriver;
  readonly bounds: Bounds;
  readonly log: Log;
  /** Receives the key that the first start on an empty store makes. */
  readonly onFirstKey: (key: string) => void;
  /** `null`: Wyoming is off. */
  readonly wyoming: { readonly account: string | null } | null;
  /** Why the start waits for the store; `null`: it waits no more. */
  readonly onStoreWait?: (fault: StoreFault | null) => void;
}

/** It may answer later. A file does not come back by itself. */
const isAway = (driver: StoreDriver, error: unknown): error is StoreError =>
  driver.share !== undefined &&
  error instanceof StoreError &&
  ['unreachable', 'uncertain', 'busy'].includes(error.fault);

/**
 * Opening checks the store before anything is written to it. It waits for a database that is away, without a limit: the next
 * start could do no more, and the journal of this host must reach the database before others declare it dead.
 *
 * @throws {ConfigError} there is no account of that name
 * @throws {StoreError}
 */
export const openWithKeys = async (parts: OpeningParts): Promise<OpenedStore> => {
  let reportedAtMs = -Infinity;
  for (;;)
    try {
      const opened = await tryToOpen(parts);
      if (reportedAtMs > -Infinity) parts.log.info('the store can be used: the start goes on');
      parts.onStoreWait?.(null);
      return opened;
    } catch (error) {
      if (!isAway(parts.driver, error)) throw error;
      parts.onStoreWait?.(error.fault);
      if (performance.now() - reportedAtMs >= REPORT_MS) {
        parts.log.warn({ reason: error.message }, 'the start waits for the store');
        reportedAtMs = performance.now();
      }
      await sleep(RETRY_MS);
    }
};

const tryToOpen = async (parts: OpeningParts): Promise<OpenedStore> => {
  const { bounds, driver, log, onFirstKey, wyoming } = parts;
  const store = await openStore(driver, bounds, log);
  try {
    return await administer(driver, true, async (administration) => {
      await administration.createFirstKey(onFirstKey);
      const payer = wyoming === null ? null : (wyoming.account ?? FIRST_ACCOUNT);
      return { store, wyomingPayer: payer === null ? null : await administration.playgroundKey(payer) };
    });
  } catch (error) {
    await store.close();
    if (error instanceof AdministrationError) throw new ConfigError(`WYOMING_ACCOUNT: ${error.message}`);
    throw error;
  }
};
