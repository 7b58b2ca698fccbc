import { queryObjects } from 'node:v8';
import fc from 'fast-check';
import t from 'tap';
import { limits } from '../../../src/limits.js';
import { ipaPlace } from '../../../src/text/replacements.js';
import { wordSpans } from '../../../src/text/words.js';
import { alignWords, Pronouncer } from '../../../workers/engines/g2p/pronunciation.js';
import { clausesOf } from '../../../workers/engines/g2p/clauses.js';
import { Espeak } from '../../../workers/engines/g2p/espeak.js';
import { PhoneTrack } from '../../../workers/engines/syrinx/track.js';
import { check } from '../../fuzz/check.js';
import { loadPhones } from '../../support/voices.js';

const { phones, names } = await loadPhones();
const espeak = await Espeak.load(limits);
const pronouncer = new Pronouncer(espeak, phones, limits);

const trackMeans = { pronouncer, phones, bounds: limits };

const trackOf = (text: string) => {
  const words = wordSpans(text);
  const track = new PhoneTrack(clausesOf(text, words), words.length, trackMeans);
  while (!track.complete) track.advance();
  return { track, words };
};

/** Each token of a text with its phones; `|` where a word starts. */
const read = (text: string): Record<string, string> => {
  const { track, words } = trackOf(text);
  return Object.fromEntries(
    words.map(({ start, end }, word) => {
      const [first, last] = [track.wordFirst[word]!, track.wordLast[word]!];
      let spelling = '';
      for (let i = first; first >= 0 && i <= last; i++)
        spelling += `${track.wordStart[i] === 1 ? '|' : ' '}${names[track.ids[i]!]}`;
      return [text.slice(start, end), spelling.trim()];
    }),
  );
};

t.test('words that espeak-ng joins are separated', (t) => {
  t.match(read('It was a dark and stormy night, out of the blue.'), {
    was: '|w ah z',
    a: '|ax',
    dark: '|d aa r k',
    out: '|aw t',
    of: '|ax v',
    the: '|dh ax',
    'blue.': '|b l uw',
  });
  t.match(read('She was a part of the team that was in a hurry.'), {
    a: '|ax',
    part: '|p aa r t',
    of: /^\|a[hx] v$/,
  });
  t.end();
});

t.test('phonemes that a lexicon gives are the phones of their word, with its stress', (t) => {
  const text = 'Ms. Nguyen, welcome.';
  const words = wordSpans(text);
  const spoken = [{ first: 1, last: 1, spoken: `${ipaPlace},`, ipa: 'ˈwɪn ɪˈɡɛn' }];
  const clauses = clausesOf(text, words, spoken);
  t.strictSame(
    clauses.map(({ atoms, ending }) => [atoms.map((atom) => atom.word), ending]),
    [
      [[0, 1], 'clause'],
      [[2], 'sentence'],
    ],
  );
  const track = new PhoneTrack(clauses, words.length, trackMeans);
  while (!track.complete) track.advance();
  const [first, last] = [track.wordFirst[1]!, track.wordLast[1]!];
  const named = track.ids.slice(first, last + 1).map((id, i) => `${names[id]}${track.stress[first + i]}`);
  t.equal(named.join(' '), 'w1 ih1 n1 ih0 g1 eh1 n1');
  t.ok(track.wordFirst[2]! > last, 'the next word follows');
  t.end();
});

t.test('tokens of several words are kept together', (t) => {
  t.match(read('In 1984 it cost $5 a piece.'), {
    In: '|ih n',
    1984: /^\|n ay n .*\|ey t iy\|f ao r$/,
    it: '|ih t',
    cost: '|k aa s t',
    $5: '|f ay v|d aa l er z',
    'piece.': '|p iy s',
  });
  t.match(read('the state-of-the-art well-known thing'), {
    'well-known': /^\|w eh l n ow n$/,
    thing: '|th ih ng',
  });
  t.match(read('see https://example.com/a?b=1 now'), { see: '|s iy', now: '|n aw' });
  t.match(read('My iPhone and the FBI'), { iPhone: '|ay|f ow n', and: /n d$/, FBI: /b .*ay$/ });
  t.end();
});

t.test('emoji and signs take their names, punctuation nothing', (t) => {
  const words = read('hello 😀 world 🚀 — 50% & done');
  t.equal(words['hello'], '|hh ax l ow');
  t.match(words['😀'], /^\|g r ih n ih ng\|f ey s$/);
  t.equal(words['world'], '|w er l d');
  t.match(words['🚀'], /^\|r aa k/);
  t.equal(words['—'], '');
  t.match(words['50%'], /^\|f ih f t iy\|p er s eh n t$/);
  t.equal(words['&'], '|ae n d');
  t.end();
});

t.test('scripts without spaces and scripts from right to left are aligned', (t) => {
  const chinese = read('我是中国人。');
  t.ok(Object.keys(chinese).length > 1);
  for (const [word, spelling] of Object.entries(chinese)) t.not(spelling, '', word);
  const arabic = read('مرحبا بالعالم ٢٠٢٣ hello');
  for (const [word, spelling] of Object.entries(arabic)) t.not(spelling, '', word);
  t.equal(arabic['hello'], '|hh ax l ow');
  t.end();
});

t.test('a clause is phonemised in pieces, and no piece ends with a weak word', (t) => {
  const text =
    'and then we walked all the way to the end of a long road that nobody had ever seen before '.repeat(3);
  const words = wordSpans(text);
  const track = new PhoneTrack(clausesOf(text, words), words.length, trackMeans);
  let calls = 0;
  let soonest = 0;
  while (!track.complete) {
    track.advance();
    calls++;
    if (calls === 1) {
      soonest = track.length;
      t.ok(track.ready > 0 && track.ready < track.length, 'phones near an open end wait for what follows');
    }
  }
  t.ok(calls >= 3, `${calls} pieces`);
  t.ok(soonest < track.length / 2, 'first audio waits only for the first');
  const articles = words.flatMap(({ start, end }, word) => (text.slice(start, end) === 'a' ? [word] : []));
  for (const word of articles)
    t.equal(names[track.ids[track.wordFirst[word]!]!], 'ax', '"a" is an article here, not a letter');
  t.end();
});

t.test('alignment finds the borders of words in changed sounds', (t) => {
  const isVowel = (id: number) => id < 10;
  const align = (words: number[][], said: number[], groups: number[]) =>
    alignWords(
      words,
      said,
      said.map((_, i) => groups.includes(i)),
      isVowel,
    );
  t.strictSame(
    align(
      [
        [10, 1],
        [2, 11],
      ],
      [10, 1, 2, 11],
      [0, 2],
    ),
    [0, 2],
  );
  t.strictSame(
    align(
      [
        [10, 1],
        [2, 11],
      ],
      [10, 3, 4, 11],
      [0],
    ),
    [0, 2],
    'vowels changed, one group',
  );
  t.strictSame(align([[10, 1, 12], [], [2, 11]], [10, 1, 12, 2, 11], [0, 3]), [0, 3, 3], 'a silent word');
  t.strictSame(align([[10], [11]], [], []), [0, 0], 'nothing was said');
  t.strictSame(align([[]], [10, 11], [0]), [0]);
  t.end();
});

t.test('any words aligned with any sounds give borders in order', async (t) => {
  const phone = fc.integer({ min: 0, max: 20 });
  await check(
    t,
    fc.property(
      fc.array(fc.array(phone, { maxLength: 6 }), { minLength: 1, maxLength: 8 }),
      fc.array(phone, { maxLength: 30 }),
      (words, said) => {
        const starts = alignWords(
          words,
          said,
          said.map((id) => id % 3 === 0),
          (id) => id < 8,
        );
        const bounds = [...starts, said.length];
        return (
          starts.length === words.length &&
          bounds.every((at, i) => at >= (bounds[i - 1] ?? 0)) &&
          starts[0] === 0
        );
      },
    ),
    300,
  );
});

t.test('any text becomes phones, its words in order and without overlap', async (t) => {
  const glyphs = fc.string({ unit: 'binary', maxLength: 40 });
  const fragments = fc.constantFrom(
    '<b>',
    '</b>',
    '&amp;',
    '[[',
    ']]',
    '$5',
    '1984',
    'was a ',
    '\u0000',
    '😀',
    '你好',
    'مرحبا',
    ' ',
    '\n',
    '?',
    '—',
  );
  const text = fc.array(fc.oneof(glyphs, fragments), { maxLength: 8 }).map((parts) => parts.join(''));
  await check(
    t,
    fc.property(text, (any) => {
      const { track, words } = trackOf(any);
      let previous = -1;
      for (let word = 0; word < words.length; word++) {
        const [first, last] = [track.wordFirst[word]!, track.wordLast[word]!];
        if (first < 0) continue;
        if (first <= previous || last < first || last >= track.length) return false;
        previous = last;
      }
      return track.wordsReady === words.length && track.ready === track.length;
    }),
    120,
  );
});

t.test('espeak-ng keeps no memory of past calls', (t) => {
  const ask = (count: number): void => {
    for (let i = 0; i < count; i++) espeak.groups(`Number ${i} of many.`, 'en-us');
  };
  ask(100);
  const before = queryObjects(Object, { format: 'count' });
  ask(500);
  const more = queryObjects(Object, { format: 'count' }) - before;
  t.ok(more < 125, `${more} objects more`);
  t.end();
});
