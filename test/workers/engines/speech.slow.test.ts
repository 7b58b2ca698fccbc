import t from 'tap';
import { limits } from '../../../src/limits.js';
import { ipaPlace } from '../../../src/text/replacements.js';
import { wordSpans } from '../../../src/text/words.js';
import { languageNote } from '../../../workers/engines/g2p/languages.js';
import { createPhonemiser, phonemicWords } from '../../../workers/engines/g2p/speech.js';

const phonemiser = await createPhonemiser(limits);

const wordsOf = (text: string, language: string, rawPhonemes?: boolean) =>
  phonemicWords(phonemiser, { text, words: wordSpans(text) }, language, rawPhonemes);

/** Words with their punctuation, as models get them. */
const said = (text: string, language: string, rawPhonemes?: boolean): string =>
  wordsOf(text, language, rawPhonemes)
    .map(({ before, ipa, after }) => before + ipa + after)
    .join(' ');

t.test('each language is spoken by its own voice', (t) => {
  for (const [language, text, ipa] of [
    ['en-US', 'Hello, world!', 'həlˈoʊ, wˈɜːld!'],
    ['en-GB', 'Hello, world!', 'həlˈəʊ, wˈɜːld!'],
    ['de-DE', 'Schöne Straße.', 'ʃˈøːnə ʃtɾˈɑːsə.'],
    ['fr-FR', 'les enfants', 'le-z ɑ̃fˈɑ̃'],
    ['es-ES', '¿Qué tal?', '¿kˈe tˈal?'],
    ['it-IT', 'Ciao mondo', 'tʃˈao mˈondo'],
    ['pt-BR', 'Olá, mundo', 'olˈa, mˈũŋdʊ'],
    ['nl-NL', 'Hallo wereld', 'hˈɑloː ʋˈɪːrəlt'],
    ['pl-PL', 'Cześć świecie', 'tʃˈɛɕtɕ ɕfʲˈɛtɕɛ'],
    ['ru-RU', 'привет мир', 'prʲivʲˈet mʲˈir'],
    ['tr-TR', 'merhaba dünya', 'mˈɛrhaba dønjˈa'],
    ['hi-IN', 'नमस्ते दुनिया।', 'nəmˈʌsteː dˈʊnɪjˌaː.'],
    ['ar', 'مرحبا بالعالم؟', 'mrħbˈaː bilʕˈaːlam?'],
    ['cmn', '你好，世界。', 'ni2χˈɑu2, s.ˈi.5 tɕˈiɛ5.'],
    ['zh-CN', '你好，世界。', 'ni2χˈɑu2, s.ˈi.5 tɕˈiɛ5.'],
    ['ja-JP', 'こんにちは。', 'kˌo̞nnitɕˈihä.'],
    ['sv', 'Hej världen', 'hˈɛj vˈɛːrdən'],
    ['xx', 'Hello', 'həlˈoʊ'],
  ] as const)
    t.equal(said(text, language).normalize('NFD'), ipa.normalize('NFD'), `${language}: ${text}`);
  t.end();
});

t.test('text in another script is read in its own language', (t) => {
  t.equal(said('Hello Москва and 5', 'en-US'), 'həlˈoʊ mʌskvˈɑ ænd fˈaɪv');
  t.equal(said('Привет, Berlin 5', 'ru'), 'prʲivʲˈet, bɜːlˈɪn fˈaɪv');
  t.equal(said('5 Bücher', 'de'), 'fˈʏnf bˈyːçɜ');
  t.equal(said('7', 'de'), 'zˈiːbən');
  t.end();
});

t.test('sounds know the word that they belong to', (t) => {
  const placed = (text: string, language = 'en-US') =>
    wordsOf(text, language).map(({ word, ipa }) => `${word} ${ipa}`);
  t.strictSame(placed('It was a 1984 car.'), [
    '0 ɪt',
    '1 wʌz',
    '2 ɐ',
    '3 nˈaɪntiːnhˈʌndɹɪd',
    '3 ˈeɪɾi',
    '3 fˈɔːɹ',
    '4 kˈɑːɹ',
  ]);
  t.strictSame(placed('state-of-the-art & more'), ['0 stˈeɪɾʌvðɪˈɑːɹt', '1 ænd', '2 mˈɔːɹ']);
  t.strictSame(placed("l'homme qu'il voit", 'fr'), ['0 lˈɔm', '1 kil', '2 vwˈa']);
  t.strictSame(placed('你好世界', 'cmn'), ['0 ni2χˈɑu2', '1 s.ˈi.5', '1 tɕˈiɛ5']);
  t.end();
});

t.test('punctuation stays beside its word, as models know it', (t) => {
  const marks = (text: string, language = 'en-US') =>
    wordsOf(text, language).map(({ before, after }) => `${before}_${after}`);
  t.strictSame(marks('“Yes,” he said (twice)… Really?!'), ['“_,”', '_', '_', '(_)…', '_?!']);
  t.strictSame(marks('One — two; three: four.'), ['_—', '_;', '_:', '_.']);
  t.strictSame(marks('«Oui», dit-elle', 'fr'), ['«_»,', '_']);
  t.strictSame(marks('¡Hola! ¿Qué?', 'es'), ['¡_!', '¿_?']);
  t.strictSame(marks('Dr. Smith met J. R. Lee.'), ['_', '_', '_', '_', '_', '_.']);
  t.strictSame(marks('One\ntwo\n\nthree'), ['_,', '_.', '_']);
  t.strictSame(marks('... so'), ['…_']);
  t.end();
});

t.test('signs are read in the language of the voice', (t) => {
  t.equal(said('a < b', 'de'), 'ˈɑː klˈaɪnɜ als bˈeː');
  t.equal(said('-5 €', 'de'), 'mˈiːnʊs fˈʏnf ˈɔøroː');
  t.equal(said('a < b', 'fi'), 'ˈaː bˈeː');
  t.end();
});

t.test('phonemes in double brackets are spoken as they are where an engine asks for it', (t) => {
  const text = 'I am [[ bˈætmæn ]], not [[dʒˈoʊ kɚ]]!';
  t.strictSame(
    wordsOf(text, 'en-US', true).filter(({ isRaw }) => isRaw),
    [
      { word: 2, ipa: 'bˈætmæn', before: '', after: ',', joins: false, isRaw: true },
      { word: 6, ipa: 'dʒˈoʊ', before: '', after: '', joins: false, isRaw: true },
      { word: 6, ipa: 'kɚ', before: '', after: '!', joins: false, isRaw: true },
    ],
  );
  t.notOk(wordsOf(text, 'en-US').some(({ isRaw }) => isRaw));
  t.strictSame(wordsOf('[[]] [[ ]]', 'en-US', true), []);
  t.end();
});

t.test('a lexicon gives phonemes or another spelling for a word, which keeps its place', (t) => {
  const text = 'Ms. Nguyen, SQL.';
  const spoken = [
    { first: 1, last: 1, spoken: `${ipaPlace},`, ipa: 'ˈwɪn' },
    { first: 2, last: 2, spoken: 'sequel.' },
  ];
  const words = phonemicWords(phonemiser, { text, words: wordSpans(text), spoken }, 'en-US');
  t.strictSame(words.slice(1), [
    { word: 1, ipa: 'ˈwɪn', before: '', after: ',', joins: false, isRaw: true },
    { word: 2, ipa: 'sˈiːkwəl', before: '', after: '.', joins: false, isRaw: false },
  ]);
  t.end();
});

t.test('no text fails, and every word index exists', (t) => {
  for (const text of [
    '',
    ' ',
    '...',
    '[[',
    ']]',
    '[[[[a]]]]',
    '🙂🙂',
    '\ufffc',
    'a'.repeat(2_000),
    '世'.repeat(300),
    '9'.repeat(400),
  ]) {
    const words = wordSpans(text);
    for (const language of ['en-US', 'de', 'ja', 'ar'])
      for (const { word, ipa } of phonemicWords(phonemiser, { text, words }, language, true))
        t.ok(ipa !== '' && (word === null || word < words.length));
  }
  t.end();
});

t.test('the owner of a voice learns what is missing in its language', (t) => {
  for (const language of 'en-US en-GB de fr es it pt-BR nl pl ru tr hi'.split(' '))
    t.equal(languageNote(language), null, language);
  t.match(languageNote('ja-JP'), /incomplete in "ja-JP": .*kanji/);
  t.match(languageNote('ar'), /vowels/);
  t.match(languageNote('zh-CN'), /readings/);
  t.match(languageNote('tlh'), /no voice for "tlh": texts are read as English/);
  t.end();
});
