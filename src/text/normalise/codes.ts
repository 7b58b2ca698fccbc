/** Numbers that name things: versions, addresses, rooms, "No. 5", "#5", "p. 12", 1080p. */
import { cardinal, digitWords, pairs } from './numbers.js';
import { quantityOf } from './quantities.js';
import { type Reading, type Rule, say, wordSet } from './reading.js';
import type { Tokens } from './tokens.js';

/** Before a number: singular, plural. */
const counters: Readonly<Record<string, string>> = {
  no: 'number',
  nos: 'numbers',
  vol: 'volume',
  vols: 'volumes',
  fig: 'figure',
  figs: 'figures',
  sec: 'section',
  ch: 'chapter',
  p: 'page',
  pp: 'pages',
  art: 'article',
  eq: 'equation',
  ext: 'extension',
  op: 'opus',
  pt: 'part',
  apt: 'apartment',
  ste: 'suite',
  est: 'established',
  ca: 'circa',
  c: 'circa',
  '№': 'number',
  '§': 'section',
  '§§': 'sections',
  '¶': 'paragraph',
};
const rooms = wordSet(
  'room flight highway hwy route interstate suite apartment apt. apt unit bus gate channel',
);
const streets = wordSet(
  'street st avenue ave road rd drive dr lane ln boulevard blvd court ct way place highway hwy parkway',
);

/** A number as what it names has it. */
const named = (text: string): string | null =>
  /^0\d/.test(text) ? digitWords(text) : (quantityOf(text)?.spoken ?? null);

/** v2, v1.2.3, 1.2.3, 192.168.1.1 */
const dotted = (tokens: Tokens, at: number): Reading | null => {
  const { letter, numbers, rest } =
    /^(?<letter>v)?(?<numbers>\d{1,5}(?:\.\d{1,5}){0,4})(?<rest>-[\p{L}\d]{1,12}(?:\.\d{1,3})?)?$/u.exec(
      tokens.at(at).core,
    )?.groups ?? {};
  if (numbers === undefined) return null;
  const groups = numbers.split('.');
  if (letter === undefined && groups.length < 3) return null;
  const isAddress =
    letter === undefined && groups.length === 4 && groups.every((group) => Number(group) < 256);
  const words = groups.map((group) => cardinal(group)).join(isAddress ? ' dot ' : ' point ');
  const prefix = letter === undefined || tokens.wordBefore(at) === 'version' ? '' : 'version ';
  const suffix =
    rest === undefined
      ? ''
      : ` ${rest.slice(1).replace(/\.(\d+)/, (_, digits: string) => ` ${cardinal(digits)}`)}`;
  return say(`${prefix}${words}${suffix.replace(/(?<=\p{L})\d+/gu, (digits) => ` ${cardinal(digits)}`)}`);
};

/** "No. 5", "pp. 10-20", "§ 5"; "No.5", "p.5", "#5", "§5". */
/** "c. 1850", but "200 C. 3 more". */
const counterOf = (word: string): string | undefined =>
  word === 'C' || !Object.hasOwn(counters, word.toLowerCase()) ? undefined : counters[word.toLowerCase()];

const counted = (tokens: Tokens, at: number): Reading | null => {
  const { core, tail } = tokens.at(at);
  const { counter, number } =
    /^(?<counter>#|№|§{1,2}|¶|\p{L}{1,4}\.)(?<number>\d[\d.,–-]{0,12})$/u.exec(core)?.groups ?? {};
  if (counter !== undefined && number !== undefined) {
    const word = counter === '#' ? 'number' : counterOf(counter.replace('.', ''));
    const words = named(number);
    return word === undefined || words === null ? null : say(`${word} ${words}`);
  }
  const word = counterOf(core);
  const next = tokens.nextAfterStop(at);
  const isSign = /^[^\p{L}]/u.test(core);
  if (word === undefined || (!isSign && tail !== '.') || next === undefined) return null;
  if (!/^\d/.test(next.core) && !(/^(?:vol|ch|pt|art|sec|fig|no)$/i.test(core) && /^[IVX]+$/.test(next.core)))
    return null;
  return { parts: [{ core: word, tail: '' }] };
};

/** Room 101, Flight 815, Highway 101; 1234 Main Street. */
const room = (tokens: Tokens, at: number): Reading | null => {
  const { core } = tokens.at(at);
  if (!/^[1-9]\d{2,3}$/.test(core)) return null;
  if (rooms.has(tokens.wordBefore(at)) || rooms.has(tokens.previous(at)?.core.toLowerCase() ?? ''))
    return say(pairs(core));
  for (let i = at; i < at + 3; i++) {
    const next = tokens.nextAfterStop(i);
    if (next === undefined || !/^[A-Z\d]/.test(next.core)) return null;
    if (i > at && streets.has(next.core.toLowerCase())) return say(pairs(core));
  }
  return null;
};

export const codes: Rule = (tokens, at) => {
  const { core } = tokens.at(at);
  const screen = /^(?<lines>\d{3,4})(?<letter>[pi])$/.exec(core)?.groups;
  if (screen !== undefined) return say(`${pairs(screen['lines']!)} ${screen['letter']!.toUpperCase()}`);
  // "dial 911", "the 9-1-1 call" are told digit by digit, "007" by its zeros.
  if (core === '911') return say('nine one one');
  return dotted(tokens, at) ?? counted(tokens, at) ?? room(tokens, at);
};
