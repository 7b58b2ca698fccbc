/** A segment's text as clauses: what is spoken between two pauses, cut into atoms that one voice of espeak-ng reads. */
import type { Replacement, SegmentRequest, Span } from '../../../src/threads/messages.js';
import { fullStopAfter, goesOnAfter } from '../../../src/text/full-stop.js';
import { type Voice, defaultVoice, isUnspaced, readingOf, refineVoice } from './languages.js';
import { type Terminal, cleanText, lex, terminals } from './lexer.js';

/** The smallest piece of text that is aligned with phonemes: a word, a part of one, a sign. */
export interface Atom {
  readonly spoken: string;
  readonly voice: Voice;
  /** Index into the request's words, the first of those spoken as one; -1 for text outside of all of them. */
  readonly word: number;
  /** Follows the atom before without white space, in a script that has none. */
  readonly glued: boolean;
  /** Spoken by another segment: here it only shapes what is beside it. */
  readonly aside: boolean;
}

export type Ending = 'sentence' | 'clause';

export interface Clause {
  readonly atoms: readonly Atom[];
  readonly terminal: Terminal;
  /** `null`: it goes on, further than is known. */
  readonly ending: Ending | null;
  /** It began earlier than is known. */
  readonly continues: boolean;
}

/** What other segments have of the clauses at a text's edges; '' where none is cut. */
export type Edges = Pick<SegmentRequest, 'before' | 'after'>;

/** Longest text of an atom: a "word" of 10,000 letters is read in parts. */
const atomMax = 48;

interface Draft {
  readonly text: string;
  readonly voice: Voice | null;
  readonly word: number;
  readonly glued: boolean;
  readonly aside: boolean;
}

/** Strongest mark since the last atom; later and weaker marks (`?"`, `).`) do not undo it. */
const strongest = (a: Terminal | null, b: Terminal): Terminal =>
  a === terminals.question || (a !== null && a > b && b !== terminals.question) ? a : b;

class Reader {
  /** What is read from now on is spoken by another segment. */
  aside = false;
  readonly #clauses: Clause[] = [];
  readonly #text: string;
  /** Nothing was read that would end the clause which an earlier segment began. */
  #continues: boolean;
  #drafts: Draft[] = [];
  #voice: Voice | null = null;
  #break: Terminal | null = null;

  constructor(text: string, continues: boolean) {
    this.#text = text;
    this.#continues = continues;
  }

  /** @param tokens what is read, in order; `next` is the code point that follows the token's white space */
  token(token: string, word: number, afterSpace: boolean, isFirst: boolean, next: string): void {
    const lexemes = lex(token);
    let glued = !afterSpace;
    for (const [place, lexeme] of lexemes.entries()) {
      if (lexeme.kind === 'break') {
        const silent = place === lexemes.length - 1 && goesOnAfter(fullStopAfter(token, isFirst), next);
        if (!silent || lexeme.terminal !== terminals.period) this.breakHere(lexeme.terminal);
      } else if (this.#spoken(lexeme.text, word, glued)) glued = false;
    }
  }

  breakHere(terminal: Terminal): void {
    if (this.#drafts.length === 0) this.#continues = false;
    this.#break = strongest(this.#break, terminal);
  }

  /** @returns the clauses of which something is spoken here */
  end(): Clause[] {
    const isOpen = this.#break === null && this.#drafts.at(-1)?.aside === true;
    // A text that just ends was meant as a sentence.
    this.#close(this.#break ?? (isOpen ? terminals.continuing : terminals.period));
    const last = this.#clauses.at(-1);
    if (isOpen && last !== undefined) this.#clauses[this.#clauses.length - 1] = { ...last, ending: null };
    return this.#clauses.filter(({ atoms }) => atoms.some(({ aside }) => !aside));
  }

  #spoken(text: string, word: number, glued: boolean): boolean {
    const runs = runsOf(text);
    for (const [place, run] of runs.entries()) {
      if (this.#break !== null) {
        this.#close(this.#break);
        this.#break = null;
      }
      const voice = run.voice === null ? null : refineVoice(run.voice, this.#text);
      const joined = place === 0 ? glued : true;
      this.#drafts.push({ text: run.text, voice, word, glued: joined, aside: this.aside });
    }
    return runs.length > 0;
  }

  #close(terminal: Terminal): void {
    if (this.#drafts.length === 0) return;
    const first = this.#drafts.find(({ voice }) => voice !== null)?.voice;
    const atoms: Atom[] = [];
    for (const { text, voice, word, glued, aside } of this.#drafts) {
      // Digits and signs are read in the language around them: the one before, at the start the one after.
      this.#voice = voice ?? this.#voice ?? first ?? defaultVoice;
      const joined = glued && isUnspaced(this.#voice);
      for (const [place, spoken] of partsOf(text).entries()) {
        const follows = place > 0 ? isUnspaced(this.#voice) : joined;
        atoms.push({ spoken, voice: this.#voice, word, glued: follows, aside });
      }
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

/** The text in parts of at most `atomMax` code points, mostly one. */
const partsOf = (text: string): string[] => {
  if (text.length <= atomMax) return [text];
  const characters = Array.from(text);
  const parts: string[] = [];
  for (let at = 0; at < characters.length; at += atomMax)
    parts.push(characters.slice(at, at + atomMax).join(''));
  return parts;
};

/** Runs of one script each; a script that nobody reads is named, once. */
const runsOf = (text: string): { text: string; voice: Voice | null }[] => {
  if (/^[ -~]*$/.test(text)) return [{ text, voice: /[a-z]/i.test(text) ? defaultVoice : null }];
  const runs: { text: string; voice: Voice | null }[] = [];
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
    const voice = reading.kind === 'voice' ? reading.voice : null;
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
 * @param spoken what is said in the place of some of them, in order
 * @param edges what is spoken before and after it
 * @returns clauses in order, none of them empty; none at all where nothing is spoken
 */
export const clausesOf = (
  text: string,
  words: readonly Span[],
  spoken: readonly Replacement[] = [],
  { before, after }: Edges = { before: '', after: '' },
): Clause[] => {
  const reader = new Reader(text, before !== '');
  let isFirst = true;
  let afterSpace = true;
  const speak = (token: string, word: number, following: string) => {
    const next = /^\s*(?=(\S))/u.exec(following)?.[1] ?? '';
    // Compatibility forms may hold white space, and what is said instead of a token is often several words.
    const parts = cleanText(token)
      .split(/\s+/)
      .filter((part) => part !== '');
    for (const [place, part] of parts.entries()) {
      reader.token(part, word, afterSpace || place > 0, isFirst, parts[place + 1] ?? next);
      isFirst = false;
    }
    afterSpace = false;
  };
  /** Reads what belongs to no word. */
  const between = (gap: string, following: string) => {
    for (const { 0: token, index } of gap.matchAll(/\S+/g)) {
      afterSpace ||= index > 0;
      speak(token, -1, gap.slice(index + token.length) + following);
    }
    afterSpace ||= /\s$/.test(gap);
    if (lineBreak.test(gap)) reader.breakHere(blankLine.test(gap) ? terminals.period : terminals.continuing);
  };
  const beside = (context: string, following: string) => {
    reader.aside = true;
    between(context, following);
    reader.aside = false;
  };
  const from = (at: number) => text.slice(at, at + 64) + after;

  beside(before, from(0));
  let end = 0;
  for (let index = 0, used = 0; index < words.length;) {
    const replacement = spoken[used]?.first === index ? spoken[used++] : undefined;
    const last = replacement?.last ?? index;
    const { start } = words[index]!;
    between(text.slice(end, start), from(start));
    end = words[last]!.end;
    speak(replacement?.spoken ?? text.slice(start, end), index, from(end));
    index = last + 1;
  }
  const rest = text.slice(end);
  between(rest, after);
  if (lineBreak.test(rest)) reader.breakHere(terminals.period);
  beside(after, '');
  return reader.end();
};
