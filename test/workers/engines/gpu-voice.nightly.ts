/** A part of `npm run nightly`: compiling the shaders in software takes a minute and a half. In CI a small voice stands for ours. */
import { missingGpu } from '../../support/software-gpu.js';
import t from 'tap';
import { sameOnGpu } from '../../support/same-on-gpu.js';
import { modelsDir } from '../../support/voices.js';

t.setTimeout(600_000);

t.test('our voice sounds the same on a GPU', { skip: missingGpu }, (t) => sameOnGpu(t, modelsDir, 'wren'));
