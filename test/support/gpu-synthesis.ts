/** As `workers/synthesis.ts`, with a GPU that breaks as the file `GPU_FAULT_FILE` says, while it exists. */
import { readFileSync, rmSync } from 'node:fs';
import { workerData } from 'node:worker_threads';
import { InferenceSession } from 'onnxruntime-node';
import type { SynthesisThreadData } from '../../src/threads/messages.js';
import type { GpuMeans } from '../../workers/engines/engine.js';
import { loadPacks, meansOf } from '../../workers/engines/registry.js';
import { serveSynthesis } from '../../workers/synthesis-thread.js';

const data = workerData as SynthesisThreadData;
const file = process.env['GPU_FAULT_FILE'] ?? '';

const faultNow = (): string => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
};

const breakIfAsked = (): void => {
  const fault = faultNow();
  if (fault === 'lost') throw new Error('WebGPU device lost');
  if (fault !== 'hangs') return;
  // One call hangs.
  rmSync(file);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
};

const createSession: NonNullable<GpuMeans['createSession']> = async (source, options) => {
  breakIfAsked();
  const session =
    typeof source === 'string'
      ? await InferenceSession.create(source, options)
      : await InferenceSession.create(source, options);
  return {
    run: async (feeds: InferenceSession.FeedsType) => {
      breakIfAsked();
      return session.run(feeds);
    },
    release: () => session.release(),
  };
};

/** piscina calls a module's default export. */
export default await serveSynthesis(data, (native) => {
  const { gpu, ...means } = meansOf(data, native);
  return loadPacks(data.packs, { ...means, ...(gpu !== undefined && { gpu: { ...gpu, createSession } }) });
});
