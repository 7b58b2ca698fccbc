/**
 * As `workers/packs.ts`, with a format whose packs end or hang the thread that reads them. Before that, each writes its name
 * into a file beside the folder of packs.
 */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import type { PacksThreadData } from '../../../../src/threads/voices.js';
import type { VoiceFormat } from '../../../../workers/engines/engine.js';
import { answerWithPacks, formats } from '../../../../workers/engines/registry.js';

const acts: Readonly<Record<string, () => void>> = {
  // It hangs as a loop does, and takes no CPU time.
  'spin.hostile': () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0),
  'fill.hostile': () => {
    const kept: object[][] = [];
    for (;;) kept.push(Array.from({ length: 1_000 }, () => ({})));
  },
  'exit.hostile': () => process.exit(3),
  'crash.hostile': () => {
    throw new Error('no voice\nat all');
  },
};

const hostile: VoiceFormat = {
  name: 'hostile',
  looksFor: 'ACT.hostile',
  recognises: ({ files }) => files.some((file) => file in acts),
  async read(folder) {
    const [file = ''] = folder.files;
    await folder.hold(file);
    appendFileSync(join(folder.path, '..', '..', 'acted'), `${folder.name}\n`);
    acts[file]?.();
    throw new Error(`${file} goes on`);
  },
  load: () => Promise.reject(new Error('it is never loaded')),
};

await answerWithPacks(parentPort!, workerData as PacksThreadData, [hostile, ...formats], null);
