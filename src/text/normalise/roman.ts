/** Roman numerals, where the word before says that they are one: Chapter IV, Henry VIII, World War II. */
import { cardinal, ordinal } from './numbers.js';
import { type Rule, say, wordSet } from './reading.js';

const parts = wordSet(
  'chapter part act scene book volume vol section article phase type class stage level title appendix figure table',
);
/** Nobody says "the phase I like" as often as "phase I trial". */
const sureParts = wordSet('chapter phase type stage');
const rulers = wordSet(
  'henry louis charles george edward william james richard elizabeth mary catherine philip frederick peter ivan ' +
    'alexander nicholas pius benedict francis leo paul gregory innocent clement napoleon ferdinand leopold otto ' +
    'ramesses ramses ptolemy darius xerxes constantine margaret christian gustav haakon harald carl alfonso',
);
const titles = wordSet('king queen pope emperor empress tsar czar prince saint');
/** What follows a ruler's name and "I", the numeral, as nothing else. */
const afterRuler = wordSet('of died ruled reigned became');

const form = /^(?=.)(?<tens>X{0,3}|XL|L|LX{1,3})(?<ones>I{1,3}|IV|VI{0,3}|IX)?$/;
const tensValues: Readonly<Record<string, number>> = {
  '': 0,
  X: 10,
  XX: 20,
  XXX: 30,
  XL: 40,
  L: 50,
  LX: 60,
  LXX: 70,
  LXXX: 80,
};
const onesValues: Readonly<Record<string, number>> = {
  '': 0,
  I: 1,
  II: 2,
  III: 3,
  IV: 4,
  V: 5,
  VI: 6,
  VII: 7,
  VIII: 8,
  IX: 9,
};

/** 1 to 89, as a string of digits. */
const valueOf = (numeral: string): string | null => {
  if (numeral.length > 8) return null;
  const match = form.exec(numeral)?.groups;
  return match === undefined
    ? null
    : String(tensValues[match['tens'] ?? '']! + onesValues[match['ones'] ?? '']!);
};

export const romanNumerals: Rule = (tokens, at) => {
  const { core, tail } = tokens.at(at);
  if (!/^[IVXL]/.test(core)) return null;
  const [numeral = '', possessive] = core.split("'");
  const value = valueOf(numeral);
  const previous = tokens.previous(at);
  if (value === null || previous === undefined || (possessive !== undefined && possessive !== 's'))
    return null;
  const owner = possessive === undefined ? '' : "'s";
  const before = previous.core.toLowerCase();
  if (parts.has(before)) {
    // "Part I", but "the part I like".
    const next = tokens.next(at)?.core ?? '';
    const isPronoun =
      numeral === 'I' &&
      !sureParts.has(before) &&
      (!/^[A-Z]/.test(previous.core) || /^(?!of$|and$|to$)\p{Ll}/u.test(next));
    return numeral === 'L' || isPronoun ? null : say(cardinal(value) + owner);
  }
  const isTitled = titles.has(tokens.previous(at - 1)?.core.toLowerCase() ?? '');
  if (/^[A-Z]/.test(previous.core) && (rulers.has(before) || isTitled)) {
    const next = tokens.next(at)?.core ?? '';
    // "Henry V" is no pronoun, but "George V. Smith" is an initial.
    const isInitial = tail.startsWith('.') && /^[A-Z]/.test(tokens.nextAfterStop(at)?.core ?? '');
    const isSure = numeral === 'I' ? isTitled || owner !== '' || afterRuler.has(next) : !isInitial;
    return isSure ? say(`the ${ordinal(value)}${owner}`) : null;
  }
  // Two letters or more after a name: World War II, Rocky IV, Super Bowl LVIII. XL and XX are sizes and chromosomes.
  if (!/^\p{Lu}\p{Ll}+$/u.test(previous.core) || /^(?:XL|LX|XX|XXX|L)$/.test(numeral)) return null;
  return numeral.length > 1 && tail !== ')' ? say(cardinal(value) + owner) : null;
};
