/** The embedded store: one SQLite file in the data folder. */
import { existsSync } from 'node:fs';
import { readUsage } from '../sql/usage.js';
import type { StoreDriver } from '../store.js';
import { SqliteAdministration } from './administration.js';
import { missingStore, openExisting, storePath, toStoreError, type SqliteBounds } from './database.js';
import { openReader } from './reader.js';
import { Statements } from './statements.js';
import { WriterThread } from './writer.js';

export const sqliteStore = (dataDir: string, bounds: SqliteBounds): StoreDriver => ({
  openReader: (writer) => openReader(dataDir, bounds, writer),
  startWriter: () => new WriterThread(dataDir, bounds),
  administer: (create) => {
    if (!create && !existsSync(storePath(dataDir))) throw missingStore(storePath(dataDir));
    return new SqliteAdministration(dataDir, bounds);
  },
  readUsage: async (period) => {
    using database = openExisting(dataDir, bounds);
    try {
      return await readUsage(new Statements(database), period);
    } catch (error) {
      throw toStoreError(dataDir, error);
    }
  },
});
