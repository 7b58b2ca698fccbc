/** The store that the configuration names. */
import type { Config } from '../config.js';
import { postgresStore } from './postgres/driver.js';
import type { SharingBounds } from './postgres/sharing.js';
import type { SqliteBounds } from './sqlite/database.js';
import { sqliteStore } from './sqlite/driver.js';
import type { StoreDriver } from './store.js';

export type StorePlace = Pick<Config, 'dataDir' | 'storeUrl'>;

export const storeAt = (
  { dataDir, storeUrl }: StorePlace,
  bounds: SqliteBounds & SharingBounds,
): StoreDriver =>
  storeUrl === null ? sqliteStore(dataDir, bounds) : postgresStore(storeUrl, dataDir, bounds);
