/** From the bytes of a request body to a JSON value, or to the refusal that answers it. */
import { errors } from '../errors.js';
import { limits } from '../limits.js';
import { jsonInvalid, missing, notAnObject, validationBody, type Issue } from './issues.js';
import { findJsonFault } from './json-fault.js';
import { scanJson } from './json-scan.js';

/** A response that answers a body which cannot be used. The body is `application/json`. */
export interface Refusal {
  readonly ok: false;
  readonly status: number;
  readonly body: string;
}

export type JsonBody = { readonly ok: true; readonly value: unknown } | Refusal;

export const refuse = (...issues: readonly Issue[]): Refusal => ({
  ok: false,
  status: 422,
  body: validationBody(issues),
});

const unreadable: Refusal = {
  ok: false,
  status: errors.bodyUnreadable.status,
  body: errors.bodyUnreadable.body,
};

const jsonType = /^application\/(?:json|[^\s;/]+\+json)\s*(?:;|$)/i;
const utf8 = new TextDecoder('utf-8', { fatal: true });

const decode = (bytes: Uint8Array): string | null => {
  try {
    return utf8.decode(bytes);
  } catch {
    return null;
  }
};

type Parsed = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly issue: Issue };

const parse = (text: string): Parsed => {
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch {
    const fault = findJsonFault(text) ?? { position: 0, message: 'Expecting value' };
    return { ok: false, issue: jsonInvalid(fault.position, fault.message) };
  }
};

/**
 * @param bytes the whole body, at most `limits.bodyBytesMax`
 * @param contentType the header's value; absent or empty, the body is taken for JSON
 * @param before items of what is wrong with the rest of the request: they come first in a refusal
 * @returns the value (never `null`), or the refusal: 400 for invalid UTF-8 and for nesting beyond
 * `limits.bodyDepthMax`, 422 for everything else. Of duplicate keys the last counts; `__proto__` is a key as any.
 */
export const parseJsonBody = (
  bytes: Uint8Array,
  contentType: string | undefined,
  before: readonly Issue[] = [],
): JsonBody => {
  if (bytes.length === 0) return refuse(...before, missing(['body'], null));
  const type = contentType?.trim() ?? '';
  if (type !== '' && !jsonType.test(type))
    return refuse(
      ...before,
      notAnObject(['body'], Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()),
    );
  const text = decode(bytes);
  if (text === null) return unreadable;
  const scan = scanJson(bytes, limits.bodyDepthMax);
  if (scan.tooDeep) return unreadable;
  const json = parse(text);
  if (!json.ok) return refuse(...before, json.issue);
  if (scan.overflowAt >= 0) {
    const position = utf8.decode(bytes.subarray(0, scan.overflowAt)).length;
    return refuse(...before, jsonInvalid(position, 'Number out of range'));
  }
  return json.value === null ? refuse(...before, missing(['body'], null)) : json;
};
