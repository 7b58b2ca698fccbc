/**
 * Splits a segment's text into clauses (what is spoken between two pauses), and those into atoms of one espeak-ng
 * voice each.
 */
import type { Replacement, SegmentRequest, Span } from '../../../src/threads/messages.js';
import { ipaPlace, spokenUnits } from '../../../src/text/replacements.js';
import { fullStopAfter, goesOnAfter } from '../../../src/text/full-stop.js';
import {
  type EspeakVoice,
  type SpokenLanguage,
  defaultVoice,
  english,
  ipaVoice,
  isUnspaced,
  readingOf,
  voiceFor,
} from './languages.js';
import { cleanText } from './letters.js';
import { type Terminal, lex, terminals } from './lexer.js';
import { Lines } from './markup.js';
import { LETTER_A, spellingsOf } from './spellings.js';

/** The smallest piece of text that is aligned with phonemes: a word, a part of a word, or a sign. */
export interface Atom {
  /** Phonemes if its voice is `ipaVoice`. */
  readonly spoken: string;
  readonly voice: EspeakVoice;
  /** Index into the request's words, the first one of words spoken as one; -1 for text outside all words. */
  readonly word: number;
  /** No white space is between this atom and the one before, in a script that has none. */
  readonly glued: boolean;
  /** Another segment speaks it: here it only affects its neighbours. */
  readonly aside: boolean;
  /** The punctuation directly before and after it. */
  readonly before: string;
  readonly after: string;
}

export type Ending = 'sentence' | 'clause';

export interface Clause {
  readonly atoms: readonly Atom[];
  readonly terminal: Terminal;
  /** `null`: the clause goes on beyond the known text. */
  readonly ending: Ending | null;
  /** The clause began before the known text. */
  readonly continues: boolean;
}

/** The parts of clauses that other segments speak before and after a text; '' where no clause is cut. */
export type Edges = Pick<SegmentRequest, 'before' | 'after' | 'beforeIsWhole'>;

/** Code points of an atom at most: a "word" of 10,000 letters is read in parts. */
const atomMax = 48;

interface Draft {
  text: string;
  readonly voice: EspeakVoice | null;
  readonly word: number;
  readonly glued: boolean;
  readonly aside: boolean;
  readonly before: string;
  after: string;
}

const contraction = /^(?:(n)['’‘´`]t|['’‘´`](s|t|d|m|ll|re|ve))(?![\p{L}'’‘´`])/iu;
const elided: Readonly<Record<string, RegExp>> = {
  fr: /^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu)['’‘´]$/i,
  it: /^(?:[cdlmnstv]|un|all|dall|dell|nell|sull|quell)['’‘´]$/i,
};

/** Marks that belong to the word after them. */
const opening = /^[\p{Ps}\p{Pi}¡¿„‚]$/u;

/** The strongest mark since the last atom; a later, weaker mark (`?"`, `).`) does not replace it. */
const strongest = (a: Terminal | null, b: Terminal): Terminal =>
  a === terminals.question || (a !== null && a > b && b !== terminals.question) ? a : b;

class Reader {
  /** Another segment speaks what is read from now on. */
  aside = false;
  readonly #clauses: Clause[] = [];
  readonly #text: string;
  readonly #language: SpokenLanguage;
  /** Nothing read so far ends the clause that an earlier segment began. */
  #continues: boolean;
  #drafts: Draft[] = [];
  #voice: EspeakVoice | null = null;
  #break: Terminal | null = null;
  /** Punctuation before the next atom. */
  #before = '';
  /** A short word without its vowel that stands apart from the next one: "l' homme". */
  #elided = '';
  #elidedWord = -1;

  constructor(text: string, continues: boolean, language: SpokenLanguage) {
    this.#text = text;
    this.#language = language;
    this.#continues = continues;
  }

  /** Reads the next token. @param next the code point after the white space that follows the token */
  token(token: string, word: number, afterSpace: boolean, isFirst: boolean, next: string): void {
    const { code } = this.#language;
    if (elided[code]?.test(token) === true) {
      this.#elided += `${token.slice(0, -1)}'`;
      this.#elidedWord = word;
      return;
    }
    const lexemes = lex(code === 'en' ? this.#joinContraction(token) : token, code);
    let glued = !afterSpace;
    let isOpen = afterSpace;
    for (const [place, lexeme] of lexemes.entries()) {
      if (lexeme.kind === 'spoken') {
        if (this.#spoken(lexeme.text, word, glued)) glued = isOpen = false;
        continue;
      }
      if (lexeme.kind === 'break') {
        const silent = place === lexemes.length - 1 && goesOnAfter(fullStopAfter(token, isFirst, code), next);
        // An initial, or the sign of a list.
        if (silent && token === 'A.' && code === 'en') this.#drafts.at(-1)!.text = LETTER_A;
        if (silent && lexeme.terminal === terminals.period) continue;
        this.breakHere(lexeme.terminal);
      }
      this.#mark(lexeme.text, isOpen);
    }
  }

  /** Joins a contraction to its word ("she 's", "do n't"). @returns the rest of the token */
  #joinContraction(token: string): string {
    const last = this.#drafts.at(-1);
    const [whole = '', not = '', letters = ''] = contraction.exec(token) ?? [];
    if (
      last === undefined ||
      whole === '' ||
      last.text.length > atomMax ||
      this.#break !== null ||
      last.after !== ''
    )
      return token;
    if (!/\p{L}$/u.test(last.text) || (letters === 't' && !last.text.endsWith('n'))) return token;
    last.text += not === '' ? `'${letters}` : "n't";
    return token.slice(whole.length);
  }

  /** Reads a word that is given as phonemes. */
  phonemes(text: string, word: number): void {
    this.#draft(text, ipaVoice, word, false);
  }

  /** A line ends. */
  lineBreak(isParagraph: boolean): void {
    this.breakHere(isParagraph ? terminals.period : terminals.continuing);
    const last = this.#drafts.at(-1);
    if (last?.after === '') last.after = isParagraph ? '.' : ',';
  }

  /** @param isOpen no word is directly before it */
  #mark(text: string, isOpen: boolean): void {
    const last = this.#drafts.at(-1);
    for (const mark of text)
      if (last === undefined || opening.test(mark) || (isOpen && /["']/.test(mark))) this.#before += mark;
      else last.after += mark;
  }

  breakHere(terminal: Terminal): void {
    this.#speakElided();
    if (this.#drafts.length === 0) this.#continues = false;
    this.#break = strongest(this.#break, terminal);
  }

  /** @returns the clauses that this segment speaks at least in part */
  end(): Clause[] {
    this.#speakElided();
    const isOpen = this.#break === null && this.#drafts.at(-1)?.aside === true;
    // A text without a mark at its end is a sentence.
    this.#close(this.#break ?? (isOpen ? terminals.continuing : terminals.period));
    const last = this.#clauses.at(-1);
    if (isOpen && last !== undefined) this.#clauses[this.#clauses.length - 1] = { ...last, ending: null };
    return this.#clauses.filter(({ atoms }) => atoms.some(({ aside }) => !aside));
  }

  /** No word followed. */
  #speakElided(): void {
    const text = this.#elided.replace(/'$/, '');
    this.#elided = '';
    if (text !== '') this.#spoken(text, this.#elidedWord, false);
  }

  #spoken(text: string, word: number, glued: boolean): boolean {
    const runs = runsOf(text, this.#language, this.#text);
    for (const [place, run] of runs.entries())
      this.#draft(run.text, run.voice, word, place === 0 ? glued : true);
    return runs.length > 0;
  }

  #draft(text: string, voice: EspeakVoice | null, word: number, glued: boolean): void {
    if (this.#break !== null) {
      this.#close(this.#break);
      this.#break = null;
    }
    this.#drafts.push({
      text: this.#elided + text,
      voice,
      word,
      glued,
      aside: this.aside,
      before: this.#before,
      after: '',
    });
    this.#before = this.#elided = '';
  }

  #close(terminal: Terminal): void {
    if (this.#drafts.length === 0) return;
    const first = this.#drafts.find(({ voice }) => voice !== null && voice !== ipaVoice)?.voice;
    const voices = this.#drafts.map(({ voice: own }) => {
      // Digits and signs are read in the language of the atom before them; at the start, in that of the atom after.
      const voice = own ?? this.#voice ?? first ?? this.#language.voice;
      if (voice !== ipaVoice) this.#voice = voice;
      return voice;
    });
    const written = this.#drafts.map(({ text }) => text);
    const starts = this.#drafts.map(({ before, after }, at) =>
      at > 0 ? before !== '' && after === '' : !this.#continues,
    );
    const spellings = spellingsOf(written, voices, starts);
    const atoms: Atom[] = [];
    for (const [at, { word, glued, aside, before, after }] of this.#drafts.entries()) {
      const { text, isIpa } = spellings[at]!;
      const voice = isIpa ? ipaVoice : voices[at]!;
      const joined = glued && isUnspaced(voice);
      const parts = partsOf(text);
      for (const [place, spoken] of parts.entries())
        atoms.push({
          ...{ spoken, voice, word, glued: place > 0 ? isUnspaced(voice) : joined, aside },
          before: place === 0 ? before : '',
          after: place === parts.length - 1 ? after : '',
        });
    }
    this.#clauses.push({
      atoms,
      terminal,
      ending: terminal === terminals.continuing ? 'clause' : 'sentence',
      continues: this.#continues,
    });
    this.#continues = false;
    this.#drafts = [];
  }
}

/** Splits the text into parts of at most `atomMax` code points, usually one. */
const partsOf = (text: string): string[] => {
  if (text.length <= atomMax) return [text];
  const characters = Array.from(text);
  const parts: string[] = [];
  for (let at = 0; at < characters.length; at += atomMax)
    parts.push(characters.slice(at, at + atomMax).join(''));
  return parts;
};

/** Splits the text into runs of one script each. A run of a script that has no voice becomes the script's name. */
const runsOf = (
  text: string,
  language: SpokenLanguage,
  whole: string,
): { text: string; voice: EspeakVoice | null }[] => {
  if (/^[ -~]*$/.test(text)) {
    const reading = readingOf(/[a-z]/i.test(text) ? 'a' : ' ');
    return [{ text, voice: reading.kind === 'voice' ? voiceFor(reading, language, whole) : null }];
  }
  const runs: { text: string; voice: EspeakVoice | null }[] = [];
  let unread = '';
  for (const character of text) {
    const reading = readingOf(character);
    const run = runs.at(-1);
    if (reading.kind === 'unread') {
      if (reading.name !== '' && reading.name !== unread)
        runs.push({ text: reading.name, voice: defaultVoice });
      unread = reading.name;
      continue;
    }
    const voice = reading.kind === 'voice' ? voiceFor(reading, language, whole) : null;
    if (run === undefined || unread !== '' || (voice !== null && run.voice !== null && run.voice !== voice))
      runs.push({ text: character, voice });
    else {
      run.text += character;
      run.voice ??= voice;
    }
    unread = '';
  }
  return runs;
};

const blankLine = /\n\s*\n|\u2029/;
const lineBreak = /[\n\u2028\u2029]/;

/**
 * @param text the segment, any string
 * @param words its tokens
 * @param spoken replacements for some of the tokens, in order
 * @param edges what other segments speak before and after it
 * @param language of the speaker
 * @returns the clauses in order, none of them empty
 */
export const clausesOf = (
  text: string,
  words: readonly Span[],
  spoken: readonly Replacement[] = [],
  { before, after, beforeIsWhole = false }: Edges = { before: '', after: '' },
  language: SpokenLanguage = english,
): Clause[] => {
  const reader = new Reader(text, before !== '' && !beforeIsWhole, language);
  const lines = new Lines(before === '');
  let isFirst = true;
  let afterSpace = true;
  const latinCode = language.scripts.includes('Latin') ? language.code : 'en';
  const speak = (token: string, word: number, following: string) => {
    const next = /^\s*(?=(\S))/u.exec(following)?.[1] ?? '';
    // Compatibility forms can contain white space, and a replacement is often several words.
    const parts = cleanText(token, latinCode)
      .split(/\s+/)
      .filter((part) => part !== '');
    for (const [place, written] of parts.entries()) {
      const part = reader.aside ? written : lines.read(written, `${parts[place + 1] ?? ''} ${following}`);
      reader.token(part, word, afterSpace || place > 0, isFirst, parts[place + 1] ?? next);
      if (part !== '') isFirst = false;
    }
    afterSpace = false;
  };
  /** Reads text that belongs to no word. */
  const between = (gap: string, following: string) => {
    for (const { 0: token, index } of gap.matchAll(/\S+/g)) {
      afterSpace ||= index > 0;
      speak(token, -1, gap.slice(index + token.length) + following);
    }
    afterSpace ||= /\s$/.test(gap);
    if (lineBreak.test(gap)) {
      reader.lineBreak(blankLine.test(gap));
      lines.break();
    }
  };
  const beside = (context: string, following: string) => {
    reader.aside = true;
    between(context, following);
    reader.aside = false;
  };
  const from = (at: number) => text.slice(at, at + 256) + after;

  beside(before, from(0));
  let end = 0;
  let lastWritten = '';
  for (const { first: index, start, end: wordEnd, form: replacement } of spokenUnits(words, spoken)) {
    between(text.slice(end, start), from(start));
    end = wordEnd;
    const written = text.slice(start, end);
    const following = from(end);
    const form = lines.isMark(written, following)
      ? written
      : lines.formOf(written, replacement?.spoken ?? written, lastWritten, following);
    lastWritten = written;
    if (replacement?.ipa === undefined) speak(form, index, following);
    else {
      const [lead = '', tail = ''] = form.split(ipaPlace);
      speak(lead, index, tail);
      reader.phonemes(replacement.ipa, index);
      lines.began();
      isFirst = false;
      speak(tail, index, following);
    }
  }
  const rest = text.slice(end);
  between(rest, after);
  if (lineBreak.test(rest)) reader.lineBreak(true);
  beside(after, '');
  return reader.end();
};
