/** The embedded store: one SQLite file in the data folder. */
import { existsSync } from 'node:fs';
import type { StoreDriver } from '../store.js';
import { SqliteAdministration } from './administration.js';
import { missingStore, storePath, type SqliteBounds } from './database.js';
import { openReader } from './reader.js';
import { readUsage } from './usage.js';
import { WriterThread } from './writer.js';

export const sqliteStore = (dataDir: string, bounds: SqliteBounds): StoreDriver => ({
  openReader: (writer) => openReader(dataDir, bounds, writer),
  startWriter: () => new WriterThread(dataDir, bounds),
  administer: (create) => {
    if (!create && !existsSync(storePath(dataDir))) throw missingStore(storePath(dataDir));
    return new SqliteAdministration(dataDir, bounds);
  },
  readUsage: (period) => new Promise((resolve) => resolve(readUsage(dataDir, bounds, period))),
});
