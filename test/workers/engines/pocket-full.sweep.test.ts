/** Pocket TTS at the sizes of the published exports: 50 MB of state in five graphs. */
import { join } from 'node:path';
import t from 'tap';
import { echo, fullShape } from '../../../scripts/voices/fixtures/pocket-echo.js';
import { makeOneGraph } from '../../../scripts/voices/fixtures/pocket-one.js';
import { makeFiveGraphs } from '../../../scripts/voices/fixtures/pocket.js';
import { closeFiles } from '../../../src/threads/voices.js';
import { readPacks } from '../../../workers/engines/registry.js';
import { cacheDir, loadFrom, speak } from '../../support/voices.js';

t.test('both exports speak with their full shapes, and their states are counted', async (t) => {
  const folder = t.testdir();
  await makeFiveGraphs(join(folder, 'five'), fullShape);
  await makeOneGraph(join(folder, 'one.onnx'), fullShape);
  const { packs, files } = await readPacks({ modelsDir: folder, cacheDir });
  closeFiles(files);
  const [five, one] = packs;
  // Four segments at once, each with three states of 6 layers x 2 x 1,000 positions x 1,024 numbers.
  t.ok(five!.stateBytes! > 4 * 3 * 6 * 2 * 1_000 * 1_024 * 4);
  t.ok(one!.stateBytes! > 4 * 3 * 6 * 2 * 1_000 * 1_024 * 4);
  const voices = await loadFrom(folder);
  for (const voiceId of ['five-alba', 'five-eponine', 'one-alba']) {
    const { pcm, words } = await speak(voices, 'The kettle is on.', { voiceId });
    t.ok(pcm.length > 0 && pcm.length % echo.frameSamples === 0, voiceId);
    t.equal(words.length, 4);
    const memory = pcm.subarray(0, echo.memoryValues);
    t.equal(memory[voiceId === 'five-alba' ? 1 : 0], voiceId === 'five-eponine' ? echo.state.value : -100);
  }
});
