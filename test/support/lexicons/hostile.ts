/** As `workers/lexicons.ts`, but some files hang or end the thread that reads them. */
import { basename } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import type { LexiconThreadData } from '../../../src/threads/lexicons.js';
import { parseFile, sendLexicons } from '../../../workers/lexicons/read.js';

await sendLexicons(parentPort!, workerData as LexiconThreadData, (path, bounds) => {
  if (basename(path) === 'spin.txt') for (;;);
  if (basename(path) === 'exit.txt') process.exit(3);
  return parseFile(path, bounds);
});
