/** What shortens a title, a street or a direction: Dr. Smith, Elm Dr., St. Louis, Main St., Mt. Hood, 12 N. Oak. */
import { type Reading, type Rule, wordSet } from './reading.js';
import type { Tokens } from './tokens.js';

/** Before a name; with or without a full stop where no other word is written so. */
const titles: Readonly<Record<string, string>> = {
  Mr: 'Mister',
  Mrs: 'Missus',
  Ms: 'Miz',
  Messrs: 'Messers',
  Prof: 'Professor',
  Rev: 'Reverend',
  Hon: 'Honorable',
  Gen: 'General',
  Col: 'Colonel',
  Capt: 'Captain',
  Lt: 'Lieutenant',
  Sgt: 'Sergeant',
  Cmdr: 'Commander',
  Adm: 'Admiral',
  Gov: 'Governor',
  Sen: 'Senator',
  Rep: 'Representative',
  Pres: 'President',
  Supt: 'Superintendent',
  Fr: 'Father',
  Mt: 'Mount',
  Ft: 'Fort',
};
const needsNoStop = wordSet('Mr Mrs Ms Messrs Prof Lt Sgt Capt Mt');

const ways: Readonly<Record<string, string>> = {
  St: 'Street',
  Dr: 'Drive',
  Rd: 'Road',
  Ln: 'Lane',
  Ave: 'Avenue',
  Blvd: 'Boulevard',
  Hwy: 'Highway',
  Pkwy: 'Parkway',
  Ct: 'Court',
  Sq: 'Square',
  Pl: 'Place',
  Ter: 'Terrace',
};
/** Streets that are told so often that a capital after them says nothing: "Wall St. Journal", "High St. Kensington". */
const knownStreets = wordSet(
  'Main Wall High Market Church Park Oak Elm Maple Bourbon Fleet Baker Broad State Front Bond',
);
/** Capitalised at the start of a sentence, they name no street. */
const functionWords = wordSet(
  'The A An In On At To Of From By For With And Or But Is Was Near Visit See Saint My Our His Her If When Dear Call Ask Meet Hello Hi Hey',
);
const directions: Readonly<Record<string, string>> = { N: 'North', S: 'South', E: 'East', W: 'West' };

const isName = (core: string | undefined): boolean => core !== undefined && /^\p{Lu}/u.test(core);

/** Whether the word before names a street, and what follows does not bear a title. */
const endsStreet = (tokens: Tokens, at: number): boolean => {
  const before = tokens.previous(at)?.core;
  if (before === undefined) return false;
  const isNumbered = /^\d+(?:st|nd|rd|th)$/i.test(before);
  if (!isNumbered && (!isName(before) || functionWords.has(before))) return false;
  const { tail } = tokens.at(at);
  const next = tokens.nextAfterStop(at);
  // At the end of a clause, before a word in lower case or a number: nobody's title.
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
  if (Object.hasOwn(ways, core) && endsStreet(tokens, at))
    return shortened(tokens, at, ways[core]!, next !== undefined && /^[\p{Ll}\d]/u.test(next.core));
  if (core === 'St' && isName(next?.core)) return shortened(tokens, at, 'Saint', true);
  if (core === 'Dr' && (isName(next?.core) || isStopped))
    return shortened(tokens, at, 'Doctor', next !== undefined);
  if (Object.hasOwn(titles, core) && (isStopped || needsNoStop.has(core)) && isName(next?.core))
    return shortened(tokens, at, titles[core]!, true);
  const isAddress = /^\d+$/.test(tokens.previous(at)?.core ?? '') && isStopped && isName(next?.core);
  if (Object.hasOwn(directions, core) && isAddress) return shortened(tokens, at, directions[core]!, true);
  return null;
};
