/**
 * The real service, its own entry included. On SIGWINCH it writes heap snapshots of all its threads into the folder
 * `SNAPSHOTS`, and then an empty file `done`.
 *
 * A snapshot has nothing of an ArrayBuffer: no socket buffers, no samples, no memory of WebAssembly.
 */
import { createWriteStream, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { getHeapSnapshot, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Worker } from 'node:worker_threads';
import { Watchdog } from '../../src/threads/watchdog.js';

// A snapshot would cut longer strings.
setFlagsFromString('--heap-snapshot-string-limit=1048576');

const folder = process.env['SNAPSHOTS'] ?? '';
const workers = new Set<Worker>();
process.on('worker', (worker) => {
  workers.add(worker);
  // The thread that reads the voices ends after the start.
  worker.once('exit', () => workers.delete(worker));
});

/** Several rounds: V8 keeps field names, with the shapes of their objects, beyond the first. */
const collectGarbage = async (): Promise<void> => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let round = 0; round < 5; round++) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
};

const write = async (): Promise<void> => {
  // On a busy machine a thread writes its snapshot for longer than it may hang.
  Watchdog.prototype.look = () => undefined;
  await collectGarbage();
  mkdirSync(folder, { recursive: true });
  const snapshots = [getHeapSnapshot, ...[...workers].map((worker) => () => worker.getHeapSnapshot())];
  for (const [place, take] of snapshots.entries()) {
    const name = place === 0 ? 'front' : `thread-${place}`;
    await pipeline(await take(), createWriteStream(join(folder, `${name}.heapsnapshot`)));
  }
  writeFileSync(join(folder, 'done'), '');
};
process.on('SIGWINCH', () => void write());

await import('../../src/main.js');
