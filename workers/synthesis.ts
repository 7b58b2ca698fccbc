/** Entry of a synthesis thread: the voice packs that it is given behind `serveSynthesis`. */
import { workerData } from 'node:worker_threads';
import type { SynthesisThreadData } from '../src/threads/messages.js';
import { loadEngines, threadLog } from './engines/loader.js';
import { serveSynthesis } from './synthesis-thread.js';

const data = workerData as SynthesisThreadData;

/** The job handler: piscina calls a module's default export. */
export default await serveSynthesis(data, (native) =>
  loadEngines(data.packs, { provider: data.executionProvider, native, log: threadLog(data.logLevel) }),
);
