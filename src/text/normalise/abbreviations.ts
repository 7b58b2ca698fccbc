/** Shortened words: Mr., e.g., approx., Inc., Jan., Mon. Streets and saints are in `names.ts`. */
import { dayOf, monthOf } from './months.js';
import type { Reading, Rule } from './reading.js';
import type { Tokens } from './tokens.js';

/** With a full stop after them. */
const stopped: Readonly<Record<string, string>> = {
  'e.g': 'for example',
  eg: 'for example',
  'i.e': 'that is',
  ie: 'that is',
  etc: 'et cetera',
  vs: 'versus',
  cf: 'compare',
  viz: 'namely',
  approx: 'approximately',
  'a.k.a': 'also known as',
  dept: 'department',
  depts: 'departments',
  univ: 'university',
  assn: 'association',
  assoc: 'associate',
  asst: 'assistant',
  avg: 'average',
  max: 'maximum',
  min: 'minimum',
  incl: 'including',
  excl: 'excluding',
  esp: 'especially',
  misc: 'miscellaneous',
  govt: 'government',
  natl: 'national',
  intl: 'international',
  mfg: 'manufacturing',
  mgr: 'manager',
  attn: 'attention',
  tel: 'telephone',
  appt: 'appointment',
  temp: 'temperature',
  resp: 'respectively',
  hwy: 'highway',
  blvd: 'boulevard',
  pkwy: 'parkway',
  ave: 'avenue',
  inc: 'incorporated',
  ltd: 'limited',
  corp: 'corporation',
  co: 'company',
  bros: 'brothers',
  jr: 'junior',
  sr: 'senior',
  'ph.d': 'P.H.D',
};

/** Words of their own too, but for the full stop: only where the sentence goes on, or in lower case. */
const alsoWords = /^(?:max|temp|min|co|resp|ie|eg)$/i;
/** Only as part of a name. */
const capitalOnly = /^(?:inc|ltd|corp|co|bros|jr|sr|temp)$/i;
const capitalised = /^\p{Lu}/u;

/** Without a full stop they are no other word either. */
const plain: Readonly<Record<string, string>> = {
  etc: 'et cetera',
  vs: 'versus',
  approx: 'approximately',
  Hwy: 'highway',
  Blvd: 'boulevard',
  aka: 'also known as',
  'e.g': 'for example',
  'i.e': 'that is',
  "int'l": 'international',
  "gov't": 'government',
  "dep't": 'department',
  "nat'l": 'national',
  PhD: 'P.H.D',
};

/** What stands after a day of the week: "Sat. morning", "Sat. & Sun.", "Mon. to Fri.". */
const afterDay = /^(?:morning|afternoon|evening|night|at|from|and|to|through|&|-|–)$/;

/** Mon.-Fri., Jan–Mar */
const spanOf = (text: string): string | null => {
  const { from = '', to = '' } =
    /^(?<from>[A-Z][a-z]{2,4})\.?[-–](?<to>[A-Z][a-z]{2,4})$/.exec(text)?.groups ?? {};
  const days = [dayOf(from), dayOf(to)];
  const months = [monthOf(from), monthOf(to)];
  const names = days.includes(undefined) ? months : days;
  return names.includes(undefined) ? null : names.join(' to ');
};

const monthOrDay = (tokens: Tokens, at: number): Reading | null => {
  const { core, tail } = tokens.at(at);
  const span = spanOf(core);
  if (span !== null) return { parts: [{ core: span, tail: tokens.tailOfAbbreviation(at) }] };
  const month = monthOf(core);
  const name = month ?? dayOf(core);
  if (name === undefined || name === core) return null;
  const following = tokens.following(at);
  const isDateNext =
    following !== undefined &&
    (month === undefined
      ? /^\d{1,2}(?!\d)/.test(following.core) || monthOf(following.core) !== undefined
      : /^['’]?\d/.test(following.core));
  const isStopped = tail.startsWith('.');
  // APR, SAT and their like, and days and months that are words: they need a date after them, the others a full stop.
  const isWord = /^(?:sat|sun|mon|wed|mar|jun|jul)$/i.test(core) || /^[A-Z]+$/.test(core);
  const goesOn =
    isDateNext ||
    (isStopped && following !== undefined && (isWord ? afterDay : /^(?:\p{Ll}|&|-|–)/u).test(following.core));
  const isShort = goesOn || (isStopped && (!isWord || tail.startsWith('.,')));
  if (!isShort) return null;
  return { parts: [{ core: name, tail: goesOn ? tail.replace('.', '') : tokens.tailOfAbbreviation(at) }] };
};

export const abbreviations: Rule = (tokens, at) => {
  const { core, tail } = tokens.at(at);
  if (core.length > 11 || !/^\p{L}/u.test(core)) return null;
  const date = capitalised.test(core) ? monthOrDay(tokens, at) : null;
  if (date !== null) return date;
  const key = core.toLowerCase();
  if (tail.startsWith('.') && Object.hasOwn(stopped, key)) {
    if (capitalOnly.test(core) && !capitalised.test(core)) return null;
    const rest = tokens.tailOfAbbreviation(at);
    // "Sort by max. Then ..." ends a sentence with a word that needs no reading.
    if (alsoWords.test(core) && rest.startsWith('.') && !/^co$/i.test(core)) return null;
    return { parts: [{ core: stopped[key]!, tail: rest }] };
  }
  const word = Object.hasOwn(plain, core) ? plain[core]! : Object.hasOwn(plain, key) ? plain[key]! : null;
  if (word !== null) return { parts: [{ core: word }] };
  // Johnson Jr, Sr: after a name they need no full stop.
  const isHeir = /^[JS]r$/.test(core) && capitalised.test(tokens.previous(at)?.core ?? '');
  return isHeir ? { parts: [{ core: stopped[key]! }] } : null;
};
