/** Entry of the thread that reads the pronunciation lexicons. */
import { parentPort, workerData } from 'node:worker_threads';
import type { LexiconThreadData } from '../src/threads/lexicons.js';
import { sendLexicons } from './lexicons/read.js';

await sendLexicons(parentPort!, workerData as LexiconThreadData);
