/**
 * Maps espeak-ng's IPA to the phones of a General American voice: the nearest phone, or two.
 *
 * The voice was trained with the English rows: a change here needs a new training. The other rows are for foreign
 * scripts, which are spoken with an accent.
 */

export const vowelNames: readonly string[] = 'aa ae ah ao aw ax ay eh er ey ih iy ow oy uh uw'.split(' ');

export const consonantNames: readonly string[] =
  'b ch d dh f g hh jh k l m n ng p r s sh t th v w y z zh'.split(' ');

export const pauseName = 'pau';

const english: Readonly<Record<string, string>> = {
  oʊ: 'ow',
  aɪ: 'ay',
  aʊ: 'aw',
  ɔɪ: 'oy',
  eɪ: 'ey',
  iː: 'iy',
  i: 'iy',
  ɪ: 'ih',
  ᵻ: 'ih',
  ɛ: 'eh',
  æ: 'ae',
  ʌ: 'ah',
  ɐ: 'ax',
  ə: 'ax',
  ɜː: 'er',
  ɜ: 'er',
  ɚ: 'er',
  ɑː: 'aa',
  ɑ: 'aa',
  ɔː: 'ao',
  ɔ: 'aa',
  oː: 'ao',
  o: 'ow',
  ʊ: 'uh',
  uː: 'uw',
  u: 'uw',
  a: 'aa',
  e: 'eh',
  əl: 'ax l',
  n̩: 'ax n',
  ɾ: 't',
  ʔ: 't',
  ɹ: 'r',
  r: 'r',
  j: 'y',
  θ: 'th',
  ð: 'dh',
  ʃ: 'sh',
  ʒ: 'zh',
  tʃ: 'ch',
  dʒ: 'jh',
  ŋ: 'ng',
  ɡ: 'g',
  h: 'hh',
  x: 'hh',
  ɬ: 'l',
  b: 'b',
  d: 'd',
  f: 'f',
  k: 'k',
  l: 'l',
  m: 'm',
  n: 'n',
  p: 'p',
  s: 's',
  t: 't',
  v: 'v',
  w: 'w',
  z: 'z',
  iə: 'iy ax',
  aɪɚ: 'ay er',
  aɪə: 'ay ax',
};

const foreign: Readonly<Record<string, string>> = {
  // Vowels.
  ɒ: 'aa',
  ɵ: 'uh',
  œ: 'er',
  ø: 'er',
  y: 'ih',
  ɨ: 'ih',
  ʉ: 'uw',
  ɯ: 'uh',
  ɤ: 'ah',
  ɔʊ: 'ow',
  ai: 'ay',
  oɪ: 'oy',
  ei: 'ey',
  eː: 'ey',
  au: 'aw',
  ɑu: 'aw',
  ou: 'ow',
  ũ: 'uw n',
  ã: 'aa n',
  õ: 'ow n',
  ĩ: 'iy n',
  ẽ: 'eh n',
  ɛ̃: 'eh n',
  ɔ̃: 'ao n',
  ɪ̃: 'ih n',
  ʊ̃: 'uh n',
  ʌ̃: 'ah n',
  ɒ̃: 'aa n',
  l̩: 'ax l',
  m̩: 'ax m',
  r̩: 'er',
  ŋ̩: 'ax ng',
  // Consonants.
  β: 'v',
  ɸ: 'f',
  ʋ: 'v',
  c: 'k',
  ç: 'hh',
  ɟ: 'g',
  ɕ: 'sh',
  tɕ: 'ch',
  dʑ: 'jh',
  ʑ: 'zh',
  ʐ: 'r',
  ʂ: 'sh',
  's.': 'sh',
  'ts.': 'ch',
  'r.': 'd',
  ts: 't s',
  dz: 'd z',
  ɖ: 'd',
  ʈ: 't',
  ɭ: 'l',
  ɫ: 'l',
  ʎ: 'l y',
  ɲ: 'n y',
  ɳ: 'n',
  ɴ: 'ng',
  nɡ: 'ng',
  ɽ: 'r',
  ɻ: 'r',
  ʀ: 'r',
  ʁ: 'r',
  ɣ: 'g',
  χ: 'hh',
  ħ: 'hh',
  ʕ: 'aa',
  q: 'k',
  g: 'g',
  // Aspiration: English stops have it already, so only a separate sound is spoken.
  ʰχ: 'hh',
  kh: 'k',
  th: 't',
  ph: 'p',
  tʰ: 't',
  kʰ: 'k',
  pʰ: 'p',
};

/** Symbols that stand for another sound in English than elsewhere. */
const abroad: Readonly<Record<string, string>> = { ʔ: '', ɾ: 'r', ɔ: 'ao', o: 'ow', e: 'eh' };

type IpaTable = ReadonlyMap<string, readonly string[]>;

const table = (rows: Readonly<Record<string, string>>): IpaTable =>
  new Map(
    Object.entries(rows).map(([symbol, names]) => [
      symbol.normalize('NFD'),
      names === '' ? [] : names.split(' '),
    ]),
  );

/** Symbols in canonical decomposition, each with the names of its phones. */
export const englishIpa = table({ ...foreign, ...english });
export const foreignIpa = table({ ...foreign, ...english, ...abroad });

export const ipaLengthMax = Math.max(...[...foreignIpa.keys()].map((symbol) => symbol.length));
