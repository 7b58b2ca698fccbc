/**
 * Marks that begin a line, as language models write them: lists, headings, quotes and tables. They are silent. Marks that
 * come in pairs are the lexer's.
 */

const listMark = /^(?:[*+•◦▪▫‣⁃●○■□➤►-]|\[[ xX]\])$/u;
/** After a sign that compares or adds: "> 50 people", "+ 5 points". */
const amount = /^[^\S\n]*[\p{Nd}$€£¥]/u;
/** A second | that stands apart, or one at the end of the line; not |x|. */
const isRow = /^\|[^\n]*(?:\s\|\s|\|[^\S\n]*(?:\n|$))/;
const headingMark = /^#{1,6}$/;

/** A number in brackets that names a source, or several, at the end of a token: [1], [2,3], [4][5]. */
const citedNumbers = String.raw`\[\^?[1-9]\d{0,2}(?:[-–,]\d{1,3})*\]`;
const citation = new RegExp(`(?<!${citedNumbers})((?:${citedNumbers})+)([.,;:!?)"”’]*)$`);
const citationMax = 64;
/** Before a number in brackets that is part of the sentence. */
const sign = /[=<>≤≥≠≈+−×÷/^&|@([{-]$/;
const cue =
  /:$|^(?:press|hit|keys?|button|option|number|type|enter|dial|choose|select|click|step|level|items?|index|row|column|list|see|in|by|from|with|of|and|or|to|ref|reference|say|pages?|is|are|was|be|returns?|returned|equals?|contains?|gives?|yields?|prints?)$/i;
/** The same before several numbers. */
const cueOfSeveral =
  /^(?:intervals?|ranges?|sets?|arrays?|vectors?|tuples?|matrix|values?|outputs?|between)$/i;
/** Names of what has numbered parts. */
const indexed = /(?:^|[^\p{L}])(?:arr|array|list|args|argv|items?|data|values|matrix|vector|rows?|cols?)$/u;

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

  /** The line has a word. */
  began(): void {
    this.#isStart = false;
  }

  /**
   * @param following the text after the token
   * @returns what is spoken of the next token; '' for a mark
   */
  read(token: string, following: string): string {
    if (this.#kind === 'table') return cells(token);
    if (!this.#isStart) return this.#kind === 'heading' && headingMark.test(token) ? '' : token;
    if (this.isMark(token, following)) return '';
    const rest = /^>+$/.test(token) && amount.test(following) ? token : token.replace(/^>+(?=$|[^=\d])/, '');
    if (rest === '') return '';
    this.#isStart = false;
    if (headingMark.test(rest) && (rest !== '#' || !/^[^\S\n]*[\p{Ll}\p{Nd}]/u.test(following))) {
      this.#kind = 'heading';
      return '';
    }
    if (!rest.startsWith('|') || !isRow.test(rest + following)) return rest;
    this.#kind = 'table';
    return cells(rest);
  }

  /** Whether the next token is a mark of a list, whatever a rule makes of it. */
  isMark(token: string, following: string): boolean {
    return this.#isStart && listMark.test(token) && (token !== '+' || !amount.test(following));
  }

  /**
   * The form of a token without numbers of sources; where the sentence needs such a number, without its brackets. The * of
   * "5 *3" stands apart, so that it is no emphasis.
   *
   * @param before the token before
   * @param following the text after the token
   */
  formOf(token: string, form: string, before: string, following: string): string {
    const isProduct =
      (!this.#isStart && /^\*\p{N}[\p{N}.,]*$/u.test(token) && /\p{N}$/u.test(before)) ||
      (/^\p{N}[\p{N}.,]*\*$/u.test(token) && /^[^\S\n]*\p{N}/u.test(following));
    // "Settings > General": a pause
    const isPath = token === '>' && !this.#isStart && /^[^\S\n]+\W{0,3}\p{Lu}\p{Ll}/u.test(following);
    if (isPath && /^\W{0,3}\p{Lu}\p{Ll}/u.test(before)) return ',';
    if (isProduct) return form.replace('*', ' * ');
    if (!token.includes(']') || token.length > citationMax) return form;
    const found = citation.exec(token);
    if (found === null || (found.index === 0 && (this.#isStart || before === ''))) return form;
    const [, numbers = '', tail = ''] = found;
    const word = token.slice(0, found.index);
    const isEnd = tail !== '' || /^[^\S\n]*(?:\n|$)/.test(following);
    const isValue = sign.test(before);
    if (word === '') {
      const isSeveral = numbers.includes(',');
      if (isValue || cue.test(before) || (isSeveral && (!isEnd || cueOfSeveral.test(before))))
        return form.replace(/[[\]]/g, '').replace(/,(?=\d)/g, ', ');
      return tail;
    }
    const isSource = /\p{L}$/u.test(word)
      ? before !== '' &&
        !isValue &&
        /^[\p{L}"“(’'-]{2,}$/u.test(word) &&
        !indexed.test(word) &&
        (isEnd || numbers.includes(']['))
      : /[.,;!?"”)]$/.test(word) && !/\p{L}\(/u.test(word);
    return isSource ? form.replace(/(?<!\[[^[\]]*\])(?:\[[^[\]]*\])+(?=[.,;:!?)"”’]*$)/, '') : form;
  }
}
