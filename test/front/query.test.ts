/** The query of a request, as the WHATWG's URL standard reads it, without the cost of its faults. */
import t from 'tap';
import { Query } from '../../src/front/query.js';

t.test('a value is what URLSearchParams gives', (t) => {
  const values = [
    '',
    'x',
    'a+b',
    '%E2%82%AC',
    '%e4',
    '%zz',
    '%',
    '%4',
    'a=b',
    'ü',
    '%e2%82&',
    '€%20',
    '%F0%9F%98%80',
  ];
  for (const value of values)
    for (const query of [
      `name=${value}`,
      `a=1&name=${value}&name=2`,
      `names=3&&name=${value}`,
      `name&x=${value}`,
    ]) {
      const parsed = new Query(query);
      t.equal(parsed.get('name'), new URLSearchParams(query).get('name'), query);
      t.equal(parsed.get('none'), null);
    }
  t.equal(new Query('').get('name'), null);
  t.end();
});

t.test('a value that is written longer than any of use is not decoded, and takes no time', (t) => {
  t.equal(new Query(`name=${'%41'.repeat(341)}&x=1`).get('name'), 'A'.repeat(341));
  const long = '%41'.repeat(342);
  t.equal(new Query(`name=${long}&x=1`).get('name'), long);
  const timeOf = (query: string): number => {
    const startMs = performance.now();
    for (let i = 0; i < 200; i++) new Query(query).get('token');
    return performance.now() - startMs;
  };
  const ratios = [1, 2, 3, 4, 5].map(
    () => timeOf(`token=${'%e4'.repeat(2_700)}`) / timeOf(`token=${'%e4'.repeat(341)}`),
  );
  t.ok(Math.min(...ratios) < 2, `${ratios.join(', ')} (8 if all is decoded)`);
  t.end();
});

t.test('escapes that are not UTF-8 take no more time than letters', (t) => {
  const timeOf = (query: string): number => {
    const startMs = performance.now();
    for (let i = 0; i < 200; i++) new Query(query).get('token');
    return performance.now() - startMs;
  };
  const ratios = [1, 2, 3, 4, 5].map(() => timeOf('%e4&'.repeat(2_000)) / timeOf('abc&'.repeat(2_000)));
  t.ok(Math.min(...ratios) < 5, `${ratios.join(', ')} (URLSearchParams: 40)`);
  t.end();
});
