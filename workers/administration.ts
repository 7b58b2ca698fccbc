/** Entry of the administration thread: what the console asks of the store, and passwords. */
import { parentPort, workerData } from 'node:worker_threads';
import { expose } from 'comlink';
import { ConsoleDesk } from '../src/accounts/console-calls.js';
import { nodeEndpoint } from '../src/comlink-node.js';
import type { Bounds } from '../src/limits.js';
import { storeAt, type StorePlace } from '../src/store/driver.js';
import { nameThread } from '../src/thread-name.js';

nameThread('administration');
const { store, bounds } = workerData as { store: StorePlace; bounds: Bounds };
if (parentPort === null) throw new Error('workers/administration.js runs as a worker thread');
expose(new ConsoleDesk(storeAt(store, bounds), bounds), nodeEndpoint(parentPort));
