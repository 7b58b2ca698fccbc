import t from 'tap';
import fc from 'fast-check';
import { limits } from '../../../src/limits.js';
import { normalise } from '../../../src/text/normalise/normalise.js';
import type { Replacement } from '../../../src/text/replacements.js';
import { wordSpans } from '../../../src/text/words.js';
import { agentCases } from './agent-cases.js';
import { cases } from './cases.js';
import { frenchCases } from './french-cases.js';
import { germanCases } from './german-cases.js';
import { spanishCases } from './spanish-cases.js';

const replacementsOf = (text: string, language = 'en-US'): Replacement[] =>
  normalise(text, wordSpans(text), limits, language);

/** The text as it is spoken. */
const spokenOf = (text: string, language = 'en-US'): string => {
  const words = wordSpans(text);
  let spoken = '';
  let end = 0;
  for (const { first, last, spoken: replacement } of normalise(text, words, limits, language)) {
    spoken += text.slice(end, words[first]!.start) + replacement;
    end = words[last]!.end;
  }
  return spoken + text.slice(end);
};

const tables = {
  en: { ...cases, ...agentCases },
  de: germanCases,
  fr: frenchCases,
  es: spanishCases,
} as const;

for (const [language, table] of Object.entries(tables)) {
  for (const [rule, rows] of Object.entries(table))
    t.test(`${language} is spoken as the table says: ${rule}`, (t) => {
      for (const [written, spoken] of rows) t.equal(spokenOf(written, language), spoken, written);
      t.end();
    });
  t.test(`the table of ${language} has enough distinct cases`, (t) => {
    const written = Object.values(table).flatMap((rows) => rows.map(([text]) => text));
    t.ok(written.length >= (language === 'en' ? 550 : 120));
    t.equal(new Set(written).size, written.length, 'no duplicates');
    t.end();
  });
}

t.test('countries differ within a language', (t) => {
  t.equal(spokenOf('71 et 80', 'fr-CH'), 'septante et un et huitante');
  t.equal(spokenOf('71 et 80', 'fr-BE'), 'septante et un et quatre-vingts');
  t.equal(spokenOf('$1,234.56', 'es-MX'), 'mil doscientos treinta y cuatro dólares con cincuenta y seis');
  t.equal(spokenOf('1.5 km', 'es-419'), 'uno punto cinco kilómetros');
  t.equal(spokenOf('5 km', 'it-IT'), '5 km', 'left to the voice');
  t.end();
});

t.test('a token whose words stand apart keeps them, so that it keeps its own time', (t) => {
  t.strictSame(replacementsOf('$5'), [{ first: 0, last: 0, spoken: 'five dollars' }]);
  t.strictSame(replacementsOf('due Jan. 5, 2024.'), [
    { first: 1, last: 1, spoken: 'January' },
    { first: 2, last: 2, spoken: 'fifth,' },
    { first: 3, last: 3, spoken: 'twenty twenty four.' },
  ]);
  t.strictSame(replacementsOf('a $5 million deal'), [
    { first: 1, last: 1, spoken: 'five' },
    { first: 2, last: 2, spoken: 'million dollar' },
  ]);
  t.strictSame(
    replacementsOf('pay $ 5 or 1 000 000, now'),
    [
      { first: 1, last: 2, spoken: 'five dollars' },
      { first: 4, last: 6, spoken: 'one million,' },
    ],
    'other tokens become one range',
  );
  t.end();
});

t.test('punctuation around a replaced token stays', (t) => {
  t.equal(spokenOf('“5,” (6) ‘7’; *8*: [9]…'), '“five,” (six) ‘seven’; *eight*: [nine]…');
  t.equal(spokenOf('Really 5?! Yes, 6.'), 'Really five?! Yes, six.');
  t.end();
});

t.test('amounts are not joined across a line break', (t) => {
  t.equal(spokenOf('5\nkm'), 'five\nkm');
  t.equal(spokenOf('$5\nmillion'), 'five dollars\nmillion');
  t.equal(spokenOf('1\n000'), 'one\nzero zero zero');
  t.end();
});

/** Text made of the patterns that the rules match, in any order. */
const provoking = fc
  .array(
    fc.oneof(
      {
        weight: 6,
        arbitrary: fc.constantFrom(
          ...Object.values(tables).flatMap((table) =>
            Object.values(table).flatMap((rows) => rows.map(([text]) => text)),
          ),
        ),
      },
      {
        weight: 4,
        arbitrary: fc.constantFrom(...'$ € % / - – : . , \' " # + = ½ ² ° °C km @ . www. h Uhr'.split(' ')),
      },
      { weight: 4, arbitrary: fc.nat({ max: 99_999 }).map(String) },
      { weight: 3, arbitrary: fc.constantFrom(' ', '\n', '\u00a0', '  ') },
      {
        weight: 2,
        arbitrary: fc.constantFrom(...'Dr. St. Jan. am p.m. IV million the Main 世界 да'.split(' ')),
      },
      { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 6 }) },
    ),
    { maxLength: 24 },
  )
  .map((pieces) => pieces.join(''));

/** The most that a UTF-16 unit of text may become. A short text may become as much again. */
const spokenPerUnitMax = 16;

t.test('any text gives ordered, disjoint, valid, non-blank replacements of bounded length', (t) => {
  fc.assert(
    fc.property(provoking, fc.constantFrom('en', 'de', 'fr', 'es'), (text, language) => {
      const words = wordSpans(text);
      const replacements = normalise(text, words, limits, language);
      let next = 0;
      for (const { first, last, spoken } of replacements) {
        const written = text.slice(words[first]!.start, words[last]!.end);
        if (first < next || last < first || last >= words.length) return false;
        if (spoken.trim() === '' || spoken === written) return false;
        // Zero is "null" in German.
        if ((language === 'de' ? /undefined|NaN/ : /undefined|null|NaN/).test(spoken)) return false;
        if (spoken.length > written.length * spokenPerUnitMax + spokenPerUnitMax) return false;
        next = last + 1;
      }
      return true;
    }),
    { numRuns: 20_000, seed: 7 },
  );
  t.end();
});

t.test('spoken forms hold no digits or signs after a second pass', (t) => {
  for (const [, spoken] of Object.values(cases).flat())
    if (!/\d/.test(spoken)) t.equal(/\d|[$€£%°]/.test(spokenOf(spoken)), false, spoken);
  t.end();
});

t.test('a megabyte of digits is read in bounded time and space', (t) => {
  t.strictSame(replacementsOf('7'.repeat(2 ** 20)), [], 'a token over the bound is left to the voice');
  const longest = '7'.repeat(limits.normalisedTokenMax);
  t.match(spokenOf(longest), /^(?:(?:seven ){3}seven, ){63}seven seven seven seven$/);
  const text = `${longest} `.repeat(2 ** 12);
  t.ok(spokenOf(text).length <= text.length * spokenPerUnitMax);
  t.end();
});

t.test('rows of one sign, in one token or in many, give bounded results', (t) => {
  const signs = [
    '1,',
    '1.',
    '5-',
    '5:',
    '5+',
    '1/2',
    '.',
    '(',
    '$',
    '½',
    "'",
    'v1.',
    'IV',
    'a.',
    '—5',
    ',000',
  ];
  for (const sign of signs)
    for (const units of [sign.length, limits.normalisedTokenMax - sign.length]) {
      const token = `${sign.repeat(Math.floor(units / sign.length))} `;
      const text = token.repeat(2 ** 14 / token.length);
      t.ok(spokenOf(text).length <= text.length * spokenPerUnitMax, JSON.stringify(token));
    }
  t.end();
});
