import t from 'tap';
import { limits } from '../../../src/limits.js';
import { Espeak } from '../../../workers/engines/g2p/espeak.js';
import { allRanges, codesSpoken } from '../../support/spoken-codes.js';

t.setTimeout(600_000);
const espeak = await Espeak.load(limits);

for (const language of ['en-US', 'de', 'fr', 'es'])
  t.test(`no character is spoken as its code: ${language}`, (t) => {
    t.strictSame(codesSpoken(espeak, language, allRanges), []);
    t.end();
  });
