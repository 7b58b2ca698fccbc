/** Entry of the thread that reads the voice packs. */
import { parentPort, workerData } from 'node:worker_threads';
import type { PacksThreadData } from '../src/threads/voices.js';
import { answerWithPacks } from './engines/registry.js';

await answerWithPacks(parentPort!, workerData as PacksThreadData);
