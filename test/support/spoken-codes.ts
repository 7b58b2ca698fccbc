/** Finds characters that espeak-ng would speak as their code: "letter one E C five". */
import { wordSpans } from '../../src/text/words.js';
import { clausesOf } from '../../workers/engines/g2p/clauses.js';
import type { Espeak } from '../../workers/engines/g2p/espeak.js';
import { ipaVoice, spokenLanguage } from '../../workers/engines/g2p/languages.js';

type Ranges = readonly (readonly [first: number, last: number])[];

/** Alphabets and signs to U+2BFF, Latin letters beyond, letters in boxes. */
export const commonRanges: Ranges = [
  [0x20, 0x2b_ff],
  [0xa7_20, 0xa7_ff],
  [0xab_30, 0xab_6f],
  [0x1_f1_00, 0x1_f1_ff],
];
/** The Basic Multilingual Plane, with some of the Chinese and Korean characters, mathematical letters, emoji. */
export const allRanges: Ranges = [
  [0x20, 0x33_ff],
  [0x4e_00, 0x4f_ff],
  [0xa0_00, 0xad_ff],
  [0xf9_00, 0xff_ff],
  [0x1_d4_00, 0x1_d7_ff],
  [0x1_f0_00, 0x1_fa_ff],
];

/** "Letter" and "symbol" with the digits of a code after them, in the languages of the tests; and a name in Braille. */
const code =
  /(?:l_[ˈˌ]?ɛ_ɾ_ɚ|s_[ˈˌ]?ɪ_m_b_əl|b_[ˈˌ]?uː_x_ʃ_t_ɑː_b_ə|z_[ˈˌ]?ʏ_m_b_oː_l|l_[ˈˌ]?ɛ_t_ʁ|s_ɛ̃_b_[ˈˌ]?ɔ_l|l_[ˈˌ]?e_t_ɾ_a|s_[ˈˌ]?i_m_b_o_l_o|b_ɹ_[ˈˌ]?eɪ_l)__/u;

/**
 * @param every tries one character of so many, from the first one on
 * @returns the characters that are spoken as codes, alone or after a letter
 */
export const codesSpoken = (
  espeak: Espeak,
  language: string,
  ranges: Ranges,
  every = 1,
  from = 0,
): string[] => {
  const spoken = spokenLanguage(language);
  const isCode = (text: string): boolean =>
    clausesOf(text, wordSpans(text), [], undefined, spoken).some(({ atoms }) =>
      atoms.some(
        (atom) => atom.voice !== ipaVoice && code.test(espeak.groups(atom.spoken, atom.voice).join(' ')),
      ),
    );
  const found: string[] = [];
  for (const [first, last] of ranges)
    for (let point = first + from; point <= last; point += every) {
      const character = String.fromCodePoint(point);
      if (/\p{C}/u.test(character)) continue;
      if (isCode(character) || isCode(`a${character}`)) found.push(`${character} ${point.toString(16)}`);
    }
  return found;
};
