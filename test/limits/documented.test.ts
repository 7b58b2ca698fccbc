/** scripts/deploy/limits.md lists every bound with its value. */
import t from 'tap';
import { limits } from '../../src/limits.js';
import { planFor } from '../../src/plan.js';
import { filesIn, readSource } from '../support/source-files.js';
import { planConfig } from '../support/plans.js';

const KiB = 1024;
const MiB = 1024 * KiB;
const page = readSource('scripts/deploy/limits.md');

const withUnit = (value: number, unit: string): string => `${value.toLocaleString('en')} ${unit}`;

const shownBytes = (value: number): string => {
  if (value % MiB === 0) return withUnit(value / MiB, 'MiB');
  return value % KiB === 0 ? withUnit(value / KiB, 'KiB') : withUnit(value, 'bytes');
};

const shownMs = (value: number): string =>
  value % 1000 === 0 ? withUnit(value / 1000, 's') : withUnit(value, 'ms');

/** As on the page: the name holds the unit. */
const shown = (name: string, value: number): string => {
  if (name.includes('MiB')) return withUnit(value, 'MiB');
  if (/Bytes|_BYTES_/.test(name)) return shownBytes(value);
  return /Ms(?:[A-Z]|$)|_MS(?:_|$)/.test(name) ? shownMs(value) : value.toLocaleString('en');
};

/** Rows whose first cell is a `name`, with a star or a file. */
const rows = [
  ...page.matchAll(/^\| `(\w+)`(\\\*)?(?: in `([\w./-]+)`)? +\| ([^|]+?) +\| ([^|]+?) +\| ([^|]+?) +\|$/gm),
].map(([, name = '', star, file, value = '']) => ({ name, isPool: star !== undefined, file, value }));

t.test('the page lists every bound of limits.ts with its value', (t) => {
  const listed = rows.filter(({ file }) => file === undefined).map(({ name, value }) => [name, value]);
  const real = Object.entries(limits).map(([name, value]) => [name, shown(name, value)]);
  t.strictSame(Object.fromEntries(listed), Object.fromEntries(real));
  t.equal(listed.length, real.length, 'none twice');
  t.end();
});

t.test('the page says of every bound who can fill it', (t) => {
  const [, section = ''] = /## Who can fill a bound\n([\s\S]*?)\n## /.exec(page) ?? [];
  const named = [...section.matchAll(/`(\w+)`/g)].map(([, name]) => name);
  // Times are filled by nobody.
  const bounds = Object.keys(limits).filter((name) => !name.includes('Ms'));
  t.strictSame(named.toSorted(), bounds.toSorted(), 'each once');
  t.end();
});

t.test('a star marks the bounds that a small machine makes smaller', (t) => {
  const machine = { memoryBytes: 1024 * MiB, filesMax: 1_024 };
  const { bounds } = planFor(planConfig(), machine, [{ openFiles: 3, modelBytes: 8 * MiB }]);
  const smaller = (Object.keys(limits) as (keyof typeof limits)[]).filter(
    (name) => bounds[name] < limits[name],
  );
  t.strictSame(
    rows
      .filter(({ isPool }) => isPool)
      .map(({ name }) => name)
      .sort(),
    smaller.sort(),
  );
  t.end();
});

t.test('the page lists every bound that stands beside its code, with its value', (t) => {
  const files = filesIn(['src', 'workers'], /\.ts$/).filter(
    (path) => !path.startsWith('src/client/') && !path.startsWith('workers/audio/'),
  );
  /** Constants of a format or a measurement; they bound nothing. */
  const others = new Set(['SAMPLE_RATE_HZ_MAX', 'FINDING_LENGTH_MAX']);
  const found = new Map<string, string>();
  for (const path of files)
    for (const [, name = '', value = ''] of readSource(path).matchAll(
      /^(?:export )?const (\w+) = ([\d_ *.]+);$/gm,
    ))
      found.set(
        `${name} in ${path}`,
        shown(
          name,
          value.split('*').reduce((product, part) => product * Number(part.replaceAll('_', '')), 1),
        ),
      );
  const listed = rows.filter(({ file }) => file !== undefined);
  t.ok(listed.length > 10);
  for (const { name, file, value } of listed) t.equal(value, found.get(`${name} in ${file ?? ''}`), name);
  const missing = [...found.keys()].filter((where) => {
    const [name = ''] = where.split(' ');
    return (
      /_MAX$|(?:Cached|Bytes)Max$/.test(name) &&
      !others.has(name) &&
      !listed.some((row) => `${row.name} in ${row.file ?? ''}` === where)
    );
  });
  t.strictSame(missing, []);
  t.end();
});

t.test('every error text that the page quotes exists in the code', (t) => {
  const code = filesIn(['src', 'workers'], /\.ts$/).map(readSource).join('\n');
  const quoted = [
    ...page.matchAll(/`((?:[A-Z][a-z]+|too many|no room|ledger entries)[ \w:.]* [\w.:]+)`/g),
  ].map(([, text]) => text ?? '');
  t.ok(quoted.length >= 8, quoted.join());
  for (const text of quoted) {
    const [fixed = ''] = text.replace('1048576', '${').split('${');
    t.ok(code.includes(fixed.trim()), text);
  }
  t.end();
});
