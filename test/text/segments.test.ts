import t from 'tap';
import fc from 'fast-check';
import { limits } from '../../src/limits.js';
import { needsDictionary } from '../../src/text/characters.js';
import { type Segment, Segmenter } from '../../src/text/segments.js';
import { wordSpans } from '../../src/text/words.js';
import { anyText, check } from '../fuzz/check.js';

const cutBy = (segmenter: Segmenter, pieces: readonly string[]): Segment[] => [
  ...pieces.flatMap((piece) => segmenter.push(piece)),
  ...segmenter.end(),
];
const segmentsOf = (...pieces: string[]): Segment[] => cutBy(new Segmenter(limits), pieces);
/** As on a WebSocket. */
const earlySegmentsOf = (...pieces: string[]): Segment[] => cutBy(new Segmenter(limits, true), pieces);
const texts = (...pieces: string[]): string[] => segmentsOf(...pieces).map((segment) => segment.text);
const wordsOf = (segment: Segment): string[] =>
  segment.words.map(({ start, end }) => segment.text.slice(start, end));

/** The user's tokens, joined as an actor joins them. */
const tokensOf = (segments: readonly Segment[]): string[] => {
  const tokens: string[] = [];
  let continues = false;
  for (const segment of segments) {
    const [first, ...rest] = wordsOf(segment);
    if (first === undefined) continue;
    if (continues) tokens.push(`${tokens.pop() ?? ''}${first}`);
    else tokens.push(first);
    tokens.push(...rest);
    continues = segment.tokenContinues;
  }
  return tokens;
};

const codePoints = (text: string): number => Array.from(text).length;
const filler = (words: number): string => Array.from({ length: words }, () => 'word').join(' ');

/** Difficult text: marks, abbreviations, digits, closers, scripts, line breaks, surrogates, long runs. */
const provokingText = fc
  .array(
    fc.oneof(
      {
        weight: 4,
        arbitrary: fc.constantFrom(
          'Hello',
          'Dr',
          'e.g',
          'No',
          'U.S',
          'etc',
          'J',
          '3.14',
          'http://a.b/c',
          'it’s',
        ),
      },
      {
        weight: 5,
        arbitrary: fc.constantFrom('.', '! ', '? ', '. ', ', ', '; ', '... ', '… ', '." ', ') ', ' – '),
      },
      { weight: 4, arbitrary: fc.constantFrom(' ', '\n', '\n\n', '\r\n', '\t', '\u3000', '\u00a0', '   ') },
      {
        weight: 2,
        arbitrary: fc.constantFrom(
          '你好。',
          '世界，',
          'こんにちは！',
          '」',
          'สวัสดีครับ',
          'नमस्ते। ',
          'مرحبا؟ ',
          '안녕하세요. ',
        ),
      },
      { weight: 2, arbitrary: fc.constantFrom('😀', '👩‍👩‍👧‍👦', 'e\u0301', '🇩🇪', '\ud83d', '\ude00', '\u0000') },
      { weight: 1, arbitrary: fc.integer({ min: 1, max: 450 }).map((length) => 'a'.repeat(length)) },
      { weight: 1, arbitrary: fc.integer({ min: 1, max: 250 }).map((length) => '漢字'.repeat(length)) },
      { weight: 1, arbitrary: fc.integer({ min: 1, max: 60 }).map(filler) },
      { weight: 1, arbitrary: fc.integer({ min: 90, max: 300 }).map((length) => ' '.repeat(length)) },
      anyText(12),
    ),
    { maxLength: 40 },
  )
  .map((parts) => parts.join(''));

const splitAt = (text: string, cuts: readonly number[]): string[] => {
  const places = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
  return [0, ...places].map((place, i) => text.slice(place, places[i] ?? text.length));
};

t.test('the segments do not depend on how the text is split', async (t) => {
  await check(
    t,
    fc.property(provokingText, fc.array(fc.nat(), { maxLength: 30 }), (text, cuts) => {
      return [segmentsOf, earlySegmentsOf].every((cut) => {
        const whole = JSON.stringify(cut(text));
        return (
          JSON.stringify(cut(...splitAt(text, cuts))) === whole &&
          JSON.stringify(cut(...text.split(''))) === whole
        );
      });
    }),
    400,
  );
});

t.test('the segments cover the text, within their bounds, and cut no surrogate pair', async (t) => {
  await check(
    t,
    fc.property(provokingText, (text) => {
      return [segmentsOf, earlySegmentsOf].every((cut) => {
        const segments = cut(text);
        t.equal(segments.map((segment) => segment.text).join(''), text);
        let first = true;
        for (const { text: part, words, speak } of segments) {
          const max = first ? limits.firstSegmentCharactersMax : limits.segmentCharactersMax;
          if (codePoints(part) > max) return false;
          if (speak && words.length > 0) first = false;
        }
        const pairs = (of: string) => (of.match(/[\ud800-\udbff][\udc00-\udfff]/g) ?? []).length;
        return segments.reduce((sum, { text: part }) => sum + pairs(part), 0) === pairs(text);
      });
    }),
    400,
  );
});

t.test('the words of the segments are the tokens of the whole text', async (t) => {
  const spaced = provokingText.filter((text) => !needsDictionary(text));
  await check(
    t,
    fc.property(spaced, (text) => {
      const tokens = text.split(/\p{White_Space}+/u).filter((token) => token !== '');
      const expected = JSON.stringify(tokens);
      return [segmentsOf, earlySegmentsOf].every((cut) => JSON.stringify(tokensOf(cut(text))) === expected);
    }),
    400,
  );
  await check(
    t,
    fc.property(provokingText, (text) => {
      const expected = text.replace(/\p{White_Space}+/gu, '');
      return [segmentsOf, earlySegmentsOf].every((cut) => tokensOf(cut(text)).join('') === expected);
    }),
    400,
  );
});

t.test('a sentence becomes a segment with the white space after it', (t) => {
  const segmenter = new Segmenter(limits);
  t.strictSame(segmenter.push('Hello.'), []);
  t.strictSame(
    segmenter.push(' ').map((segment) => segment.text),
    ['Hello. '],
  );
  t.strictSame(segmenter.push('This is the second sentence!'), []);
  t.equal(segmenter.push('\nAnd')[0]?.text, 'This is the second sentence!\n');
  t.equal(segmenter.end()[0]?.text, 'And');
  t.end();
});

t.test('closing quotes and brackets stay with their sentence', (t) => {
  t.strictSame(texts('He asked her: "Why not?" Then he left (at last.) Nobody saw it happen.'), [
    'He asked her: "Why not?" ',
    'Then he left (at last.) ',
    'Nobody saw it happen.',
  ]);
  t.end();
});

t.test('full stops of abbreviations, initials, numbers and lists end no sentence', (t) => {
  for (const text of [
    'Dr. Smith met Mrs. Jones on St. James Street.',
    'We need fruit, e.g. apples, i.e. red ones, vs. pears.',
    'The U.S. Army and J. R. R. Tolkien, a.k.a. the professor.',
    'Pi is 3.14159 and not 3.2, see example.com/a.html now.',
    'See No. 5 and p. 12 of it.',
    'Bring tools, nails, etc. and come at 5 p.m. or later.',
    'Well... maybe not today… or ever.',
    '1. Preheat the oven',
  ]) {
    t.strictSame(texts(text), [text]);
  }
  t.end();
});

t.test('an abbreviation ends the sentence if the next letter is a capital', (t) => {
  t.strictSame(texts('We met at 5 p.m. The rain had stopped by then.'), [
    'We met at 5 p.m. ',
    'The rain had stopped by then.',
  ]);
  t.strictSame(texts('No. I would rather stay at home.'), ['No. ', 'I would rather stay at home.']);
  t.strictSame(texts('Well... This is the end of it.'), ['Well... ', 'This is the end of it.']);
  const first = 'All boats are back in the harbour. ';
  const second = 'The masts were lowered at 5 p.m. ';
  t.strictSame(texts(`${first}${second}`, 'The rain had stopped.'), [first, second, 'The rain had stopped.']);
  t.end();
});

t.test('very short sentences are joined, but the first of an utterance never waits', (t) => {
  t.strictSame(texts('Yes. OK. Sure. I will bring it to you tomorrow.'), [
    'Yes. ',
    'OK. Sure. I will bring it to you tomorrow.',
  ]);
  const segmenter = new Segmenter(limits);
  t.equal(segmenter.push('Yes. ').length, 1);
  t.equal(segmenter.push('OK. ').length, 0);
  t.equal(segmenter.flush()[0]?.text, 'OK. ');
  t.equal(segmenter.push('Sure. ').length, 1, 'a flush begins a new utterance');
  t.end();
});

t.test('a blank line ends a segment, a single line break does not', (t) => {
  t.strictSame(texts('A heading\n\nA line\nand another\r\n\r\nThe end'), [
    'A heading\n\n',
    'A line\nand another\r\n\r',
    '\nThe end',
  ]);
  t.end();
});

t.test('long sentences are cut at clauses, or at spaces', (t) => {
  const clause = `${filler(14)}, `;
  const long = clause.repeat(10);
  const segments = texts(long);
  t.ok(segments.slice(0, -1).every((text) => text.endsWith(', ')));
  t.ok(segments[0] !== undefined && segments[0].length <= limits.firstSegmentCharactersMax);
  const plain = texts(filler(200));
  t.ok(plain.every((text) => /^(word )*word ?$/.test(text)));
  t.ok(plain.slice(1, -1).every((text) => text.length > limits.segmentCharactersMax - 30));
  t.end();
});

t.test('the first segment of a text without punctuation is as short as its bound', (t) => {
  const [first] = segmentsOf(filler(1000));
  t.ok(first && first.text.length <= limits.firstSegmentCharactersMax && first.text.length > 70);
  t.end();
});

t.test('a token longer than a segment spans several and stays one word', (t) => {
  const token = 'x'.repeat(1000);
  const segments = segmentsOf(`Say ${token} again.`);
  t.ok(segments.length > 4);
  t.strictSame(tokensOf(segments), ['Say', token, 'again.']);
  t.equal(segments.at(-1)?.tokenContinues, false);
  t.strictSame(
    segments.slice(1).map(({ startsInToken = false }) => startsInToken),
    segments.slice(0, -1).map(({ tokenContinues }) => tokenContinues),
    'the next segment knows it',
  );
  t.notOk(segments[0]?.startsInToken);
  t.end();
});

t.test('a clause that is cut because of its length is known on both sides of the cut', (t) => {
  const joints = (text: string) => segmentsOf(text).map(({ before, after }) => [before, after]);
  const words = Array.from({ length: 60 }, (_, i) => `number${String(i)}`).join(' ');
  const [first, second, ...more] = segmentsOf(words);
  t.equal(first?.before, '');
  t.match(first?.after, /^(?:number\d+ ?){2,3}$/, 'whole words');
  t.ok(second?.text.startsWith(first?.after ?? '?'));
  t.match(second?.before, /^(?:number\d+ ){2,4}$/);
  t.ok(first?.text.endsWith(second?.before ?? '?'));
  t.equal(more.at(-1)?.after, '', 'the text ends there');

  const long = filler(14);
  t.strictSame(joints(`${long}, ${long}. ${long}; ${long}`).flat().join(''), '', 'marks end clauses');
  t.strictSame(
    joints(`${filler(19)}\n${filler(19)}`)
      .flat()
      .join(''),
    '',
    'and so do lines',
  );
  t.strictSame(
    joints(`${long} ${' '.repeat(60)}`)
      .flat()
      .join(''),
    '',
    'white space goes nowhere',
  );
  t.strictSame(joints(`${filler(16)} Dr. ${filler(9)}`)[0]?.[1], 'Dr. word word word ', 'as known');
  const [, inside] = joints(`${filler(15)} Dr. ${filler(60)}`);
  t.match(inside, ['word word word word word Dr. ', /^word/], 'the neighbour may hold a full stop');
  t.strictSame(
    joints(`${filler(19)} fine, no`)
      .flat()
      .join(''),
    '',
    'what ends at the bound is whole',
  );

  const [token] = segmentsOf('x'.repeat(300));
  t.strictSame([token?.text.length, token?.after], [80, 'x'.repeat(20)], 'a token without an end too');
  const [signs] = segmentsOf('漢'.repeat(100));
  t.ok(signs?.after.startsWith('漢'));
  t.end();
});

t.test('graphemes are not cut', (t) => {
  const family = '👩‍👩‍👧‍👦';
  for (const { text } of segmentsOf(family.repeat(100))) t.equal(text.replaceAll(family, ''), '');
  for (const { text } of segmentsOf(`a${'e\u0301'.repeat(300)}`)) t.notMatch(text, /^\u0301/);
  t.end();
});

t.test('Chinese and Japanese are cut at their own marks, and have words', (t) => {
  const segments = segmentsOf('今天天气很好。我们去公园散步吧！「好的，完全没有问题。」他说。');
  t.strictSame(
    segments.map((segment) => segment.text),
    ['今天天气很好。', '我们去公园散步吧！', '「好的，完全没有问题。」', '他说。'],
  );
  t.ok(segments.every((segment) => !segment.tokenContinues));
  t.ok(tokensOf(segments).length >= 10);
  t.ok(tokensOf(segments).includes('「好') || tokensOf(segments).includes('「好的，'));
  const unmarked = segmentsOf('漢字'.repeat(200));
  t.ok(unmarked.length > 5, 'a character counts as three letters');
  t.end();
});

t.test('Thai is cut between words', (t) => {
  const segments = segmentsOf('สวัสดีครับ'.repeat(60));
  t.ok(segments.length > 2);
  for (const { text } of segments) t.match(text, /^(?:สวัสดี|ครับ)/u);
  t.end();
});

t.test('only the end turns blank text into one segment without words', (t) => {
  const blank: Segment = { text: '', words: [], tokenContinues: false, before: '', after: '', speak: true };
  t.strictSame(segmentsOf(''), [blank]);
  t.strictSame(segmentsOf(' ', '\n', '\t'), [{ ...blank, text: ' \n\t' }]);
  t.strictSame(new Segmenter(limits).flush(), []);
  const segmenter = new Segmenter(limits);
  segmenter.push('Hello. ');
  t.strictSame(segmenter.end(), []);
  t.strictSame(
    segmentsOf('Hello.\n\n').map(({ text, speak }) => ({ text, speak })),
    [
      { text: 'Hello.\n', speak: true },
      { text: '\n', speak: false },
    ],
  );
  const spaces = segmentsOf(' '.repeat(10_000));
  t.equal(spaces.filter((segment) => segment.speak).length, 1);
  t.equal(spaces.map((segment) => segment.text).join('').length, 10_000);
  t.end();
});

t.test('white space before a text does not shorten its first segment', (t) => {
  t.strictSame(tokensOf(segmentsOf(`${' '.repeat(97)}Hello there.`)), ['Hello', 'there.']);
  t.ok(segmentsOf(`${' '.repeat(97)}Hello there.`).every((segment) => !segment.tokenContinues));
  t.end();
});

t.test(
  'text that arrives in pieces begins with a clause of three words, or with some of about seven',
  (t) => {
    const firstOf = (text: string) => earlySegmentsOf(text)[0]?.text;
    for (const [first, rest] of [
      ['When the parcel arrives, ', 'call us and we will send somebody.'],
      ['Let me see: ', 'it left on Friday.'],
      ['Of course, here you go, ', 'that is the one.'],
      ['He shouted “Stop it,” ', 'and then he ran away.'],
      ['First of all\n', 'second of all'],
      ['I checked the account ', 'that belongs to your brother and his wife.'],
      ['It looks like the flight ', 'to Denver is delayed by about an hour.'],
      // No article, preposition or pronoun is left alone, however late the place.
      ['And as for what it is that they would have wanted, ', 'nobody here can tell.'],
      // Sentences end as before.
      ['Yes. ', 'The refund was issued on Monday.'],
      ['Hi there! ', 'What can I do for you?'],
      ['It was 5 p.m. when the train ', 'came in from the old harbour station.'],
      // Names, numbers, dates and amounts stay whole.
      ['The order for Mrs. Anna Smith left ', 'yesterday with the train.'],
      ['Your ticket to New York City ', 'leaves tomorrow morning from here.'],
      ['The company raised $5 million ', 'from several large investors.'],
      ['Please call 555 123 4567 after the concert ', 'because nobody is there now.'],
      ['We will be open ', 'on May 5, 2025, and on the days after it.'],
      ['The bill is 3.5 million ', 'or so if nobody objects to it.'],
      // Scripts without spaces.
      ['我来看看，', '您的订单已经发出了。'],
      ['您好，我是客服，', '请问有什么可以帮您的？'],
      ['您的订单已经', '发出了我们会在明天下午之前送到您的办公室'],
    ] as const) {
      const whole = `${first}${rest}`;
      t.equal(firstOf(whole), first);
      t.equal(
        earlySegmentsOf(whole)
          .map(({ text }) => text)
          .join(''),
        whole,
      );
    }
    t.end();
  },
);

t.test('an early end knows the small words of the language', (t) => {
  for (const [language, first, rest] of [
    ['de', 'Das Paket kommt morgen ', 'nach dem Mittagessen bei Ihnen an.'],
    ['de', 'Ich habe gesehen ', 'dass unsere Nachbarn heute verreist sind.'],
    ['fr', 'Votre colis arrive demain ', 'dans notre agence de la gare.'],
    ['es', 'Su pedido llega mañana ', 'desde nuestro almacén central.'],
    ['it', 'Il vostro ordine arriva ', 'nella nostra sede di Milano.'],
    ['pt-BR', 'Seu pedido chega amanhã ', 'pelo correio da cidade.'],
    ['nl', 'Uw pakket komt morgen ', 'tussen tien en elf uur aan.'],
    // Without a list: after a long word, and not before a short one.
    ['pl', 'Twoja paczka przyjedzie ', 'jutro rano prosto z magazynu.'],
    ['ru', 'Ваша посылка приедет ', 'завтра утром прямо со склада.'],
    ['tr', 'Siparişiniz yarın sabah doğrudan ', 'depodan gelecek efendim.'],
  ] as const) {
    const segments = cutBy(new Segmenter(limits, true, language), [`${first}${rest}`]);
    t.equal(segments[0]?.text, first, language);
  }
  t.end();
});

t.test('an early end needs no more of the text than a word after it', (t) => {
  const segmenter = new Segmenter(limits, true);
  t.strictSame(segmenter.push('I checked the account that belongs'), []);
  const [first] = segmenter.push(' ');
  t.equal(first?.text, 'I checked the account ', 'not after "that"');
  t.equal(first?.after, 'that belongs ');
  const [second] = segmenter.push('to your brother. ');
  t.match(second, { before: 'I checked the account ', beforeIsWhole: true });
  t.end();
});

t.test('the next segments are short enough to arrive while the first is heard', (t) => {
  const lengths = earlySegmentsOf(filler(300)).map(({ text }) => text.length);
  let spoken = 0;
  for (const [i, length] of lengths.entries()) {
    if (i > 0) t.ok(length <= Math.max(68, 2 * spoken), `${String(length)} after ${String(spoken)}`);
    spoken += length;
  }
  t.ok(lengths[0]! < 40);
  t.ok(lengths.slice(5, -1).every((length) => length > limits.segmentCharactersMax - 30));
  t.end();
});

t.test('every utterance begins early, and only an utterance', (t) => {
  const segmenter = new Segmenter(limits, true);
  const text = 'It looks like the flight to Denver is delayed by about an hour. ';
  const once = segmenter.push(text).map((segment) => segment.text);
  t.equal(once.length, 2);
  t.strictSame(
    segmenter.push(text).map((segment) => segment.text),
    [text],
  );
  segmenter.flush();
  t.strictSame(
    segmenter.push(text).map((segment) => segment.text),
    once,
  );
  t.strictSame(texts(text), [text], 'a whole text is not cut early');
  t.end();
});

t.test('a long text is cut in linear time', (t) => {
  const size = 1 << 18;
  const inputs = [
    'a'.repeat(size),
    'é'.repeat(size / 2),
    'a b '.repeat(size / 4),
    '. '.repeat(size / 2),
    'He said so. '.repeat(size / 12),
    `x ${'y'.repeat(198)}`.repeat(size / 200),
    '漢'.repeat(size / 3),
    ' '.repeat(size),
    Array.from({ length: 10_000 }, (_, i) => `Line ${String(i)} of the text`).join('\n'),
  ];
  for (const input of inputs) {
    for (const cut of [segmentsOf, earlySegmentsOf])
      t.equal(
        cut(input).reduce((sum, { text }) => sum + text.length, 0),
        input.length,
      );
  }
  const segmenter = new Segmenter(limits);
  let length = 0;
  for (let i = 0; i < size; i++) for (const { text } of segmenter.push('a')) length += text.length;
  for (const { text } of segmenter.end()) length += text.length;
  t.equal(length, size, 'letter by letter');
  t.end();
});

t.test('wordSpans gives the tokens of a text with their punctuation', (t) => {
  const spansOf = (text: string) => wordSpans(text).map(({ start, end }) => text.slice(start, end));
  t.strictSame(spansOf('  Hello,\tworld!\u00a0<b>bold</b>\u2003😀 '), [
    'Hello,',
    'world!',
    '<b>bold</b>',
    '😀',
  ]);
  t.strictSame(spansOf(''), []);
  t.strictSame(spansOf('a\u0085b\u2028c\u3000d'), ['a', 'b', 'c', 'd']);
  t.strictSame(spansOf('你好，world（世界）！'), ['你好，', 'world', '（世界）！']);
  t.end();
});

t.test('the language of the voice decides what a full stop means', (t) => {
  const cut = (language: string, text: string): string[] =>
    cutBy(new Segmenter(limits, false, language), [text]).map((segment) => segment.text.trim());
  const german =
    'Wir sehen uns bald wieder. Am 3. Oktober kommt z. B. Herr Dr. Weiß bzw. Frau Klein aus der Bahnhofstr. 5 zu uns. Gut.';
  t.strictSame(cut('de-DE', german).slice(0, 2), [
    'Wir sehen uns bald wieder.',
    'Am 3. Oktober kommt z. B. Herr Dr. Weiß bzw. Frau Klein aus der Bahnhofstr. 5 zu uns.',
  ]);
  t.equal(
    cut('en-US', 'He came in third with 3. Others came in fourth with much more.')[0],
    'He came in third with 3.',
  );
  t.strictSame(
    cut('es-ES', '¿Qué tal está Ud. hoy por la mañana? ¡Muy bien, gracias a la Sra. López! Adiós.'),
    ['¿Qué tal está Ud. hoy por la mañana?', '¡Muy bien, gracias a la Sra. López!', 'Adiós.'],
  );
  t.strictSame(cut('fr-FR', 'Voici Mme. Martin du bd. Voltaire à Paris. Elle habite ici depuis longtemps.'), [
    'Voici Mme. Martin du bd. Voltaire à Paris.',
    'Elle habite ici depuis longtemps.',
  ]);
  t.strictSame(cut('ur', 'آج موسم بہت اچھا ہے۔ ہم باہر جائیں گے اور کھیلیں گے۔'), [
    'آج موسم بہت اچھا ہے۔',
    'ہم باہر جائیں گے اور کھیلیں گے۔',
  ]);
  t.strictSame(cut('hi-IN', 'आज मौसम बहुत अच्छा है। हम बाहर जाएँगे और खेलेंगे।'), [
    'आज मौसम बहुत अच्छा है।',
    'हम बाहर जाएँगे और खेलेंगे।',
  ]);
  t.strictSame(cut('ja-JP', '今日はとても良い天気ですね。散歩に行きましょう。'), [
    '今日はとても良い天気ですね。',
    '散歩に行きましょう。',
  ]);
  t.end();
});
