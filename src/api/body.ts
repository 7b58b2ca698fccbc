/** Turns the bytes of a request body into a JSON value, or into the refusal that answers it. */
import { isUtf8 } from 'node:buffer';
import { errors } from '../errors.js';
import { jsonInvalid, missing, notAnObject, validationBody, type Issue } from './issues.js';
import { scanJson, textOf } from './json.js';
import type { Bounds } from '../limits.js';

/** The response to a request that is not valid. Its body is `application/json`. */
export interface Refusal {
  readonly ok: false;
  readonly status: number;
  readonly body: string;
}

export type JsonBody = { readonly ok: true; readonly value: unknown } | Refusal;

export const refuse = (issues: readonly Issue[], bounds: Bounds): Refusal => ({
  ok: false,
  status: 422,
  body: validationBody(issues, bounds),
});

const unreadable: Refusal = {
  ok: false,
  status: errors.bodyUnreadable.status,
  body: errors.bodyUnreadable.body,
};

const jsonType = /^application\/(?:json|[^\s;/]+\+json)\s*(?:;|$)/i;
/** @returns the text without a byte order mark, or `null` if the bytes are not UTF-8 */
export const decode = (bytes: Buffer): string | null => {
  if (!isUtf8(bytes)) return null;
  const text = textOf(bytes);
  return text.startsWith('\ufeff') ? text.slice(1) : text;
};

/** Ends the messages of `JSON.parse` that quote the text. */
const quote = /(?:^|, (?:\.\.\.)?)"[^]*"(?:\.\.\.)? is not valid JSON$/;

/** @returns the value, or the parser's words for the fault, without what it quotes of the text */
export const parseJson = (text: string): { readonly value: unknown } | { readonly fault: string } => {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { fault: (error as SyntaxError).message.replace(quote, '') || 'Unexpected token' };
  }
};

/**
 * @param bytes the whole body, at most `bodyBytesMax`
 * @param contentType the header's value; if it is absent or empty, the body counts as JSON
 * @param before items of the rest of the request: they come first in a refusal
 * @returns the value (never `null`), or the refusal: 400 for invalid UTF-8, nesting beyond `bodyDepthMax` and more than
 * `bodyTokensMax` names and values, 422 for everything else. The last of duplicate keys counts; `__proto__` is a key like any other.
 */
export const parseJsonBody = (
  bytes: Uint8Array,
  contentType: string | undefined,
  bounds: Bounds,
  before: readonly Issue[] = [],
): JsonBody => {
  const refuseFor = (issue: Issue): Refusal => refuse([...before, issue], bounds);
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length === 0) return refuseFor(missing(['body'], null));
  const type = contentType?.trim() ?? '';
  if (type !== '' && !jsonType.test(type)) return refuseFor(notAnObject(['body'], buffer.toString()));
  const scan = scanJson(buffer, { depthMax: bounds.bodyDepthMax, tokensMax: bounds.bodyTokensMax });
  if (scan.excess !== null) return unreadable;
  const text = decode(buffer);
  if (text === null) return unreadable;
  const json = parseJson(text);
  if (!('value' in json)) {
    const [, position] = /at position (\d+)/.exec(json.fault) ?? [];
    return refuseFor(jsonInvalid(position === undefined ? null : Number(position), json.fault));
  }
  if (scan.overflowAt >= 0) {
    const position = decode(buffer.subarray(0, scan.overflowAt))?.length ?? 0;
    return refuseFor(jsonInvalid(position, 'Number out of range'));
  }
  return json.value === null ? refuseFor(missing(['body'], null)) : { ok: true, value: json.value };
};
