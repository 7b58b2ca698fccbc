/**
 * One pass over the bytes of a JSON body before anything recursive or expensive touches it: how deep it nests, and
 * whether a number in it is too large to hold (`JSON.parse` makes that Infinity, which JSON cannot even echo).
 */

export interface JsonScan {
  /** Whether arrays and objects nest deeper than the bound. */
  readonly tooDeep: boolean;
  /** Byte offset of the first number that overflows, else -1. */
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

/** Offset just past the closing quote, or the length when there is none. */
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
  // "1e999" is the shortest literal that overflows: most numbers never become a string here.
  if (end - start < 5) return false;
  const value = Number(Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('latin1'));
  return value === Infinity || value === -Infinity;
};

/** @param bytes of any content; what is not JSON is scanned as far as it looks like it */
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
