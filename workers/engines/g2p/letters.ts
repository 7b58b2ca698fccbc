/** Cleans text for a phonemiser: removes what cannot be spoken, and writes letters that espeak-ng does not know as their base letters. */

/**
 * Characters without a glyph, except line breaks and tabs: control characters, lone surrogates, private and
 * unassigned code points, and the replacement character, from which espeak-ng concludes another encoding. Joiners
 * stay: they build letters and emoji. Braille, hexagrams, marks of Japanese and Vedic recitation and strokes of Han
 * characters have no sound.
 */
const unspeakable =
  /(?![\t\n\r\u200c\u200d])[\p{C}\ufffd\u0951-\u0954\u1cd0-\u1cff\u2800-\u28ff\u2e2f\u3006\u3031-\u3035\u303c\u309b\u309c\u3190\u3191\u31c0-\u31ef\u3248-\u324f\u327f\u4dc0-\u4dff]/gu;

/**
 * Full-width, circled, superscript, mathematical and presentation forms: espeak-ng would read their code points. It knows
 * symbols such as ½ and ⅓, so they stay.
 */
const compatibility =
  /[\p{Nl}\u00aa\u00ba\u2100-\u2152\u2155-\u215e\u2460-\u24ff\u3190-\u33ff\uf900-\ufdff\ufe70-\ufeff\uff00-\uffef]|[\u{1d400}-\u{1d7ff}\u{1f100}-\u{1f14f}]|[\ufb00-\ufb4f]|\p{Lm}/gu;

/** A fraction is apart from a number before it: ⅕ and 2⅕. */
const plainForm = (sign: string, at: number, text: string): string => {
  const form = sign.normalize('NFKC').replace('⁄', '/');
  return /\d\//.test(form) && /\d/.test(text[at - 1] ?? '') ? ` ${form}` : form;
};

/** Letters in circles and squares that no compatibility form replaces: 🅐 and 🅰. */
const boxed = /[\u{1f150}-\u{1f169}\u{1f170}-\u{1f189}]/gu;
const boxedLetter = (sign: string): string =>
  String.fromCharCode(65 + ((sign.codePointAt(0)! - 0x1f150) % 32));

/** Base letters of those that Unicode does not decompose: strokes, hooks, small capitals, turned letters. */
const bases = new Map<string, string>();
for (const entry of (
  'a:ᴀɐɑɒⱥᶏꬱ b:ʙƀɓƃᴃᵬᶀ c:ᴄƈȼɕↄꞓ d:ᴅđɖɗƌȡᵭᶁᶑᴆð e:ᴇəɛǝɘɚɝɞɜɇⱸᶒᴈ f:ꜰƒᵮᶂ g:ɢɡɠǥɣᶃᵷʛ h:ʜħɦⱨɥꜧʮʯ ' +
  'i:ɪıɨɩᵻᵼᴉᶖ j:ᴊȷɉʝɟʄ k:ᴋƙĸⱪʞᶄꝁꝃꝅ l:ʟłƚɫɬɭȴⱡꝇꝉᴌᶅ m:ᴍɱɯɰᵯᶆ n:ɴƞɲɳȵᵰᶇᴎ o:ᴏøɔɵⱺꝋꝍᴐᴑᴓɷ p:ᴘƥᵽᵱᶈꝑꝓꝕ ' +
  'q:ꞯɋʠꝗꝙ r:ʀɍɹɾɽɻɺɼɿʁᴙᴚᵲᵳᶉꝛ s:ꜱſʂȿᵴᶊʃƨ t:ᴛŧƭʈƫȶⱦᵵʇ u:ᴜʉʊᴝᵾᶙ v:ᴠʋʌⱱⱴᶌỽꝟ w:ᴡʍⱳƿ x:ᶍ y:ʏƴɏʎỿ ' +
  'z:ᴢƶȥɀʐʑⱬᵶᶎʒ ng:ŋ ae:ᴁᴂ oe:ɶᴔ th:ᵺ ts:ʦ dz:ʣ ss:ß hv:ƕ oi:ƣ tz:ꜩ aa:ꜳ ao:ꜵ au:ꜷ av:ꜹꜻ ay:ꜽ oo:ꝏ ' +
  'vy:ꝡ'
).split(' ')) {
  const [base = '', letters = ''] = entry.split(':');
  for (const letter of letters) bases.set(letter, base);
}

/** Languages that use no letters beyond U+00FF, except œ, which decomposes into nothing. */
const plainAlphabets = new Set(
  'af ca da de en es eu fi fr ga gd ht ia id is it ms nb nl pt sv sw'.split(' '),
);
/** Letters from U+0180 on, and ı, that espeak-ng knows in a language. */
const ownLetters: Readonly<Record<string, RegExp>> = {
  ...{ vi: /[ơưạ-ỹ]/iu, az: /[əı]/iu, ro: /[șț]/iu, gn: /[ẽỹ]/iu, cy: /[ẁẃẅỳ]/iu, lv: /ḩ/iu, ltg: /ḩ/iu },
  ...{ tr: /ı/u, tt: /ı/u, kaa: /ı/u },
  ...{ ga: /[ḃċḋḟġṁṗṡṫ]/iu, gd: /[ḃċḋḟġṁṗṡṫ]/iu },
};

/**
 * Marks that espeak-ng does not know, of Latin letters first of all: those of Russian stress stay. It reads a joiner between
 * letters that do not join as a space.
 */
const marks =
  /[\u0302-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20e2\u20e4-\u20ff\ufe20-\ufe2f]|(?<=^|\p{Script=Latin}|[^\p{L}\p{M}])[\u064b-\u0655\u0670\u3099\u309a\u30fc]+|(?<=[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}]\p{M}{0,4})[\u200c\u200d\u20e3]+/gu;
/** Modifiers of letters without a compatibility form; apostrophes before letters are read. */
const modifiers = /[\u02b9-\u02ff\u0374\u037a\u0385\u0640]/gu;
const apostrophe = /[\u02bb\u02bc](?=\p{L})/gu;

const baseOf = (letter: string, code: string): string => {
  if (letter < '\u0180' && !plainAlphabets.has(code) && !/[ıŉſ]/.test(letter)) return letter;
  if (letter === 'œ' || letter === 'Œ' || ownLetters[code]?.test(letter) === true) return letter;
  const plain = letter.normalize('NFKD').replace(/\p{M}/gu, '');
  let base = '';
  for (const part of plain) {
    const lower = part.toLowerCase();
    const known = part < '\u0100' && part !== 'ð' ? lower : (bases.get(lower) ?? '');
    base += part === lower ? known : known.toUpperCase();
  }
  return base;
};

const beyondLatin1 = /[^\0-\u00ff]/;
const latinBeyondLatin1 = /(?![\0-\u00ff])\p{Script=Latin}/gu;

/**
 * Removes from any string what cannot be spoken, and replaces look-alike letters.
 *
 * @param code of the language that reads Latin letters: `de`
 */
export const cleanText = (text: string, code = 'en'): string => {
  const clean = text.toWellFormed().normalize('NFC').replace(unspeakable, '');
  if (!beyondLatin1.test(clean)) return clean.replace(compatibility, plainForm);
  return clean
    .replace(compatibility, plainForm)
    .replace(boxed, boxedLetter)
    .replace(latinBeyondLatin1, (letter) => baseOf(letter, code))
    .replace(apostrophe, "'")
    .replace(modifiers, '')
    .replace(marks, '');
};
