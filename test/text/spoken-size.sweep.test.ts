/** How long a text takes to say: the estimate beside real speech, and the division of what takes long. */
import t from 'tap';
import { settingsOf, noSpeakingDefaults } from '../../src/api/speech-settings.js';
import { limits } from '../../src/limits.js';
import { aheadMs, Utterances } from '../../src/speech/utterances.js';
import { Lexicon } from '../../src/text/lexicon.js';
import { letters, spokenMs } from '../../src/text/spoken-size.js';
import { createPhonemiser, phonemicWords } from '../../workers/engines/g2p/speech.js';
import { isNight, seedOfRun } from '../fuzz/check.js';
import { loadVoices, speak } from '../support/voices.js';

const { voiceId, ...settings } = settingsOf({ voiceId: 'wren', normalizeText: false }, noSpeakingDefaults);

/** Each is repeated to so many UTF-16 units. */
const UNITS = 30;
const kinds: Readonly<Record<string, string>> = {
  prose: 'She had been waiting at the station, and nobody knew when the train would come. ',
  German: 'Die Straßenbahn fährt heute leider nicht bis zum Hauptbahnhof. ',
  Russian: 'Быстрая коричневая лиса прыгает через ленивую собаку у реки. ',
  Greek: 'Η γρήγορη αλεπού πηδάει πάνω από το τεμπέλικο σκυλί. ',
  Hebrew: 'השועל החום המהיר קופץ מעל הכלב העצלן ',
  Arabic: 'الثعلب البني السريع يقفز فوق الكلب الكسول ',
  Thai: 'สุนัขจิ้งจอกสีน้ำตาลกระโดดข้ามสุนัขขี้เกียจ',
  Hindi: 'तेज़ भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है। ',
  Tamil: 'விரைவான பழுப்பு நரி சோம்பேறி நாயின் மேல் குதிக்கிறது ',
  Georgian: 'სწრაფი ყავისფერი მელა გადაახტება ზარმაც ძაღლს ',
  Amharic: 'ፈጣኑ ቡናማ ቀበሮ በሰነፉ ውሻ ላይ ይዘላል ',
  Korean: '빠른 갈색 여우가 게으른 개를 뛰어넘습니다. ',
  Japanese: 'これはとてもいいにほんごのぶんです。',
  Chinese: '我们今天在河边吃了面包和奶酪。',
  'rare Chinese characters': '𠀁𢑩𩡣',
  'letters one by one': 'A B C D E F G H ',
  initialisms: 'FBI BBC USA WWF ',
  'consonants without end': 'bcdfghjklmnpqrstvwxz',
  'mathematical letters': '𝐌𝐓𝐊𝐏𝐑',
  'full-width letters': 'ＭＴＫＰＲ',
  'letters of Greek as signs': 'Ω ψ Φ Δ ',
  'a ligature of a phrase': 'ﷺ',
  units: '㎏ ㎞ ㎎ ',
  'circled numbers': '⑦ ㊿ ⑳ ',
  digits: '77 1777 999999999 ',
  money: '$7.77 €40 $1,999.99 ',
  addresses: 'w.ww http://w.ww/w w@w.ww ',
  slashes: 'w/a/b/',
  signs: '+<>±§∞',
  'accents on signs': '9\u0301%\u0300',
  'points of Hebrew': 'ש\u05ba+\u05c4',
  'marks of Arabic': 'ب\u06db9\u08d4',
  'vowels of Arabic': 'الثَّعْلَبُ البُنِّيُّ السَّرِيعُ ',
  'vowels of Arabic beside other letters': 'я\u064b\u064c',
  'voicing marks of Japanese': 'か\u3099',
  'letters of Cyrillic that no voice knows': 'ѢѪӜӞ',
  'letters of Georgian and Ethiopic that no voice knows': 'ႠႡბቐቑ',
  'marks of Hindi without letters': '\u094d\u094d 9\u094d',
  'squares and dots': '■●■■',
  emoji: '😀🎉🚗🐶😂',
  flags: '🇬🇧🇩🇪🇫🇷',
  'scripts that change at each letter': 'aЖΩ',
  'scripts without a voice': '𐌰 ᚠ 𒀀 ',
  code: 'if (x<=3) { y = a[i]*2; } // ok ',
  'a table': '| one | two |\n|---|---|\n| 3 | 4 |\n',
};

const textOf = (kind: string): string => {
  const pattern = kinds[kind]!;
  return pattern.repeat(Math.ceil(UNITS / pattern.length));
};

const segmentsOf = (text: string, lexicons: readonly Lexicon[] = []) => {
  const utterances = new Utterances(
    limits,
    { framing: 'stream', settings: { ...settings, voiceId } },
    'en-US',
    () => lexicons,
  );
  utterances.append(text);
  utterances.end();
  const found = [];
  for (let cut = utterances.cut(); cut !== null; cut = utterances.cut()) found.push(...cut);
  return found;
};

t.test(
  'text of any kind takes half of what is expected to say, at least, and 1.6 times as long at most',
  async (t) => {
    const engine = await loadVoices();
    t.comment(`seed ${seedOfRun()}`);
    for (const [place, kind] of Object.keys(kinds).entries()) {
      // All of them by night, and another quarter each day.
      if (!isNight && (place - seedOfRun()) % 4 !== 0) continue;
      const text = textOf(kind);
      let madeMs = 0;
      let expectedMs = 0;
      for (const segment of segmentsOf(text)) {
        const { pcm } = await speak(engine, segment.request.text, { ...segment.request, seed: 1 });
        madeMs += pcm.length / 24;
        expectedMs += segment.expectedMs;
      }
      const aheadOf = aheadMs([{ text }], { ...settings, voiceId }, 'en-US', []);
      const [cut, ahead] = [madeMs / expectedMs, madeMs / aheadOf];
      const figures = `${kind}: ${cut.toFixed(2)} of what was cut, ${ahead.toFixed(2)} of what was admitted`;
      t.ok(
        [cut, ahead].every((ratio) => ratio >= 0.5 && ratio <= 1.6),
        figures,
      );
    }
  },
);

const MS_PER_PHONE = 78;

t.test(
  'no sign or mark takes more than three times as long as is expected, alone, in a row or beside letters',
  async (t) => {
    t.comment(`seed ${seedOfRun()}`);
    const phonemiser = await createPhonemiser(limits);
    const slower: string[] = [];
    const check = (text: string): void => {
      let [madeMs, expectedMs] = [0, 0];
      for (const { expectedMs: ms, request } of segmentsOf(text)) {
        expectedMs += ms;
        for (const { ipa } of phonemicWords(phonemiser, request, 'en-US'))
          madeMs += MS_PER_PHONE * ipa.replace(/[^\p{L}]|[ʲʰˈˌː]/gu, '').length;
      }
      if (madeMs > 500 && madeMs > 3.1 * expectedMs)
        slower.push(`${JSON.stringify(text)}: ${madeMs.toFixed()} of ${expectedMs.toFixed()} ms`);
    };
    for (let codePoint = 0x21; codePoint < 0x1fc00; codePoint++) {
      const character = String.fromCodePoint(codePoint);
      if (!/[\p{S}\p{M}\p{Lm}]/u.test(character)) continue;
      // All of them by night, and another eighth each day.
      if (!isNight && (codePoint - seedOfRun()) % 8 !== 0) continue;
      for (const text of [character, `${character} a`]) check(text.repeat(4));
    }
    for (const text of [
      '©®',
      '[[ ',
      ']] ',
      '🏼🏾',
      'a🏼 ',
      '👍🏽🏼',
      'Í\u200d',
      'λ',
      'ь',
      'ぁ',
      '\u1133',
      '᭡',
      'ჹ',
      'Ᏺ',
    ])
      check(text.repeat(Math.ceil(UNITS / text.length)));
    t.strictSame(slower, []);
  },
);

t.test('a line of signs is no long speech, and marks that join letters take no time', (t) => {
  for (const line of ['='.repeat(80), '-'.repeat(80), '#'.repeat(80), '*'.repeat(80)])
    t.ok(spokenMs(letters(line)) < 2_500, line.slice(0, 3));
  t.equal(letters('don’t'), 4);
  t.equal(letters('a\u0301b'), letters('áb'));
  t.ok(letters('👍🏽👍🏽') < 2 * letters('👍') + 1, 'skin tones are not said');
  t.end();
});

t.test('a word that takes long to say is divided, and stays one word', (t) => {
  for (const word of ['ﷺ'.repeat(199), '9'.repeat(180), 'w/a/b/'.repeat(30), '😀🎉'.repeat(40)]) {
    const text = `So ${word} it is.`;
    const segments = segmentsOf(text);
    t.equal(segments.map(({ request }) => request.text).join(''), text);
    for (const { expectedMs, request } of segments) {
      const { text: part, words } = request;
      t.ok(expectedMs <= spokenMs(limits.spokenLettersMax + 1), `${expectedMs} ms`);
      t.notOk(/^[\udc00-\udfff]|[\ud800-\udbff]$/.test(part), 'no character is cut');
      for (const { start, end } of words) t.ok(start >= 0 && start < end && end <= part.length);
    }
    const tokens = segments.reduce(
      (count, { request, tokenContinues }) => count + request.words.length - (tokenContinues ? 1 : 0),
      0,
    );
    t.equal(tokens, 4, 'so many words are reported');
  }
  t.end();
});

t.test('a word whose spoken form takes too long to say is spoken as it is written', (t) => {
  const lexicon = new Lexicon();
  const add = (written: string, spelling: string) =>
    lexicon.add({ written, caseRule: 'smart', language: null, form: { spelling } });
  add('kettle', '9'.repeat(199));
  add('tea', 'T. E. A.');
  const [first] = segmentsOf('A kettle of tea.', [lexicon]);
  t.equal(first!.request.spoken?.length, 1);
  t.match(first!.request.spoken, [{ first: 3 }]);
  t.end();
});
