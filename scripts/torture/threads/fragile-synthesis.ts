/** Entry of a synthesis thread with the real voices. It breaks after the first step of a text that names a fault. */
import { workerData } from 'node:worker_threads';
import type { SynthesisThreadData } from '../../../src/threads/messages.js';
import type { LoadedVoices, SegmentSynthesis } from '../../../workers/engines/engine.js';
import { loadPacks, meansOf } from '../../../workers/engines/registry.js';
import { serveSynthesis } from '../../../workers/synthesis-thread.js';
import { faultIn } from './faults.js';

const data = workerData as SynthesisThreadData;

const breakingOn = (synthesis: SegmentSynthesis, text: string): SegmentSynthesis => {
  const fault = faultIn(text, 'Break by ');
  if (fault === undefined) return synthesis;
  let steps = 0;
  return {
    sampleRateHz: synthesis.sampleRateHz,
    step: async () => {
      if (++steps > 1) fault();
      const chunk = await synthesis.step();
      // Some models make a whole segment in one step.
      if (chunk?.last === true) fault();
      return chunk;
    },
  };
};

const fragile = (voices: LoadedVoices): LoadedVoices => ({
  ...voices,
  open: (request) => breakingOn(voices.open(request), request.text),
});

/** piscina calls a module's default export. */
export default await serveSynthesis(data, async (native) =>
  fragile(await loadPacks(data.packs, meansOf(data, native))),
);
