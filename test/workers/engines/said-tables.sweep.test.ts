import t from 'tap';
import { limits } from '../../../src/limits.js';
import { normalise } from '../../../src/text/normalise/normalise.js';
import { wordSpans } from '../../../src/text/words.js';
import { clausesOf } from '../../../workers/engines/g2p/clauses.js';
import { Espeak } from '../../../workers/engines/g2p/espeak.js';
import { ipaVoice, spokenLanguage } from '../../../workers/engines/g2p/languages.js';
import { createPhonemiser, phonemicWords } from '../../../workers/engines/g2p/speech.js';
import { seedOfRun } from '../../fuzz/check.js';
import { slownessOf } from '../../support/attacks.js';
import { codesSpoken, commonRanges } from '../../support/spoken-codes.js';
import { capitals, plurals } from '../../text/said/capitals.js';
import { apostrophes, emoji, letters } from '../../text/said/characters.js';
import { homographs, misread } from '../../text/said/homographs.js';
import { interjections } from '../../text/said/interjections.js';
import { brackets, markup } from '../../text/said/marks.js';

const espeak = await Espeak.load(limits);
const phonemiser = await createPhonemiser(limits);
const tags: Readonly<Record<string, string>> = { en: 'en-US', de: 'de-DE', fr: 'fr-FR', es: 'es-ES' };

const said = (text: string, language: string, isNormalised: boolean): string => {
  const words = wordSpans(text);
  const tag = tags[language] ?? language;
  const spoken = isNormalised ? normalise(text, words, limits, tag) : [];
  return clausesOf(text, words, spoken, undefined, spokenLanguage(tag))
    .map(({ atoms }) =>
      atoms.map((atom) => (atom.voice === ipaVoice ? `/${atom.spoken}/` : atom.spoken)).join(' '),
    )
    .join(', ');
};

const wordsOf = (text: string, language: string) =>
  phonemicWords(phonemiser, { text, words: wordSpans(text) }, language);

const tables = { capitals, plurals, markup, brackets, letters, emoji, apostrophes, interjections };

for (const [name, rows] of Object.entries(tables))
  t.test(`texts are said as the table says, with and without normalize_text: ${name}`, (t) => {
    t.ok(rows.length >= 20);
    for (const [language, text, plain, normalised = plain] of rows) {
      t.equal(said(text, language, false), plain, text);
      t.equal(said(text, language, true), normalised, `normalised: ${text}`);
    }
    t.end();
  });

t.test('a homograph sounds as its sentence asks', (t) => {
  t.ok(homographs.length >= 80);
  for (const [text, ipa] of homographs) {
    const words = wordsOf(text, 'en-US');
    t.ok(
      words.some((word) => word.ipa === ipa),
      `${text} ${ipa}`,
    );
  }
  t.end();
});

t.test('names and words that espeak-ng misreads sound as people say them', (t) => {
  for (const [language, rows] of Object.entries(misread))
    for (const row of rows) {
      const [text = '', ipa] = row.split(' ');
      t.equal(
        wordsOf(text, language)
          .map((word) => word.ipa)
          .join(' '),
        ipa,
        `${language}: ${text}`,
      );
    }
  t.end();
});

t.test('the s of an initialism sounds at the end of a clause, too', (t) => {
  for (const [text, ending] of [
    ['We sell DVDs.', /z$/],
    ["Here is NATO's.", /z$/],
    ['GPUs, LLMs', /z$/],
    ["It is UNICEF's.", /s$/],
  ] as const) {
    const words = wordsOf(text, 'en-US');
    t.match(words.at(-1)?.ipa, ending, text);
  }
  t.end();
});

t.test('no character is spoken as its code: another tenth of the common ones each day', (t) => {
  const seed = seedOfRun();
  t.strictSame(codesSpoken(espeak, 'en-US', commonRanges, 10, seed % 10), [], `seed ${seed}`);
  t.end();
});

t.test('the time to read a text is proportional to its length', async (t) => {
  for (const part of [
    '*',
    '~',
    '[1',
    '|',
    "'",
    'ooo',
    'A',
    '1️⃣',
    '´',
    '👩‍',
    '> ',
    'SHH ',
    'a*',
    "N'",
    '[1],',
    'ö̷',
  ]) {
    const attack = { name: part, text: (units: number) => part.repeat(units / part.length) };
    const slowness = await slownessOf(attack, 8_000, (text) => clausesOf(text, wordSpans(text)));
    t.equal(slowness, null, part);
  }
});
