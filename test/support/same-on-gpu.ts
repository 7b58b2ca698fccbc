/** Voices on a software device: the samples are those of the CPU, up to rounding, alone and in a batch. */
import type { Test } from 'tap';
import type { GpuGraphs } from '../../src/config.js';
import { type Bounds, limits } from '../../src/limits.js';
import { GpuState } from '../../src/threads/gpu.js';
import { differenceOf, gpuMeans, speakTogether } from './batched-voices.js';
import { type Spoken, loadFrom, requestOf, speak } from './voices.js';

/** Units of 16 bits. */
const tolerance = 33;

/**
 * Loads the voices on the software device, and speaks two texts alone and together.
 *
 * @param graphs that run there; the CPU runs the others
 */
export const sameOnGpu = async (
  t: Test,
  folder: string,
  voiceId: string,
  bounds: Bounds = limits,
  graphs: GpuGraphs = 'all',
): Promise<void> => {
  const state = new GpuState();
  const voices = await loadFrom(folder, { provider: 'webgpu', gpu: gpuMeans(2, { state, graphs }), bounds });
  t.equal(voices.executionProvider, 'webgpu');
  const texts = ['Yes, of course.', 'No, not today.'];
  const cpu = await loadFrom(folder, { bounds });
  const expected: Spoken[] = [];
  for (const [seed, text] of texts.entries()) expected.push(await speak(cpu, text, { seed, voiceId }));
  const alone = await speak(voices, texts[0]!, { seed: 0, voiceId });
  t.same(alone.words, expected[0]!.words);
  const { pcm, sizes } = await speakTogether(
    voices,
    texts.map((text, seed) => requestOf(text, { seed, voiceId })),
    2,
  );
  t.notOk(state.isLost);
  t.ok(sizes.includes(2));
  const differences = {
    'of the CPU': [
      differenceOf(alone.pcm, expected[0]!.pcm),
      ...pcm.map((own, i) => differenceOf(own, expected[i]!.pcm)),
    ],
    'of a batch of one': [differenceOf(pcm[0]!, alone.pcm)],
  };
  for (const [from, all] of Object.entries(differences)) {
    const worst = Math.max(...all);
    t.ok(worst <= tolerance, `the largest difference from the samples ${from} is ${worst} of 32,768`);
  }
};
