/** As `workers/packs.ts`, with one format more. */
import { parentPort, workerData } from 'node:worker_threads';
import { answerWithPacks, formats } from '../../../../workers/engines/registry.js';
import { tones } from './format.js';

await answerWithPacks(parentPort!, workerData as string, [...formats, tones]);
