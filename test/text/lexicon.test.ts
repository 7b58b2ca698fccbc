import t from 'tap';
import { Lexicon, pronounced, type LexiconEntry } from '../../src/text/lexicon.js';
import { ipaPlace } from '../../src/text/replacements.js';
import { wordSpans } from '../../src/text/words.js';

const entry = (written: string, spelling: string, more: Partial<LexiconEntry> = {}): LexiconEntry => ({
  written,
  caseRule: 'smart',
  language: null,
  form: { spelling },
  ...more,
});

const lexiconOf = (...entries: readonly LexiconEntry[]): Lexicon => {
  const lexicon = new Lexicon();
  for (const one of entries) t.ok(lexicon.add(one));
  return lexicon;
};

/** The text as it is spoken; phonemes between slashes. */
const spokenOf = (lexicons: readonly Lexicon[], text: string, language = 'en-US'): string => {
  const words = wordSpans(text);
  let spoken = '';
  let end = 0;
  for (const { first, last, spoken: form, ipa } of pronounced(lexicons, text, words, language)) {
    spoken += text.slice(end, words[first]!.start) + form.replace(ipaPlace, `/${ipa ?? ''}/`);
    end = words[last]!.end;
  }
  return spoken + text.slice(end);
};

t.test('of two entries for a word, of which one is of a language, the later one is spoken', (t) => {
  const ofAll = entry('kettle', 'pot');
  const ofEnglish = entry('kettle', 'teapot', { language: 'en' });
  t.equal(spokenOf([lexiconOf(ofAll, ofEnglish)], 'kettle'), 'teapot');
  t.equal(spokenOf([lexiconOf(ofEnglish, ofAll)], 'kettle'), 'pot');
  t.end();
});

t.test('words and phrases are replaced, with the punctuation around them', (t) => {
  const lexicon = lexiconOf(
    entry('SQL', 'sequel'),
    entry('new york', 'the big apple'),
    entry('new york city', 'the city'),
    entry('C++', 'see plus plus'),
    entry('e.g.', 'for instance'),
    entry('Nguyen', '', { form: { ipa: 'ˈwɪn' } }),
  );
  t.equal(spokenOf([lexicon], 'Use "SQL", (SQL) or SQL.'), 'Use "sequel", (sequel) or sequel.');
  t.equal(spokenOf([lexicon], 'In New York City, not New York!'), 'In the city, not the big apple!');
  t.equal(spokenOf([lexicon], 'new, york'), 'new, york', 'a phrase has no comma inside');
  t.equal(spokenOf([lexicon], 'C++, e.g., is C++.'), 'see plus plus, for instance, is see plus plus.');
  t.equal(spokenOf([lexicon], 'Ms. Nguyen and Nguyen’s “Nguyen”'), 'Ms. /ˈwɪn/ and /ˈwɪnz/ “/ˈwɪn/”');
  t.equal(spokenOf([lexicon], 'SQL’s end'), "sequel's end");
  t.equal(spokenOf([lexicon], 'MySQL sqls'), 'MySQL sqls', 'only whole words');
  t.end();
});

t.test('the case rule decides which writing is meant', (t) => {
  const lexicon = lexiconOf(
    entry('tomato', 'tomahto'),
    entry('US', 'United States'),
    entry('Polish', 'from Poland'),
    entry('read', 'red', { caseRule: 'exact' }),
    entry('NASA', 'nassa', { caseRule: 'any' }),
  );
  t.equal(spokenOf([lexicon], 'Tomato TOMATO tomato'), 'tomahto tomahto tomahto');
  t.equal(spokenOf([lexicon], 'US told us'), 'United States told us');
  t.equal(spokenOf([lexicon], 'Polish polish'), 'from Poland polish');
  t.equal(spokenOf([lexicon], 'Read read'), 'Read red');
  t.equal(spokenOf([lexicon], 'nasa Nasa'), 'nassa nassa');
  t.end();
});

t.test('an entry holds for voices of its language', (t) => {
  const lexicon = lexiconOf(
    entry('chat', 'tchatt', { language: 'fr' }),
    entry('lift', 'elevator', { language: 'en-US' }),
  );
  t.equal(spokenOf([lexicon], 'chat lift', 'fr-FR'), 'tchatt lift');
  t.equal(spokenOf([lexicon], 'chat lift', 'en-US'), 'chat elevator');
  t.equal(spokenOf([lexicon], 'chat lift', 'en-GB'), 'chat lift');
  t.end();
});

t.test('the longest phrase wins, then the first lexicon, then the later entry', (t) => {
  const account = lexiconOf(entry('syrinx', 'of the account'));
  const service = lexiconOf(
    entry('syrinx', 'of the service'),
    entry('syrinx voice', 'both'),
    entry('pan', 'flute'),
  );
  t.equal(spokenOf([account, service], 'syrinx pan, syrinx voice'), 'of the account flute, both');
  t.ok(service.add(entry('pan', 'pipe')));
  t.equal(spokenOf([service], 'pan'), 'pipe');
  t.equal(service.size, 3);
  t.end();
});

t.test('a word has at most 16 variants', (t) => {
  const lexicon = new Lexicon();
  const added = Array.from({ length: 40 }, (_, i) =>
    lexicon.add(entry('a', 'b', { language: `en-${100 + i}` })),
  );
  t.equal(added.filter(Boolean).length, 16);
  t.end();
});

t.test('10,000 words cost no more than one; phrases cost a look-up where they begin', (t) => {
  const lexicons = {
    one: lexiconOf(entry('word0', 'x')),
    words: new Lexicon(),
    // A fifth of the words of the text begins a phrase.
    phrases: new Lexicon(),
  };
  for (let i = 0; i < 10_000; i++) {
    lexicons.words.add(entry(`word${i}`, 'x'));
    lexicons.phrases.add(entry(i % 2 === 0 ? `word${i}` : `the word ${i}`, 'x'));
  }
  const text = 'the quick brown fox and the word that nobody knows '.repeat(50);
  const words = wordSpans(text);
  const leastMs = { one: Infinity, words: Infinity, phrases: Infinity };
  let found = 0;
  // In turns, and briefly: on a busy machine some of the rounds run without a pause.
  for (let round = 0; round < 300; round++)
    for (const name of ['one', 'words', 'phrases'] as const) {
      const startedMs = performance.now();
      found += pronounced([lexicons[name]], text, words, 'en-US').length;
      leastMs[name] = Math.min(leastMs[name], performance.now() - startedMs);
    }
  t.equal(found, 0);
  const ratioOf = (name: 'words' | 'phrases') => leastMs[name] / leastMs.one;
  t.ok(ratioOf('words') < 1.25, `words: ${ratioOf('words').toFixed(2)} times as long as with one entry`);
  t.ok(ratioOf('phrases') < 2, `phrases: ${ratioOf('phrases').toFixed(2)} times as long`);
  t.end();
});
