/** As `workers/synthesis.ts`, with one format more. */
import { workerData } from 'node:worker_threads';
import type { SynthesisThreadData } from '../../../../src/threads/messages.js';
import { formats, loadPacks, meansOf } from '../../../../workers/engines/registry.js';
import { serveSynthesis } from '../../../../workers/synthesis-thread.js';
import { tones } from './format.js';

const data = workerData as SynthesisThreadData;

export default await serveSynthesis(data, (native) =>
  loadPacks(data.packs, meansOf(data, native), [...formats, tones]),
);
