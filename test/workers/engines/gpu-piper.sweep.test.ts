import { missingGpu } from '../../support/software-gpu.js';
import { join } from 'node:path';
import t from 'tap';
import { piperModel, smallShape, writePiper } from '../../../scripts/voices/fixtures/piper.js';
import { limits } from '../../../src/limits.js';
import { times } from '../../fuzz/check.js';
import { sameOnGpu } from '../../support/same-on-gpu.js';

t.setTimeout(600_000);

t.test("Piper's voices sound the same on a GPU", { skip: missingGpu }, async (t) => {
  const folder = t.testdir();
  await writePiper(join(folder, 'small'), 'small', piperModel(smallShape));
  // The software device compiles the generator for a minute and a half: `npm run nightly` tries it.
  const graphs = times > 1 ? 'all' : ['small/flow'];
  // Short pieces: the software device takes seconds for a long one.
  await sameOnGpu(t, folder, 'small', { ...limits, stepComputeMsTarget: 0.1 }, graphs);
});
