/** Entry of the administration thread: what the console asks of the store, and passwords. */
import { parentPort, workerData } from 'node:worker_threads';
import { expose } from 'comlink';
import { ConsoleDesk, type ConsoleBounds } from '../src/accounts/console-calls.js';
import { nodeEndpoint } from '../src/comlink-node.js';
import type { SqliteBounds } from '../src/store/sqlite/database.js';
import { sqliteStore } from '../src/store/sqlite/driver.js';
import { nameThread } from '../src/thread-name.js';

nameThread('administration');
const { dataDir, bounds } = workerData as { dataDir: string; bounds: SqliteBounds & ConsoleBounds };
if (parentPort === null) throw new Error('workers/administration.js runs as a worker thread');
expose(new ConsoleDesk(sqliteStore(dataDir, bounds), bounds), nodeEndpoint(parentPort));
