/**
 * Marks that begin a line, as language models write them: lists, headings, quotes and tables. They are silent. Marks that
 * come in pairs are the lexer's.
 */

const listMark = /^(?:[*+•◦▪▫‣⁃●○■□➤►-]|\[[ xX]\])$/u;
const headingMark = /^#{1,6}$/;

/** A number in brackets that names a source, or several: [1], [2,3], [4][5]. */
const citation = /^(?:\[\^?[1-9]\d{0,2}(?:[-–,]\d{1,3})*\])+[.,;:!?)"”’]*$/;
/** Before a number in brackets that is part of the sentence. */
const cue =
  /:$|^(?:press|hit|keys?|button|option|number|type|enter|dial|choose|select|click|step|level|items?|index|row|column|list|see|in|by|from|with|of|and|or|to|ref|reference|say|is)$/i;

/** Cells are separated by a pause, and the row of dashes is silent. */
const cells = (token: string): string => (/^[|:-]+$/.test(token) ? ';' : token.replaceAll('|', ';'));

export class Lines {
  #isStart = true;
  #kind: 'text' | 'heading' | 'table' = 'text';

  /** @param isStart the text begins with a line */
  constructor(isStart: boolean) {
    this.#isStart = isStart;
  }

  /** A line ends. */
  break(): void {
    this.#isStart = true;
    this.#kind = 'text';
  }

  /** @returns what is spoken of the next token; '' for a mark */
  read(token: string): string {
    if (this.#kind === 'table') return cells(token);
    if (!this.#isStart) return this.#kind === 'heading' && headingMark.test(token) ? '' : token;
    if (listMark.test(token)) return '';
    const rest = token.replace(/^>+(?=$|[^=\d])/, '');
    if (rest === '') return '';
    this.#isStart = false;
    if (headingMark.test(rest)) {
      this.#kind = 'heading';
      return '';
    }
    if (!rest.startsWith('|')) return rest;
    this.#kind = 'table';
    return cells(rest);
  }

  /** Whether the next token is a mark of a list, whatever a rule makes of it. */
  isMark(token: string): boolean {
    return this.#isStart && listMark.test(token);
  }

  /**
   * What is spoken of a number in brackets: nothing but the marks after it, or, where the sentence needs it, its form without
   * brackets. Other tokens have their form.
   *
   * @param before the token before
   */
  withoutSource(token: string, form: string, before: string): string {
    if (!token.startsWith('[') || this.#isStart || before === '' || !citation.test(token)) return form;
    return cue.test(before) ? form.replace(/[[\]]/g, '') : token.replace(/^.*\]/, '');
  }
}
