/** The table of `npm run torture`: a row that was not run did not hold. */
import t from 'tap';
import { complaintsOf, formatFaults, notRun, type TortureRow } from '../../scripts/torture/scenario.js';

const row = (fault: string, held: boolean): TortureRow => ({
  fault,
  injected: 'by hand',
  count: 1_000,
  outcome: 'seen',
  held,
});

t.test('a row held, did not hold, or was not run and says why', (t) => {
  const rows = [row('one', true), row('two', false), notRun('three', 'a cut cable', 'no root | here')];
  t.same(formatFaults(rows).split('\n').slice(2), [
    '| one | by hand | 1,000 | seen | yes |',
    '| two | by hand | 1,000 | seen | **no** |',
    '| three | a cut cable | 0 | no root \\| here | not run |',
    '',
  ]);
  t.end();
});

t.test('a row that was not run is a failure unless that is allowed; one that did not hold always is', (t) => {
  const rows = [row('one', true), row('two', false), notRun('three', '', 'no root')];
  t.same(complaintsOf(rows, false), ['two: did not hold', 'three: not run (--allow-skips): no root']);
  t.same(complaintsOf(rows, true), ['two: did not hold']);
  t.same(complaintsOf([row('one', true)], false), []);
  t.end();
});
