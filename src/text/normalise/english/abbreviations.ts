/** Shortened words: Mr., e.g., Inc., Jan., and the titles, streets and directions of names. */
import { dayOf, monthOf } from './dates.js';
import { type Reading, type Rule, say, type Tokens, wordSet, wordTable } from '../tokens.js';

/** Abbreviations with a full stop. */
const stopped = wordTable(`
  e.g: for example; eg: for example; i.e: that is; ie: that is; etc: et cetera; vs: versus; cf: compare;
  viz: namely; approx: approximately; a.k.a: also known as; dept: department; depts: departments; univ: university;
  assn: association; assoc: associate; asst: assistant; avg: average; max: maximum; min: minimum; incl: including;
  excl: excluding; esp: especially; misc: miscellaneous; govt: government; natl: national; intl: international;
  mfg: manufacturing; mgr: manager; attn: attention; tel: telephone; appt: appointment; temp: temperature;
  resp: respectively; hwy: highway; blvd: boulevard; pkwy: parkway; ave: avenue; inc: incorporated; ltd: limited;
  corp: corporation; co: company; bros: brothers; jr: junior; sr: senior; ph.d: P.H.D;
  m.sc: M.S.C; b.sc: B.S.C; m.phil: M Phil; d.phil: D Phil; ll.m: L.L.M; ll.b: L.L.B; ed.d: E.D.D; psy.d: Psy D;
  pharm.d: Pharm D; acct: account; ref: reference; qty: quantity; apt: apartment; bldg: building;
  rm: room; rte: route; ea: each
`);

/** These may be words at the end of a sentence: expanded only where the sentence goes on. */
const alsoWords = /^(?:max|temp|min|ref|apt|co|resp|ie|eg)$/i;
/** Expanded only as part of a name. */
const capitalOnly = /^(?:inc|ltd|corp|co|bros|jr|sr|temp)$/i;
/** In capitals something else. */
const lowerOnly = /^ea$/i;
const capitalised = /^\p{Lu}/u;
const isName = (core: string | undefined): boolean => core !== undefined && capitalised.test(core);

/** Unambiguous without a full stop. */
const plain = wordTable(`
  etc: et cetera; vs: versus; approx: approximately; Hwy: highway; Blvd: boulevard; aka: also known as;
  e.g: for example; i.e: that is; int'l: international; gov't: government; dep't: department; nat'l: national;
  PhD: P.H.D; WWI: World War one; WWII: World War two; TL;DR: T.L.D.R; A/C: A.C; YoY: year over year;
  QoQ: quarter over quarter; y/o: years old; c/o: care of; acct: account
`);

/** May follow a day of the week: "Sat. morning", "Sat. & Sun.", "Mon. to Fri.". */
const joinsDays = /^(?:to|through|and|or|&|-|–)$/;
const afterDay = /^(?:morning|afternoon|evening|night|at|from|and|or|to|through|until|all|only|&|-|–)$/;

/** Before a day or month that is shortened without a full stop: "on Fri", "in Jan", "the 14th of Mar". */
const beforeDay = / (?:on|every|each|last|next|this|until|till|by)$/;
const beforeMonth = / (?:in|last|next|this|since|until|till|by)$|^\d+(?:st|nd|rd|th) of$/;

/** "on Fri at noon", "Mon to Fri", "in Jan"; but "on Sun Valley Road", "in Mar Vista", "a book by Jan". */
const isCued = (tokens: Tokens, at: number, isWord: boolean): boolean => {
  const { core } = tokens.at(at);
  const next = tokens.next(at)?.core ?? 'at';
  const nameOf = monthOf(core) === undefined ? dayOf : monthOf;
  const isPair = (joint: string, other = '') =>
    nameOf(other) !== undefined && (nameOf === dayOf ? joinsDays : /^(?:to|through|-|–)$/).test(joint);
  if (isPair(next, tokens.next(at + 1)?.core)) return true;
  if (isPair(tokens.previous(at)?.core ?? '', tokens.previous(at - 1)?.core)) return true;
  const cue = `${tokens.wordBefore(at - 1)} ${tokens.wordBefore(at)}`;
  if (nameOf === monthOf)
    return beforeMonth.test(cue) && !capitalised.test(next) && !/by Jan$/.test(`${cue} ${core}`);
  return beforeDay.test(cue) && (isWord ? afterDay.test(next) : !capitalised.test(next));
};

/** Mon.-Fri., Jan–Mar, M-F */
const calendarSpanOf = (text: string): string | null => {
  if (/^M[-–]F$/.test(text)) return 'Monday to Friday';
  const { from = '', to = '' } =
    /^(?<from>[A-Z][a-z]{2,4})\.?[-–](?<to>[A-Z][a-z]{2,4})$/.exec(text)?.groups ?? {};
  const days = [dayOf(from), dayOf(to)];
  const months = [monthOf(from), monthOf(to)];
  const names = days.includes(undefined) ? months : days;
  return names.includes(undefined) ? null : names.join(' to ');
};

const monthOrDay = (tokens: Tokens, at: number): Reading | null => {
  const { core, tail } = tokens.at(at);
  const span = calendarSpanOf(core);
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
  // Names in capitals (APR, SAT) and names that are words need a date after them; the others need a full stop.
  const isWord = /^(?:sat|sun|mon|wed|mar|jun|jul)$/i.test(core) || /^[A-Z]+$/.test(core);
  const goesOn =
    isDateNext ||
    (isStopped && following !== undefined && (isWord ? afterDay : /^(?:\p{Ll}|&|-|–)/u).test(following.core));
  const isShort = goesOn || (isStopped && (!isWord || tail.startsWith('.,'))) || isCued(tokens, at, isWord);
  if (!isShort) return null;
  return { parts: [{ core: name, tail: goesOn ? tail.replace('.', '') : tokens.tailOfAbbreviation(at) }] };
};

export const abbreviations: Rule = (tokens, at) => {
  const { core, tail } = tokens.at(at);
  if (core.length > 11 || !/^\p{L}/u.test(core)) return null;
  const date = capitalised.test(core) ? monthOrDay(tokens, at) : null;
  if (date !== null) return date;
  const key = core.toLowerCase();
  const word = stopped.get(key);
  if (word !== undefined && tail.startsWith('.')) {
    if ((capitalised.test(core) ? lowerOnly : capitalOnly).test(core)) return null;
    const rest = tokens.tailOfAbbreviation(at);
    // "Sort by max. Then ...": the word ends the sentence and stays as it is.
    if (alsoWords.test(core) && rest.startsWith('.') && !/^co$/i.test(core)) return null;
    // "Utilities incl."
    const isLast = /^(?:incl|excl)$/.test(key) && tokens.nextAfterStop(at) === undefined;
    return { parts: [{ core: isLast ? word.replace(/ing$/, 'ed') : word, tail: rest }] };
  }
  const plainWord = plain.get(core) ?? plain.get(key);
  if (plainWord !== undefined) return say(plainWord);
  // Johnson Jr, Sr: after a name they need no full stop.
  const isHeir = /^[JS]r$/.test(core) && isName(tokens.previous(at)?.core);
  return isHeir ? say(word!) : null;
};

/** Before a name. */
const titles = wordTable(`
  Mr: Mister; Mrs: Missus; Ms: Miz; Messrs: Messers; Prof: Professor; Rev: Reverend; Hon: Honorable; Gen: General;
  Col: Colonel; Capt: Captain; Lt: Lieutenant; Sgt: Sergeant; Cmdr: Commander; Adm: Admiral; Gov: Governor;
  Sen: Senator; Rep: Representative; Pres: President; Supt: Superintendent; Maj: Major; Sec: Secretary; Fr: Father; Mt: Mount; Ft: Fort;
  Assoc: Associate; Jr: Junior; Sr: Senior
`);
/** No other word is written like these: they need no full stop. */
const needsNoStop = wordSet('Mr Mrs Ms Messrs Prof Lt Sgt Capt Mt');

const ways = wordTable(`
  St: Street; Dr: Drive; Rd: Road; Ln: Lane; Ave: Avenue; Blvd: Boulevard; Hwy: Highway; Pkwy: Parkway; Ct: Court;
  Sq: Square; Pl: Place; Ter: Terrace
`);
/** Well-known streets, even before a capital: "Wall St. Journal", "High St. Kensington". */
const knownStreets = wordSet(
  'Main Wall High Market Church Park Oak Elm Maple Bourbon Fleet Baker Broad State Front Bond',
);
/** Never the name of a street, although capitalised at the start of a sentence. */
const functionWords = wordSet(
  'The A An In On At To Of From By For With And Or But Is Was Near Visit See Saint My Our His Her If When Dear Call Ask Meet Hello Hi Hey',
);

/** Whether the word before names a street, and no name with a title follows. */
const endsStreet = (tokens: Tokens, at: number): boolean => {
  const before = tokens.previous(at)?.core;
  if (before === undefined) return false;
  const isNumbered = /^\d+(?:st|nd|rd|th)$/i.test(before);
  if (!isNumbered && (!isName(before) || functionWords.has(before))) return false;
  const { tail } = tokens.at(at);
  const next = tokens.nextAfterStop(at);
  // At the end of a clause, or before a number or a word in lower case: not a title.
  if (next === undefined || tail.includes(',') || !isName(next.core)) return true;
  return isNumbered || knownStreets.has(before) || /^\d+$/.test(tokens.previous(at - 1)?.core ?? '');
};

const shortened = (tokens: Tokens, at: number, core: string, goesOn: boolean): Reading => {
  const { tail } = tokens.at(at);
  return {
    parts: [{ core, tail: goesOn && tail.startsWith('.') ? tail.slice(1) : tokens.tailOfAbbreviation(at) }],
  };
};

export const names: Rule = (tokens, at) => {
  const { core, tail } = tokens.at(at);
  if (core.length > 6 || !isName(core)) return null;
  const next = tokens.nextAfterStop(at);
  const isStopped = tail.startsWith('.');
  const way = ways.get(core);
  if (way !== undefined && endsStreet(tokens, at))
    return shortened(tokens, at, way, next !== undefined && /^[\p{Ll}\d]/u.test(next.core));
  if (core === 'St' && isName(next?.core)) return shortened(tokens, at, 'Saint', true);
  if (core === 'Dr' && (isName(next?.core) || isStopped))
    return shortened(tokens, at, 'Doctor', next !== undefined);
  const title = titles.get(core);
  // "John Smith Sr. Then he left.", "the Bar Assoc. President"
  const isHeir = /^(?:[JS]r|Assoc)$/.test(core) && isName(tokens.previous(at)?.core);
  const isTitle =
    title !== undefined && !isHeir && (isStopped || needsNoStop.has(core)) && isName(next?.core);
  return isTitle ? shortened(tokens, at, title, true) : null;
};
