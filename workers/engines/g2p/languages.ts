/** Chooses the espeak-ng voice for a character: the language of the speaker for its script, else by the script alone. */

import { primaryLanguage } from '../../../src/text/language.js';

/** A voice of espeak-ng: the name of the file that describes it, in lower case. */
export type EspeakVoice = string;

/** Reads Latin letters in a language of another script, and the names of unread scripts. */
export const defaultVoice: EspeakVoice = 'en-us';

/** Stands for text that consists of phonemes already. */
export const ipaVoice: EspeakVoice = 'ipa';

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
const unreadScripts = (
  'Khmer Lao Tibetan Mongolian Thaana Syriac Yi Tifinagh Nko Coptic Gothic Balinese Javanese Sundanese Tagalog Samaritan ' +
  'Cuneiform Runic Ogham Vai'
).split(' ');

const tonalVoices: ReadonlySet<EspeakVoice> = new Set(['cmn', 'th', 'my', 'chr']);
/** Voices of scripts without spaces between words. */
const unspacedVoices: ReadonlySet<EspeakVoice> = new Set(['cmn', 'ja', 'th', 'my']);

export const isTonal = (voice: EspeakVoice): boolean => tonalVoices.has(voice);
export const isUnspaced = (voice: EspeakVoice): boolean => unspacedVoices.has(voice);

const scriptPattern = (script: string) => new RegExp(`^\\p{Script=${script}}`, 'u');
const readable = Object.entries(voiceOfScript).map(([script, voice]) => ({
  pattern: scriptPattern(script),
  reading: { kind: 'voice', script, voice } as const,
}));
const unread = unreadScripts.map((name) => ({ pattern: scriptPattern(name), name }));
/** Belongs to a script: not a digit or mark that several share. */
const letter = /^(?![\p{Script=Common}\p{Script=Inherited}])[\p{L}\p{M}\p{N}]/u;

export type ScriptReading =
  | { readonly kind: 'voice'; readonly script: string; readonly voice: EspeakVoice }
  /** Digits, marks, signs: read as their neighbours are. */
  | { readonly kind: 'any' }
  | { readonly kind: 'unread'; readonly name: string };

const any: ScriptReading = { kind: 'any' };
const latin: ScriptReading = { kind: 'voice', script: 'Latin', voice: defaultVoice };
const charactersCachedMax = 8_192;
const cache = new Map<string, ScriptReading>();

const look = (character: string): ScriptReading => {
  const script = readable.find(({ pattern }) => pattern.test(character));
  if (script !== undefined) return script.reading;
  const other = unread.find(({ pattern }) => pattern.test(character));
  if (other !== undefined) return { kind: 'unread', name: other.name };
  return letter.test(character) ? { kind: 'unread', name: '' } : any;
};

/** @param character one code point */
export const readingOf = (character: string): ScriptReading => {
  if (character < '\u0080') return /[a-z]/i.test(character) ? latin : any;
  let reading = cache.get(character);
  if (reading === undefined) {
    reading = look(character);
    if (cache.size >= charactersCachedMax) cache.clear();
    cache.set(character, reading);
  }
  return reading;
};

/** A language as a speaker of it reads: its own scripts in its own voice, other scripts in theirs. */
export interface SpokenLanguage {
  /** The primary subtag: `de`. */
  readonly code: string;
  /** Also reads digits and signs that have no letter beside them. */
  readonly voice: EspeakVoice;
  readonly scripts: readonly string[];
}

/** The scripts of each language that is not written in Latin letters only. */
const scripts = new Map<string, readonly string[]>();
for (const [script, voice] of Object.entries(voiceOfScript))
  scripts.set(voice, [...(scripts.get(voice) ?? []), script]);
for (const [names, codes] of [
  ['Cyrillic', 'uk be bg mk kk ky tt ba cv nog'],
  ['Cyrillic Latin', 'sr bs'],
  ['Greek', 'grc'],
  ['Arabic', 'fa ur sd ug'],
  ['Devanagari', 'mr ne kok'],
  ['Bengali', 'as bpy'],
  ['Han Bopomofo', 'yue hak'],
  ['Ethiopic', 'ti'],
  ['Armenian', 'hyw'],
  ['Myanmar', 'shn'],
] as const)
  for (const code of codes.split(' ')) scripts.set(code, names.split(' '));

/** espeak-ng's voices for BCP 47 tags that have another name there, or a usual variant. */
const aliases: Readonly<Record<string, EspeakVoice>> = {
  ...{
    en: 'en-us',
    'en-gb': 'en',
    'en-au': 'en',
    'en-nz': 'en',
    'en-ie': 'en',
    'en-za': 'en',
    'en-in': 'en',
  },
  ...{ pt: 'pt-br', 'pt-pt': 'pt', zh: 'cmn', 'zh-hk': 'yue', 'zh-yue': 'yue', no: 'nb', nn: 'nb', iw: 'he' },
  ...{ 'es-mx': 'es-419', 'es-us': 'es-419', 'es-ar': 'es-419', 'es-co': 'es-419', 'es-cl': 'es-419' },
  ...{ 'es-pe': 'es-419', fil: 'id' },
};

/** espeak-ng's voices, except those of constructed languages. */
export const allVoices: readonly EspeakVoice[] = (
  'af am an ar as az ba be bg bn bpy bs ca ca-ba ca-nw ca-va chr cmn cs cv cy da de el en en-029 en-gb-scotland ' +
  'en-gb-x-gbclan en-gb-x-gbcwmd en-gb-x-rp en-us en-us-nyc eo es es-419 et eu fa fi fo fr fr-be fr-ch ga gd gn ' +
  'grc gu hak haw he hi hr ht hu hy hyw ia id is it ja ka kaa kk kl kn ko kok ku ky la lb lt ltg lv mi mk ml mr ms ' +
  'mt my nb nci ne nl nog om or pa pap pl pt pt-br qu quc ro ru ru-cl ru-lv sd shn si sk sl smj sq sr sv sw ta te ' +
  'th ti tk tn tr tt ug uk ur uz vi vi-vn-x-central vi-vn-x-south yue'
).split(' ');
const voices: ReadonlySet<EspeakVoice> = new Set(allVoices);

/** @returns `null` if espeak-ng has no voice of the language */
const voiceOf = (language: string): EspeakVoice | null => {
  const parts = language.toLowerCase().replaceAll('_', '-').split('-');
  for (let length = parts.length; length > 0; length--) {
    const tag = parts.slice(0, length).join('-');
    const voice = Object.hasOwn(aliases, tag) ? aliases[tag]! : tag;
    if (voices.has(voice)) return voice;
  }
  return null;
};

/** @param language a BCP 47 tag, or the name of a voice of espeak-ng; one that espeak-ng lacks is read as English */
export const spokenLanguage = (language: string): SpokenLanguage => {
  const voice = voiceOf(language) ?? defaultVoice;
  const code = primaryLanguage(voice);
  return { code, voice, scripts: scripts.get(code) ?? ['Latin'] };
};

/** For speakers whose language is not known. */
export const english = spokenLanguage('en-US');

/** The voice that reads a character of a script. @param text the whole text: a letter that only one language has shows the language */
export const voiceFor = (
  { script, voice }: Extract<ScriptReading, { kind: 'voice' }>,
  language: SpokenLanguage,
  text: string,
): EspeakVoice => {
  if (language.scripts.includes(script)) return language.voice;
  if (script === 'Arabic') return /[ٹڈڑےںھ]/.test(text) ? 'ur' : /[پچژگکی]/.test(text) ? 'fa' : voice;
  if (script === 'Cyrillic') return /[іїєґ]/i.test(text) ? 'uk' : voice;
  return voice;
};

const incomplete: Readonly<Record<string, string>> = {
  ar: 'short vowels are not written, and espeak-ng adds few of them',
  fa: 'short vowels are not written, and espeak-ng adds few of them',
  he: 'vowels are not written, and espeak-ng adds few of them',
  ur: 'short vowels are not written, and espeak-ng adds few of them',
  ja: 'espeak-ng reads kana only; kanji are read as Mandarin',
  cmn: 'characters with several readings get the commonest one',
  yue: 'characters with several readings get the commonest one',
  th: 'espeak-ng does not find the words of a line',
  my: 'espeak-ng does not find the words of a line',
};
/** Spoken and listened to, or at least compared with a dictionary, by many users of espeak-ng. */
const proven = new Set(
  'en de fr es it pt nl pl ru tr hi sv nb da fi cs sk uk el hu ro bg hr sr sl ca id vi ko'.split(' '),
);

/** @returns what espeak-ng lacks in a language, for the owner of a voice; `null` if nothing is known to be missing */
export const languageNote = (language: string): string | null => {
  const voice = voiceOf(language);
  if (voice === null) return `espeak-ng has no voice for "${language}": texts are read as English`;
  const code = primaryLanguage(voice);
  const reason =
    incomplete[code] ?? (proven.has(code) ? null : 'espeak-ng speaks it by letters and few rules');
  return reason === null ? null : `pronunciation is incomplete in "${language}": ${reason}`;
};
