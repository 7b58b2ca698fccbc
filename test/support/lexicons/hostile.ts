/** As `workers/lexicons.ts`, but some files hang or end the thread that reads them. */
import { basename } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import type { LexiconThreadData } from '../../../src/threads/lexicons.js';
import { parseFile, sendLexicons } from '../../../workers/lexicons/read.js';

await sendLexicons(parentPort!, workerData as LexiconThreadData, (path, bounds) => {
  // It hangs as a loop does, and takes no CPU time.
  if (basename(path) === 'spin.txt') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  if (basename(path) === 'exit.txt') process.exit(3);
  return parseFile(path, bounds);
});
