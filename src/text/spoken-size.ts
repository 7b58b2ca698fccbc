/**
 * How long a text takes to say. An estimate: the one by which text counts, until its speech is made. It looks up each
 * character in a table, and takes less than 1 us for 100 of them. `test/text/spoken-size.sweep.test.ts` compares it with speech.
 */
import { WHITE, classOf } from './characters.js';
import type { Replacement } from './replacements.js';
import type { Span } from './words.js';

interface Spoken {
  readonly text: string;
  readonly words: readonly Span[];
  readonly spoken?: readonly Replacement[] | undefined;
}

/** Speech of about 14 letters a second. */
const MS_PER_LETTER = 70;

interface Script {
  readonly pattern: RegExp;
  /** How many letters one of it counts as in a word, and by itself. */
  readonly each: number;
  readonly alone: number;
  /** A word without a vowel is spelled. */
  readonly isSpelled: boolean;
}

const scriptOf = (names: string, each: number, alone: number, isSpelled = false): Script => ({
  pattern: new RegExp(`[${names.replaceAll(/\w+/g, '\\p{Script=$&}').replaceAll(' ', '')}]`, 'u'),
  ...{ each, alone, isSpelled },
});

const latin = scriptOf('Latin', 1, 3.5, true);
const arabic = scriptOf('Arabic', 1.5, 6);
/** Measured with espeak-ng, as all figures below. */
const scripts: readonly Script[] = [
  latin,
  scriptOf('Cyrillic', 1, 3.5, true),
  scriptOf('Greek', 1.25, 6, true),
  scriptOf('Hebrew', 1, 5),
  arabic,
  scriptOf('Thai Ethiopic Oriya', 2, 2.5),
  scriptOf('Devanagari Bengali Gurmukhi Gujarati Tamil Telugu Kannada Malayalam Sinhala', 1.75, 2.5),
  scriptOf('Georgian Armenian', 1.75, 2.5),
  scriptOf('Khmer Lao Myanmar', 1.5, 4),
  scriptOf('Han', 4, 4),
  scriptOf('Hangul Bopomofo', 3.5, 3.5),
  scriptOf('Hiragana Katakana', 2.5, 2.5),
];
/** A voice says the name of any other script, once for a run of letters, and for each sign. */
const otherScript: Script = { pattern: /[\p{L}\p{M}]/u, each: 0.25, alone: 9, isSpelled: false };
const otherSign = /\p{S}/u;
const common = /[\p{Script=Common}\p{Script=Inherited}]/u;

/** Each letter of a word that is spelled, and of short capitals, some of which are; a "w" among them takes so much more. */
const SPELLED = 3.5;
const CAPITALS = 2.5;
const MORE_OF_W = 3.5;
const shortMax = 4;
/** So many consonants in a row are spelled within a word, too. */
const clusterMin = 5;
/** A digit in a sign, such as ⑤. */
const DIGIT_OF_SIGN = 5;
/** A mark, and a sign of Russian that softens or hardens, is named without a letter, and when it is repeated. */
const MARK_ALONE = 10;
/** A sign that is repeated. */
const AGAIN = 0.3;

/** How a character that is no letter counts. */
type SignKind =
  /** By itself. */
  | 'always'
  /** Not when it is repeated: a line of them is silent, and so is the second of two equal emoji. */
  | 'once'
  /** Between two letters or digits; elsewhere it is a mark. */
  | 'inside'
  /** When it is doubled. */
  | 'doubled'
  /** It belongs to the letters around it, of its script if it has one, and is said only where there are none. */
  | 'joins';

interface Sound {
  /** How many letters it counts as; of a letter, how many it stands for. */
  readonly size: number;
  readonly kind: SignKind | 'letter';
  readonly script: Script | null;
  readonly hasVowel: boolean;
  readonly isCapital: boolean;
  readonly isW: boolean;
  readonly isMark: boolean;
}

const signs: readonly (readonly [RegExp, SignKind, number])[] = [
  // A voice says the names of these accents.
  [/[\u0300\u0301\u0340\u0341\u0344]/u, 'joins', 7],
  [/['’\p{C}\p{Script=Inherited}]/u, 'joins', 0],
  [/[\u{1f3fb}-\u{1f3ff}]/u, 'always', 0],
  [/[[\]]/, 'doubled', 12],
  [/[¨¦¤♭]/, 'always', 12],
  [/\*/, 'inside', 9],
  [/\?/, 'inside', 12],
  [/=/, 'once', 7],
  [/[/%\\]/, 'once', 5.5],
  [/[#&]/, 'once', 3],
  [/@/, 'once', 2],
  [/\|/, 'always', 2.5],
  [/±/, 'always', 12],
  [/[■●℞]/u, 'always', 9],
  [/~/, 'inside', 7],
  [/[\u2190-\u21ff]/, 'always', 6],
  [/[\p{Sm}§¶°^]/u, 'always', 7],
  [/\p{Sc}/u, 'always', 5.5],
  [/[0-9]/, 'always', 8],
  [/[\p{Nd}\p{Nl}]/u, 'always', 5],
  [/\p{RI}/u, 'always', 6],
  [/[\u{1f150}-\u{1f169}\u{1f170}-\u{1f189}]/u, 'always', 3.5],
  [/!/, 'once', 3],
];

/**
 * Letters, marks and numbers that a voice of their script does not know: it says their names, as "Hebrew letter five B four",
 * also within a word. Measured beside other letters, and in a row.
 */
const namedRanges = `
  370-373 376-377 37b-37d 37f 3cf 3d3-3d4 3d7-3d9 3db 3dd 3df 3e1 3f3 3f7-3f8 3fb-400 405 40a 40d 450 455 45a 45d
  460-481 48a-48f 492-529 52b 52d 52f 559 560 588 5ba 5bc-5bd 5bf 5c4-5c5 5ef-5f2 60b 613-61a 620 63b-63f 653 656-65f 664
  668 66e-66f 671-678 67a-67d 67f-685 687 689-690 692-697 699-6a8 6aa-6ae 6b0-6b9 6bb-6bd 6bf-6cb 6cd-6d1 6d3 6d5-6dc
  6e2-6e8 6ed-6ef 6f4 6f8 6fa-6fc 6ff 750-77f 8a0-8b4 8b6-8bd 8d4-8df 8e3-8e9 8f0-900 904 93a-93b 94e-94f 955-957
  971-980 9bd 9d7 9f0-9f1 9fc a01 a51 a74-a75 af9-afc b3d b55-b57 b71 bef bf8 c00 c04 c34 c3c-c3d c5a c5c-c5d c62-c63
  c80-c81 c8c cbd cdc-cdd ce1-ce3 cf1-cf2 d00-d01 d04 d0c d29 d3a-d3c d4f d54-d56 d58-d5f d62-d63 d6f d81 de6-de9 e26
  e3a e4d 1033-1034 1050-1090 1097 109a-109d 10a0-10c5 10c7 10cd 10f8-10fa 10fd-10ff 1113-1160 1176-11a7 11c3-11ff 1207
  1247 1250-1256 1258 125a-125d 1287 12af 12cf 12ef 130f 131f 1347 1380-138f 13f0-13f5 13f8-13fd 1c80-1c88 1cb8-1cba
  1cbd-1cbf 1d26-1d2b 1fc0-1fc1 2d00-2d25 2d27 2d2d 2d80-2d96 2da0-2da6 2da8-2dae 2db0-2db6 2db8-2dbe 2dc0-2dc6
  2dc8-2dce 2dd0-2dd6 2dd8-2dde 2de0-2dff 3005 303b 3041 3043 3045 3047 3049 308e 3094-3096 3099-309a 309d-309e 30a1 30a3 30a5
  30a7 30a9 30ee 30f4-30fa 30fd-30fe 3164-318e 31f0-31ff a640-a672 a674-a67d a67f-a69f fa21 fa6c fb1e-fb1f fb2c-fb2d
  fb30 fb36
  fb38-fb3a fb3c fb3e fb40-fb41 fb46-fb49 fb4c-fb4e fb50-fb55 fb5a-fb65 fb6a-fb79 fb7e-fb87 fb96-fba9 fbae-fbb1
  fbd3-fbe7 fbec-fbed fbf0-fbf8 fbfc-fbff fdf0 fdf5 fe73 ff67-ff6b ffa0 10140-10174 16fe2-16fe3 1b002-1b11e 1b150-1b152
  1b164-1b167 1e04a-1e04b 1e04e-1e050 1e065 1e069 1e06b-1e06d 1ee00-1ee03 1ee05-1ee1f 1ee21-1ee22 1ee24 1ee27
  1ee29-1ee32 1ee34-1ee37 1ee39 1ee3b 1ee42 1ee47 1ee49 1ee4b 1ee4d-1ee4f 1ee51-1ee52 1ee54 1ee57 1ee59 1ee5b 1ee5d
  1ee5f 1ee61-1ee62 1ee64 1ee67-1ee6a 1ee6c-1ee72 1ee74-1ee77 1ee79-1ee7c 1ee7e 1ee80-1ee89 1ee8b-1ee9b 1eea1-1eea3
  1eea5-1eea9 1eeab-1eebb 20000-3ffff
`;

const named = new RegExp(`[${namedRanges.replaceAll(/\w+/g, '\\u{$&}').replaceAll(/\s/g, '')}]`, 'u');

/** A capital is called as its small letter. */
const isNamed = (character: string): boolean => named.test(character) || named.test(character.toLowerCase());
const NAMED = 16;
/** Beside letters of another script, a voice says their names. */
const arabicMark = /[\u064b-\u0655\u0670]/u;

const letter = /\p{L}/u;
const isNumber = /\p{N}/u;
const picture = /(?![\u2100-\u214f\u{1f150}-\u{1f189}])\p{Extended_Pictographic}/u;
const PICTURE = 14;
const vowel = /[aeiouyаеёиоуыэюяіїєαεηιουω]/i;

const signOf = (size: number, kind: SignKind): Sound => ({
  ...{ size, kind, script: null, hasVowel: false, isCapital: false, isW: false, isMark: false },
});

const soundOf = (character: string): Sound => {
  if (classOf(character.codePointAt(0)!) & WHITE) return signOf(1, 'always');
  if (isNamed(character)) return signOf(NAMED, 'always');
  if (arabicMark.test(character)) return { ...signOf(NAMED, 'joins'), script: arabic };
  if (picture.test(character)) return signOf(PICTURE, 'once');
  const script = scripts.find(({ pattern }) => pattern.test(character)) ?? null;
  const sign =
    script === null || isNumber.test(character) ? signs.find(([of]) => of.test(character)) : undefined;
  if (sign !== undefined) return signOf(sign[2], sign[1]);
  // What a mathematical, circled or joined letter stands for. A syllable of Korean is one sound, and й no vowel.
  const isWhole = /[\p{Script=Hangul}й]/iu.test(character);
  const plain = isWhole ? character : character.normalize('NFKD').replace(/(?<!^)\p{M}/gu, '');
  const [first = '', ...others] = plain;
  if (plain !== character && (others.length > 0 || script === null)) {
    const parts = [first, ...others].map(soundOf);
    const kinds = new Set(parts.map(({ script: own }) => own));
    const isLetter = letter.test(character);
    if (!isLetter || kinds.size > 1 || kinds.has(null)) {
      const sizeOf = ({ size, script: own }: Sound): number =>
        own === null ? Math.min(size, DIGIT_OF_SIGN) : isLetter ? own.each : own.alone;
      return signOf(
        parts.reduce((sum, part) => sum + sizeOf(part), 0),
        'always',
      );
    }
    return { ...parts[0]!, size: parts.length, hasVowel: vowel.test(plain) };
  }
  if (otherSign.test(character) || (script === null && !otherScript.pattern.test(character)))
    return common.test(character) ? signOf(1, 'once') : signOf(otherScript.alone, 'always');
  return {
    ...{ size: 1, kind: 'letter', script: script ?? otherScript, hasVowel: vowel.test(first) },
    ...{ isCapital: /\p{Lu}/u.test(character), isW: /w/i.test(first), isMark: /[\p{M}ьъ]/iu.test(character) },
  };
};

const sounds: Sound[] = [];
const numbers = new Map<string, number>();
/** By code point, one more than the number of its sound; 0: not looked up yet. */
const remembered = new Uint16Array(0x11_00_00);

const lookUp = (codePoint: number): Sound => {
  const sound = soundOf(String.fromCodePoint(codePoint));
  const key = JSON.stringify({ ...sound, script: scripts.indexOf(sound.script ?? otherScript) });
  const number = numbers.get(key) ?? sounds.push(sound);
  numbers.set(key, number);
  remembered[codePoint] = number;
  return sounds[number - 1]!;
};
const soundAt = (codePoint: number): Sound => sounds[remembered[codePoint]! - 1] ?? lookUp(codePoint);

/** Letters of one script with nothing between them. */
class Run {
  #script: Script | null = null;
  #block = 0;
  #letters = 0;
  #capitals = 0;
  #ws = 0;
  #hasVowel = false;
  #consonants = 0;
  #clustered = 0;

  get isEmpty(): boolean {
    return this.#script === null;
  }

  /** @param script of the letters to which a sign belongs; `null`: of any */
  has(script: Script | null): boolean {
    return script === null ? !this.isEmpty : this.#script === script;
  }

  /** @returns what the run counted as that ends before this letter; 0 if it goes on */
  add({ script, size, hasVowel, isCapital, isW }: Sound, codePoint: number): number {
    const block = script === latin ? 0 : codePoint >> 7;
    const ended = script === this.#script && block === this.#block ? 0 : this.end();
    this.#script = script;
    this.#block = block;
    this.#letters += size;
    if (isCapital) this.#capitals += size;
    if (isW) this.#ws++;
    if (hasVowel) {
      this.#hasVowel = true;
      this.#consonants = 0;
    } else if (++this.#consonants >= clusterMin)
      this.#clustered += this.#consonants === clusterMin ? clusterMin : 1;
    return ended;
  }

  end(): number {
    const script = this.#script;
    if (script === null) return 0;
    const size = this.#size(script);
    this.#script = null;
    this.#letters = this.#capitals = this.#ws = this.#consonants = this.#clustered = 0;
    this.#hasVowel = false;
    return size;
  }

  #size(script: Script): number {
    const letters = this.#letters;
    const more = letters <= shortMax ? MORE_OF_W * this.#ws : 0;
    if (letters === 1) return script.alone + more;
    if (script.isSpelled && !this.#hasVowel) return SPELLED * letters + more;
    if (script === latin && this.#capitals === letters && letters <= shortMax)
      return CAPITALS * letters + more;
    if (script === otherScript) return script.alone + script.each * letters;
    return script.each * letters + (script.isSpelled ? (SPELLED - 1) * this.#clustered : 0);
  }
}

const isAlphanumeric = (unit: number): boolean =>
  (unit >= 0x30 && unit <= 0x39) || ((unit | 0x20) >= 0x61 && (unit | 0x20) <= 0x7a);

/** In letters, of a text that is spoken as it is written. */
export const letters = (text: string): number => {
  let size = 0;
  let codePointBefore = 0;
  const run = new Run();
  for (let at = 0; at < text.length; at++) {
    const codePoint = text.codePointAt(at)!;
    const sound = soundAt(codePoint);
    const { kind } = sound;
    if (kind === 'letter') {
      if (sound.isMark && (run.isEmpty || codePoint === codePointBefore)) size += MARK_ALONE;
      size += run.add(sound, codePoint);
    } else if (kind === 'joins') {
      if (!run.has(sound.script)) size += sound.size;
    } else {
      size += run.end();
      const isRepeated = codePoint === codePointBefore;
      if (kind === 'always') size += sound.size;
      else if (kind === 'doubled') size += isRepeated ? sound.size : 1;
      else if (kind === 'once') size += isRepeated ? AGAIN : sound.size;
      else if (isRepeated) size += AGAIN;
      else {
        const isInside = isAlphanumeric(codePointBefore) && isAlphanumeric(text.charCodeAt(at + 1));
        size += isInside ? sound.size : 1;
      }
    }
    if (codePoint > 0xffff) at++;
    codePointBefore = codePoint;
  }
  return size + run.end();
};

/** The same of a spoken form. */
export const lettersOf = ({ spoken, ipa = '' }: Pick<Replacement, 'spoken' | 'ipa'>): number =>
  letters(spoken) + ipa.length;

/** About how many letters take as long to say: numbers, dense scripts and spoken forms are longer than they are written. */
export const spokenSize = ({ text, words, spoken = [] }: Spoken): number => {
  let size = letters(text);
  for (const form of spoken)
    size += lettersOf(form) - letters(text.slice(words[form.first]?.start, words[form.last]?.end));
  return size;
};

/** @param size in letters @param speed factor of pace */
export const spokenMs = (size: number, speed = 1): number => (size * MS_PER_LETTER) / speed;
