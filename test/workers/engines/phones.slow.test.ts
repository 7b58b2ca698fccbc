import t from 'tap';
import { limits } from '../../../src/limits.js';
import { Espeak } from '../../../workers/engines/g2p/espeak.js';
import {
  consonantNames,
  englishIpa,
  foreignIpa,
  pauseName,
  vowelNames,
} from '../../../workers/engines/syrinx/ipa.js';
import { allVoices, defaultVoice } from '../../../workers/engines/g2p/languages.js';
import { missingPhones } from '../../../workers/engines/syrinx/phones.js';
import { seededRandom } from '../../../scripts/rig/random.js';
import { loadPhones } from '../../support/voices.js';

const { phones, names } = await loadPhones();
const espeak = await Espeak.load(limits);
const nameOf = (id: number) => names[id] ?? '?';

const read = (group: string, voice = defaultVoice) => {
  const string = phones.read(group, voice);
  const levels = phones.spreadStress(string);
  return string.ids.map((id, i) => nameOf(id) + (levels[i] === 1 ? "'" : '')).join(' ');
};

t.test('the tables use only phones that the voice has', (t) => {
  const known = new Set<string>([...vowelNames, ...consonantNames, pauseName]);
  for (const table of [englishIpa, foreignIpa])
    for (const [symbol, spelling] of table)
      t.ok(
        spelling.every((name) => known.has(name)),
        symbol,
      );
  t.strictSame(missingPhones(names), []);
  t.strictSame(missingPhones(['pau', 'aa']).length, 39);
  t.end();
});

t.test('words that espeak-ng says with a wrong s have z', (t) => {
  const said = (word: string) => read(espeak.groups(word, defaultVoice).join('_')).replaceAll("'", '');
  t.equal(said('husband'), 'hh ah z b ax n d');
  t.equal(said("husband's"), 'hh ah z b ax n d z');
  t.equal(said('scissors'), 's ih z er z');
  for (const word of ['resistance', 'resistant', 'resistors']) t.match(said(word), /^r ih z ih s t /, word);
  for (const word of ['sister', 'assistant', 'recipe', 'bus', 'hustle', 'dissect'])
    t.notMatch(said(word), / z/, word);
  t.end();
});

t.test('words become phones, with the stress of their syllables', (t) => {
  t.equal(read('h_ə_l_ˈoʊ'), "hh ax l' ow'");
  t.equal(read('w_ˈɜː_l_d'), "w' er' l' d'");
  t.equal(read('d_ˈɑːɹ_k'), "d' aa' r' k'", 'a symbol of two sounds');
  t.equal(read('ɐ_n_d'), 'ax n d', 'a word with a schwa is not stressed');
  t.equal(read('ɪ_t'), "ih' t'", 'any other word of one syllable is');
  t.equal(read('s_t_ˈɔːɹ_m_i'), "s' t' ao' r' m iy", 'consonants are shared between two syllables');
  t.equal(read('b_ˈɑː_t_əl'), "b' aa' t ax l");
  t.equal(read(''), '');
  t.equal(read('_'), '');
  t.equal(read('s'), 's', 'no vowel, no stress');
  t.end();
});

t.test('a foreign sound becomes the nearest one that the voice has', (t) => {
  t.equal(read('n_i2_χ_ˈɑu2_', 'cmn'), "n iy hh' aw'");
  t.equal(read('tɕ_ˈiɛ5_n', 'cmn'), "ch' iy' eh n", 'tones are dropped');
  t.equal(read('uo3_uoɜ', 'cmn').includes('er'), false, 'the third tone is no vowel');
  t.equal(read('vʲ_ˈe_t', 'ru'), "v' eh' t'", 'softness is dropped');
  t.equal(read('(en)_tʃ_ˈaɪ', 'ja'), "ch' ay'", 'a switch of language is not spoken');
  t.equal(read('ʔ_a', 'ar'), "aa'");
  t.equal(read('ʔ', defaultVoice), 't', 'in English it is a t');
  t.end();
});

t.test('every sound that espeak-ng makes from any script has a phone', (t) => {
  const random = seededRandom(5);
  const samples: Readonly<Record<string, string>> = {
    ru: 'абвгдеёжзийклмнопрстуфхцчшщъыьэюя',
    uk: 'абвгґдеєжзиіїйклмнопрстуфхцчшщьюя',
    el: 'αβγδεζηθικλμνξοπρστυφχψωάέήίόύώ',
    ar: 'ابتثجحخدذرزسشصضطظعغفقكلمنهويةىءئؤ',
    fa: 'ابپتثجچحخدذرزژسشصضطظعغفقکگلمنوهی',
    ur: 'ابپتٹثجچحخدڈذرڑزژسشصضطظعغفقکگلمنوہھیے',
    he: 'אבגדהוזחטיכלמנסעפצקרשתםןףץך',
    hi: 'अआइईउऊएऐओऔकखगघचछजझटठडढणतथदधनपफबभमयरलवशषसहािीुूेैोौं',
    bn: 'অআইঈউঊএঐওঔকখগঘচছজঝটঠডঢণতথদধনপফবভমযরলশষসহািীুূেৈোৌ',
    cmn: '你好世界我是中国人天地日月水火山石田土大小上下左右東西南北',
    ja: 'あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもやゆよらりるれろわをん',
    ko: '안녕하세요세계한국어사람나라말글소리물불',
    th: 'กขคงจฉชซญดตถทธนบปผฝพฟภมยรลวศสหอะาิีุูเแโใไ',
    ka: 'აბგდევზთიკლმნოპჟრსტუფქღყშჩცძწჭხჯჰ',
    hy: 'աբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփքօֆ',
    am: 'ሀለሐመሠረሰሸቀበተቸኀነኘአከኸወዐዘዠየደጀገጠጨጰጸፀፈፐ',
    ta: 'அஆஇஈஉஊஎஏஐஒஓஔகஙசஞடணதநபமயரலவழளறனாிீுூெேைொோௌ',
    te: 'అఆఇఈఉఊఎఏఐఒఓఔకఖగఘచఛజఝటఠడఢణతథదధనపఫబభమయరలవశషసహాిీుూెేైొోౌ',
    'en-us': 'abcdefghijklmnopqrstuvwxyzéèüöäñçåøæœßłđþ',
  };
  for (const voice of allVoices) t.doesNotThrow(() => espeak.groups('1', voice), `espeak-ng has ${voice}`);
  for (const [voice, alphabet] of Object.entries(samples)) {
    const characters = Array.from(alphabet);
    let groups = 0;
    let silent = 0;
    for (let i = 0; i < 60; i++) {
      const text = Array.from({ length: 3 }, () => characters[Math.floor(random() * characters.length)]).join(
        '',
      );
      for (const group of espeak.groups(text, voice)) {
        groups++;
        for (const symbol of group.replace(/[ˈˌ]/g, '').split('_')) {
          // Language switches, single marks of tone or length, and sounds that only English speaks.
          if (symbol === '' || /^\(|^[0-9ɜː]+$|^[ʔʲʰ]+$/.test(symbol)) continue;
          if (phones.read(symbol, voice).ids.length === 0) {
            silent++;
            t.comment(`${voice}: no phone for ${symbol}`);
          }
        }
      }
    }
    t.ok(groups > 0, `${voice} reads its letters`);
    t.equal(silent, 0, `${voice}: every sound has a phone`);
  }
  t.end();
});
