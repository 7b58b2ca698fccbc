import t from 'tap';
import fc from 'fast-check';
import { limits } from '../../../src/limits.js';
import { pronounced } from '../../../src/text/lexicon.js';
import { normalise } from '../../../src/text/normalise/normalise.js';
import { mergeReplacements, type Replacement } from '../../../src/text/replacements.js';
import { Segmenter } from '../../../src/text/segments.js';
import { wordSpans } from '../../../src/text/words.js';
import { clausesOf } from '../../../workers/engines/g2p/clauses.js';
import { anyText, check, partOfToday } from '../../fuzz/check.js';
import { addressCases } from './address-cases.js';
import { agentCases } from './agent-cases.js';
import { cases } from './cases.js';
import { contextCases, cutSentences, uncutSentences } from './context-cases.js';
import { frenchCases } from './french-cases.js';
import { germanCases } from './german-cases.js';
import { spanishCases } from './spanish-cases.js';

const replacementsOf = (
  text: string,
  language = 'en-US',
  normalized = true,
  startsInToken = false,
): readonly Replacement[] => {
  const words = wordSpans(text);
  return mergeReplacements(
    pronounced([], text, words, language, undefined, startsInToken),
    normalized ? normalise(text, words, limits, language) : [],
  );
};

/** The text as it is spoken. */
const spokenOf = (text: string, language = 'en-US', normalized = true): string => {
  const words = wordSpans(text);
  let spoken = '';
  let end = 0;
  for (const { first, last, spoken: replacement } of replacementsOf(text, language, normalized)) {
    spoken += text.slice(end, words[first]!.start) + replacement;
    end = words[last]!.end;
  }
  return spoken + text.slice(end);
};

const tables = {
  en: { ...cases, ...agentCases, ...contextCases },
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

for (const [language, rows] of Object.entries(addressCases))
  t.test(`${language}: addresses are spoken short, with and without normalize_text`, (t) => {
    for (const [written, spoken] of rows)
      for (const normalized of [true, false])
        t.equal(spokenOf(written, language, normalized), spoken, `${written} (${normalized})`);
    t.end();
  });

t.test('an address keeps its token, and the end of one that is cut is silent', (t) => {
  t.strictSame(replacementsOf('See https://example.com/a?b=c now.', 'en', false), [
    { first: 1, last: 1, spoken: 'example dot com slash eigh' },
  ]);
  t.strictSame(replacementsOf('ign=spring&utm_medium=mail now', 'en', false, true), [
    { first: 0, last: 0, spoken: '\u2060' },
  ]);
  for (const text of ['Is it A&B=C?', '/find?q=cats', 'say a?b'])
    t.strictSame(replacementsOf(text, 'en', false, true), [], text);
  for (const text of [
    'R&D=Research and development.',
    'name=x&age=30 works',
    'Q&A=questions',
    'Buy 100@1.25',
    '3@4.99',
  ])
    t.strictSame(replacementsOf(text, 'en', false), [], text);
  t.end();
});

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
          ...[...Object.values(tables), addressCases].flatMap((table) =>
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
      { weight: 2, arbitrary: anyText(6) },
    ),
    { maxLength: 24 },
  )
  .map((pieces) => pieces.join(''));

/** The most that a UTF-16 unit of text may become. A short text may become as much again. */
const spokenPerUnitMax = 16;

t.test('any text gives ordered, disjoint, valid, non-blank replacements of bounded length', async (t) => {
  await check(
    t,
    fc.property(provoking, fc.constantFrom('en', 'de', 'fr', 'es'), (text, language) => {
      const words = wordSpans(text);
      const replacements = replacementsOf(text, language);
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
    500,
  );
});

t.test('any number is read behind any sign or counter, and before any unit', (t) => {
  const before =
    ',#,No. ,p. ,pp. ,p.,Room ,Order ,Nr. ,Nr.,n° ,núm. ,§ ,§,vol. ,Tel. ,v,$,€,+,-,~,I-,A,S. ,Seite ,versión '.split(
      ',',
    );
  const numbers =
    '007 0123 00.12 0.5 01,000 012,345 001.000 0,5 01.02.03 0010.0.0.1 01.2 01/02 00:30 01-02 1.000 1,000'.split(
      ' ',
    );
  const after = '|.|,|%| kg|s|°C| Uhr| pm|th|-ish|"|)|/day'.split('|');
  const texts = before.flatMap((sign) =>
    numbers.flatMap((number) => after.map((unit) => `The ${sign}${number}${unit} end`)),
  );
  for (const language of ['en-US', 'en-GB', 'de', 'fr', 'fr-CH', 'es', 'es-MX'])
    for (const text of partOfToday(texts, 8)) {
      const spoken = spokenOf(text, language);
      if (/ {2}|undefined/.test(spoken)) t.fail(`${language}: ${text} -> ${spoken}`);
    }
  t.equal(
    spokenOf('At #05-12, or #012,345.'),
    'At number zero five, one two, or number zero one two, three four five.',
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
  const text = `${longest} `.repeat(2 ** 10);
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
      const text = token.repeat(2 ** 12 / token.length);
      t.ok(spokenOf(text).length <= text.length * spokenPerUnitMax, JSON.stringify(token));
    }
  t.end();
});

/** Groups of digits or letters that are said one after another: telephone numbers, cards, addresses of networks. */
const isTypedGroups = (written: string): boolean =>
  /^\d-\d{3}-[A-Z]/.test(written) ||
  (written.replace(/\D/g, '').length >= 6 &&
    !/^\W*(?:\d\d?|\d{4})([-/.])\d{1,2}\1\d{2,4}\W*$/.test(written) &&
    !/[g-z]/.test(written));
/** The date and the time of a time stamp, and the parts of a duration, are said one after another in these languages. */
const isTimed = (written: string, language: string): boolean =>
  language !== 'en' && /\d[T:]\d\d:\d\d/.test(written);

t.test('no spoken form ends a clause that the written form does not end', (t) => {
  const breaksIn = (text: string): number => clausesOf(text, wordSpans(text)).length;
  let checked = 0;
  for (const [language, table] of [...Object.entries(tables), ['en', { '': addressCases['en']! }] as const])
    for (const [text] of Object.values(table).flat()) {
      const words = wordSpans(text);
      for (const { first, last, spoken } of replacementsOf(text, language)) {
        const written = text.slice(words[first]!.start, words[last]!.end);
        if (isTypedGroups(written) || isTimed(written, language)) continue;
        const marks = /(?<=\S)[,;:?!)](?=\S)/g;
        const allowed = Math.max(breaksIn(written), 1 + (written.match(marks)?.length ?? 0));
        t.ok(breaksIn(spoken) <= allowed, `${language}: ${written} -> ${spoken}`);
        checked++;
      }
    }
  t.ok(checked > 1500, String(checked));
  t.end();
});

t.test('a sentence with a shortened word is one segment and one clause', (t) => {
  for (const text of uncutSentences) {
    const segmenter = new Segmenter(limits);
    const segments = [...segmenter.push(text), ...segmenter.end()];
    const clauses = segments.flatMap((segment) =>
      clausesOf(segment.text, segment.words, replacementsOf(segment.text)),
    );
    t.equal(segments.length, 1, text);
    t.equal(clauses.length, 1, text);
  }
  for (const text of cutSentences) {
    const segmenter = new Segmenter(limits);
    t.equal([...segmenter.push(text), ...segmenter.end()].length, 2, text);
  }
  t.end();
});
