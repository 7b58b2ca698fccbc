/** Forms of markup in the segments of a text. */
import t from 'tap';
import { MarkedForms } from '../../src/text/marked-forms.js';
import { ipaPlace, type MarkedText } from '../../src/text/replacements.js';
import { Segmenter } from '../../src/text/segments.js';

const bounds = { firstSegmentCharactersMax: 100, segmentCharactersMax: 200 };

/** The segments as they are spoken; phonemes between slashes. */
const spokenOf = (...pieces: readonly MarkedText[]): string[] => {
  const forms = new MarkedForms();
  const segmenter = new Segmenter(bounds);
  const segments = pieces.flatMap(({ text, form }) => {
    forms.push(text, form);
    return segmenter.push(text);
  });
  return [...segments, ...segmenter.flush()].map((segment) => {
    const { text, words } = segment;
    let spoken = '';
    let end = 0;
    for (const { first, last, spoken: form, ipa = '' } of forms.take(segment)) {
      spoken += text.slice(end, words[first]!.start) + form.replace(ipaPlace, `/${ipa}/`);
      end = words[last]!.end;
    }
    return spoken + text.slice(end);
  });
};
const sub = (text: string, spelling: string): MarkedText => ({ text, form: { spelling } });
const phoneme = (text: string, ipa: string): MarkedText => ({ text, form: { ipa } });

t.test('a part of a text is spoken in its form, with what stands around it', (t) => {
  t.strictSame(
    spokenOf(
      { text: 'The (' },
      sub('W3C', 'World Wide Web Consortium'),
      { text: ') and the ' },
      sub('k g', 'kilogram'),
      {
        text: '.',
      },
    ),
    ['The (World Wide Web Consortium) and the kilogram.'],
  );
  t.strictSame(spokenOf(phoneme('Anna', 'ˈænə'), { text: "'s " }, phoneme('tea', 'tˈiː'), { text: '!' }), [
    '/ˈænəz/ /tˈiː/!',
  ]);
  t.end();
});

t.test('each segment has its own forms', (t) => {
  const first = 'This is a first sentence, of which nothing is new. ';
  t.strictSame(
    spokenOf(
      { text: first },
      sub('SQL', 'sequel'),
      { text: ' is old, as a language goes. ' },
      sub('C', 'sea'),
    ),
    [first, 'sequel is old, as a language goes. ', 'sea'],
  );
  t.end();
});

t.test('words are spoken as written if a cut goes through their form, or if they have one already', (t) => {
  const long = 'One sentence that is long enough. Another one that is long enough, too. ';
  t.strictSame(spokenOf(sub(long, 'x'), sub('SQL', 'sequel')), [
    'One sentence that is long enough. ',
    'Another one that is long enough, too. ',
    'sequel',
  ]);
  t.strictSame(spokenOf(sub('a', 'ay'), { text: '-' }, sub('b', 'bee')), ['ay-b']);
  t.end();
});
