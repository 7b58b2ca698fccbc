/** Entry of the ledger's thread, the only writer of the process. */
import { parentPort, workerData } from 'node:worker_threads';
import { expose } from 'comlink';
import { nodeEndpoint } from '../src/comlink-node.js';
import type { SqliteBounds } from '../src/store/sqlite/database.js';
import { SqliteWriter } from '../src/store/sqlite/writer.js';
import { nameThread } from '../src/thread-name.js';

nameThread('ledger');
const { dataDir, bounds } = workerData as { dataDir: string; bounds: SqliteBounds };
if (parentPort === null) throw new Error('workers/ledger.js runs as a worker thread');
expose(new SqliteWriter(dataDir, bounds), nodeEndpoint(parentPort));
