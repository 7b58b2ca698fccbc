/** A thread that reads the file of its data, and says how long it is. */
import { readFile } from 'node:fs/promises';
import { parentPort, workerData } from 'node:worker_threads';

const { path } = workerData as { readonly path: string };
parentPort!.postMessage({ reading: { name: path, path }, files: [] });
const { length } = await readFile(path);
parentPort!.postMessage({ length });
