/** What English reads, in the order in which the rules are tried. */
import { fileNames, networkAddresses } from '../electronic.js';
import type { LanguageRules } from '../tokens.js';
import { abbreviations, names } from './abbreviations.js';
import { codes, romanNumerals, telephone, verses } from './codes.js';
import { compounds } from './compounds.js';
import { cued } from './cued.js';
import { dates, times } from './dates.js';
import { measures } from './measures.js';
import { money } from './money.js';
import { fractions, inches, plainNumbers, ranges, signs } from './number-forms.js';
import { addressParts } from './places.js';
import { addressWords, serials } from './serial.js';
import { years } from './years.js';

export const english: LanguageRules = {
  rules: [
    ...[
      networkAddresses(addressWords),
      cued,
      verses,
      dates,
      telephone,
      times,
      money,
      inches,
      fractions,
      signs,
    ],
    ...[years, codes, measures, compounds, ranges, romanNumerals, addressParts, names, abbreviations],
    ...[plainNumbers, serials, fileNames(addressWords)],
  ],
  addressWords,
  touchable: /^[^\p{L}]|[\d+#$=²³]|\.\p{Ll}{2}|^\p{L}{1,9}(?:[.'/;–-]{1,2}\p{L}{0,5})?$/u,
};
