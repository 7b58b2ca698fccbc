/** Codes by the words around them: "Your PIN is now 4821", "Enter 550912 as your passcode", "apt 4B". */
import { timeOf } from './dates.js';
import { measureOf } from './measures.js';
import { cardinal, digitGroups, digitWords } from './numbers.js';
import { serialForm, serialWords } from './serial.js';
import { type Part, type Reading, type Rule, say, type Tokens, wordSet } from '../tokens.js';

/** What these name is read digit by digit. */
const codeCues = wordSet(
  'pin passcode password code otp extension ext zip zipcode passkey cvv cvc captcha id',
);
/** So is the number of these: "your order number is 48213". */
const numbered = wordSet(
  'account order confirmation reference tracking serial ticket case invoice policy member membership booking routing card license ' +
    'registration customer client employee student identification claim badge permit transaction phone telephone mobile cell contact ' +
    'fax security patient record reservation verification authorization access id pin',
);
/** Words before letters and digits, even if these look like an amount: "apt 4B". */
const serialCues = wordSet(
  'apt apartment room suite ste unit seat gate exit terminal platform flight row locker id code order case pnr otp ticket ' +
    'reference ref confirmation invoice serial tracking plate zone box lot bay stall booking policy vin sku aisle pier dock ' +
    'rm bldg building bus tram class grade exam section chapter figure fig table appendix exhibit exercise question problem phase',
);
/** May stand between a cue and its code. */
const bridges = wordSet("is now was are of to be will reads currently still not isn't again");
/** May follow a code; another word is what the number counts: "the code is 500 lines long". */
const followers = wordSet(
  'and or to for but if please not which it so then as when with on in at by until is was now before from within',
);
/** After these a number is typed. */
const typing = wordSet('enter type input key punch');
/** "Text HELP to 74737": such a number is typed, too. */
const messaging = wordSet('text texting texts sms send message reply');
const owners = wordSet('your the my our his her their its a this that');

/** The most words between a cue and its code, and between a code and its cue. */
const bridgesMax = 4;

/** The word before a token, unless the sentence or the clause ends between. */
const wordBefore = (tokens: Tokens, at: number): string | null => {
  const token = at > 0 ? tokens.at(at - 1) : undefined;
  if (token === undefined) return null;
  const { core, tail } = token;
  const { gap } = tokens.at(at);
  const isAbbreviation = /^(?:no|ext|ref|apt|ste|rm|bldg|fig|acct)$/i.test(core) && tail === '.';
  if (
    (/[.!?,;]/.test(tail) && !isAbbreviation) ||
    (gap !== 'space' && !(gap === 'line' && tail.endsWith(':')))
  )
    return null;
  const word = core.toLowerCase();
  return word.endsWith("'s") ? word.slice(0, -2) : word;
};

/** How many words stand between a token and the cue before it; `null` if there is none. */
const cueBefore = (tokens: Tokens, at: number, cues: ReadonlySet<string>): number | null => {
  for (let between = 0; between <= bridgesMax; between++) {
    const word = wordBefore(tokens, at - between);
    if (word === null) return null;
    if (cues.has(word)) return between;
    if (/^(?:number|no|#)$/.test(word)) {
      const named = wordBefore(tokens, at - between - 1) ?? '';
      return numbered.has(named) || cues.has(named) ? between : null;
    }
    if (!bridges.has(word) && !/^[=–—-]?$/.test(word)) return null;
  }
  return null;
};

/** "276983 is your verification code", "550912 as the PIN". */
const hasCueAfter = (tokens: Tokens, at: number): boolean => {
  const word = (i: number) => tokens.next(at + i)?.core.toLowerCase() ?? '';
  if (!/^(?:as|is|was)$/.test(word(0)) || !owners.has(word(1))) return false;
  for (let i = 2; i < 2 + bridgesMax; i++) {
    if (codeCues.has(word(i)) || (word(i) === 'number' && numbered.has(word(i - 1)))) return true;
    if (!/^\p{L}+$/u.test(word(i))) return false;
  }
  return false;
};

const isFollowed = (tokens: Tokens, at: number): boolean => {
  const next = tokens.next(at)?.core;
  return next === undefined || followers.has(next);
};

/** The digits of a code: one token, or groups with spaces. */
const groupsAt = (tokens: Tokens, at: number): string[] => {
  const groups: string[] = [];
  for (let i = at; groups.length < 4 && /^\d{2,4}$/.test(tokens.at(i).core); i++) {
    groups.push(tokens.at(i).core);
    if (tokens.next(i) === undefined) break;
  }
  return groups;
};

const isTyped = (tokens: Tokens, at: number): boolean =>
  /^\d{4,}$/.test(tokens.at(at).core) &&
  !/00$|^(?:19|20)\d\d$/.test(tokens.at(at).core) &&
  typing.has(wordBefore(tokens, at) ?? '') &&
  tokens.next(at)?.core !== 'as' &&
  isFollowed(tokens, at);

const isMessaged = (tokens: Tokens, at: number): boolean =>
  /^\d{5,6}$/.test(tokens.at(at).core) &&
  wordBefore(tokens, at) === 'to' &&
  [1, 2, 3].some((back) => messaging.has(wordBefore(tokens, at - back) ?? ''));

/** "Order #4512"; but "issue #42", "suite #210". */
const isSigned = (tokens: Tokens, at: number): boolean =>
  /^#\d{4,10}$/.test(tokens.at(at).core) && numbered.has(wordBefore(tokens, at) ?? '');

/** Directly before so many digits, these have a number: "account 12345678". */
const accounts = wordSet(
  'account acct reference invoice ticket case policy serial tracking confirmation reservation booking badge',
);
const isAccount = (tokens: Tokens, at: number): boolean =>
  /^\d{5,9}[1-9]$/.test(tokens.at(at).core) &&
  accounts.has(wordBefore(tokens, at) ?? '') &&
  isFollowed(tokens, at);

/** "Flight UA 1549" */
const isFlight = (tokens: Tokens, at: number): boolean =>
  /^[A-Z][A-Z\d]$/.test(tokens.previous(at)?.core ?? '') && wordBefore(tokens, at - 1) === 'flight';

const digitCode = (tokens: Tokens, at: number): Reading | null => {
  const { core } = tokens.at(at);
  if (isSigned(tokens, at)) return say(`number ${digitWords(core.slice(1))}`);
  if (!/^\d{2,10}$|^\d{2,4}(?:-\d{2,4}){1,3}$/.test(core)) return null;
  const between = cueBefore(tokens, at, codeCues);
  if (between === null)
    return [hasCueAfter, isTyped, isMessaged, isAccount, isFlight].some((isCode) => isCode(tokens, at))
      ? say(digitGroups(core.split('-')))
      : null;
  const groups = groupsAt(tokens, at);
  const last = at + Math.max(groups.length, 1) - 1;
  if (between > 0 && (core.length < 3 || !isFollowed(tokens, last))) return null;
  if (groups.length < 2) return say(digitGroups(core.split('-')));
  const parts = groups.map((digits, i): Part => {
    const { tail } = tokens.at(at + i);
    return { core: digitWords(digits), tail: at + i < last ? ',' : tail };
  });
  return { parts };
};

const serialCode = (tokens: Tokens, at: number): Reading | null => {
  const { core } = tokens.at(at);
  const code = core.replace(/^#/, '');
  if (!serialForm.test(code) || /^\d+(?:st|nd|rd|th)$/i.test(code)) return null;
  const between = cueBefore(tokens, at, serialCues);
  if (between === null) return null;
  // "Your seat is 12A", but not "the box is 5kg", "the flight is 5PM", or "a bus 20m away".
  const isAmount = timeOf(code) !== null || (!/^\d+[A-Z]$/.test(code) && measureOf(code) !== null);
  if (/\dm$/.test(code) || (between > 0 && (isAmount || !isFollowed(tokens, at)))) return null;
  return say(`${code === core ? '' : 'number '}${serialWords(code)}`);
};

/** After these, and before these, a sign is a key of a telephone. */
const pressing = wordSet('press dial hit push enter tap');
const keyNames = /^(?:keys?|signs?|buttons?|symbols?)$/;

/** "press 1 or #": a key was named before. */
const isAnotherKey = (tokens: Tokens, at: number): boolean =>
  at > 1 && /^(?:or|and|then)$/.test(wordBefore(tokens, at) ?? '') && /^[*#\d]/.test(tokens.at(at - 2).raw);

/** "Press #", "the * key", "dial *67", "*#06#". */
const keys = (tokens: Tokens, at: number): Reading | null => {
  const { raw } = tokens.at(at);
  const [written = ''] = /^[*#][\d*#]{0,12}/.exec(raw) ?? [];
  if (written === '' || !/^[.,;:!?)"]*$/.test(raw.slice(written.length))) return null;
  const before = wordBefore(tokens, at) ?? '';
  // "hit #1 on the charts", "the #1 key to success"
  if (/^#\d+$/.test(written) && before !== 'dial') return null;
  const isKey =
    /\d#$|^\*[678]\d$/.test(written) ||
    pressing.has(before) ||
    (before === 'by' && wordBefore(tokens, at - 1) === 'followed') ||
    (before !== '' && keyNames.test(tokens.following(at)?.core ?? '')) ||
    (written.length === 1 && isAnotherKey(tokens, at));
  if (!isKey) return null;
  // *67 is said as a number.
  const isShort = /^\*\d\d$/.test(written);
  const words = Array.from(written.matchAll(/\d+|[*#]/g), ([part]) =>
    part === '*' ? 'star' : part === '#' ? 'pound' : isShort ? cardinal(part) : digitWords(part),
  );
  return { parts: [{ core: words.join(' '), lead: '', tail: raw.slice(written.length) }] };
};

export const cued: Rule = (tokens, at) => {
  const pressed = keys(tokens, at);
  if (pressed !== null || !/\d/.test(tokens.at(at).core)) return pressed;
  return digitCode(tokens, at) ?? serialCode(tokens, at);
};
