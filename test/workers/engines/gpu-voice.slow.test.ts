import { missingGpu } from '../../support/software-gpu.js';
import t from 'tap';
import { sameOnGpu } from '../../support/same-on-gpu.js';
import { modelsDir } from '../../support/voices.js';

// Compiling the shaders in software takes half a minute, and each size of a batch has its own.
t.setTimeout(600_000);

t.test('our voice sounds the same on a GPU', { skip: missingGpu }, (t) => sameOnGpu(t, modelsDir, 'wren'));
