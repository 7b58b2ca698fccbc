/**
 * Writes the words of a clause so that espeak-ng says them as people do: capitals, plurals of initialisms, Roman numerals,
 * interjections, drawn-out words, homographs.
 */
import { primaryLanguage } from '../../../src/text/language.js';
import { homograph, spellings } from './homographs.js';

export interface Spelling {
  readonly text: string;
  /** `text` is phonemes of the IPA. */
  readonly isIpa: boolean;
}

/**
 * English words and first names of two and three letters. In capitals they are words, other capitals are spelled.
 *
 * Most of them are from SCOWL (Spell Checker Oriented Word Lists) up to its size 35, without words whose capitals are mostly
 * spelled (AD, ID, MS, RE). Copyright 2000-2011 by Kevin Atkinson; COPYING beside this file has the licence.
 */
const shortWords: ReadonlySet<string> = new Set(
  (
    'abe ace act ada add ado ads age ago ah aha aid ail aim air ale ali all am amp amy an ana and ann ant any ' +
    'ape app apt arc are ark arm art as ash ask ass at ate ava awe ax axe aye bad bag bah ban bar bat bay be ' +
    'bed bee beg ben bet bib bid big bin bio bit boa bob bog boo bop bot bow box boy bra bro bud bug bum bun ' +
    'bus but buy by bye cab cad cam can cap car cat caw chi cob cod cog con cop cos cot cow cox coy cry ' +
    'cub cue cum cup cur cut dab dad dam dan day dee den dew did die dig dim din dip do doc doe dog don dos ' +
    'dot dr dry dub dud due dug duh duo dye ear eat ebb ed eel egg ego eh eke elf eli elk elm emo ems end eon ' +
    'era err etc eva eve ewe ex eye fad fan far fat fax fay fed fee fen few fey fez fib fig fin fir fit fix ' +
    'flo flu fly fob foe fog for fox fro fry fun fur gab gag gal gap gas gay gee gel gem get gif gig gil gin ' +
    'gnu go gob god goo got gui gum gun gus gut guy gym ha had hag hal ham has hat hay he hem hen her hew hex ' +
    'hey hi hid him hip his hit ho hoe hog hop hot how hub hue hug huh hum hun hut ian ice icy if ifs ike ilk ' +
    'ill imp in ink inn ion ira ire irk is it its ivy jab jag jam jan jar jaw jay jed jet jew jig jim jo job ' +
    'joe jog jon jot joy jr jug jut kay keg ken key kid kim kin kit lab lad lag lam lan lao lap law lay ' +
    'lea led lee leg lei len leo les let lew lid lie lip lit liz lo lob log lop lot lou low lug lye mad mae ' +
    'mag man mao map mar mat max may me meg meh mel men met mew mia mid mil mix mob mod moe mom moo mop mow ' +
    'mr mrs mud mug mum my nab nag nah nan nap nat nay ned neo net new nib nil nip nit nix no nod non nor not ' +
    'now nth nub nun nut oaf oak oar oat odd ode of off oh ohm ohs oil old on one opt or orb orc ore our out ' +
    'ova ow owe owl own ox pac pad pal pam pan pap par pas pat paw pay pea pee peg pen pep per pet pew pie ' +
    'pig pin pip pit ply pod poe pop pot pox pro pry pub pug pun pup pus put qua rad rae rag ram ran rap rat ' +
    'raw ray red ref rep rev rex rib rid rig rim rio rip rob rod roe rom ron rot row roy rub rue rug rum run ' +
    'rut rye sac sad sag sal sam sat saw sax say sea see set sew sex she shy sic sid sim sin sip sir sis sit ' +
    'six ski sky sly so sob sod son sow soy spa spy sr stu sty sub sue sum sun sup tab tad tag tam tan tap ' +
    'tar tat tax tea ted tee ten the tho thy tia tic tie tim tin tip tit to tod toe tom ton too top tor tot ' +
    'tow toy try tub tug tut tux two ugh uh um up urn us use val van vet vex via vie vim vow vs wad wag wan ' +
    'war was wax way we web wed wee wei wet who why wig win wit wiz woe wok won woo wot wow wry yak yam yap ' +
    'yaw ye yea yeh yen yep yes yet yew yip yo you yuk yum yup zap zed zen zip zoe zoo'
  ).split(' '),
);

/** Listed words are spelled in capitals, except in a clause that is mostly in capitals ("TELL US WHAT IT IS"). */
const spelledAmongSmall = new Set('AM IT LED LET RIP SAT US'.split(' '));
/** Initialisms that espeak-ng would read as words. */
const spelledAlways = new Set(
  (
    'AARP ACLU ACTH AFAIK AFDC ASMR BYOB CAGR CATV COPD EEOC FDIC FWIW ICBM ICYMI IIRC IMHO LGBTQ NAACP NCAA TGIF TLDR ' +
    'USCG USIA USMC USPS YMCA YMMV YWCA'
  ).split(' '),
);
/** The same in languages in which espeak-ng reads most capitals as people do. */
const spelledIn: Readonly<Record<string, ReadonlyMap<string, string>>> = {
  de: new Map(
    'AOK ARD EDV EU IT KI UK UN USA UV'.split(' ').map((word) => [word, word.replace(/./g, '$&.')]),
  ),
  fr: new Map(Object.entries({ IA: 'hi ah', UE: 'hu-eux' })),
  es: new Map(Object.entries({ IA: 'i-a', UE: 'u-e', USA: 'u-ese-a' })),
};
const isCapitals = (word: string): boolean => /^[A-Z]+$/.test(word);

/** A to Z in the plural, as words: DVDs is "D.V. dees". */
const plurals = (
  'aze bees seas dees ease effs jeez aitches eyes jays kays els ems ens owes peas cues ars esses tees yous vees ' +
  'double-yous exes whys zees'
).split(' ');

const lettersOf = (initials: string): string => initials.replace(/./g, '$&.');

/** Whether capitals are read as one word: short ones if they are known, longer ones as espeak-ng decides. */
const isWord = (capitals: string): boolean =>
  capitals.length > 3
    ? /[AEIOUY]/.test(capitals) && !spelledAlways.has(capitals)
    : shortWords.has(capitals.toLowerCase());

/** Capitals with a plural or possessive s, which espeak-ng leaves out at the end of a clause: NATO's, DVDs. */
const withS = (initials: string, mark: string): string => {
  if (isWord(initials) && !spelledAmongSmall.has(initials)) return `${initials.toLowerCase()}${mark}s`;
  const start = initials.slice(0, -1);
  return `${start === 'A' ? 'eh' : lettersOf(start)} ${plurals[initials.charCodeAt(start.length) - 65]}`;
};

const contraction = /^([A-Z]+)'(?:T|S|D|M|LL|RE|VE)$/;
const initialsWithS = /^([A-Z]{2,}|PhD)('?)s$/;

/** @param isLoud the clause is mostly in capitals @param before the word before, in small letters */
const ofCapitals = (word: string, isLoud: boolean, before: string, isLast: boolean): string => {
  if (word.includes("'")) {
    const [, base = '', ending] = contraction.exec(word) ?? [];
    const owner = word.endsWith("'S");
    if (base === '' || ending === '') return word;
    if (!owner || base === 'IT' || base.length > 3 || isWord(base)) return word.toLowerCase();
    return withS(base, "'");
  }
  // ON-OFF, ALL-NEW
  if (word.includes('-'))
    return word
      .split('-')
      .map((part) => (isCapitals(part) && part.length > 1 && isWord(part) ? part.toLowerCase() : part))
      .join('-');
  if (word === 'A' && isLoud && !isLast) return 'a';
  if (word.length < 2 || (word === 'WHO' && before === 'the' && !isLoud)) return word;
  if (word === 'AM' && before === 'i') return 'am';
  const isSpelled = !isLoud && spelledAmongSmall.has(word);
  if (!isSpelled && (isWord(word) || (isLoud && spelledAmongSmall.has(word)))) return word.toLowerCase();
  return word.length > 3 && !spelledAlways.has(word) ? word : lettersOf(word);
};

/** Words that espeak-ng misreads, as it reads them right. A capital counts where the word means something else without it. */
const respelled = spellings(
  'airbnb:air-B.N.B. alejandro:allehhondro async:aisink buffet:buh-fay cancún:cancoon charcuterie:sharcooterie descartes:daycart ' +
    'ebitda:eebit-dah edamame:edda-mahmay giuseppe:joo-seppay goethe:gerta gracias:grahseeahss guadalajara:gwahdalahara ' +
    'guillermo:ghee-yairmo huawei:wahway iaas:eye-ass idk:I.D.K. iot:I.O.T. joaquin:wah-keen julio:hoolio kanye:con-yay ' +
    'LaTeX:lah-teck leah:leeah lyon:leeonn makayla:michaela marylebone:marliban moana:mo-ahna mì:mee nguyen:winn niamh:neeve ' +
    'nike:nikey oaxaca:wahhaca openai:open-A.I. ozempic:ohzempic paas:pass phnom:puh-nom phuket:pookette prosciutto:proshooto ' +
    'redis:reddiss rosé:rohzay saas:sass seán:Sean simone:sim-own southwark:sutherck tucson:toosonn uber:oober ' +
    'versailles:vair-sigh Xi:shee xiaomi:shao-mee yoy:year-over-year',
);

const numbered: Readonly<Record<string, ReadonlySet<string>>> = {
  en: new Set(
    (
      'act scene chapter part book volume section article title figure table appendix phase stage level type class grade war ' +
      'page canto psalm lesson unit module round season episode version mark bowl step verse clause item paragraph'
    ).split(' '),
  ),
  de: new Set('akt szene kapitel teil band abschnitt artikel weltkrieg stufe klasse typ'.split(' ')),
  fr: new Set('acte scène chapitre tome livre partie article titre niveau type'.split(' ')),
  es: new Set('acto escena capítulo tomo libro parte artículo título siglo nivel tipo'.split(' ')),
};
/** What makes espeak-ng name the letter A, and not read the article. */
export const LETTER_A = 'eigh';
/** More words before the letter A, and some after it: no article stands there. */
const beforeLetter = new Set(
  'an option plan gate vitamin group team hepatitis exhibit terminal zone building grade letter point series & / +'.split(
    ' ',
  ),
);
const afterLetter = /^(?:is|was|or|and|to|vs|versus|in|for|[&/+])$/i;

/** Whether a capital A is the letter. @param starts it begins a sentence or a quote */
const isLetterA = (words: readonly string[], at: number, starts: boolean): boolean => {
  const before = words[at - 1]?.toLowerCase() ?? '';
  const next = words[at + 1];
  if (words[at] !== 'A' || next === undefined) return false;
  if (afterLetter.test(next) || beforeLetter.has(before) || numbered['en']!.has(before)) return true;
  return !starts && at > 0 && !/^\p{Lu}\p{L}/u.test(next);
};

const roman = /^(?=.)X{0,3}(?:IX|IV|V?I{0,3})$/;
const romanDigits: Readonly<Record<string, number>> = { I: 1, V: 5, X: 10 };

const romanValue = (numeral: string): number => {
  let value = 0;
  for (let at = 0; at < numeral.length; at++) {
    const digit = romanDigits[numeral[at]!]!;
    value += digit < (romanDigits[numeral[at + 1] ?? ''] ?? 0) ? -digit : digit;
  }
  return value;
};

/** Numerals that are initials, too: an IV drip, the VI editor. */
const initials = new Set(['IV', 'VI', 'XX']);
const isName = (word: string): boolean => /^\p{Lu}\p{Ll}{2,}$/u.test(word) && word !== 'The';

/** A Roman numeral after the name of what is numbered (Scene iv), after a name (Henry II), or one that can be nothing else (XIV). */
const ofRoman = (words: readonly string[], at: number, code: string): string | null => {
  const word = words[at]!;
  const names = numbered[code];
  if (names === undefined || !/^[IVXivx]+$/.test(word)) return null;
  const capitals = word.toUpperCase();
  if (!roman.test(capitals)) return null;
  if (word === 'II' || (word.length > 2 && word === capitals && word !== 'XXX'))
    return String(romanValue(capitals));
  const before = words[at - 1] ?? '';
  const next = words[at + 1];
  const isNumbered = names.has(before.toLowerCase());
  if (word.length === 1)
    return isNumbered && (word === 'V' || word === 'v' || (word === capitals && next === undefined))
      ? String(romanValue(capitals))
      : null;
  // The first word has a capital without being a name: "Start IV fluids".
  const isNamed =
    word === capitals &&
    at > 1 &&
    isName(before) &&
    (!initials.has(word) || next === undefined || isName(next));
  return isNumbered || isNamed ? String(romanValue(capitals)) : null;
};

/** Sounds that are written without a vowel, with any number of letters. */
const sounds: readonly (readonly [RegExp, string])[] = [
  [/^(?:s+c?|c)h{2,}$/, 'ʃː'],
  [/^m{2,}$/, 'mː'],
  [/^m+-?h+m+$/, 'əmhˈəm'],
  [/^h+m+$/, 'hˈəm'],
  [/^h+m+ph+$/, 'hˈəmf'],
  [/^b+r{2,}$/, 'bˈɜː'],
  [/^g+r{2,}$/, 'ɡˈɜː'],
  [/^p+s+t+$/, 'psːt'],
  [/^p+f{2,}t*$/, 'pfː'],
  [/^z{3,}$/, 'zː'],
];
const vowelless = /^[bcfghmprstz-]{2,24}$/i;
/** Of English. */
const exclamation = /^[aeou]+[wh]+$/i;
const exclamations: readonly (readonly [RegExp, string])[] = [
  [/^aw{2,}$/, 'aw'],
  [/^e+w{2,}$/, 'ew'],
  [/^uh{2,}$/, 'uh'],
  [/^o{2,}h+$/, 'ooh'],
];

const ofInterjection = (word: string, before: string, code: string): Spelling | null => {
  const isVowelless = vowelless.test(word);
  if (!isVowelless && !exclamation.test(word)) return null;
  const small = word.toLowerCase();
  // Neither "5 mm" nor "2 pm PST".
  const isUnit =
    small === 'mm' || small === 'pst'
      ? before !== ''
      : word !== small && word === word.toUpperCase() && !/(.)\1/.test(word);
  if (isVowelless && !isUnit)
    for (const [pattern, ipa] of sounds) if (pattern.test(small)) return { text: ipa, isIpa: true };
  if (code === 'en')
    for (const [pattern, text] of exclamations) if (pattern.test(small)) return { text, isIpa: false };
  return null;
};

const drawn = /(\p{L})\1{2,}/iu;
const drawnOut = /(\p{L})\1{2,}/giu;

/** "sooo", "pleeease", "coool": o and e inside a word are often double there, all other letters are single. */
const ofDrawnOut = (word: string, code: string): string => {
  if (!Object.hasOwn(numbered, code)) return word;
  const short = word.replace(drawnOut, (run: string, letter: string, at: number) =>
    // German has Schifffahrt.
    code !== 'en' && run.length < 4 && at + run.length < word.length && !/[aiu]/i.test(letter)
      ? run
      : /[eo]/i.test(letter) && at > 0 && /^[^aeiou]/i.test(word.slice(at + run.length))
        ? letter + letter
        : letter,
  );
  const isInitials = word.length < 5 && word === word.toUpperCase() && !shortWords.has(short.toLowerCase());
  return short.length < 2 || isInitials || /^[ivx]+$/i.test(word) ? word : short;
};

/** Mostly in capitals, and not only initialisms. */
const isShouted = (words: readonly string[]): boolean => {
  let capitals = 0;
  let known = 0;
  let others = 0;
  for (const word of words)
    if (/^[A-Z][A-Z'-]+$/.test(word)) {
      capitals++;
      if (isWord(word) && !spelledAmongSmall.has(word)) known++;
    } else if (/\p{Ll}/u.test(word)) others++;
  return known > 0 && capitals > 1 && capitals > others;
};

/**
 * @param words of a clause, in order
 * @param voices of espeak-ng that read them
 * @param starts whether each word begins a sentence or a quote, or may
 */
export const spellingsOf = (
  words: readonly string[],
  voices: readonly string[],
  starts: readonly boolean[],
): Spelling[] => {
  const isLoud = isShouted(words);
  const small: string[] = [];
  let voice = '';
  let code = '';
  const result = words.map((word, at): Spelling => {
    if (voices[at] !== voice) {
      voice = voices[at]!;
      code = primaryLanguage(voice);
    }
    const before = at > 0 ? words[at - 1]! : '';
    const isLast = at === words.length - 1;
    const numeral = ofRoman(words, at, code);
    const sound = numeral === null ? ofInterjection(word, before, code) : null;
    let text = numeral ?? (drawn.test(word) ? ofDrawnOut(word, code) : word);
    if (code === 'en' && isLetterA(words, at, starts[at]!)) text = LETTER_A;
    else if (text === 'AT' && words[at + 1] === '&') text = 'A.T.';
    else if (code === 'en' && numeral === null && /^(?:[A-Z][A-Z'-]*|[A-Z]{2,}'?s|PhD'?s)$/.test(text)) {
      const [, initials, mark = ''] = initialsWithS.exec(text) ?? [];
      text =
        initials === undefined
          ? ofCapitals(text, isLoud, small[at - 1] ?? '', isLast)
          : withS(initials.toUpperCase(), mark);
    }
    const respell = (part: string) => respelled.get(part) ?? respelled.get(part.toLowerCase()) ?? part;
    if (code === 'en') text = text.replace(/\p{L}+/gu, respell);
    const spelled = spelledIn[code];
    if (spelled !== undefined)
      text = text.replace(/(?<=^|')[A-Z]{2,3}$/, (initials) => spelled.get(initials) ?? initials);
    small.push(text.toLowerCase());
    return sound ?? { text, isIpa: false };
  });
  for (const [at, { isIpa }] of result.entries()) {
    if (isIpa || !voices[at]!.startsWith('en')) continue;
    const other = homograph(small, at, starts[at]!);
    if (other !== null) result[at] = { text: other, isIpa };
  }
  return result;
};
