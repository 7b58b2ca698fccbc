/** Entry of a synthesis thread with the real voices, which breaks in the second step of a text that tells it how. */
import { workerData } from 'node:worker_threads';
import type { SynthesisThreadData } from '../../../src/threads/messages.js';
import type { Engine, SegmentRequest, SegmentSynthesis } from '../../../workers/engines/engine.js';
import { loadEngines, threadLog } from '../../../workers/engines/loader.js';
import { serveSynthesis } from '../../../workers/synthesis-thread.js';
import { synthesisFaults, type SynthesisFault } from './faults.js';

const data = workerData as SynthesisThreadData;

const exhaustHeap = (): never => {
  const hoard: unknown[] = [];
  for (;;) hoard.push(new Array(2 ** 20).fill(hoard));
};

const spin = (): never => {
  for (;;);
};

const faults: Readonly<Record<SynthesisFault, () => void>> = {
  throw: () => {
    throw new Error('injected');
  },
  exit: () => process.exit(3),
  heap: exhaustHeap,
  spin,
};

const breakingOn = (synthesis: SegmentSynthesis, text: string): SegmentSynthesis => {
  const fault = synthesisFaults.find((name) => text.includes(`Break by ${name}.`));
  if (fault === undefined) return synthesis;
  let steps = 0;
  return {
    step: async () => {
      if (++steps > 1) faults[fault]();
      return synthesis.step();
    },
  };
};

const fragile = (engine: Engine): Engine => ({
  sampleRateHz: engine.sampleRateHz,
  voiceIds: engine.voiceIds,
  executionProvider: engine.executionProvider,
  open: (request: SegmentRequest) => breakingOn(engine.open(request), request.text),
});

/** piscina calls a module's default export. */
export default await serveSynthesis(data, async (native) =>
  fragile(
    await loadEngines(data.packs, {
      provider: data.executionProvider,
      native,
      log: threadLog(data.logLevel),
    }),
  ),
);
