/** The neighbouring text of a segment that is cut within a clause, so that the voice can speak it as part of a clause. */
import { CLAUSE, CLOSER, NEWLINE, TERMINATOR, WHITE, classOf } from './characters.js';
import { fullStopAfter, goesOnAfter } from './full-stop.js';

/** UTF-16 units at most. */
const neighbourMax = 32;
/** A text of at most this length stays whole, such as a first segment of a WebSocket. */
const wholeMax = 40;

const bitsAt = (text: string, at: number): number => classOf(text.charCodeAt(at));
const isWhite = (text: string, at: number): boolean => (bitsAt(text, at) & WHITE) !== 0;

/** The start of the token that ends at `end`. */
const tokenStart = (text: string, end: number): number => {
  let start = end;
  while (start > 0 && !isWhite(text, start - 1)) start--;
  return start;
};

/** Whether a segment ends within a clause: with no mark that ends a clause, and no line end after it. */
const endsInClause = (segment: string, isOneWord: boolean, rest: string, code: string): boolean => {
  let end = segment.length;
  for (; end > 0 && isWhite(segment, end - 1); end--) if (bitsAt(segment, end - 1) & NEWLINE) return false;
  const next = /\S/u.exec(rest);
  for (let at = 0; at < (next?.index ?? rest.length); at++) if (bitsAt(rest, at) & NEWLINE) return false;
  let mark = end - 1;
  while (mark > 0 && bitsAt(segment, mark) & CLOSER) mark--;
  const bits = bitsAt(segment, mark);
  if (!(bits & TERMINATOR)) return !(bits & CLAUSE);
  if (!'.…'.includes(segment.charAt(mark))) return false;
  const token = segment.slice(tokenStart(segment, end), end);
  return goesOnAfter(fullStopAfter(token, isOneWord, code), next?.[0] ?? '');
};

const firstLine = (text: string): string => {
  for (let at = 0; at < text.length; at++) if (bitsAt(text, at) & NEWLINE) return text.slice(0, at);
  return text;
};

/**
 * The continuation of the clause that the segment cuts; '' if it cuts none, or no continuation is known.
 *
 * @param rest the known text after the segment
 * @param isWhole the last token of `rest` is complete; a part of a token says nothing about its sound
 * @param code primary subtag of the language: `de`
 */
export const clauseAfter = (
  segment: string,
  isOneWord: boolean,
  rest: string,
  isWhole: boolean,
  code = 'en',
): string => {
  if (rest.trim() === '' || !endsInClause(segment, isOneWord, rest, code)) return '';
  const line = firstLine(rest);
  const known = line.slice(0, neighbourMax);
  const endsToken = known.length < rest.length ? isWhite(rest, known.length) : isWhole;
  const whole = endsToken ? known : known.slice(0, tokenStart(known, known.length));
  return whole.trim() === '' ? known : whole;
};

/** The end of a text that cuts a clause; all of a short one. */
export const clauseBefore = (text: string): string => {
  if (text.length <= wholeMax) return text;
  const from = text.length - neighbourMax;
  if (isWhite(text, from - 1)) return text.slice(from);
  const space = text.slice(from).search(/\s/u);
  const whole = space < 0 ? '' : text.slice(from + space + 1);
  return whole.trim() === '' ? text.slice(from) : whole;
};
