/** One sentence with our voice on a software device: the samples are those of the CPU, up to rounding. */
import { missingGpu } from '../../support/software-gpu.js';
import t from 'tap';
import { GpuState } from '../../../src/threads/gpu.js';
import { loadFrom, loadVoices, modelsDir, speak } from '../../support/voices.js';

/** Units of 16 bits. */
const tolerance = 33;

// Compiling the shaders in software takes half a minute.
t.setTimeout(300_000);

t.test('our voice sounds the same on a GPU', { skip: missingGpu }, async (t) => {
  const state = new GpuState();
  const gpu = { state, graphs: 'all', cudaDevice: null, placements: new Map() } as const;
  const voices = await loadFrom(modelsDir, { provider: 'webgpu', gpu });
  t.equal(voices.executionProvider, 'webgpu');
  const text = 'Yes, of course.';
  const made = await speak(voices, text);
  const expected = await speak(await loadVoices(), text);
  t.notOk(state.isLost);
  t.equal(made.pcm.length, expected.pcm.length);
  t.same(made.words, expected.words);
  const worst = made.pcm.reduce((most, sample, i) => Math.max(most, Math.abs(sample - expected.pcm[i]!)), 0);
  t.comment(`the largest difference is ${worst} of 32,768`);
  t.ok(worst <= tolerance, `the largest difference is ${worst}`);
});
