/** CI takes another part of all characters each time; `npm run nightly` takes all. */
import t from 'tap';
import { limits } from '../../../src/limits.js';
import { Espeak } from '../../../workers/engines/g2p/espeak.js';
import { seedOfRun, times } from '../../fuzz/check.js';
import { allRanges, codesSpoken } from '../../support/spoken-codes.js';

t.setTimeout(600_000);
const espeak = await Espeak.load(limits);
const every = Math.max(1, Math.round(10 / times));
const seed = seedOfRun();

for (const language of ['en-US', 'de', 'fr', 'es'])
  t.test(`no character is spoken as its code: ${language}`, (t) => {
    t.strictSame(codesSpoken(espeak, language, allRanges, every, seed % every), [], `seed ${seed}`);
    t.end();
  });
