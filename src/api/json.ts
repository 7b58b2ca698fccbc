/**
 * Two looks at JSON text that `JSON.parse` does not take: before parsing, how deep it nests and whether a number in it
 * overflows; after a failure, where the text stops being JSON.
 */

/** `JSON.parse` decides whether a text is JSON, but its messages often name no position. */
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
    // A value is due here.
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
    // A value is complete: close what it completes, up to the next comma.
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

/** Only for texts that `JSON.parse` refused. @returns the first fault, or `null` if the text is JSON */
export const findJsonFault = (text: string): JsonFault | null => {
  try {
    walk(text);
    return null;
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
};

/** What the bytes of a JSON body show before anything recursive or expensive touches them. */
export interface JsonScan {
  /** Whether arrays and objects nest deeper than the bound. */
  readonly tooDeep: boolean;
  /**
   * Byte offset of the first number that overflows, else -1. `JSON.parse` makes it Infinity, which JSON cannot echo.
   */
  readonly overflowAt: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

const isNumberByte = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) || // 0-9
  byte === 0x2d || // -
  byte === 0x2b || // +
  byte === 0x2e || // .
  byte === 0x45 || // E
  byte === 0x65; // e

/** @returns the offset past the closing quote, or the length if there is none */
const skipString = (bytes: Uint8Array, start: number): number => {
  let at = start + 1;
  while (at < bytes.length) {
    const byte = bytes[at];
    if (byte === QUOTE) return at + 1;
    at += byte === BACKSLASH ? 2 : 1;
  }
  return bytes.length;
};

const overflows = (bytes: Uint8Array, start: number, end: number): boolean => {
  // "1e999" is the shortest literal that overflows, so most numbers never become a string here.
  if (end - start < 5) return false;
  const value = Number(Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('latin1'));
  return value === Infinity || value === -Infinity;
};

/** @param bytes any content; the scan goes as far as it looks like JSON */
export const scanJson = (bytes: Uint8Array, depthMax: number): JsonScan => {
  let depth = 0;
  let overflowAt = -1;
  let at = 0;
  while (at < bytes.length) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) {
      at = skipString(bytes, at);
      continue;
    }
    if (byte === 0x2d || (byte >= 0x30 && byte <= 0x39)) {
      const start = at;
      do at += 1;
      while (at < bytes.length && isNumberByte(bytes[at] as number));
      if (overflowAt < 0 && overflows(bytes, start, at)) overflowAt = start;
      continue;
    }
    if (byte === 0x5b || byte === 0x7b) {
      depth += 1;
      if (depth > depthMax) return { tooDeep: true, overflowAt };
    } else if (byte === 0x5d || byte === 0x7d) depth -= 1;
    at += 1;
  }
  return { tooDeep: false, overflowAt };
};
