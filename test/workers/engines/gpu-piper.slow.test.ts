import { missingGpu } from '../../support/software-gpu.js';
import { join } from 'node:path';
import t from 'tap';
import { piperModel, smallShape, writePiper } from '../../../scripts/voices/fixtures/piper.js';
import { limits } from '../../../src/limits.js';
import { sameOnGpu } from '../../support/same-on-gpu.js';

t.setTimeout(600_000);

t.test("Piper's voices sound the same on a GPU", { skip: missingGpu }, async (t) => {
  const folder = t.testdir();
  await writePiper(join(folder, 'small'), 'small', piperModel(smallShape));
  // Short pieces: the software device takes seconds for a long one.
  await sameOnGpu(t, folder, 'small', { ...limits, stepComputeMsTarget: 0.1 });
});
