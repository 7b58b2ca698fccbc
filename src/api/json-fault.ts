/**
 * Where a text stops being JSON, and why. `JSON.parse` decides whether it is; its messages name no position for many
 * faults, so this walk, run only over texts that it refused, finds the place for the client.
 */

export interface JsonFault {
  /** In UTF-16 units from the start of the text. */
  readonly position: number;
  readonly message: string;
}

class Fault extends Error implements JsonFault {
  readonly position: number;
  constructor(position: number, message: string) {
    super(message);
    this.position = position;
  }
}

const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const literal = /true|false|null/y;
const hex4 = /[0-9a-fA-F]{4}/y;

const matchEnd = (pattern: RegExp, text: string, at: number): number => {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : -1;
};

const skipSpace = (text: string, start: number): number => {
  let at = start;
  while (at < text.length && ' \t\n\r'.includes(text[at] as string)) at += 1;
  return at;
};

/** @returns the offset past the closing quote */
const stringEnd = (text: string, start: number): number => {
  let at = start + 1;
  while (at < text.length) {
    const unit = text.charCodeAt(at);
    if (unit === 0x22) return at + 1;
    if (unit < 0x20) throw new Fault(at, 'Invalid control character at');
    if (unit !== 0x5c) at += 1;
    else if (text[at + 1] === 'u') {
      if (matchEnd(hex4, text, at + 2) < 0) throw new Fault(at + 1, 'Invalid \\uXXXX escape');
      at += 6;
    } else if (at + 1 < text.length && !'"\\/bfnrt'.includes(text[at + 1] as string))
      throw new Fault(at, 'Invalid \\escape');
    else at += 2;
  }
  throw new Fault(start, 'Unterminated string starting at');
};

const scalarEnd = (text: string, at: number): number => {
  if (text[at] === '"') return stringEnd(text, at);
  const end = Math.max(matchEnd(literal, text, at), matchEnd(number, text, at));
  if (end < 0) throw new Fault(at, 'Expecting value');
  return end;
};

/** @returns the offset of a member's value, past its name and colon */
const memberValue = (text: string, at: number): number => {
  if (text[at] !== '"') throw new Fault(at, 'Expecting property name enclosed in double quotes');
  const colon = skipSpace(text, stringEnd(text, at));
  if (text[colon] !== ':') throw new Fault(colon, "Expecting ':' delimiter");
  return skipSpace(text, colon + 1);
};

const walk = (text: string): void => {
  const closers: ('}' | ']')[] = [];
  let at = skipSpace(text, 0);
  for (;;) {
    // Here a value is due.
    const opener = text[at];
    if (opener === '{' || opener === '[') {
      const closer = opener === '{' ? '}' : ']';
      const inside = skipSpace(text, at + 1);
      if (text[inside] !== closer) {
        closers.push(closer);
        at = closer === '}' ? memberValue(text, inside) : inside;
        continue;
      }
      at = inside + 1;
    } else at = scalarEnd(text, at);
    // Here a value is complete: close what it completes, up to the next comma.
    for (;;) {
      at = skipSpace(text, at);
      const closer = closers.at(-1);
      if (closer === undefined) {
        if (at < text.length) throw new Fault(at, 'Extra data');
        return;
      }
      if (text[at] === closer) {
        closers.pop();
        at += 1;
        continue;
      }
      if (text[at] !== ',') throw new Fault(at, "Expecting ',' delimiter");
      at = skipSpace(text, at + 1);
      if (closer === '}') at = memberValue(text, at);
      break;
    }
  }
};

/** @returns the first fault, or `null` when the text is JSON */
export const findJsonFault = (text: string): JsonFault | null => {
  try {
    walk(text);
    return null;
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
};
