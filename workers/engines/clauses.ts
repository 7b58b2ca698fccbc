/** A segment's text as clauses: what is spoken between two pauses, cut into atoms that one voice of espeak-ng reads. */
import type { Replacement, Span } from '../../src/dispatch/messages.js';
import { limits } from '../../src/limits.js';
import { fullStopAfter } from '../../src/text/full-stop.js';
import { cleanText } from './clean.js';
import { type Voice, defaultVoice, isUnspaced, readingOf, refineVoice } from './languages.js';
import { type Terminal, lex, terminals } from './lexer.js';

/** The smallest piece of text that is aligned with phonemes: a word, a part of one, a sign. */
export interface Atom {
  readonly spoken: string;
  readonly voice: Voice;
  /** Index into the request's words, the first of those spoken as one; -1 for text outside of all of them. */
  readonly word: number;
  /** Follows the atom before without white space, in a script that has none. */
  readonly glued: boolean;
}

/** `cut`: the text goes on in the next segment, in the middle of the clause. */
export type Ending = 'sentence' | 'clause' | 'cut';

export interface Clause {
  readonly atoms: readonly Atom[];
  readonly terminal: Terminal;
  readonly ending: Ending;
}

/** Longest text of an atom: a "word" of 10,000 letters is read in parts. */
const atomMax = 48;

interface Draft {
  readonly text: string;
  readonly voice: Voice | null;
  readonly word: number;
  readonly glued: boolean;
}

/** Strongest mark since the last atom; later and weaker marks (`?"`, `).`) do not undo it. */
const strongest = (a: Terminal | null, b: Terminal): Terminal =>
  a === terminals.question || (a !== null && a > b && b !== terminals.question) ? a : b;

class Reader {
  readonly clauses: Clause[] = [];
  readonly #text: string;
  #drafts: Draft[] = [];
  #voice: Voice | null = null;
  #break: Terminal | null = null;

  constructor(text: string) {
    this.#text = text;
  }

  /** @param tokens what is read, in order; `next` is the code point that follows the token's white space */
  token(token: string, word: number, afterSpace: boolean, isFirst: boolean, next: string): void {
    const lexemes = lex(token);
    let glued = !afterSpace;
    for (const [place, lexeme] of lexemes.entries()) {
      if (lexeme.kind === 'break') {
        const silent = place === lexemes.length - 1 && isAbbreviation(token, isFirst, next);
        if (!silent || lexeme.terminal !== terminals.period) this.breakHere(lexeme.terminal);
      } else if (this.#spoken(lexeme.text, word, glued)) glued = false;
    }
  }

  breakHere(terminal: Terminal): void {
    this.#break = strongest(this.#break, terminal);
  }

  end(): Clause[] {
    this.#close(this.#break);
    const last = this.clauses.at(-1);
    if (last !== undefined && this.#break === null) {
      const cut = isForcedCut(this.#text);
      // A text that just ends was meant as a sentence.
      const terminal = cut ? terminals.continuing : terminals.period;
      this.clauses[this.clauses.length - 1] = { ...last, terminal, ending: cut ? 'cut' : 'sentence' };
    }
    return this.clauses;
  }

  #spoken(text: string, word: number, glued: boolean): boolean {
    const runs = runsOf(text);
    for (const [place, run] of runs.entries()) {
      if (this.#break !== null) {
        this.#close(this.#break);
        this.#break = null;
      }
      const voice = run.voice === null ? null : refineVoice(run.voice, this.#text);
      this.#drafts.push({ text: run.text, voice, word, glued: place === 0 ? glued : true });
    }
    return runs.length > 0;
  }

  #close(terminal: Terminal | null): void {
    if (this.#drafts.length === 0) return;
    const first = this.#drafts.find(({ voice }) => voice !== null)?.voice;
    const atoms: Atom[] = [];
    for (const { text, voice, word, glued } of this.#drafts) {
      // Digits and signs are read in the language around them: the one before, at the start the one after.
      this.#voice = voice ?? this.#voice ?? first ?? defaultVoice;
      const joined = glued && isUnspaced(this.#voice);
      for (const [place, spoken] of partsOf(text).entries())
        atoms.push({ spoken, voice: this.#voice, word, glued: place > 0 ? isUnspaced(this.#voice) : joined });
    }
    const kind = terminal ?? terminals.continuing;
    this.clauses.push({
      atoms,
      terminal: kind,
      ending: kind === terminals.continuing ? 'clause' : 'sentence',
    });
    this.#drafts = [];
  }
}

const isAbbreviation = (token: string, isFirst: boolean, next: string): boolean => {
  if (next === '') return false;
  switch (fullStopAfter(token, isFirst)) {
    case 'inside':
      return true;
    case 'ends':
      return false;
    case 'unless-lower-case':
      return /^\p{Ll}/u.test(next);
    case 'unless-digit':
      return /^\p{Nd}/u.test(next);
  }
};

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

/**
 * Whether the segment ends where it does for its length alone. The segmenter cuts at the last white space before its
 * bound, within a longer token at the bound.
 */
const isForcedCut = (text: string): boolean => {
  let size = 0;
  for (const character of text)
    size += /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u.test(character)
      ? 3
      : 1;
  const { firstSegmentCharactersMax: first, segmentCharactersMax: max } = limits;
  const full = (bound: number, slack: number) => size <= bound && size > bound - slack;
  if (/\n\s*$/.test(text)) return false;
  return /\s$/.test(text) ? full(first, 24) || full(max, 24) : full(first, 3) || full(max, 3);
};

const blankLine = /\n\s*\n|\u2029/;
const lineBreak = /[\n\u2028\u2029]/;

/**
 * @param text the segment, any string
 * @param words its tokens
 * @param spoken what is said in the place of some of them, in order
 * @returns clauses in order, none of them empty; none at all where nothing is spoken
 */
export const clausesOf = (
  text: string,
  words: readonly Span[],
  spoken: readonly Replacement[] = [],
): Clause[] => {
  const reader = new Reader(text);
  let end = 0;
  let isFirst = true;
  const speak = (token: string, word: number, afterSpace: boolean, nextAt: number) => {
    const next = /^\s*(?=(\S))/u.exec(text.slice(nextAt, nextAt + 64))?.[1] ?? '';
    // Compatibility forms may hold white space, and what is said instead of a token is often several words.
    const parts = cleanText(token)
      .split(/\s+/)
      .filter((part) => part !== '');
    for (const [place, part] of parts.entries()) {
      reader.token(part, word, afterSpace || place > 0, isFirst, parts[place + 1] ?? next);
      isFirst = false;
    }
  };
  const between = (gap: string, gapEnd: number): boolean => {
    for (const { 0: token, index } of gap.matchAll(/\S+/g))
      speak(token, -1, true, gapEnd - gap.length + index + token.length);
    if (lineBreak.test(gap)) reader.breakHere(blankLine.test(gap) ? terminals.period : terminals.continuing);
    return gap !== '';
  };
  for (let index = 0, used = 0; index < words.length;) {
    const replacement = spoken[used]?.first === index ? spoken[used++] : undefined;
    const last = replacement?.last ?? index;
    const { start } = words[index]!;
    const spaced = between(text.slice(end, start), start);
    end = words[last]!.end;
    speak(replacement?.spoken ?? text.slice(start, end), index, spaced || isFirst, end);
    index = last + 1;
  }
  const rest = text.slice(end);
  between(rest, text.length);
  if (lineBreak.test(rest)) reader.breakHere(terminals.period);
  return reader.end();
};
