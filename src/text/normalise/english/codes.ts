/** Numbers that name things: versions, rooms, pages, telephone numbers, codes, Roman numerals, verses. */
import { unitOf } from './measures.js';
import { states } from './places.js';
import { cardinal, digitGroups, digitWords, ordinal, pairs, quantityOf } from './numbers.js';
import { romanOf } from '../roman.js';
import { type Part, type Reading, type Rule, say, type Tokens, wordSet, wordTable } from '../tokens.js';

/** Words before a number. */
const counters = wordTable(`
  no: number; nos: numbers; vol: volume; vols: volumes; fig: figure; figs: figures; sec: section; ch: chapter;
  p: page; pp: pages; art: article; eq: equation; ext: extension; op: opus; pt: part; apt: apartment; ste: suite;
  est: established; rm: room; bldg: building; ver: version; ca: circa; c: circa; №: number; #: number; §: section; §§: sections; ¶: paragraph
`);
const rooms = wordSet(
  'room flight highway hwy route interstate suite apartment apt. apt unit bus gate channel http error',
);
const streets = wordSet(
  'street st avenue ave road rd drive dr lane ln boulevard blvd court ct way place highway hwy parkway pkwy expressway expy ' +
    'freeway fwy circle cir terrace ter trail trl plaza plz',
);

/** A number that names something: `12`, `007`, `05-12`. */
const named = (text: string): string | null =>
  /^0\d/.test(text) ? digitGroups(text.match(/\d+/g)!) : (quantityOf(text)?.spoken ?? null);

/** v2, v1.2.3, 1.2.3, 192.168.1.1 */
const dotted = (tokens: Tokens, at: number): Reading | null => {
  const { host, mark, end } =
    /^(?<host>\d{1,3}(?:\.\d{1,3}){3})(?<mark>[:/])(?<end>\d{1,5})$/.exec(tokens.at(at).core)?.groups ?? {};
  if (host !== undefined) {
    const octets = host.split('.').map(cardinal).join(' dot ');
    return say(`${octets} ${mark === ':' ? `colon ${digitWords(end!)}` : `slash ${cardinal(end!)}`}`);
  }
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

/** "c. 1850", but not "200 C. 3 more". */
const counterOf = (word: string): string | undefined =>
  word === 'C' ? undefined : counters.get(word.toLowerCase());

/** "No. 5", "pp. 10-20", "§ 5"; "No.5", "p.5", "#5", "§5". */
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
  // "# 5 ways" is a heading.
  if (core === '#' && tokens.wordBefore(at) === '') return null;
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
  if (/^[45]0/.test(core) && tokens.next(at)?.core === 'error') return say(pairs(core));
  for (let i = at; i < at + 3; i++) {
    const next = tokens.nextAfterStop(i);
    if (next === undefined || !/^[A-Z\d]/.test(next.core)) return null;
    if (i > at && streets.has(next.core.toLowerCase())) return say(pairs(core));
  }
  return null;
};

export const codes: Rule = (tokens, at) => {
  const { core, tail } = tokens.at(at);
  const screen = /^(?<lines>\d{3,4})(?<letter>[pi])$/.exec(core)?.groups;
  if (screen !== undefined) return say(`${pairs(screen['lines']!)} ${screen['letter']!.toUpperCase()}`);
  // The retirement plans 401(k) and 403(b).
  const { plan, letter } = /^(?<plan>[1-9]\d{2})\((?<letter>[a-z])$/i.exec(core)?.groups ?? {};
  if (plan !== undefined && letter !== undefined && tail.startsWith(')'))
    return { parts: [{ core: `${pairs(plan)} ${letter.toUpperCase()}`, tail: tail.slice(1) }] };
  if (/^(?:401k|403b)$/i.test(core)) return say(`${pairs(core.slice(0, 3))} ${core.slice(3).toUpperCase()}`);
  // "dial 911" is read digit by digit.
  if (core === '911') return say('nine one one');
  return dotted(tokens, at) ?? counted(tokens, at) ?? room(tokens, at);
};

/** Tokens of one number: +33 1 23 45 67 89. */
const tokensMax = 7;
const digitsMax = 15;

const callCues = wordSet('call phone tel telephone fax mobile cell dial text sms whatsapp hotline');
const piece = /^\+?\(?\d[\d().–-]*$/;
const american = /^(?:\+?1[-. ])?(?:\(\d{3}\)[-. ]?|[2-9]\d\d[-. ]|\d{3}-(?=\d{3}-))\d{3}[-. ]\d{4}$/;
const local = /^[2-9]\d\d-\d{4}$/;

/** The token without the punctuation around it; brackets of an area code stay: (555). */
const bare = (raw: string): { lead: string; text: string; tail: string } => {
  let start = 0;
  let end = raw.length;
  while (start < end && '"\'‘’“[{'.includes(raw[start]!)) start++;
  while (end > start && '.,;:!?…"\'’”]}'.includes(raw[end - 1]!)) end--;
  const opens = raw[start] === '(';
  const closes = raw[end - 1] === ')';
  // "(555-1234)", "(call 555-1234)": the brackets hold more than an area code.
  if (closes && (!opens || end - start > 5)) end--;
  if (opens && closes && end - start > 5) start++;
  return { lead: raw.slice(0, start), text: raw.slice(start, end), tail: raw.slice(end) };
};

const isNumber = (text: string, digits: number, cued: boolean): boolean => {
  if (digits < 3 || digits > digitsMax) return false;
  if (text.startsWith('+')) return digits >= 7 && /[ (.-]/.test(text);
  if (american.test(text)) return true;
  if (cued) return digits >= (/^\d+$/.test(text) ? 3 : 7);
  // 020 7946 0958
  return /^0\d+(?: \d{2,}){1,4}$/.test(text) && digits >= 9 && digits <= 11;
};

/** 555-1234, but not the range 200-1500 mg. */
const isLocal = (text: string, tokens: Tokens, at: number): boolean =>
  local.test(text) && !/0-\d*0$/.test(text) && unitOf(tokens.next(at)?.core ?? '', false) === null;

const partsOf = (texts: readonly string[], tokens: Tokens, at: number): Part[] =>
  texts.map((text, i) => {
    const { lead, tail } = bare(tokens.at(at + i).raw);
    const plus = text.startsWith('+') ? 'plus ' : '';
    const core = plus + digitGroups(text.match(/\d+/g) ?? []);
    return { core, lead, tail: i < texts.length - 1 ? ',' : tail };
  });

/** The longest telephone number that begins here. */
const dialled = (tokens: Tokens, at: number): Reading | null => {
  const cued =
    callCues.has(tokens.wordBefore(at)) ||
    (/^at$/.test(tokens.wordBefore(at)) && callCues.has(tokens.wordBefore(at - 1)));
  const texts: string[] = [];
  // Most numbers cannot begin a telephone number.
  if (!cued && !/^\W*(?:\+|\(|0\d|1\b|[2-9]\d\d)/.test(tokens.at(at).raw)) return null;
  for (let i = at; i < Math.min(tokens.length, at + tokensMax); i++) {
    const { raw, gap } = tokens.at(i);
    const { lead, text, tail } = bare(raw);
    if (!piece.test(text) || text.length > 24 || (i > at && (gap !== 'space' || lead !== ''))) break;
    texts.push(text);
    if (tail !== '') break;
  }
  for (; texts.length > 0; texts.pop()) {
    const joined = texts.join(' ');
    const digits = joined.replace(/\D/g, '').length;
    if (isNumber(joined, digits, cued) || (texts.length === 1 && isLocal(joined, tokens, at)))
      return { parts: partsOf(texts, tokens, at) };
  }
  return null;
};

/** "Santa, FL, 95051": a comma stands between. */
const isAfterState = (tokens: Tokens, at: number): boolean => {
  const before = at > 1 ? tokens.at(at - 1) : undefined;
  return (
    before !== undefined && before.tail === ',' && states.has(before.core) && tokens.at(at - 2).tail === ','
  );
};

/** Groups of four digits (a card number), its last digits, or a ZIP code after its state. */
const typed = (tokens: Tokens, at: number): Reading | null => {
  const { core } = tokens.at(at);
  const previous = tokens.previous(at)?.core ?? '';
  let groups = 0;
  while (groups < 5 && /^\d{4}$/.test(tokens.at(at + groups).core) && tokens.next(at + groups) !== undefined)
    groups++;
  if (/^\d{4}$/.test(tokens.at(at + groups).core)) groups++;
  if (groups >= 3) {
    const last = at + groups - 1;
    const parts = Array.from({ length: groups }, (_, i): Part => {
      const { core: digits, tail } = tokens.at(at + i);
      return { core: digitWords(digits), tail: at + i < last ? ',' : tail };
    });
    return { parts };
  }
  const cue = tokens.wordBefore(at);
  const isEnding =
    (/^(?:ending|ends)$/.test(tokens.wordBefore(at - 1)) && cue === 'in') ||
    (at > 0 && /^[•*·]{2,}$/.test(tokens.at(at - 1).raw));
  if (/^\d{2,6}$/.test(core) && (isEnding || (cue === 'four' && tokens.wordBefore(at - 1) === 'last')))
    return say(digitWords(core));
  if (
    /^\d{5}(?:-\d{4})?$/.test(core) &&
    (states.has(previous) || previous === 'D.C' || isAfterState(tokens, at))
  )
    return say(digitGroups(core.split('-')));
  return null;
};

/** 978-3-16-148410-0, 123-45-6789. */
const hyphenated = (text: string): Reading | null =>
  /^\d+(?:-\d+){2,6}$/.test(text) && text.replaceAll('-', '').length >= 7
    ? say(digitGroups(text.split('-')))
    : null;

export const telephone: Rule = (tokens, at) => {
  const { core, raw } = tokens.at(at);
  if (core === '' || !/^\W{0,4}\d/.test(raw)) return null;
  const vanity = /^1-(?<code>8\d\d)-(?<name>[A-Z]{3,12})$/.exec(core)?.groups;
  if (vanity !== undefined)
    return say(
      `one, ${vanity['code'] === '800' ? 'eight hundred' : digitWords(vanity['code']!)}, ${vanity['name']!.toLowerCase()}`,
    );
  return typed(tokens, at) ?? dialled(tokens, at) ?? hyphenated(core);
};

const numberedParts = wordSet(
  'page verse clause item paragraph chapter part act scene book volume vol section article phase type class stage level title appendix figure table',
);
/** "phase I trial" is far more common than "the phase I like". */
const sureParts = wordSet('chapter phase type stage');
const rulers = wordSet(
  'henry louis charles george edward william james richard elizabeth mary catherine philip frederick peter ivan ' +
    'alexander nicholas pius benedict francis leo paul gregory innocent clement napoleon ferdinand leopold otto ' +
    'ramesses ramses ptolemy darius xerxes constantine margaret christian gustav haakon harald carl alfonso',
);
const royalTitles = wordSet('king queen pope emperor empress tsar czar prince saint');
/** After a ruler's name these make "I" a numeral. */
const afterRuler = wordSet('of died ruled reigned became');

export const romanNumerals: Rule = (tokens, at) => {
  const { core, tail } = tokens.at(at);
  if (!/^[IVXL]/.test(core)) return null;
  const [numeral = '', possessive] = core.split("'");
  const value = romanOf(numeral);
  const previous = tokens.previous(at);
  if (value === null || previous === undefined || (possessive !== undefined && possessive !== 's'))
    return null;
  const owner = possessive === undefined ? '' : "'s";
  const before = previous.core.toLowerCase();
  if (numberedParts.has(before)) {
    // "Part I", but not "the part I like".
    const next = tokens.next(at)?.core ?? '';
    const isPronoun =
      numeral === 'I' &&
      !sureParts.has(before) &&
      (!/^[A-Z]/.test(previous.core) || /^(?!of$|and$|to$)\p{Ll}/u.test(next));
    return numeral === 'L' || isPronoun ? null : say(cardinal(String(value)) + owner);
  }
  const isTitled = royalTitles.has(tokens.previous(at - 1)?.core.toLowerCase() ?? '');
  if (/^[A-Z]/.test(previous.core) && (rulers.has(before) || isTitled)) {
    const next = tokens.next(at)?.core ?? '';
    // "Henry V" is a numeral, but "George V. Smith" has an initial.
    const isInitial = tail.startsWith('.') && /^[A-Z]/.test(tokens.nextAfterStop(at)?.core ?? '');
    const isSure = numeral === 'I' ? isTitled || owner !== '' || afterRuler.has(next) : !isInitial;
    return isSure ? say(`the ${ordinal(String(value))}${owner}`) : null;
  }
  // Two letters or more after a name: World War II, Rocky IV, Super Bowl LVIII. XL and XX are sizes and chromosomes.
  if (!/^\p{Lu}\p{Ll}+$/u.test(previous.core) || /^(?:XL|LX|XX|XXX|L)$/.test(numeral)) return null;
  const isWar = before === 'war' && tokens.previous(at - 1)?.core === 'World';
  return (numeral.length > 1 || isWar) && tail !== ')' ? say(cardinal(String(value)) + owner) : null;
};

/** Holy books. */
const books = wordSet(
  'Genesis Exodus Leviticus Numbers Deuteronomy Joshua Judges Ruth Samuel Kings Chronicles Ezra Nehemiah Esther Job Psalm Psalms ' +
    'Proverbs Ecclesiastes Isaiah Jeremiah Lamentations Ezekiel Daniel Hosea Joel Amos Obadiah Jonah Micah Nahum Habakkuk Zephaniah ' +
    'Haggai Zechariah Malachi Matthew Mark Luke John Acts Romans Corinthians Galatians Ephesians Philippians Colossians ' +
    'Thessalonians Timothy Titus Philemon Hebrews James Peter Jude Revelation Surah Sura Quran',
);
const shortBooks = wordTable(`
  Gen: Genesis; Ex: Exodus; Exod: Exodus; Lev: Leviticus; Num: Numbers; Deut: Deuteronomy; Josh: Joshua; Judg: Judges;
  Sam: Samuel; Kgs: Kings; Chr: Chronicles; Neh: Nehemiah; Ps: Psalm; Pss: Psalms; Prov: Proverbs; Eccl: Ecclesiastes;
  Isa: Isaiah; Jer: Jeremiah; Lam: Lamentations; Ezek: Ezekiel; Dan: Daniel; Hos: Hosea; Mic: Micah; Zech: Zechariah;
  Mal: Malachi; Matt: Matthew; Rom: Romans; Cor: Corinthians; Gal: Galatians; Eph: Ephesians; Phil: Philippians;
  Col: Colossians; Thess: Thessalonians; Tim: Timothy; Heb: Hebrews; Jas: James; Pet: Peter; Rev: Revelation
`);
/** Books of which there are several: "1 Corinthians". */
const several = wordSet('Samuel Kings Chronicles Corinthians Thessalonians Timothy Peter John');

const verseForm = /^(?<chapter>\d{1,3}):(?<verse>\d{1,3})(?:[-–—](?:(?<next>\d{1,3}):)?(?<last>\d{1,3}))?$/;

const bookOf = (word: string): string | undefined => (books.has(word) ? word : shortBooks.get(word));

/** Genesis 1:1-3; 1 Cor. 13:4. */
export const verses: Rule = (tokens, at) => {
  const { core } = tokens.at(at);
  const name = shortBooks.get(core);
  const isOrdinal = /^[1-3]$/.test(core);
  if (isOrdinal || name !== undefined) {
    const next = tokens.nextAfterStop(at)?.core ?? '';
    if (!isOrdinal) return verseForm.test(next) ? { parts: [{ core: name!, tail: '' }] } : null;
    const isBook = several.has(bookOf(next) ?? '') && /^\d/.test(tokens.nextAfterStop(at + 1)?.core ?? '');
    return isBook ? say(ordinal(core).replace(/^./, (letter) => letter.toUpperCase())) : null;
  }
  const { chapter, verse: first, next: other, last } = verseForm.exec(core)?.groups ?? {};
  if (chapter === undefined || bookOf(tokens.previous(at)?.core ?? '') === undefined) return null;
  const one = `${cardinal(chapter)} ${cardinal(first!)}`;
  if (last === undefined) return say(one);
  return other === undefined
    ? say(`${cardinal(chapter)} verses ${cardinal(first!)} to ${cardinal(last)}`)
    : say(`${one} to ${cardinal(other)} ${cardinal(last)}`);
};
