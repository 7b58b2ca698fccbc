/** The symbols of Kokoro and KittenTTS, and how words of espeak-ng are written with them. */
import type { PhonemicWord } from '../g2p/speech.js';

/** Ids by symbol. */
export type Vocabulary = ReadonlyMap<string, number>;

/** Around the ids of every text. */
export const padId = 0;

/** Ids of consecutive symbols; a space leaves an id out. */
const numbered = (first: number, symbols: string): [string, number][] =>
  Array.from(symbols, (symbol, i): [string, number] => [symbol, first + i]).filter(
    ([symbol]) => symbol !== ' ',
  );

/** Kokoro 1.0. Models with a vocabulary use their own. */
export const kokoroVocabulary: Vocabulary = new Map([
  ...numbered(1, ';:,.!?  —…"()“”'),
  [' ', 16],
  ...numbered(17, '\u0303ʣʥʦʨᵝ\uab67AI     O Q ST  W Yᵊabcdef hijklmnopqrstuvwxyz'),
  ...numbered(69, 'ɑɐɒæ  βɔɕç ɖðʤə ɚɛɜ  ɟ ɡ      ɥ ɨɪʝ      ɯɰŋɳɲɴø ɸθœ  ɹ ɾɻ ʁɽʂʃʈʧ ʊʋ ʌɣɤ χʎ   ʒʔ'),
  ...numbered(156, 'ˈˌː   ʰ ʲ    ↓ →↗↘   ᵻ'),
]);

// The last index of a symbol counts: the list has the quotation mark and the apostrophe twice.
const kittenSymbols =
  '$;:,.!?¡¿—…"«»"" ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz' +
  'ɑɐɒæɓʙβɔɕçɗɖðʤəɘɚɛɜɝɞɟʄɡɠɢʛɦɧħɥʜɨɪʝɭɬɫɮʟɱɯɰŋɳɲɴøɵɸθœɶʘɹɺɾɻʀʁɽʂʃʈʧʉʊʋⱱʌɣɤʍχʎʏʑʐʒʔʡʕʢ' +
  "ǀǁǂǃˈˌːˑʼʴʰʱʲʷˠˤ˞↓↑→↗↘'\u0329'ᵻ";
export const kittenVocabulary: Vocabulary = new Map(Array.from(kittenSymbols, (symbol, id) => [symbol, id]));

/** A word as a model reads it: punctuation, sounds, punctuation. A space is between words. */
export interface Spelling {
  readonly before: string;
  readonly sounds: string;
  readonly after: string;
}

export type Speller = (word: PhonemicWord, language: string) => Spelling;

const englishFolds: readonly (readonly [RegExp, string])[] = [
  [/kəkˈ[oɔ]ːɹoʊ/g, 'kˈoʊkəɹoʊ'],
  [/kəkˈɔːɹəʊ/g, 'kˈəʊkəɹəʊ'],
  [/ʲ/g, 'j'],
  [/r/g, 'ɹ'],
  [/x/g, 'k'],
  [/ɬ/g, 'l'],
];

/** The other languages were trained with one symbol for each diphthong and affricate. */
const otherFolds: readonly (readonly [RegExp, string])[] = [
  [/aɪ/g, 'I'],
  [/aʊ/g, 'W'],
  [/dz/g, 'ʣ'],
  [/dʒ/g, 'ʤ'],
  [/eɪ/g, 'A'],
  [/oʊ/g, 'O'],
  [/əʊ/g, 'Q'],
  [/ts/g, 'ʦ'],
  [/tʃ/g, 'ʧ'],
  [/ɔɪ/g, 'Y'],
  [/-/g, ''],
];

export const spellForKokoro: Speller = ({ ipa, before, after }, language) => {
  const isEnglish = language.startsWith('en');
  let sounds = ipa;
  for (const [from, to] of isEnglish ? englishFolds : otherFolds) sounds = sounds.replace(from, to);
  if (language === 'en-US') sounds = sounds.replace(/(?<=nˈaɪn)ti(?!ː)/g, 'di');
  return { before, sounds, after };
};

const spaced = (text: string): string => (text.match(/[\p{L}\p{N}_]+|[^\p{L}\p{N}_\s]/gu) ?? []).join(' ');

/** A space separates every run of letters and every other sign, as in the training of the model. */
export const spellForKitten: Speller = ({ ipa, before, after }) => ({
  before: before === '' ? '' : `${spaced(before)} `,
  sounds: spaced(ipa),
  after: after === '' ? '' : ` ${spaced(after)}`,
});

/** Symbols that the model does not know are left out. */
export const idsOf = (text: string, vocabulary: Vocabulary): number[] =>
  Array.from(text).flatMap((symbol) => vocabulary.get(symbol) ?? []);
