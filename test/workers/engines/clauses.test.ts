import t from 'tap';
import { ipaPlace } from '../../../src/text/replacements.js';
import { wordSpans } from '../../../src/text/words.js';
import { cleanText } from '../../../workers/engines/g2p/letters.js';
import { clausesOf } from '../../../workers/engines/g2p/clauses.js';

/** Clauses as `atom atom|terminal ending`; atoms of other voices than the English one are prefixed with the voice. */
const read = (text: string): string[] =>
  clausesOf(text, wordSpans(text)).map(({ atoms, terminal, ending }) => {
    const spoken = atoms.map((atom) =>
      atom.voice === 'en-us' ? atom.spoken : `${atom.voice}:${atom.spoken}`,
    );
    return `${spoken.join(' ')}|${terminal} ${ending}`;
  });

const spoken = (text: string) =>
  read(text)
    .map((clause) => clause.replace(/\|.*$/, ''))
    .join(', ');

t.test('punctuation makes pauses and tunes', (t) => {
  t.strictSame(read('One, two; three: four. Five? Six! Seven…'), [
    'One|0 clause',
    'two|0 clause',
    'three|0 clause',
    'four|1 sentence',
    'Five|2 sentence',
    'Six|3 sentence',
    'Seven|1 sentence',
  ]);
  t.strictSame(read('Really?! Yes (I think) so.'), [
    'Really|2 sentence',
    'Yes|0 clause',
    'I think|0 clause',
    'so|1 sentence',
  ]);
  t.strictSame(read('"Go," he said.'), ['Go|0 clause', 'he said|1 sentence']);
  t.strictSame(read('Wait — no, one—two'), [
    'Wait|0 clause',
    'no|0 clause',
    'one|0 clause',
    'two|1 sentence',
  ]);
  t.strictSame(read('First line\nsecond line\n\nNew paragraph\n'), [
    'First line|0 clause',
    'second line|1 sentence',
    'New paragraph|1 sentence',
  ]);
  t.strictSame(read('你好，世界。再见！'), [
    'cmn:你好|0 clause',
    'cmn:世界|1 sentence',
    'cmn:再见|3 sentence',
  ]);
  t.strictSame(read('هل أنت هنا؟'), ['ar:هل ar:أنت ar:هنا|2 sentence']);
  t.end();
});

t.test('full stops within a sentence make no pause', (t) => {
  t.strictSame(read('Dr. Smith lives at 10:30 a.m. on St. James St.'), [
    'Dr Smith livz at 10:30 a.m. on St James St|1 sentence',
  ]);
  t.strictSame(read('It cost 3.14 or 1,000 at example.com today.'), [
    'It cost 3.14 or 1,000 at example.com today|1 sentence',
  ]);
  t.strictSame(read('J. R. R. Tolkien, e.g. him'), ['J R R Tolkien|0 clause', 'e.g. him|1 sentence']);
  t.end();
});

t.test('a text without a mark at its end is a sentence', (t) => {
  t.strictSame(read('hello there'), ['hello there|1 sentence']);
  t.strictSame(read('hello there '), ['hello there|1 sentence']);
  t.strictSame(read('hello there, '), ['hello there|0 clause']);
  t.end();
});

t.test('a cut clause is read with the text beside it', (t) => {
  /** Brackets: another segment speaks it; `…`: the clause goes on beyond the known text. */
  const readCut = (before: string, text: string, after: string): string[] =>
    clausesOf(text, wordSpans(text), [], { before, after }).map(({ atoms, terminal, ending, continues }) => {
      const spoken = atoms.map((atom) => (atom.aside ? `(${atom.spoken})` : atom.spoken)).join(' ');
      return `${continues ? '… ' : ''}${spoken}|${terminal} ${ending ?? '…'}`;
    });
  t.strictSame(readCut('as we went ', 'to the sea ', 'that night'), [
    '… (as) (we) (went) to the sea (that) (night)|0 …',
  ]);
  t.strictSame(readCut('', 'to the sea ', 'that night, and'), ['to the sea (that) (night)|0 clause']);
  t.strictSame(readCut('so. as we went ', 'to the sea', ''), ['(as) (we) (went) to the sea|1 sentence']);
  t.strictSame(readCut('as we went ', '- to the sea! ', ''), ['to the sea|3 sentence']);
  t.strictSame(readCut('as we went ', 'home, to the sea) ', 'that night'), [
    '… (as) (we) (went) home|0 clause',
    'to the sea|0 clause',
  ]);
  t.strictSame(readCut('', 'and Dr. ', 'Who'), ['and Dr (Who)|0 …']);
  t.strictSame(readCut('', 'and I. ', 'Who'), ['and I|1 sentence']);
  t.strictSame(readCut('xxx', 'yyy', 'www'), ['… (xxx) yyy (www)|0 …']);
  t.strictSame(readCut('as we ', '"..."', 'went'), []);
  t.end();
});

t.test('a line has begun after a word that is given as phonemes', (t) => {
  const text = 'GIF + PNG';
  const [clause] = clausesOf(text, wordSpans(text), [{ first: 0, last: 0, spoken: ipaPlace, ipa: 'dʒɪf' }]);
  t.strictSame(
    clause?.atoms.map((atom) => atom.spoken),
    ['dʒɪf', '+', 'PNG'.replace(/./g, '$&.')],
  );
  t.end();
});

t.test('markup is spoken as words', (t) => {
  t.equal(spoken('<b>bold</b>'), 'less than b greater than bold less than / b greater than');
  t.equal(spoken('a < b > c'), 'a less than b greater than c');
  t.equal(spoken('&amp; &lt;b&gt;'), '& amp, & lt, b & gt');
  t.equal(spoken('[[h@loU]] x'), 'double bracket h @ loU double bracket x');
  t.equal(spoken('<speak>x</speak>'), 'less than speak greater than x less than / speak greater than');
  t.equal(spoken('**very** __good__ ~~not~~ # title'), 'very good not # title');
  for (const text of ['<b>', '&lt;', '[[a]]', '＜b＞', '<<<', '[[[', '&#60;x'])
    t.notMatch(spoken(text), /[<>[\]]/, 'espeak-ng never sees a sign of markup');
  t.end();
});

t.test('amounts, addresses and signs are read as people do', (t) => {
  t.equal(spoken('$5'), '5 dollars');
  t.equal(spoken('$1'), '1 dollar');
  t.equal(spoken('$5.99'), '5 dollars 99');
  t.equal(spoken('€2.5m and £1,000'), '2.5 million euros and 1,000 pounds');
  t.equal(spoken('$'), '$');
  t.equal(spoken('-5 well-known 5-6'), 'minus 5 well-known 5-6');
  t.equal(spoken('https://example.com/a?b=1'), 'https colon / / example.com / a question mark b = 1');
  t.equal(spoken('foo_bar don’t'), "foo bar don't");
  t.equal(spoken('😂😂😂 ok 😂'), '😂 ok 😂');
  t.end();
});

t.test('each script is read by its own voice', (t) => {
  t.equal(spoken('Привет мир'), 'ru:Привет ru:мир');
  t.equal(spoken('Привіт'), 'uk:Привіт');
  t.equal(spoken('مرحبا'), 'ar:مرحبا');
  t.equal(spoken('پدر'), 'fa:پدر');
  t.equal(
    spoken('लड़का நண்பர் สวัสดี 안녕 שלום Γειά გამარჯობა'),
    'hi:लड़का ta:நண்பர் th:สวัสดี ko:안녕 he:שלום el:Γειά ka:გამარჯობა',
  );
  t.equal(spoken('世界は'), 'cmn:世界 ja:は');
  t.equal(spoken('Приветhello'), 'ru:Привет hello', 'within a token, too');
  t.equal(spoken('café naïve Zürich Łódź'), 'café naïve Zürich Lódz', 'accents stay English');
  t.equal(spoken('2023 год 50%'), 'ru:2023 ru:год ru:50 ru:%', 'digits and signs follow their neighbours');
  t.equal(spoken('1984'), '1984');
  t.equal(spoken('ខ្មែរ ok'), 'Khmer ok', 'a script without a voice is named');
  t.end();
});

t.test('look-alike letters are read, characters without a sound are left out', (t) => {
  t.equal(spoken('ｈｅｌｌｏ 𝐇𝐢 Ⅷ ① ﬁne ½'), 'hello Hi 8 1 fine ½');
  t.equal(cleanText('a\u0000b\u0007\ud800c\ue000\ufffd\u00add'), 'abcd');
  t.equal(cleanText('e\u0301'), 'é');
  t.equal(cleanText('½, ⅕, 2⅑'), '½, 1/5, 2 1/9');
  t.strictSame(read(''), []);
  t.strictSame(read(' \t\n '), []);
  t.strictSame(read('... — "" ()'), []);
  t.strictSame(read('\u0000\u0001'), []);
  t.end();
});

t.test('every atom knows its word, text outside of the words has none', (t) => {
  const text = 'one two three';
  const [clause] = clausesOf(text, [{ start: 4, end: 7 }]);
  t.strictSame(
    clause?.atoms.map(({ spoken: atom, word }) => [atom, word]),
    [
      ['one', -1],
      ['two', 0],
      ['three', -1],
    ],
  );
  const long = clausesOf('9'.repeat(500), [{ start: 0, end: 500 }]);
  t.ok(long[0]!.atoms.every(({ spoken: atom, word }) => word === 0 && atom.length <= 48));
  t.equal(long[0]!.atoms.map(({ spoken: atom }) => atom).join(''), '9'.repeat(500));
  t.end();
});
