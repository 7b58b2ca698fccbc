/** Entry of the administration thread: what the console asks of the store, and passwords. */
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { expose } from 'comlink';
import { ConsoleDesk, type AdministrationData } from '../src/accounts/console-calls.js';
import { WEBHOOKS_FOLDER } from '../src/accounts/webhooks.js';
import { nodeEndpoint } from '../src/comlink-node.js';
import { storeAt } from '../src/store/driver.js';
import type { Pronouncing } from '../src/threads/messages.js';
import { nameThread } from '../src/thread-name.js';
import { accountWords } from './lexicons/write.js';
import { openWebhooks } from './webhooks.js';

nameThread('administration');
const { store, bounds, webhookAllow } = workerData as AdministrationData;
if (parentPort === null) throw new Error('workers/administration.js runs as a worker thread');
/** It pronounces, too: it has time, and no other thread for it would have to be kept. */
class Desk extends ConsoleDesk implements Pronouncing {
  async pronounce(...[pack, voice, segments]: Parameters<Pronouncing['pronounce']>) {
    // Most consoles never ask: the formats are loaded at the first question.
    const { ipasOf, pronounceOf } = await import('./engines/registry.js');
    const pronounce = await pronounceOf(pack, bounds);
    return pronounce && ipasOf(pronounce, segments, voice);
  }
}

const words = accountWords(join(store.dataDir, 'lexicons'), bounds);
const webhooks = openWebhooks({
  folder: join(store.dataDir, WEBHOOKS_FOLDER),
  allow: webhookAllow,
  bounds,
});
const desk = new Desk(storeAt(store, bounds), bounds, words, webhooks);
expose(desk, nodeEndpoint(parentPort));
