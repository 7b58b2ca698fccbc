/** A thread that reads the file of its data, and says how long it is. */
import { readFile } from 'node:fs/promises';
import { parentPort, workerData } from 'node:worker_threads';

const { length } = await readFile((workerData as { readonly path: string }).path);
parentPort!.postMessage({ length });
