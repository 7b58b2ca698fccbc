/** Entry of a synthesis thread: serves the voice packs in its data. */
import { workerData } from 'node:worker_threads';
import type { SynthesisThreadData } from '../src/threads/messages.js';
import { loadPacks, meansOf } from './engines/registry.js';
import { serveSynthesis } from './synthesis-thread.js';

const data = workerData as SynthesisThreadData;

/** The job handler: piscina calls a module's default export. */
export default await serveSynthesis(data, (native) =>
  loadPacks(data.packs, { ...meansOf(data, native), measuresCosts: true }, undefined, data.packsLoadedMax),
);
