/** As `workers/packs.ts`, with one format more. */
import { parentPort, workerData } from 'node:worker_threads';
import type { PacksThreadData } from '../../../../src/threads/voices.js';
import { answerWithPacks, formats } from '../../../../workers/engines/registry.js';
import { tones } from './format.js';

// The process that would try the pack does not know the format.
await answerWithPacks(parentPort!, workerData as PacksThreadData, [...formats, tones], null);
