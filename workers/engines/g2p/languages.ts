/** Chooses the espeak-ng voice for a character by its script. Accented Latin letters count as English. */

/** A voice of espeak-ng. */
export type EspeakVoice = string;

export const defaultVoice: EspeakVoice = 'en-us';

const voiceOfScript: Readonly<Record<string, EspeakVoice>> = {
  Latin: defaultVoice,
  Cyrillic: 'ru',
  Greek: 'el',
  Arabic: 'ar',
  Hebrew: 'he',
  Han: 'cmn',
  Bopomofo: 'cmn',
  Hiragana: 'ja',
  Katakana: 'ja',
  Hangul: 'ko',
  Devanagari: 'hi',
  Bengali: 'bn',
  Gurmukhi: 'pa',
  Gujarati: 'gu',
  Oriya: 'or',
  Tamil: 'ta',
  Telugu: 'te',
  Kannada: 'kn',
  Malayalam: 'ml',
  Sinhala: 'si',
  Thai: 'th',
  Myanmar: 'my',
  Georgian: 'ka',
  Ethiopic: 'am',
  Armenian: 'hy',
  Cherokee: 'chr',
};

/**
 * Scripts without an espeak-ng voice. espeak-ng would read the code point of each letter, a minute for one line, so a
 * run of them is announced by the script's name, as screen readers do.
 */
const unreadScripts = [
  ...[
    'Khmer',
    'Lao',
    'Tibetan',
    'Mongolian',
    'Thaana',
    'Syriac',
    'Yi',
    'Tifinagh',
    'Nko',
    'Coptic',
    'Gothic',
  ],
  ...['Balinese', 'Javanese', 'Sundanese', 'Tagalog', 'Samaritan', 'Cuneiform', 'Runic', 'Ogham', 'Vai'],
] as const;

const tonalVoices: ReadonlySet<EspeakVoice> = new Set(['cmn', 'th', 'my', 'chr']);
/** Voices of scripts without spaces between words. */
const unspacedVoices: ReadonlySet<EspeakVoice> = new Set(['cmn', 'ja', 'th', 'my']);

export const isTonal = (voice: EspeakVoice): boolean => tonalVoices.has(voice);
export const isUnspaced = (voice: EspeakVoice): boolean => unspacedVoices.has(voice);

const scriptPattern = (script: string) => new RegExp(`^\\p{Script=${script}}`, 'u');
const readable = Object.entries(voiceOfScript).map(([script, voice]) => ({
  pattern: scriptPattern(script),
  voice,
}));
const unread = unreadScripts.map((name) => ({ pattern: scriptPattern(name), name }));
const letter = /^\p{L}/u;

export type Reading =
  | { readonly kind: 'voice'; readonly voice: EspeakVoice }
  /** Digits, marks, signs: read as their neighbours are. */
  | { readonly kind: 'any' }
  | { readonly kind: 'unread'; readonly name: string };

const any: Reading = { kind: 'any' };
const english: Reading = { kind: 'voice', voice: defaultVoice };
const charactersCachedMax = 8_192;
const cache = new Map<string, Reading>();

const look = (character: string): Reading => {
  const script = readable.find(({ pattern }) => pattern.test(character));
  if (script !== undefined) return { kind: 'voice', voice: script.voice };
  const other = unread.find(({ pattern }) => pattern.test(character));
  if (other !== undefined) return { kind: 'unread', name: other.name };
  return letter.test(character) ? { kind: 'unread', name: '' } : any;
};

/** @param character one code point */
export const readingOf = (character: string): Reading => {
  if (character < '\u0080') return /[a-z]/i.test(character) ? english : any;
  let reading = cache.get(character);
  if (reading === undefined) {
    reading = look(character);
    if (cache.size >= charactersCachedMax) cache.clear();
    cache.set(character, reading);
  }
  return reading;
};

/** Chooses between languages that share a script, by letters that only one of them has. */
export const refineVoice = (voice: EspeakVoice, text: string): EspeakVoice => {
  if (voice === 'ar') return /[ٹڈڑےںھ]/.test(text) ? 'ur' : /[پچژگکی]/.test(text) ? 'fa' : 'ar';
  if (voice === 'ru') return /[іїєґ]/i.test(text) ? 'uk' : 'ru';
  return voice;
};

/** All voices that can read text. */
export const allVoices: readonly EspeakVoice[] = [
  ...new Set([...Object.values(voiceOfScript), 'ur', 'fa', 'uk']),
];
