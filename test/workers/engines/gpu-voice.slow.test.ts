/** Our voice on a software device: the samples are those of the CPU, up to rounding, alone and in a batch. */
import { missingGpu } from '../../support/software-gpu.js';
import t from 'tap';
import { GpuState } from '../../../src/threads/gpu.js';
import { differenceOf, gpuMeans, speakTogether } from '../../support/batched-voices.js';
import { type Spoken, loadFrom, loadVoices, modelsDir, requestOf, speak } from '../../support/voices.js';

/** Units of 16 bits. */
const tolerance = 33;

// Compiling the shaders in software takes half a minute, and each size of a batch has its own.
t.setTimeout(600_000);

t.test('our voice sounds the same on a GPU', { skip: missingGpu }, async (t) => {
  const state = new GpuState();
  const voices = await loadFrom(modelsDir, { provider: 'webgpu', gpu: gpuMeans(2, { state }) });
  t.equal(voices.executionProvider, 'webgpu');
  const texts = ['Yes, of course.', 'No, not today.'];
  const cpu = await loadVoices();
  const expected: Spoken[] = [];
  for (const [seed, text] of texts.entries()) expected.push(await speak(cpu, text, { seed }));
  const alone = await speak(voices, texts[0]!, { seed: 0 });
  t.same(alone.words, expected[0]!.words);
  const { pcm, sizes } = await speakTogether(
    voices,
    texts.map((text, seed) => requestOf(text, { seed })),
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
});
