/** Phonemes that people write, in signs that voices know. */

const ipaLetters = new Set(
  'abcdefghijklmnopqrstuvwxyzæçðøħŋœǀǁǂǃɐɑɒɓɔɕɖɗɘəɚɛɜɝɞɟɠɡɢɣɤɥɦɧɨɪɫɬɭɮɯɰɱɲɳɴɵɶɸɹɺɻɽɾʀʁʂʃʄʈʉʊʋʌʍʎʏʐʑʒʔʕʘʙʛʜʝʟʡʢβθχᵻᵊᵿ' +
    'ˈˌːˑ˞ʰʲʷˠˤⁿˡʼ ',
);

/** Signs that people type for others, and marks that do not change the sound. */
const sameSigns: Readonly<Record<string, string>> = {
  ...{ "'": 'ˈ', '’': 'ˈ', '´': 'ˈ', ':': 'ː', g: 'ɡ', ʤ: 'dʒ', ʧ: 'tʃ', ʦ: 'ts', ʣ: 'dz' },
  ...{ '.': '', '-': '', '‿': '', '|': '', '\u0361': '', '\u035c': '' },
};

/** @returns phonemes as espeak-ng writes them, or the first sign that is not a phoneme */
export const ipaOf = (text: string): { readonly ipa: string } | { readonly sign: string } => {
  let ipa = '';
  for (const character of text.normalize('NFD')) {
    const sign = sameSigns[character] ?? character;
    if (sign === character && !ipaLetters.has(sign) && !/[\u0300-\u036f]/.test(sign)) return { sign };
    ipa += sign;
  }
  return { ipa: ipa.normalize('NFC').replace(/\s+/g, ' ').trim() };
};
