/**
 * The phones of a segment. They are made from its text piece by piece: first audio must not wait for the whole.
 *
 * A track is a pause, then clauses with a pause after each, as the nets were trained. Phones of a clause that other
 * segments speak stand before the first spoken phone and after the last. A phone can be encoded once its place in its
 * clause is final: the clause has ended, or its end is further away than the nets can tell.
 */
import type { Bounds } from '../../../src/limits.js';
import type { Atom, Clause, Ending } from '../g2p/clauses.js';
import { type Terminal, terminals } from '../g2p/lexer.js';
import { type Pronouncer, type SpokenAtom, piecesOf } from '../g2p/pronunciation.js';
import type { PhoneSet } from './phones.js';

/** Phones from a clause's start or end beyond which the nets see no difference. */
export const placeMax = 40;

/** The kind of a pause: the first one, or one after a clause. */
export type Pause = 'lead' | Ending;

/** What is known of a clause from its start on. */
export interface TrackClause {
  /** 0, 1, 2 ... within the segment. */
  readonly number: number;
  /** Most likely a full stop, while its end is unknown. */
  readonly terminal: Terminal;
  /** Other segments speak a part of it. */
  readonly isCut: boolean;
}

/** What all tracks of a pack share. */
export interface TrackMeans {
  readonly pronouncer: Pronouncer;
  readonly phones: Pick<PhoneSet, 'pause' | 'isVowel'>;
  readonly bounds: Pick<Bounds, 'firstPhonemeTextMax' | 'phonemeTextMax'>;
}

export class PhoneTrack {
  readonly ids: number[] = [];
  readonly stress: number[] = [];
  readonly wordStart: number[] = [];
  readonly terminal: number[] = [];
  /** The kind of pause, `null` for sounds. */
  readonly pause: (Pause | null)[] = [];
  /** Whether another segment speaks it. */
  readonly aside: boolean[] = [];
  /** Where the clause of each phone began; far before the first phone if that is unknown. */
  readonly clauseStart: number[] = [];
  readonly #clauseEnds: number[] = [];
  readonly #spanOf: number[] = [];
  readonly #clauseOf: number[] = [];
  /** First and last phone of each word; -1 if it has none. Of words that are spoken as one, the first has the phones. */
  readonly wordFirst: Int32Array;
  readonly wordLast: Int32Array;
  readonly #clauses: readonly Clause[];
  /** The pieces of each clause that are to come. */
  readonly #pieces: readonly Atom[][][];
  readonly #means: TrackMeans;
  #clause = 0;
  #atom = 0;
  #openClauseStart = 0;
  /** Phones of the open clause before the track's first. */
  #phonesBefore = 0;
  #hasAsideBefore = false;
  #first = -1;
  #end = -1;

  constructor(clauses: readonly Clause[], words: number, means: TrackMeans) {
    this.#clauses = clauses;
    this.#means = means;
    this.#pieces = piecesOf(clauses, means.bounds.phonemeTextMax, means.bounds.firstPhonemeTextMax);
    this.wordFirst = new Int32Array(words).fill(-1);
    this.wordLast = new Int32Array(words).fill(-1);
    if (clauses[0]?.continues !== true) this.#addPause('lead');
  }

  get length(): number {
    return this.ids.length;
  }

  /** All text has become phones. */
  get complete(): boolean {
    return this.#clause === this.#clauses.length;
  }

  /** The first spoken phone, -1 while there is none: a pause, or a sound if the clause began in another segment. */
  get first(): number {
    return this.#first;
  }

  /** The phone after the last spoken one; -1 while it is unknown. */
  get end(): number {
    return this.#end < 0 && this.complete ? this.length : this.#end;
  }

  /** The number of phones whose place is final. */
  get ready(): number {
    // A clause that goes on beyond the known text ends further away than the nets can tell.
    if (this.complete || this.#clauses[this.#clause]!.ending === null) return this.length;
    return Math.max(this.#openClauseStart, this.length - placeMax);
  }

  /** The number of words, from the first, whose phones are complete. */
  get wordsReady(): number {
    for (let clause = this.#clause; clause < this.#clauses.length; clause++) {
      const { atoms } = this.#clauses[clause]!;
      for (let atom = clause === this.#clause ? this.#atom : 0; atom < atoms.length; atom++)
        if (atoms[atom]!.word >= 0) return atoms[atom]!.word;
    }
    return this.wordFirst.length;
  }

  /**
   * Phones between this one and the end of its clause, an input of the encoder; at most `placeMax`. Final for phones before
   * `ready`. The segment that spoke the start of a cut clause could not see its end, and spoke as if it were far away. So
   * this one begins as if it were: otherwise F0 would jump at the cut.
   */
  phonesToEnd(phone: number): number {
    const isAfterCut = this.#first > 0 && this.clauseStart[phone]! <= this.#first;
    if (!isAfterCut) return this.#knownToEnd(phone);
    const stretch = placeMax / Math.max(1, this.#knownToEnd(this.#first));
    return Math.min(this.#knownToEnd(phone) * stretch, placeMax);
  }

  #knownToEnd(phone: number): number {
    const end = this.#clauseEnds[this.#spanOf[phone]!] ?? this.length + placeMax;
    return Math.min(end - 1 - phone, placeMax);
  }

  isVowel(phone: number): boolean {
    return this.#means.phones.isVowel(this.ids[phone]!);
  }

  /** The clause of a sound. */
  clauseOf(phone: number): TrackClause {
    const number = this.#clauseOf[phone]!;
    const { atoms, terminal, ending, continues } = this.#clauses[number]!;
    return {
      number,
      terminal: ending === null ? terminals.period : terminal,
      isCut: continues || ending === null || atoms.some(({ aside }) => aside),
    };
  }

  /** Turns the next piece of text into phones, with one call of espeak-ng. Do not call it when complete. */
  advance(): void {
    const { atoms, terminal, ending, continues } = this.#clauses[this.#clause]!;
    if (continues) this.#phonesBefore = placeMax;
    const piece = this.#pieces[this.#clause]!.shift()!;
    this.#atom += piece.length;
    for (const [place, spoken] of this.#means.pronouncer.pronounce(piece, this.#pieces.flat()).entries())
      this.#addAtom(piece[place]!, spoken, terminal);
    if (this.#atom === atoms.length) this.#endClause(ending);
  }

  #addAtom({ word, aside }: Atom, { ids, stress, wordStart }: SpokenAtom, terminal: number): void {
    if (aside && this.#first < 0) this.#hasAsideBefore = true;
    else if (aside && this.#end < 0) this.#end = this.length;
    if (ids.length === 0) return;
    if (!aside && this.#first < 0) this.#first = this.#hasAsideBefore ? this.length : 0;
    if (word >= 0) {
      if (this.wordFirst[word] === -1) this.wordFirst[word] = this.length;
      this.wordLast[word] = this.length + ids.length - 1;
    }
    for (let i = 0; i < ids.length; i++) this.#add(ids[i]!, stress[i]!, wordStart[i]!, terminal, null, aside);
  }

  #endClause(ending: Ending | null): void {
    this.#clause++;
    this.#atom = 0;
    // A clause without a sound (signs that are not spoken) adds no pause: the clause before takes its ending.
    if (this.length > this.#openClauseStart) {
      this.#close(ending === null ? placeMax : 0);
      if (ending !== null) this.#addPause(ending);
    } else if (ending !== null && this.length > 1) this.pause[this.length - 1] = ending;
  }

  #addPause(pause: Pause): void {
    this.#add(this.#means.phones.pause, 0, 0, terminals.continuing, pause, false);
    this.#close();
  }

  #add(
    id: number,
    stress: number,
    wordStart: number,
    terminal: number,
    pause: Pause | null,
    aside: boolean,
  ): void {
    this.ids.push(id);
    this.stress.push(stress);
    this.wordStart.push(wordStart);
    this.terminal.push(terminal);
    this.pause.push(pause);
    this.aside.push(aside);
    this.clauseStart.push(this.#openClauseStart - this.#phonesBefore);
    this.#spanOf.push(this.#clauseEnds.length);
    this.#clauseOf.push(this.#clause);
  }

  /** Ends the open clause. @param phonesAfter phones of it after the track's last */
  #close(phonesAfter = 0): void {
    this.#clauseEnds.push(this.length + phonesAfter);
    this.#openClauseStart = this.length;
    this.#phonesBefore = 0;
  }
}
