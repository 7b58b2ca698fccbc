/** Decodes JSON text fast, and scans it before `JSON.parse`: how deep it nests, how much it holds and whether a number in it overflows. */

import { isAscii, transcode } from 'node:buffer';

/** Longer text that is not ASCII takes V8's decoder four times as long as this one. */
const LONG_TEXT_BYTES = 16 * 1024;

/** @param bytes valid UTF-8 */
export const textOf = (bytes: Buffer): string => {
  if (isAscii(bytes)) return bytes.toString('latin1');
  if (bytes.length < LONG_TEXT_BYTES) return bytes.toString('utf8');
  return transcode(bytes, 'utf8', 'utf16le').toString('utf16le');
};

/** Bounds on JSON text that `JSON.parse` may see: its time grows with them far more than with the length. */
export interface JsonBounds {
  /** Levels of arrays and objects. */
  readonly depthMax: number;
  /** Opening brackets, commas and colons outside strings. There are about as many as names and values. */
  readonly tokensMax: number;
}

/** A member of the outermost object whose string may be long, while everything else is short. */
export interface LongMember {
  readonly name: string;
  /** Bytes of everything but the strings of that member. */
  readonly otherBytesMax: number;
}

/** A string in JSON text, by the byte offsets of its quotes. */
export interface ScannedText {
  readonly start: number;
  /** Past the closing quote. */
  readonly end: number;
  /** The string has at least so many bytes in UTF-8; exactly so many where nothing is escaped. */
  readonly bytesMin: number;
}

/** What the bytes of JSON text show before anything recursive or expensive touches them. */
export interface JsonScan {
  /** The bound that the text exceeds; the scan stops there. */
  readonly excess: 'depth' | 'tokens' | 'bytes' | null;
  /**
   * Byte offset of the first number that overflows, else -1. `JSON.parse` makes it Infinity, which JSON cannot echo.
   */
  readonly overflowAt: number;
  /** The string of the long member; of several, the last. */
  readonly longText: ScannedText | null;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const SMALL_U = 0x75;

const isNumberByte = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) || // 0-9
  byte === 0x2d || // -
  byte === 0x2b || // +
  byte === 0x2e || // .
  byte === 0x45 || // E
  byte === 0x65; // e

/** Searches as fast as memory is read, unless something in the string is escaped. */
const scanText = (bytes: Buffer, start: number): ScannedText => {
  const quote = bytes.indexOf(QUOTE, start + 1);
  const plainEnd = quote < 0 ? bytes.length : quote;
  const backslash = bytes.subarray(0, plainEnd).indexOf(BACKSLASH, start + 1);
  if (backslash < 0) return { start, end: plainEnd + 1, bytesMin: plainEnd - start - 1 };
  let at = backslash;
  let bytesMin = backslash - start - 1;
  while (at < bytes.length && bytes[at] !== QUOTE) {
    bytesMin += 1;
    if (bytes[at] !== BACKSLASH) at += 1;
    else at += bytes[at + 1] === SMALL_U ? 6 : 2;
  }
  return { start, end: at + 1, bytesMin };
};

/** The search of the runtime is faster than a loop from about here on. */
const SHORT_STRING_BYTES = 64;

/** @returns the offset past the closing quote, or `end` if there is none */
const skipString = (bytes: Buffer, start: number, end: number): number => {
  let at = start + 1;
  const shortEnd = Math.min(end, at + SHORT_STRING_BYTES);
  while (at < shortEnd) {
    const byte = bytes[at];
    if (byte === QUOTE) return at + 1;
    at += byte === BACKSLASH ? 2 : 1;
  }
  return at < end ? Math.min(end, scanText(bytes, at - 1).end) : end;
};

const overflows = (bytes: Uint8Array, start: number, end: number): boolean => {
  // "1e999" is the shortest literal that overflows, so most numbers never become a string here.
  if (end - start < 5) return false;
  const value = Number(Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('latin1'));
  return value === Infinity || value === -Infinity;
};

/** @param bytes any content; the scan goes as far as it looks like JSON */
export const scanJson = (bytes: Buffer, bounds: JsonBounds, long: LongMember | null = null): JsonScan => {
  const longName = long === null ? null : Buffer.from(JSON.stringify(long.name));
  let end = Math.min(bytes.length, long?.otherBytesMax ?? Infinity);
  let depth = 0;
  let tokens = 0;
  let overflowAt = -1;
  let longText: ScannedText | null = null;
  // The last string in the outermost object, and whether the value of the long member is due.
  let nameStart = 0;
  let nameEnd = 0;
  let isLongDue = false;
  let at = 0;
  while (at < end) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) {
      if (isLongDue) {
        longText = scanText(bytes, at);
        end = Math.min(bytes.length, end + longText.end - at);
        at = longText.end;
        isLongDue = false;
        continue;
      }
      nameStart = at;
      at = nameEnd = skipString(bytes, at, end);
      continue;
    }
    if (byte === 0x2d || (byte >= 0x30 && byte <= 0x39)) {
      const start = at;
      do at += 1;
      while (at < end && isNumberByte(bytes[at] as number));
      if (overflowAt < 0 && overflows(bytes, start, at)) overflowAt = start;
      continue;
    }
    const opens = byte === 0x5b || byte === 0x7b;
    if (opens || byte === COMMA || byte === COLON) {
      tokens += 1;
      if (tokens > bounds.tokensMax) return { excess: 'tokens', overflowAt, longText };
      isLongDue =
        byte === COLON &&
        depth === 1 &&
        longName !== null &&
        longName.equals(bytes.subarray(nameStart, nameEnd));
    }
    if (opens) {
      depth += 1;
      if (depth > bounds.depthMax) return { excess: 'depth', overflowAt, longText };
    } else if (byte === 0x5d || byte === 0x7d) depth -= 1;
    at += 1;
  }
  return { excess: end < bytes.length ? 'bytes' : null, overflowAt, longText };
};
