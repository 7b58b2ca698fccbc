/** References: verses ("Genesis 1:1-3") and the numbers of sources ("as shown [1]"). */
import { silentForm } from '../../replacements.js';
import { cardinal, ordinal, quantityOf } from './numbers.js';
import { type Reading, type Rule, say, type Tokens, wordSet, wordTable } from '../tokens.js';
import { isCounted } from './years.js';

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

const verse = (tokens: Tokens, at: number): Reading | null => {
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

const mark = String.raw`\[[1-9]\d{0,2}(?:[-–,][1-9]\d{0,2})?\]`;
const markAlone = new RegExp(`^(?:${mark})+(?<tail>[.,;:!?)"”’]*)$`);
const markAttached = new RegExp(
  `^(?<word>[("“‘]?\\p{L}[\\p{L}'’-]+[.,;:!?)"”’]{0,3})(?:${mark})+(?<tail>[.,;:!?)"”’]*)$`,
  'u',
);
/** A source is named: "see [1]", "in [2]". */
const naming = wordSet('see in from by per cf of and as or to with like ref both');
/** Places in a list, not sources: "press [1]", "array[1]". */
const places = wordSet(
  'press key button option choose select type enter hit array arr list args argv items index row column step level item question answer data values',
);

/** The number of a source is left out after what it supports: "as shown [1].", "as shown.[1]". */
const source = (tokens: Tokens, at: number): Reading | null => {
  const { raw, core, gap, lead } = tokens.at(at);
  const attached = markAttached.exec(raw)?.groups;
  if (attached !== undefined) {
    const word = attached['word']!;
    if (places.has(word.toLowerCase())) return null;
    return { parts: [{ core: word, lead: '', tail: attached['tail']! }] };
  }
  const tail = markAlone.exec(raw)?.groups?.['tail'];
  const before = at > 0 ? tokens.at(at - 1) : undefined;
  if (tail === undefined || before === undefined || gap !== 'space' || lead !== '[') return null;
  const word = before.core.toLowerCase();
  if (naming.has(word) && before.tail === '')
    return { parts: [{ core: `reference ${quantityOf(core)?.spoken ?? core}`, lead: '', tail }] };
  const isCount = tail === '' && isCounted(tokens.following(at)?.core ?? '');
  if (isCount || places.has(word) || !/\p{L}$/u.test(word) || /:$/.test(before.tail)) return null;
  return { parts: [{ core: tail === '' ? silentForm : '', lead: '', tail }] };
};

export const references: Rule = (tokens, at) =>
  tokens.at(at).raw.includes('[') ? source(tokens, at) : verse(tokens, at);
